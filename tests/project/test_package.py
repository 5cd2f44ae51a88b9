"""The files that are published: what is in them, and that they work where nothing else is installed."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from helpers import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = sorted(re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])))
SMOKE = """
import numpy as np, gesmr

def sphere(x):
    return float(np.sum(x**2))

result = gesmr.minimize(sphere, np.ones(3), maxiter=60, rng=0)
assert result.fun < 0.01, result

optimizer = gesmr.Optimizer(np.ones(3), rng=0)
for _ in range(3):
    asked = optimizer.ask()
    optimizer.tell(asked, [sphere(x) for x in asked])
assert optimizer.best.fun < 3

assert list(gesmr.compare(sphere, np.ones(3), maxfun=300, seeds=2).methods) == ["gesmr", "random"]
"""


def run(*command, cwd):
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(directory):
    run(sys.executable, "-m", "venv", directory, cwd=directory.parent)
    return directory / "bin" / "python"


def install(python, *what):
    run(python, "-m", "pip", "install", "--quiet", *what, cwd=Path(python).parent)


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    python = environment(tmp_path_factory.mktemp("tools") / "venv")
    install(python, "hatchling")
    return python


@pytest.fixture(scope="module")
def built(tools, tmp_path_factory):
    """The wheel and the source distribution."""
    to = tmp_path_factory.mktemp("dist")
    run(tools, "-m", "hatchling", "build", "-d", to, cwd=ROOT)
    return next(to.glob("*.whl")), next(to.glob("*.tar.gz"))


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/RECORD" not in name}


@pytest.mark.slow
def test_the_wheel_has_the_library_and_nothing_else(built):
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    source = {name for name in source if "__pycache__" not in name}
    assert {"gesmr/py.typed", "gesmr/lab/show/report/report.css"} <= source
    assert {name for name in contents(built[0]) if ".dist-info/" not in name} == source


@pytest.mark.slow
def test_the_source_distribution_makes_the_same_wheel(built, tools, tmp_path):
    wheel, sources = built
    with tarfile.open(sources) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    run(tools, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=unpacked)
    assert contents(next(tmp_path.glob("*.whl"))) == contents(wheel)


@pytest.mark.slow
def test_it_works_with_core_dependencies_alone(built, tmp_path):
    python = environment(tmp_path / "venv")
    install(python, built[0])
    installed = {
        one["name"].lower() for one in json.loads(run(python, "-m", "pip", "list", "--format=json", cwd=tmp_path))
    }
    core = {re.match(r"[\w-]+", requirement).group() for requirement in PROJECT["dependencies"]}
    assert core <= installed
    assert installed.isdisjoint({"matplotlib", "pandas", "typer", "gymnasium", "cma"})
    run(python, "-W", "error", "-c", SMOKE, cwd=tmp_path)
    command = subprocess.run(
        [python.with_name("gesmr"), "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (command.returncode, command.stderr) == (
        1,
        "the gesmr command needs more than the library: pip install 'gesmr[lab]'\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_extras_leave_jax_as_it_is(version, built, tools, tmp_path):
    def jax(extra):
        for_version = ["--python-version", version, "--only-binary=:all:", "--target", tmp_path / "none"]
        report = tmp_path / "report.json"
        install(tools, "--dry-run", "--ignore-installed", *for_version, "--report", report, f"{built[0]}{extra}")
        found = {
            one["metadata"]["name"]: one["metadata"]["version"] for one in json.loads(report.read_text())["install"]
        }
        return found["jax"], found["jaxlib"]

    assert PYTHONS == ["3.11", "3.12", "3.13"]
    assert jax("[all]") == jax("")
