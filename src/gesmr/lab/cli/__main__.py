"""`python -m gesmr.lab.cli`."""

from . import app

app()
