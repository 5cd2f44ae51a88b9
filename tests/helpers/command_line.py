"""The command line, without a process of its own."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gesmr.lab.cli import app


def put_module(monkeypatch: pytest.MonkeyPatch, home: Path, name: str, text: str) -> None:
    """Work in `home`, with a module that this process has not seen there, whatever an earlier test has imported."""
    (home / f"{name}.py").write_text(text)
    monkeypatch.chdir(home)
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))


def gesmr(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr
