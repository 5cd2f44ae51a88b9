"""Processes that are killed (SIGKILL) at ten random moments and started again end as those that were left alone."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
KILLS = 10


def finish(command, **options):
    """Run the command, left alone."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == 0, done.stderr


def seconds_since(begun, command, **options):
    """How long the command went on after `begun` was true, left alone."""
    with started(command, begun, **options) as process:
        start = time.monotonic()
        assert process.wait(timeout=300) == 0
        return time.monotonic() - start


def kill_at_random(command, begun, seconds, **options):
    """Start the command ten times, each killed within `seconds` of when it has `begun`; how often it was at work."""
    generator, at_work = random.Random(0), 0
    for _ in range(KILLS):
        with started(command, begun(), **options) as process:
            time.sleep(generator.uniform(0, seconds))
            process.send_signal(signal.SIGKILL)
        at_work += process.returncode == -signal.SIGKILL
    return at_work


def started(command, begun, **options):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    deadline = time.monotonic() + 120
    while not begun() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    return process


# Studies


METHODS = "LAMR-100,FMR,SAMR,GESMR,GESMR-FIX"


def study(command, home, *options):
    return [sys.executable, "-m", "gesmr.lab.cli", "study", command, "functions", "--shifted", "--out", home, *options]


def run_study(home):
    return study("run", home, "--dims", "2", "--seeds", "2", "--methods", METHODS, "--threads", "1")


def number_of_groups(home: Path) -> int:
    return len(list(home.glob("functions/groups/*.json")))


def stored(home):
    """All files of the store's groups, but for how long each took to compute, and what a killed process leaves."""
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


def test_a_study(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "JAX_ENABLE_COMPILATION_CACHE": "1"}
    first, whole, killed = (tmp_path / name for name in ("first", "whole", "killed"))

    def stores_in(home):
        before = number_of_groups(home)
        return lambda: number_of_groups(home) > before

    finish(run_study(first), env=environment)  # compiles, so that the others are about as fast as each other
    seconds = seconds_since(stores_in(whole), run_study(whole), env=environment)
    at_work = kill_at_random(run_study(killed), lambda: stores_in(killed), 0.5 * seconds / KILLS, env=environment)
    assert at_work >= 0.6 * KILLS
    assert KILLS <= number_of_groups(killed) < number_of_groups(whole)
    finish(run_study(killed), env=environment)
    assert stored(killed) == stored(whole) == stored(first)
    assert exported(killed, tmp_path / "a") == exported(whole, tmp_path / "b")


# Minimising


SCRIPT = """
    import json, sys, time
    from pathlib import Path
    import jax.numpy as jnp, numpy as np
    import gesmr

    def by_numpy(x):
        time.sleep(1e-4)
        return float(np.sum((x - 1) ** 2))

    def by_jax(x):
        return jnp.sum((x - 1) ** 2) + 0 * jnp.sum(jnp.sort(jnp.sin(jnp.arange(10_000) * x[0])))

    fun, path = globals()[sys.argv[1]], sys.argv[2]
    kept = gesmr.Checkpoint(path, every=3)
    result = gesmr.minimize(fun, np.zeros(3), popsize=13, rng=3, maxiter=500, chunk=5, checkpoint=kept, resume=True)
    arrays = {name: result[name] for name in ("x", "population", "mutation_rates")}
    arrays |= {"fun": np.float64(result.fun), **result.history._asdict()}
    outcome = {name: np.asarray(array).tobytes().hex() for name, array in arrays.items() if array is not None}
    outcome |= {name: result[name] for name in ("nit", "nfev", "path", "stop", "message")}
    Path(f"{path}.json").write_text(json.dumps(outcome))
"""


@pytest.mark.parametrize("kind", ["by_numpy", "by_jax"])
def test_a_checkpointed_run(tmp_path, kind):
    script, whole, killed = tmp_path / "script.py", tmp_path / "whole", tmp_path / "killed"
    script.write_text(textwrap.dedent(SCRIPT))

    def saves(path):
        before = path.exists() and path.stat().st_mtime_ns
        return lambda: path.exists() and path.stat().st_mtime_ns != before

    def run(path):
        return [sys.executable, script, kind, path]

    seconds = seconds_since(saves(whole), run(whole))
    at_work = kill_at_random(run(killed), lambda: saves(killed), 0.8 * seconds / KILLS)
    assert at_work >= 0.6 * KILLS
    finish(run(killed))
    outcome, resumed = (json.loads(Path(f"{path}.json").read_text()) for path in (whole, killed))
    assert resumed == outcome
    assert (outcome["nit"], outcome["nfev"]) == (500, 13 + 12 * 500)
    assert outcome["path"] == {"by_numpy": "python", "by_jax": "jax"}[kind]
    assert {"x", "fun", "population", "mutation_rates", "elite", "log_rate", "evaluations"} <= outcome.keys()
    assert {path.name for path in tmp_path.glob("killed*")} == {"killed", "killed.previous", "killed.json"}
