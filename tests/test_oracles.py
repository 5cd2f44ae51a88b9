"""OFMR and LAMR-G against searches written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr import noise
from helpers.runs import start

GRID = np.geomspace(1e-3, 1, 10)


def fixed_run(problem, state, rate, generations, key=None):
    ga = gesmr.GA(gesmr.Fixed(rate), 12)
    state = state._replace(controller=jnp.log(jnp.float32(rate)), key=state.key if key is None else key)
    return gesmr.evolve(ga, problem, state, generations)


def search(problem, state, generations, place):
    """The best rate of the grid, by trials whose keys are at (place − i, generation)."""
    keys = [noise.fold_in(state.key, np.uint32(place - i), state.generation) for i in range(len(GRID))]
    ends = [float(fixed_run(problem, state, rate, generations, keys[i])[0].best_fitness) for i, rate in enumerate(GRID)]
    return GRID[int(np.argmin(ends))]


def test_ofmr_runs_once_more_with_the_best_of_a_grid():
    ga, problem, state = start(gesmr.Fixed(), "rastrigin", 4, 3.0)
    final, history = gesmr.OFMR().evolve(ga, problem, state, 25)
    rate = search(problem, state, 25, 2**31)
    expected, expected_history = fixed_run(problem, state, rate, 25)
    np.testing.assert_allclose(history.log_rate, np.full(25, np.log(rate)), rtol=1e-5)
    np.testing.assert_allclose(history.elite, expected_history.elite, rtol=1e-4)
    np.testing.assert_allclose(final.population, expected.population, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(history.evaluations, expected_history.evaluations)


def test_lamr_searches_anew_for_every_window():
    """25 generations by windows of 10: the last is 5 long and looks 5 ahead."""
    ga, problem, state = start(gesmr.Fixed(), "rastrigin", 4, 3.0)
    final, history = gesmr.LAMR(window=10).evolve(ga, problem, state, 25)
    elites, log_rates = [], []
    for length in (10, 10, 5):
        rate = search(problem, state, length, 2**30)
        state, part = fixed_run(problem, state, rate, length)
        elites.append(part.elite)
        log_rates.append(part.log_rate)
    np.testing.assert_allclose(history.log_rate, np.concatenate(log_rates), rtol=1e-5)
    np.testing.assert_allclose(history.elite, np.concatenate(elites), rtol=1e-3)
    assert int(final.generation) == 25
    assert len(set(np.asarray(history.log_rate))) > 1  # the rate did change


def test_lamr_by_pieces_of_whole_windows_is_the_uninterrupted_run():
    ga, problem, state = start(gesmr.Fixed(), "rastrigin", 4, 3.0)
    oracle = gesmr.LAMR(window=5, grid=3)
    whole, history = oracle.evolve(ga, problem, state, 15)
    state, first = oracle.evolve(ga, problem, state, 5)
    state, rest = oracle.evolve(ga, problem, state, 10)
    np.testing.assert_array_equal(state.population, whole.population)
    np.testing.assert_array_equal(np.concatenate([first.elite, rest.elite]), history.elite)


def test_the_oracles_search_independently():
    """Over a run of one window both search once: with other noise, they do not always agree."""
    ga, problem, _ = start(gesmr.Fixed(), "ackley", 2)

    def rates(seed):
        population = problem.init(seed, 13)
        state = ga.init(seed, population, problem(population))
        oracles = gesmr.OFMR(), gesmr.LAMR(window=10)
        return jnp.stack([oracle.evolve(ga, problem, state, 10)[1].log_rate[0] for oracle in oracles])

    keys = noise.fold_in(noise.key(0), jnp.arange(20))
    chosen = jax.jit(jax.vmap(rates))(keys)
    assert np.any(chosen[:, 0] != chosen[:, 1])


@pytest.mark.parametrize("oracle", [gesmr.OFMR(grid=3), gesmr.LAMR(window=4, grid=3)])
def test_oracles_batch_over_seeds(oracle):
    starts = [start(gesmr.GESMR(3), seed=s) for s in (1, 2)]
    ga, problem, _ = starts[0]
    states = jax.tree.map(lambda *x: jnp.stack(x), *(s for _, _, s in starts))
    _, batched = jax.jit(jax.vmap(lambda s: oracle.evolve(ga, problem, s, 9)))(states)
    for i, (_, _, state) in enumerate(starts):
        _, single = oracle.evolve(ga, problem, state, 9)
        np.testing.assert_allclose(batched.elite[i], single.elite, rtol=1e-3)


def test_a_grid_of_one_is_a_fixed_rate():
    ga, problem, state = start(gesmr.Fixed())
    _, history = gesmr.LAMR(window=3, grid=1, low=0.01, high=1.0).evolve(ga, problem, state, 7)
    np.testing.assert_allclose(history.log_rate, np.log(0.1), rtol=1e-5)


def test_oracles_of_no_generations():
    ga, problem, state = start(gesmr.Fixed())
    for oracle in (gesmr.OFMR(), gesmr.LAMR()):
        final, history = oracle.evolve(ga, problem, state, 0)
        assert history.elite.shape == (0,)
        np.testing.assert_array_equal(final.population, state.population)


@pytest.mark.parametrize("oracle", [gesmr.OFMR, gesmr.LAMR])
def test_among_equal_trials_any_rate_or_the_smallest(oracle):
    """On a constant function all trials are equal. By chance, a wrong 'any' would look right in one of 3¹⁹ cases."""
    ga, problem, _ = start(gesmr.Fixed(), "sphere", 2)

    def first_rate(key, ties):
        population = problem.init(key, 13)
        state = ga.init(key, population, jnp.zeros(13))
        return oracle(grid=3, ties=ties).evolve(ga, lambda x: jnp.zeros(len(x)), state, 2)[1].log_rate[0]

    keys = noise.fold_in(noise.key(0), jnp.arange(20))
    any_rate, smallest = (
        jax.jit(jax.vmap(lambda key, t=ties: first_rate(key, t)))(keys) for ties in ("random", "first")
    )
    np.testing.assert_allclose(smallest, np.log(1e-3), rtol=1e-6)
    assert len(np.unique(any_rate)) > 1
    with pytest.raises(ValueError, match="ties must be one of 'random', 'first', got 'last'"):
        oracle(ties="last")


@pytest.mark.parametrize("oracle", [gesmr.OFMR(grid=3), gesmr.LAMR(window=4, grid=3)])
def test_oracles_keep_to_the_bounds(oracle):
    """The minimum of a sum is at the lower corner: without bounds runs leave for minus infinity."""
    ga = gesmr.GA(num_children=12, bounds=gesmr.Bounds(-0.1, 0.1))
    population = jnp.full((13, 3), 0.05)

    def objective(x):
        return jnp.sum(x, axis=-1)

    state, history = oracle.evolve(ga, objective, ga.init(0, population, objective(population)), 9)
    assert np.abs(state.population).max() <= 0.1
    assert float(history.elite[-1]) >= -0.3 - 1e-6
