"""How far members are from each other, beside NumPy, in units of their variables, on one device and on many."""

import json
import os
import subprocess
import sys
import textwrap

import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr.diversity import diversity
from helpers.optimizing import by_jax, by_numpy, minimize

INF = np.inf


def by_hand(population, unit=1.0):
    scaled = np.asarray(population, np.float64) / unit
    return np.sqrt(np.mean((scaled - scaled.mean(axis=0)) ** 2))


@pytest.mark.parametrize("dim", [1, 5, 128])
def test_it_is_the_root_mean_square_distance_from_the_mean(dim):
    population = 3 + 2 * np.random.default_rng(dim).normal(size=(40, dim)).astype(np.float32)
    np.testing.assert_allclose(diversity(jnp.asarray(population), None), by_hand(population), rtol=1e-5)


def test_it_is_in_units_of_the_range_and_else_of_the_unit():
    """A range of 4, one open on a side, one open on both with a unit of 0.1, and a variable that is fixed."""
    low, high = np.array([-2, 0, -INF, 3.0]), np.array([2, INF, INF, 3.0])
    bounds = gesmr.Bounds(low, high, unit=np.array([7.0, 5.0, 0.1, 9.0]))
    population = np.random.default_rng(0).uniform(0, 2, (30, 4)).astype(np.float32)
    population[:, 3] = 3
    expected = by_hand(population, np.array([4, 5, 0.1, 1]))
    np.testing.assert_allclose(diversity(jnp.asarray(population), bounds), expected, rtol=1e-5)


def test_of_many_variables_it_looks_at_64_from_the_first_to_the_last():
    """Variables that no sample evenly spread over 1000 takes do not count; the others do, with their own units."""
    population = np.random.default_rng(0).normal(size=(20, 1000)).astype(np.float32)
    looked_at = np.linspace(0, 999, 64).astype(int)
    assert looked_at[[0, -1]].tolist() == [0, 999]
    width = np.linspace(1, 9, 1000).astype(np.float32)
    bounds = gesmr.Bounds(-width, width)
    found = diversity(jnp.asarray(population), bounds)
    np.testing.assert_allclose(found, by_hand(population[:, looked_at], 2 * width[looked_at]), rtol=1e-5)
    others = np.setdiff1d(np.arange(1000), looked_at)
    population[:, others] = 1e6
    np.testing.assert_allclose(diversity(jnp.asarray(population), bounds), found, rtol=1e-6)


def test_one_point_has_none_and_bfloat16_is_wide():
    assert diversity(jnp.full((9, 3), 7.0), None) == 0
    population = jnp.asarray(np.random.default_rng(0).normal(size=(50, 3)), jnp.bfloat16)
    expected = by_hand(np.asarray(population, np.float64))
    np.testing.assert_allclose(diversity(population, None), expected, rtol=1e-5)


@pytest.mark.parametrize("fun", [by_numpy, by_jax])
@pytest.mark.parametrize("bounds", [None, [(-1, 3), (0, None), (1, 1.5)]])
def test_the_history_has_it_after_every_generation(fun, bounds):
    x0 = {"init": np.array([[0.5, 0.5, 1.2]])} if bounds else {}
    start = np.array([0.5, 0.5, 1.2]) if bounds else np.zeros(3)
    unit = np.array([4, 1, 0.5]) if bounds else 1.0
    for generations in (1, 4):
        result = gesmr.minimize(fun, start, bounds=bounds, popsize=13, rng=0, maxiter=generations, **x0)
        assert len(result.history.diversity) == generations
        np.testing.assert_allclose(result.history.diversity[-1], by_hand(result.population, unit), rtol=1e-5)


def test_a_run_ends_when_it_has_shrunk():
    """At the first generation that is as narrow as xtol, whoever evaluates."""
    for fun in (by_numpy, by_jax):
        result = minimize(fun, maxiter=500, xtol=1e-3)
        assert "xtol" in result.stop
        assert result.history.diversity[-1] <= 1e-3
        assert (result.history.diversity[:-1] > 1e-3).all()


SHARDED = """
    import jax, json
    jax.config.update("jax_num_cpu_devices", 4)
    import numpy as np
    import gesmr
    from gesmr.devices import REPLICATED, Shards, mesh_of
    from gesmr.diversity import diversity

    found = []
    for dim in (3, 25, 1001):
        population = np.random.default_rng(dim).normal(size=(12, dim)).astype(np.float32)
        for bounds in (None, gesmr.Bounds(-np.linspace(1, 9, dim, dtype=np.float32), np.float32(2))):
            ga, shards = gesmr.GA(gesmr.Fixed(0.1), 11, bounds=bounds), Shards(mesh_of(4), dim)
            def part(ga, mine):
                return mine, diversity(mine, ga.bounds, shards)
            many = jax.jit(lambda ga, rows: shards.run(part, ga, rows)[1])(shards.place(ga), shards.shard(population))
            one = jax.jit(lambda rows: diversity(rows, bounds))(population)
            found.append([float(one), float(many)])
    print(json.dumps(found))
"""


def test_on_many_devices_it_is_the_same():
    """3 genes on 4 devices, 25, of which none has the same number, and 1001, of which 64 are looked at."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", textwrap.dedent(SHARDED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    one, many = np.array(json.loads(done.stdout)).T
    assert len(one) == 6
    np.testing.assert_allclose(many, one, rtol=1e-6)
