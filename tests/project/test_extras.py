"""What is said where an extra is not installed: one sentence, with what to install."""

import json
import re
import subprocess
import sys
import tomllib

import pytest

from helpers import ROOT
from helpers.processes import finding_helpers

PACKAGES = {  # what an extra is imported as, and its name on PyPI
    "lab": {"jinja2": "jinja2", "matplotlib": "matplotlib", "PIL": "pillow", "plotly": "plotly", "rich": "rich",
            "typer": "typer"},
    "rl": {"gymnasium": "gymnasium", "gymnax": "gymnax"},
    "cma": {"cma": "cma", "threadpoolctl": "threadpoolctl"},
    "peers": {"evosax": "evosax"},
    "ray": {"ray": "ray"},
    "optuna": {"optuna": "optuna"},
}  # fmt: skip
NAMED_ALONE = {"pandas", "cloudpickle", "cma", "optuna", "evosax"}  # `pip install cma` is enough for what needs it
EVERYTHING = {*NAMED_ALONE, *(name for packages in PACKAGES.values() for name in packages)}
COMMANDS_NEED = set(PACKAGES["lab"])

SAID = {  # in the library
    "gesmr.plot(result)": "plot needs matplotlib: pip install 'gesmr[lab]'",
    "result.plot()": "plot needs matplotlib: pip install 'gesmr[lab]'",
    "result.to_dataframe()": "to_dataframe needs pandas: pip install pandas",
    "table.plot('x.png')": "plot needs the package matplotlib: pip install 'gesmr[lab]'",
    "table.to_dataframe()": "to_dataframe needs the package pandas: pip install pandas",
    "gesmr.compare(fun, start, ['CMA-ES'], 1, 60)": "CMA-ES needs the package cma: pip install cma",
    "gesmr.compare(fun, start, ['sep-CMA-ES'], 1, 60)": "sep-CMA-ES needs the package cma: pip install cma",
    "gesmr.compare(fun, start, ['optuna:TPE'], 1, 60)": "optuna:TPE needs the package optuna: pip install optuna",
    "gesmr.compare(fun, start, ['evosax:SNES'], 1, 60)": "evosax:SNES needs the package evosax: pip install evosax",
    "importlib.import_module('gesmr.optuna')": "gesmr.optuna needs Optuna: pip install 'gesmr[optuna]'",
    "gesmr.minimize(fun, start, maxiter=1, workers='ray')": "Ray is not installed: pip install 'gesmr[ray]' "
    "(No module named 'ray')",
    "gesmr.problems.gym.get('CartPole-v1')": "environments need Gymnasium: pip install 'gesmr[rl]' "
    "(gymnasium is missing)",
    "gesmr.problems.control.get('cartpole')": "control tasks need gymnax: pip install 'gesmr[rl]' (gymnax is missing)",
}
LIBRARY = f"""
import helpers.missing
helpers.missing.without(*{sorted(EVERYTHING)})
import importlib, json, numpy as np, gesmr

def fun(x):
    return float(np.sum(x**2))

start = np.ones(3)
result = gesmr.minimize(fun, start, maxiter=1, rng=0)
table = gesmr.compare(fun, start, maxfun=60, seeds=1)
said = {{"methods": list(table.methods)}}
for call in {list(SAID)}:
    try:
        eval(call)
    except ImportError as error:
        said[call] = str(error)
print(json.dumps(said))
"""

ANSWERED = {  # on the command line
    "minimize fun:fun --dim 3 --maxiter 1 --workers ray": "Ray is not installed: pip install 'gesmr[ray]' "
    "(No module named 'ray')",
    "compare fun:fun --dim 3 --maxfun 60 --seeds 1 --methods CMA-ES": "CMA-ES needs the package cma: pip install cma",
    "study run cmaes --out runs --seeds 1": "CMA-ES needs the package cma: pip install 'gesmr[cma]'",
    "study run control --out runs --seeds 1": "control tasks need gymnax: pip install 'gesmr[rl]' (gymnax is missing)",
    "study run beyond --out runs --seeds 1": "other algorithms need the package evosax: pip install 'gesmr[peers]'",
}
COMMANDS = f"""
import helpers.missing
helpers.missing.without(*{sorted(EVERYTHING - COMMANDS_NEED)})
import json
from typer.testing import CliRunner
from gesmr.lab.cli import app

done = {{line: CliRunner().invoke(app, line.split(), catch_exceptions=False) for line in {list(ANSWERED)}}}
print(json.dumps({{line: (one.exit_code, " ".join(one.stderr.split())) for line, one in done.items()}}))
"""


def run(code, directory):
    command, environment = [sys.executable, "-c", code], finding_helpers()
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def output(code, directory):
    done = run(code, directory)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_library_says_which_extra_is_missing(tmp_path):
    said = output(LIBRARY, tmp_path)
    assert said.pop("methods") == ["gesmr", "random"]  # by default what is there
    assert said == SAID


def test_commands_say_which_extra_is_missing(tmp_path):
    (tmp_path / "fun.py").write_text("def fun(x):\n    return float(x @ x)\n")
    answered = output(COMMANDS, tmp_path)
    assert answered == {line: [2, f"error: {sentence}"] for line, sentence in ANSWERED.items()}


@pytest.mark.parametrize("package", sorted(COMMANDS_NEED - {"rich", "typer"}))  # those two: tests/lab/cli/test_help.py
def test_the_command_needs_all_of_its_extra(package, tmp_path):
    code = "import runpy; from helpers.missing import without\n"
    code += f"without({package!r}); runpy.run_module('gesmr', run_name='__main__')"
    done = run(code, tmp_path)
    assert done.returncode == 1
    assert done.stderr == "the gesmr command needs more than the library: pip install 'gesmr[lab]'\n"


def test_extras_that_are_named_bring_what_was_missing():
    """Every `pip install 'gesmr[…]'` of a sentence is an extra that pyproject.toml has, with all it is to bring."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    sentences = [*SAID.values(), *ANSWERED.values()]
    named = {extra for sentence in sentences for extra in re.findall(r"'gesmr\[(\w+)\]'", sentence)}
    assert named | {"lab"} == PACKAGES.keys()
    for extra, packages in PACKAGES.items():
        brought = {re.match(r"[\w-]+", requirement).group() for requirement in extras[extra]}
        assert set(packages.values()) <= brought
    alone = {package for sentence in sentences for package in re.findall(r"pip install (\w+)", sentence)}
    assert alone <= NAMED_ALONE
