"""What Ctrl-C leaves behind, and the command that continues it."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path


def kept(what: str, *more: str) -> str:
    """That `what` is kept; the command that was given continues it, with `more` options if it lacks them."""
    return f"interrupted; {what}. To continue:\n  {again(*more)}"


def given() -> str:
    """The command that was given, wherever the program lies."""
    return shlex.join(["gesmr", *sys.argv[1:]])


def again(*more: str) -> str:
    """The command that was given, for a shell."""
    given = sys.argv[1:]
    return shlex.join([*_program(), *given, *(option for option in more if option not in given)])


def _program() -> Sequence[str]:
    """How the program was called, so that it is found again."""
    called, found = Path(sys.argv[0]), shutil.which("gesmr")
    if called.name != "gesmr":
        return sys.executable, "-m", "gesmr"
    is_found = found is not None and Path(found).resolve() == called.resolve()
    return ("gesmr",) if is_found else (str(called),)
