"""The command line: `gesmr study …`, `report`, `watch`, `landscape`, `minimize`, `compare` and `playground`."""

import sys
from importlib.util import find_spec

# All of the extra: typer and rich are often there without the others, which only some commands import, and late
if any(find_spec(package) is None for package in ("jinja2", "matplotlib", "PIL", "plotly", "rich", "typer")):
    sys.exit("the gesmr command needs more than the library: pip install 'gesmr[lab]'")

from . import compare, minimize, playground, studies  # noqa: F401
from .command import app

__all__ = ["app"]
