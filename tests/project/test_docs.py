"""Every Python example in the README and the docs runs as it stands; every command is one there is."""

import ast
import contextlib
import re
import shlex
from typing import Any

import jax
import numpy as np
import pytest
import typer

import gesmr
from gesmr.lab.cli import app
from helpers import ROOT

OTHER_PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "benchmarks/README.md", *sorted((ROOT / "docs/api").glob("*.md"))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FRAGMENTS = {  # which need something around them, by the test that has it
    "command-line.md": "test_command_line_page.py",
    "devices.md": "test_the_script_for_several_machines",
    "workers.md": "tests/workers",
}
EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{i}")
    for page in PAGES
    for i, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M))
]


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("source", EXAMPLES)
def test_example(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    names = run(source)
    assert names.keys() & {"state", "table", "result", "opt"}


def run(source) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}  # as if it were a script
    exec(compile(source, "example", "exec"), names)
    return names


class Recorder:
    """Stands for a tracker: the calls it got, by method."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **options: self.calls.append((name, args, options))


def test_the_trackers_of_the_docs_record(tmp_path, monkeypatch):
    """Their methods get a name and a number, or a dictionary, and the generation, as those libraries take them."""
    monkeypatch.chdir(tmp_path)
    names = next(run(example.values[0]) for example in EXAMPLES if "add_scalar" in str(example.values[0]))
    tensorboard, wandb, mlflow = Recorder(), Recorder(), Recorder()
    callbacks = [names["to_tensorboard"](tensorboard), names["to_wandb"](wandb), names["to_mlflow"](mlflow)]
    result = gesmr.minimize(lambda x: float(x @ x), np.ones(5), maxiter=2, rng=0, callback=callbacks)
    assert tensorboard.calls[-2] == ("add_scalar", ("fun", result.fun, 2), {})
    assert tensorboard.calls[-1][1][::2] == ("mutation rate", 2)
    assert wandb.calls[-1] == ("log", ({"fun": result.fun, "nfev": result.nfev},), {"step": 2})
    assert mlflow.calls[-1] == ("log_metrics", ({"fun": result.fun, "nfev": result.nfev},), {"step": 2})


def test_the_architecture_is_short():
    assert len((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split()) < 1000


def blocks(page, *languages):
    text = page.read_text(encoding="utf-8")
    return [code for language, code in re.findall(r"^```(\w*)\n(.*?)^```", text, re.S | re.M) if language in languages]


def test_no_example_is_left_out():
    assert {page.name for page in PAGES if blocks(page, "py")} == FRAGMENTS.keys()
    for page in OTHER_PAGES:
        assert not blocks(page, "py", "python")
    for page in PAGES + OTHER_PAGES:
        for code in blocks(page, ""):
            with contextlib.suppress(SyntaxError):
                words = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
                assert "gesmr" not in words, f"{page.name} has Python that is not marked:\n{code}"


def test_the_script_for_several_machines(tmp_path, monkeypatch):
    monkeypatch.setattr(jax.distributed, "initialize", lambda: None)
    (script,) = blocks(ROOT / "docs/devices.md", "py")
    names: dict[str, Any] = {"fun": lambda x: (x**2).sum(), "x0": jax.numpy.ones(3)}
    exec(script.replace("/shared", str(tmp_path)).replace("x0,", "x0, maxiter=2,"), names)
    assert names["result"].nit == 2
    assert (tmp_path / "run.npz").exists()


COMMANDS = {
    line.partition("  #")[0].strip()
    for page in PAGES + OTHER_PAGES
    for code in [*blocks(page, "", "sh"), *re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))]
    for line in code.splitlines()
    if re.match(r"(gesmr [a-z]|make [a-z]|(\.venv/bin/)?python \S)", line) and "…" not in line
}


@pytest.mark.parametrize("line", sorted(COMMANDS))
def test_every_command_is_one_there_is(line):
    for command in line.split(" | ")[0].split("; "):
        program, *arguments = shlex.split(command)
        if program == "gesmr":
            understood(typer.main.get_command(app), arguments)
        elif program == "make":
            target = arguments[0]
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        elif arguments[0] not in ("-m", "mine.py"):  # the last is the reader's
            assert (ROOT / arguments[0]).is_file()


def understood(command, arguments):
    """That the arguments can be parsed, by the command that they name."""
    context = command.make_context("gesmr", arguments)
    while hasattr(command, "commands"):
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, arguments, parent=context, resilient_parsing=not arguments)  # a mere name
