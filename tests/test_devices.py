"""Runs on many devices beside the same on one. The work is done by device_checks.py, where JAX has eight of them."""

import json
import os
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from helpers import TESTS
from helpers.refusals import assert_refused
from helpers.runs import start

SCRIPT = TESTS / "helpers" / "device_checks.py"
DEADLINE = 600  # seconds
CLOSE = 1e-5  # relative, of values that are sums of products

FAST = ("children", "seeds", "minimize")
RUNS = (
    "GESMR",
    "SAMR",
    "UCB",
    "by genes",
    "fewer genes than devices",
    "reflect",
    "resample",
    "1CMR",
    "bfloat16",
    "bfloat16 in a box",
)
MINIMISED = ("batches", "init", "valued init", "keyed", "restarts", "double precision", "half precision", "tree")
RESUMED = ("8 to 1", "1 to 8", "8 to 3, bfloat16")


def begin(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def found(process):
    try:
        out, err = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def fast():
    return found(begin(8, *FAST))


@pytest.fixture(scope="module")
def slow():
    return found(begin(8, *RUNS, *MINIMISED, *RESUMED, "seeds that fit", "chosen", "noise"))


def check_run(run):
    assert run["parents"]
    assert run["evaluations"]
    assert max(run[part] for part in ("population", "best", "values", "rates")) < CLOSE


def check_minimised(run):
    assert run["nit"]
    assert run["nfev"]
    assert run["stop"]
    assert max(run[part] for part in ("fun", "history", "population")) < CLOSE


def test_children_on_many_devices(fast):
    """14 members, 25 genes and 13 children, none of which can be divided by the number of devices."""
    check_run(fast["children"])


@pytest.mark.slow
def test_noise_is_the_same_to_the_bit(slow):
    assert slow["noise"] == {"bits": True, "moved": True}


def test_seeds_on_many_devices(fast):
    run = fast["seeds"]
    assert run["shape"] == [11, 14, 25]  # on four devices
    assert run["devices"] == 4
    assert run["everywhere"]
    assert max(run["population"], run["values"]) < CLOSE


def test_minimize_on_many_devices(fast):
    check_minimised(fast["minimize"])
    assert fast["minimize"]["path"] == "jax, devices: 8"


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_more_children_on_many_devices(slow, name):
    check_run(slow[name])
    if "bfloat16" in name:
        assert slow[name]["bits"]


@pytest.mark.slow
def test_a_population_that_can_be_divided_stays_spread(slow):
    assert "None, 'devices'" in slow["by genes"]["spec"]
    assert "devices" not in slow["SAMR"]["spec"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MINIMISED)
def test_more_of_minimize_on_many_devices(slow, name):
    check_minimised(slow[name])
    if name == "restarts":
        assert slow[name]["restarts"] > 0
    if name == "half precision":
        assert slow[name]["bits"]


@pytest.mark.slow
@pytest.mark.parametrize("name", RESUMED)
def test_a_run_goes_on_elsewhere(slow, name):
    run = slow[name]
    assert run["shape"] == [14, 11]
    assert run["nit"] == 30
    assert max(run["fun"], run["history"]) < CLOSE


@pytest.mark.slow
def test_seeds_that_can_be_divided_stay_spread(slow):
    assert slow["seeds that fit"]["shape"] == [16, 14, 25]
    assert slow["seeds that fit"]["devices"] == 8
    assert max(slow["seeds that fit"][part] for part in ("population", "values")) < CLOSE


@pytest.mark.slow
def test_which_devices(slow):
    assert slow["chosen"]["number"] == [0, 1]
    assert slow["chosen"]["all"] == [*range(8)]
    assert slow["chosen"]["list"] == slow["chosen"]["mesh"] == [5, 6, 7]
    assert slow["chosen"]["donated"]
    assert slow["chosen"]["generation"] == 2


@pytest.mark.slow
def test_two_processes_find_what_one_does(tmp_path):
    """Two processes of two devices each, on this machine, beside one process of four."""
    (tmp_path / "two").mkdir()
    (tmp_path / "one").mkdir()
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    processes = [begin(2, "--process", number, port, tmp_path / "two") for number in (0, 1)]
    first, second = [found(process) for process in processes]
    alone = found(begin(4, "--process", -1, 0, tmp_path / "one"))
    assert first["devices"] == second["devices"] == alone["devices"] == 4
    for name in ("plain", "timed", "longer", "stopped", "evolve", "seeds", "by gene"):
        assert first[name] == second[name], name
    assert first["plain"][0] == pytest.approx(alone["plain"][0], rel=CLOSE)
    np.testing.assert_allclose(first["plain"][2], alone["plain"][2], rtol=CLOSE)
    np.testing.assert_allclose(first["evolve"], alone["evolve"], rtol=CLOSE)
    np.testing.assert_allclose(first["seeds"], alone["seeds"], rtol=CLOSE)
    np.testing.assert_allclose(first["by gene"], alone["by gene"], rtol=CLOSE)
    assert first["stopped"][0] == alone["stopped"][0] == 20
    assert first["stopped"][2] == ["callback"]
    assert first["timed"][3] == ["maxtime"]
    assert first["longer"][:2] == [first["timed"][0], 10]
    assert first["population"]  # spread over both, given to neither
    assert second["population"]
    assert not alone["population"]
    assert first["logged"]
    assert alone["logged"]


# what needs no second device


def test_one_device_is_a_number_too():
    ga, problem, state = start(gesmr.GESMR(groups=3))
    one, history = gesmr.evolve(ga, problem, state, 5)
    same, other = gesmr.evolve(ga, problem, state, 5, devices=1)
    np.testing.assert_allclose(one.population, same.population, rtol=1e-5)
    np.testing.assert_allclose(history.elite, other.elite, rtol=1e-5)


REFUSED = {
    "more than there are": (2, ValueError, ["devices", "from 1 to 1", "got 2", "jax_num_cpu_devices"]),
    "none": (0, ValueError, ["devices", "from 1", "got 0"]),
    "a truth value": (True, TypeError, ["devices", "number", "got True"]),
    "a word": ("gpu", TypeError, ["devices", '"all"', "'gpu'"]),
    "an empty list": ([], TypeError, ["devices", "list", "got []"]),
    "a list of numbers": ([0], TypeError, ["devices", "list of jax devices", "got [0]"]),
    "one twice": (2 * jax.devices()[:1], ValueError, ["devices", "twice"]),
    "two axes": (jax.make_mesh((1, 1), ("a", "b")), ValueError, ["devices", "one axis", "'a', 'b'"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_devices(name):
    devices, exception, words = REFUSED[name]
    ga, problem, state = start(gesmr.GESMR(groups=3))
    assert_refused(lambda: gesmr.evolve(ga, problem, state, 1, devices=devices), exception, words)
    assert_refused(lambda: gesmr.minimize(jnp.sum, np.ones(3), devices=devices), exception, words)


def test_functions_called_in_python_have_no_devices():
    words = ["devices", "compiled", "Python", "workers"]
    assert_refused(lambda: gesmr.minimize(lambda x: float(x[0]), np.ones(3), devices=1), ValueError, words)
    assert_refused(lambda: gesmr.minimize(jnp.sum, np.ones(3), devices=1, jit=False), ValueError, words)


def test_an_objective_that_returns_one_number_for_all_is_refused():
    ga, _, state = start(gesmr.GESMR(groups=3))
    assert_refused(lambda: gesmr.evolve(ga, jnp.sum, state, 1, devices=1), ValueError, ["objective", "one value", "()"])
