"""docs/command-line.md names every command, exit code and JSON option there is, and its commands run as written."""

import json
import re
import shlex

import pytest
import typer

from gesmr.lab.cli import app
from helpers import ROOT
from helpers.command_line import gesmr, put_module

PAGE = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
MODULE = re.findall(r"^```py\n(.*?)^```", PAGE, re.S | re.M)[0]
LINES = [line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.S | re.M) for line in block.splitlines()]
MAIN = typer.main.get_command(app)


def _commands(command, path=()):
    below = getattr(command, "commands", {})
    return (
        {path: command} if not below else {k: v for n, c in below.items() for k, v in _commands(c, (*path, n)).items()}
    )


COMMANDS = {" ".join(path): command for path, command in _commands(MAIN).items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_named_with_an_example(name):
    assert re.search(rf"gesmr {name}\b", PAGE)


def test_every_command_with_json_is_listed():
    with_json = {name for name, of in COMMANDS.items() if any("--json" in option.opts for option in of.params)}
    section = PAGE.partition("## For programs")[2].partition("```")[0]
    assert {name for name in COMMANDS if f"`{name}`" in section} == with_json


def test_every_exit_code_of_the_help_is_in_the_table():
    code_of = re.compile(r"^ +(\d+) {2,}\S", re.M)
    assert set(re.findall(r"^\| (\d+) \|", PAGE, re.M)) == set(code_of.findall(MAIN.epilog.partition("Exit codes")[2]))


def test_the_commands_run_as_written(tmp_path, monkeypatch):
    put_module(monkeypatch, tmp_path, "mine", MODULE)
    assert len(LINES) >= 10
    for line in LINES:
        code, out, err = gesmr(*shlex.split(line)[1:])
        assert code == 0, f"{line}\n{out}{err}"
        if "--json" in line:
            json.loads(out)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("minimize mine.py:loss --dim 2 --maxfun 200 --target=-1", 1),
        ("minimize mine.py:tuned --dim 2 --maxfun 200", 1),  # it raises an error
        ("minimize mine.py:absent --dim 2", 2),
        ("study run absent", 2),
        ("minimize mine.py:loss --no-such-option", 2),
    ],
)
def test_exit_codes_are_what_the_table_says(arguments, code, tmp_path, monkeypatch):
    put_module(monkeypatch, tmp_path, "mine", MODULE)
    assert gesmr(*shlex.split(arguments))[0] == code
