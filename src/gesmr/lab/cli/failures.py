"""An error of a user's function, as the user should see it: with the lines that are the user's."""

import os
import re
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

ALL = "GESMR_TRACEBACK"  # set to 1, it shows everything
_OURS = Path(__file__).parents[2]
_INSTALLED = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_FILE = re.compile(r'^ +File "(?P<path>.+?)", line ')


def told(error: BaseException) -> str | None:
    """The error with the frames of the user's files alone; None if it has none, and so is not the user's."""
    whole = traceback.TracebackException.from_exception(error)
    if not any(_frames(part) or _in_notes(part) for part in _chain(whole)):
        return None
    if os.environ.get(ALL, "0") not in ("", "0"):
        return "".join(whole.format()).rstrip()
    for part in _chain(whole):
        part.stack = traceback.StackSummary.from_list(_frames(part))
        part.__notes__ = [_shortened(note) for note in part.__notes__ or () if "internal frames" not in note] or None
    return "".join(whole.format()).rstrip() + f"\n({ALL}=1 shows all that was called.)"


def _chain(error: traceback.TracebackException | None) -> Iterable[traceback.TracebackException]:
    """The error and those it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _frames(error: traceback.TracebackException) -> list[traceback.FrameSummary]:
    return [frame for frame in error.stack if _is_users(frame.filename)]


def _in_notes(error: traceback.TracebackException) -> bool:
    """Whether it came from a worker, which writes a traceback of its own into a note."""
    found = (_FILE.match(line) for note in error.__notes__ or () for line in note.splitlines())
    return any(match is not None and _is_users(match["path"]) for match in found)


def _shortened(note: str) -> str:
    """A traceback in a note, less the frames that are not the user's."""
    kept, shown = [], True
    for line in note.splitlines():
        if (match := _FILE.match(line)) is not None:
            shown = _is_users(match["path"])
        elif not line.startswith("    "):  # a frame's source is indented further than what surrounds it
            shown = True
        if shown:
            kept.append(line)
    return "\n".join(kept)


def _is_users(filename: str) -> bool:
    if filename.startswith("<"):
        return False
    path = Path(filename).resolve()
    return not any(path.is_relative_to(place) for place in (_OURS, *_INSTALLED))
