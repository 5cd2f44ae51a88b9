"""Kernels for GPUs beside the plain code, which is the reference: run slowly where there is no GPU."""

import os
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr import kernels, noise, selection
from gesmr.ga import kernel_makes, make_children
from gesmr.kernels import making, trial
from gesmr.problems import functions
from gesmr.recombination import Mates

ON_A_GPU = jax.default_backend() == "gpu"
# Hardware's logarithm is exact to 2^-22 or so of 1, which a small radius feels; neither changes a rank.
NORMAL_CLOSE = 1e-3 if ON_A_GPU else 0.0
FUNCTIONS = ("sphere", "ackley", "griewank", "rastrigin", "rosenbrock", "linear")


@pytest.fixture
def use(monkeypatch):
    """Both paths by turns: `use("off")` and `use("kernels")`, with nothing left from the other."""

    def choose(path):
        monkeypatch.setattr(kernels, "MODE", "off" if path == "off" else "auto" if ON_A_GPU else "interpret")
        jax.clear_caches()

    yield choose
    jax.clear_caches()


def both(use, run):
    """What the plain code gives, and what the kernels give."""
    found = []
    for path in ("off", "kernels"):
        use(path)
        found.append(jax.tree.map(np.asarray, jax.jit(run)()))
    return found


def close(plain, found, rates=1.0):
    np.testing.assert_allclose(found, plain, rtol=3e-7, atol=NORMAL_CLOSE * np.max(rates) + 1e-9)


@pytest.mark.parametrize("dim", [1, 1024, 2500])
def test_children_are_those_of_the_plain_code(use, dim):
    """The same integer bits, whatever the number of genes and whichever of them a population holds."""
    n = 6
    population = functions.get("sphere", dim).init(3, n + 1)
    chosen, rates = jnp.array([2, 0, 0, 6, 5, 1, 2]), jnp.array([0.1, 1.0, 0.0, 3.0, 0.5, 2.0])
    genes = noise.Genes(np.uint32(7), dim + 11)
    for part in (None, genes):
        plain, found = both(
            use, lambda part=part: make_children(noise.key(5), jnp.int32(9), population, chosen, rates, genes=part)
        )
        close(plain.population, found.population, 3.0)
        np.testing.assert_array_equal(found.population[0], population[2])  # slot 0, and below a child of rate 0
        np.testing.assert_array_equal(found.population[3], population[6])


@pytest.mark.parametrize("rows", [1, 2])
def test_children_that_recombine_are_those_of_the_plain_code(use, rows):
    """With mates that all share, and with mates of each child's own: of seven slots the last two."""
    population = functions.get("sphere", 40).init(3, 7)
    mates = Mates(2, jnp.array([[6, 2, 4], [1, 1, 5]])[:rows], jnp.int32(3))
    chosen, rates = jnp.arange(7), jnp.full(6, 0.5)
    plain, found = both(use, lambda: make_children(noise.key(1), jnp.int32(0), population, chosen, rates, mates=mates))
    close(plain.population, found.population)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_found_on_the_way(use, name):
    """To rounding: sums are taken in another order."""
    problem = functions.get(name, 1500, shift=np.linspace(-1, 1, 1500) if name != "linear" else None)
    population = problem.init(3, 5)

    def run():
        made = make_children(noise.key(1), jnp.int32(4), population, jnp.arange(5), jnp.full(4, 0.1), sums=problem.sums)
        return made, problem(made.population)

    _, (made, values) = both(use, run)
    np.testing.assert_allclose(made.values, values, rtol=2e-5, atol=1e-3)


@pytest.mark.parametrize("controller", ["GESMR", "GESMR-X", "SAMR"])
def test_a_run_is_the_same(use, controller):
    """Seeds side by side: where there is no GPU in every bit of ten generations, though sums are rounded otherwise."""
    problem = functions.get("sphere", 33)
    ga = gesmr.GA(gesmr.controller(controller), 20)

    def run():
        def one(seed):
            key = noise.fold_in(noise.key(0), seed)
            population = problem.init(key, 21)
            state, history = gesmr.evolve(ga, problem, ga.init(key, population, problem(population)), 10)
            return state.population, state.fitness, history.log_rate

        return jax.vmap(one)(jnp.arange(3, dtype=jnp.uint32))

    plain, found = both(use, run)
    if ON_A_GPU:
        assert np.isfinite(found[0]).all()
        return
    np.testing.assert_array_equal(found[0], plain[0])
    np.testing.assert_allclose(found[1], plain[1], rtol=1e-6)
    np.testing.assert_allclose(found[2], plain[2], rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 10, 32, 101, 256])
@pytest.mark.parametrize("place", [None, (7, 3)])
def test_members_are_drawn_as_by_the_plain_code(use, n, place):
    """In every bit, with values that are equal, infinite or next to 0."""
    rng = np.random.default_rng(n)
    values = jnp.asarray(rng.choice([0.0, -0.0, 1.0, 2.5, np.inf, -np.inf, 1e-40], n).astype(np.float32))
    at = None if place is None else (place[0], jnp.int32(place[1]))
    pool = max(1, n // 2)
    plain, found = both(use, lambda: selection.truncate(noise.key(n), values, pool, place=at))
    np.testing.assert_array_equal(found.members, plain.members)
    np.testing.assert_array_equal(found.ranking, plain.ranking)


def test_a_population_that_they_do_not_fit_takes_the_plain_code(use):
    use("kernels")
    assert kernel_makes(jnp.float32, None)
    assert not kernel_makes(jnp.bfloat16, None)
    assert not kernel_makes(jnp.float32, gesmr.Bounds(0.0, 1.0))


def test_the_switch_is_checked():
    told = subprocess.run(
        [sys.executable, "-c", "import gesmr"],
        env={**os.environ, "GESMR_KERNELS": "on"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "GESMR_KERNELS must be one of auto, off, interpret, got 'on'" in told.stderr


def test_what_cannot_be_compiled_is_told_once_and_plain_code_is_used(monkeypatch):
    def fails():
        raise RuntimeError("no such card")

    monkeypatch.setattr(kernels, "MODE", "auto")
    monkeypatch.setattr(kernels, "on_nvidia", lambda: True)
    monkeypatch.setattr(trial, "compile_all", fails)
    kernels._usable.cache_clear()
    try:
        with pytest.warns(UserWarning, match="cannot be compiled and slower code is used: no such card"):
            assert not kernels.wanted()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not kernels.wanted()
    finally:
        kernels._usable.cache_clear()


@pytest.mark.skipif(not ON_A_GPU, reason="hardware's functions are a GPU's")
def test_noise_by_hardware_is_normal():
    n, dim = 4, 250_000
    zeros = jnp.zeros((n + 1, dim))
    made, _ = making.children(
        noise.key(3), jnp.int32(0), zeros, jnp.zeros(n + 1, jnp.int32), jnp.ones(n + 1), None, None, None
    )
    exact = noise.normal(noise.bits(noise.fold_in(noise.key(3), jnp.arange(n + 1), jnp.int32(0)), dim))
    error = np.abs(np.asarray(made, np.float64) - np.asarray(exact, np.float64))
    assert error.max() < NORMAL_CLOSE
    assert np.quantile(error, 0.999) < 1e-5
