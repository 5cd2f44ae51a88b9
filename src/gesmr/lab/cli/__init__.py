"""The command line: `gesmr study …`, `report`, `watch`, `landscape`, `minimize`, `compare` and `playground`."""

import sys

try:
    import rich as _rich  # noqa: F401
    import typer as _typer  # noqa: F401
except ImportError:
    sys.exit("the gesmr command needs more than the library: pip install 'gesmr[lab]'")

from . import compare, minimize, playground, studies  # noqa: F401
from .command import app

__all__ = ["app"]
