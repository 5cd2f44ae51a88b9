"""Every Python example in the README and the docs runs as it stands."""

import re
from typing import Any

import numpy as np
import pytest

import gesmr
from helpers import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
