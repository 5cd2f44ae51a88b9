"""What --help says: examples that work, in 80 columns."""

import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest
import typer

from gesmr.lab.cli import app
from helpers.command_line import gesmr, put_module

ROOT = typer.main.get_command(app)
MODULE = """
import jax.numpy as jnp
import numpy as np

def loss(x):
    return float(np.sum((x - 1) ** 2))

def many(xs):
    return jnp.sum(xs**2, axis=-1)
"""


def _commands(command, path=()):
    """Every command and group, by what is typed."""
    found = {path: command}
    for name, below in getattr(command, "commands", {}).items():
        found |= _commands(below, (*path, name))
    return found


COMMANDS = _commands(ROOT)
EXAMPLES = sorted(
    {
        line.strip()
        for command in COMMANDS.values()
        for line in (command.epilog or "").splitlines()
        if line.strip().startswith("gesmr ")
    }
)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "gesmr")
def test_help_fits_and_shows_examples_of_this_command(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = gesmr(*path, "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    examples = re.findall(r"^ +(gesmr .+?) *$", out.partition("Example")[2], flags=re.MULTILINE)
    assert 1 <= len(examples) <= 3
    assert set(examples) <= set(EXAMPLES)  # none was broken into two lines
    assert all(example.startswith(" ".join(("gesmr", *path))) for example in examples)
    assert "genes" not in out


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_parse(example):
    _, *words = shlex.split(example)
    command: Any = ROOT
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    context = command.make_context("gesmr", words)  # raises where an option is unknown or a value is wrong
    assert not context.args


@pytest.mark.parametrize(
    "example",
    [
        'gesmr minimize mine.py:loss --bounds "-5,5;0,1;0,inf" --seed 1 --json',
        "gesmr compare mine.py:loss --dim 4 --methods gesmr,random --seeds 20 --json",
        "gesmr landscape mine.py:many --dim 30 --std 5 --to ackley --json",
        "gesmr study list --json",
    ],
)
def test_quick_examples_run(example, tmp_path, monkeypatch):
    assert example in EXAMPLES
    put_module(monkeypatch, tmp_path, "mine_in_help", MODULE)
    words = shlex.split(example.replace("mine.py", "mine_in_help.py"))[1:]
    code, out, said = gesmr(*words)
    assert code == 0, said
    assert out.startswith(("{", "["))


def test_exit_codes_are_documented():
    _, out, _ = gesmr("--help")
    assert all(re.search(rf"^ +{code}  ", out, flags=re.MULTILINE) for code in (0, 1, 2, 130))


def test_version():
    assert gesmr("--version") == (0, f"gesmr {version('gesmr')}\n", "")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_module_without_the_extra_says_what_to_install(missing):
    """As `python -m gesmr` in an environment with the core's dependencies alone."""
    code = f"import runpy, sys; sys.modules[{missing!r}] = None; runpy.run_module('gesmr', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert done.stderr.strip() == "the gesmr command needs more than the library: pip install 'gesmr[lab]'"
