"""`python -m gesmr`."""

from .lab.cli import app

app()
