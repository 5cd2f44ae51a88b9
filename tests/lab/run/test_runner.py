"""A study on several devices, and killed: the store is the one that a single device makes, left alone."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gesmr.lab.run.reading import PAPER_FUNCTIONS
from gesmr.lab.run.runner import run
from gesmr.lab.run.store import Store
from gesmr.lab.studies import STUDIES as ALL
from gesmr.lab.studies import Selection
from gesmr.problems.functions import FORMULAS
from helpers import TESTS
from helpers.processes import finish, kill_at_random, seconds_since
from helpers.small_study import Power, SmallStudy
from helpers.studies import arrays_in, devices_of


def python(devices: int, *arguments: str):
    """Python in a process that has so many devices of its own."""
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, cwd=TESTS,
                          timeout=600, check=False)  # fmt: skip


def test_all_devices_compute_and_the_store_is_the_same(tmp_path):
    """Eight groups that share a program: the device that has been free for longest takes the next one."""
    script = textwrap.dedent("""
        import sys
        from gesmr.lab.run.runner import run
        from gesmr.lab.run.store import Store
        from helpers.small_study import SmallStudy
        study = SmallStudy()
        for devices, threads, name in ((1, 1, "one"), (None, None, "all"), (3, 2, "three")):
            store = Store(sys.argv[1] + "/" + name, create=True)
            assert run(study, study.specs(), store, devices=devices, threads=threads) == 8
    """)
    done = python(4, "-c", script, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert len(arrays_in(tmp_path / "one")) == 8
    assert arrays_in(tmp_path / "one") == arrays_in(tmp_path / "all") == arrays_in(tmp_path / "three")
    assert set(devices_of(tmp_path / "one")) == {"cpu:0"}
    assert set(devices_of(tmp_path / "all")) == {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}
    assert set(devices_of(tmp_path / "three")) == {"cpu:0", "cpu:1", "cpu:2"}


def test_running_a_study_waits_for_no_plotting_and_no_ray():
    script = """
        import sys
        import gesmr.lab.cli, gesmr.lab.run.runner
        print({"matplotlib", "jinja2", "ray", "cma"} & sys.modules.keys() or "none")
    """
    assert python(1, "-c", textwrap.dedent(script)).stdout == "none\n"


def test_a_function_that_is_added_to_the_library_is_none_of_the_papers(monkeypatch):
    monkeypatch.setitem(FORMULAS, "added", FORMULAS["sphere"])
    named = {spec.function for name in ("functions", "landscape") for spec in ALL[name].specs(Selection())
             if hasattr(spec, "function")}  # fmt: skip
    assert named == set(PAPER_FUNCTIONS) < FORMULAS.keys() - {"added"}
    with pytest.raises(ValueError, match="functions must be one of"):
        ALL["functions"].specs(Selection(functions=("added",)))


STUDIES = {
    "functions": ["--dims", "2", "--seeds", "1", "--functions", "sphere,ackley", "--methods", "GESMR,OFMR,LAMR-100"],
    "control": ["--tasks", "cartpole,mountaincar", "--methods", "GESMR,SAMR", "--seeds", "1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_studies_of_the_paper_do_not_depend_on_the_devices(name, tmp_path):
    for devices in (1, 3):
        out = tmp_path / str(devices)
        done = python(devices, "-m", "gesmr.lab.cli", "study", "run", name, *STUDIES[name], "--out", str(out))
        assert done.returncode == 0, done.stderr
    assert arrays_in(tmp_path / "1" / name) == arrays_in(tmp_path / "3" / name) != {}
    assert set(devices_of(tmp_path / "1" / name)) == {"cpu:0"}
    assert len(set(devices_of(tmp_path / "3" / name))) > 1


# Killed


KILLS = 10
METHODS = "LAMR-100,FMR,SAMR,GESMR,GESMR-FIX"


def study(command, home, *options):
    return [sys.executable, "-m", "gesmr.lab.cli", "study", command, "functions", "--shifted", "--out", home, *options]


def run_functions(home):
    return study("run", home, "--dims", "2", "--seeds", "2", "--methods", METHODS, "--threads", "1")


def test_what_stops_early_is_logged_with_its_command(tmp_path):
    store = Store(tmp_path / "small", create=True)
    specs = [Power(0), Power(1), Power(2, "raise"), Power(3)]
    with pytest.raises(ArithmeticError):
        run(SmallStudy(), specs, store, devices=1, threads=1, command="gesmr study run small --seeds 4")
    (session,) = store.sessions()
    assert (session["groups"], session["runs"]) == (2, 2)
    assert store.commands() == ["gesmr study run small --seeds 4"]


def number_of_jobs(home: Path) -> int:
    return len(list(home.glob("functions/groups/*.json")))


def stored(home):
    """All files of the store's jobs, but for how long each took to compute, and what a killed process leaves."""
    files = {}
    for path in (home / "functions" / "groups").iterdir():
        if path.suffix == ".json":
            entry = json.loads(path.read_text())
            del entry["provenance"]["seconds"], entry["checksum"]
            files[path.name] = entry
        elif path.suffix not in (".lock", ".partial"):
            files[path.name] = path.read_bytes()
    return files


def exported(home, to):
    """All files of an export, but for its list of the runner's starts with their times."""
    finish(study("export", home, "--to", to))
    files = {path.name: path.read_bytes() for path in to.iterdir()}
    provenance = json.loads(files["provenance.json"])
    del provenance["sessions"]
    return files | {"provenance.json": provenance}


@pytest.mark.slow
def test_a_study_killed_at_ten_random_moments_and_started_again_is_as_uninterrupted(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "JAX_ENABLE_COMPILATION_CACHE": "1"}
    first, whole, killed = (tmp_path / name for name in ("first", "whole", "killed"))

    def stores_in(home):
        before = number_of_jobs(home)
        return lambda: number_of_jobs(home) > before

    finish(run_functions(first), env=environment)  # compiles, so that the others are about as fast as each other
    seconds = seconds_since(stores_in(whole), run_functions(whole), env=environment)
    at_work = kill_at_random(
        run_functions(killed), lambda: stores_in(killed), 0.5 * seconds / KILLS, KILLS, env=environment
    )
    assert at_work >= 0.6
    assert KILLS <= number_of_jobs(killed) < number_of_jobs(whole)
    finish(run_functions(killed), env=environment)
    assert stored(killed) == stored(whole) == stored(first)
    assert exported(killed, tmp_path / "a") == exported(whole, tmp_path / "b")
