"""Selection, elitism and mutation: what one generation is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gesmr
from gesmr import noise, selection
from helpers.runs import start


def test_a_generation_is_the_best_of_the_old_and_children_of_the_old():
    ga, problem, state = start(gesmr.Fixed(0.1))
    proposal = ga.ask(state)
    fitness = np.asarray(state.fitness)
    best = np.argsort(fitness)
    assert int(proposal.elite) == best[0]
    np.testing.assert_array_equal(proposal.population[0], state.population[best[0]])
    assert set(np.asarray(proposal.parents)) <= set(best[:6])  # m = 12 · 0.5
    steps = proposal.candidates - state.population[proposal.parents]
    words = noise.bits(noise.fold_in(state.key, jnp.arange(1, 13), 0), 3)
    np.testing.assert_allclose(steps, 0.1 * noise.normal(words), rtol=1e-4, atol=1e-6)
    after = ga.tell(state, proposal, problem(proposal.candidates))
    assert float(after.fitness[0]) == fitness[best[0]]
    np.testing.assert_array_equal(after.fitness[1:], problem(proposal.candidates))
    assert int(after.generation) == 1


def test_a_better_child_waits_among_the_children():
    """Slot 0 is the best of the previous members even when a child is better; the next selection promotes it."""
    ga, _, state = start(gesmr.Fixed(0.1))
    proposal = ga.ask(state)
    values = jnp.full(12, 100.0).at[4].set(-1.0)
    after = ga.tell(state, proposal, values)
    np.testing.assert_array_equal(after.population[0], state.best)
    assert float(after.fitness[0]) == float(state.best_fitness)
    assert float(after.best_fitness) == -1.0
    np.testing.assert_array_equal(after.best, proposal.candidates[4])
    following = ga.ask(after)
    assert int(following.elite) == 5
    np.testing.assert_array_equal(following.population[0], proposal.candidates[4])


def test_the_first_population_keeps_its_order():
    ga, _, _ = start(gesmr.Fixed())
    population, fitness = jnp.arange(26.0).reshape(13, 2), jnp.arange(13.0)[::-1]
    state = ga.init(0, population, fitness)
    np.testing.assert_array_equal(state.population, population)
    np.testing.assert_array_equal(state.fitness, fitness)


@pytest.mark.parametrize(
    ("truncation", "n", "pool"),
    [(0.5, 100, 50), (0.5, 1, 1), (0.25, 10, 3), (0.24, 10, 2), (0.01, 10, 1), (1.0, 10, 10)],
)
def test_pool_size_rounds_half_up(truncation, n, pool):
    assert int(selection.pool_size(truncation, n)) == pool


@pytest.mark.parametrize("n", [7, 40, 600])
def test_parents_are_uniform_over_the_best(n):
    """Over 3,000 keys, every one of the best m is drawn equally often and no other ever (χ², error rate 1e-4)."""
    m = n // 3
    values = jnp.asarray(np.random.default_rng(n).permutation(n), jnp.float32)
    keys = noise.fold_in(noise.key(4), jnp.arange(3000 if n < 100 else 300))
    chosen = np.asarray(jax.vmap(lambda k: selection.truncate(k, values, jnp.int32(m)).members)(keys))
    ranks = np.asarray(values).astype(int)[chosen]
    assert (ranks[:, 0] == 0).all()
    counts = np.bincount(ranks[:, 1:].ravel(), minlength=n)
    assert counts[m:].sum() == 0
    assert stats.chisquare(counts[:m]).pvalue > 1e-4


@pytest.mark.parametrize("n", [5, 60, 600])
def test_ties_favour_no_slot(n):
    """Among equals, each slot is the elite and a parent equally often (χ², error rate 1e-4 each)."""
    values = jnp.zeros(n).at[n // 2 :].set(1.0)  # the first half are equal, and so are the others
    keys = noise.fold_in(noise.key(6), jnp.arange(40 * n if n < 100 else 4000))
    chosen = np.asarray(jax.vmap(lambda k: selection.truncate(k, values, jnp.int32(n)).members)(keys))
    elites = np.bincount(chosen[:, 0], minlength=n)
    assert elites[n // 2 :].sum() == 0
    assert stats.chisquare(elites[: n // 2]).pvalue > 1e-4
    assert stats.chisquare(np.bincount(chosen[:, 1:].ravel(), minlength=n)).pvalue > 1e-4


def test_ties_at_the_edge_of_the_pool_are_broken_once_per_generation():
    """Ten equal members and room for three: the parents of one generation are three members, not ten."""
    keys = noise.fold_in(noise.key(8), jnp.arange(50))
    chosen = np.asarray(jax.vmap(lambda k: selection.truncate(k, jnp.zeros(40), jnp.int32(3)).members)(keys))
    assert max(len(set(row)) for row in chosen) == 3


@pytest.mark.parametrize("n", [2, 16, 17, 101, 512])
def test_comparing_pairs_and_sorting_give_one_order(n, monkeypatch):
    values = jnp.asarray(np.random.default_rng(n).integers(0, n // 2 + 1, n), jnp.float32).at[0].set(jnp.inf)
    key = noise.key(n)
    by_pairs = selection.truncate(key, values, jnp.int32(n)).members
    monkeypatch.setattr(selection, "_COMPARE_PAIRS_UP_TO", 0)
    np.testing.assert_array_equal(by_pairs, selection.truncate(key, values, jnp.int32(n)).members)


def test_lowest_is_any_of_the_equal_ones():
    values = jnp.array([3.0, 1.0, 2.0, 1.0, jnp.inf])
    keys = noise.fold_in(noise.key(2), jnp.arange(2000))
    picked = np.bincount(np.asarray(jax.vmap(lambda k: selection.lowest(k, values))(keys)), minlength=5)
    assert picked[[0, 2, 4]].sum() == 0
    assert stats.binomtest(int(picked[1]), 2000).pvalue > 1e-4


@pytest.mark.parametrize("name", ["SAMR", "GESMR", "GESMR-AVG"])
def test_on_a_constant_function_rates_drift_nowhere(name):
    """Mean change of the log rates after 30 generations, 400 seeds: within 4.5 standard errors (error rate 7e-6)."""
    ga = gesmr.GA(gesmr.controller(name, num_children=20), 20)
    population = jnp.zeros((21, 2))

    def drift(seed):
        state = ga.init(noise.fold_in(noise.key(0), seed), population, jnp.ones(21))
        _, history = gesmr.evolve(ga, lambda x: jnp.ones(x.shape[0]), state, 31)
        return history.log_rate[-1] - history.log_rate[0]

    drifts = np.asarray(jax.vmap(drift)(jnp.arange(400)))
    assert drifts.std() > 0.5  # they do move
    assert abs(drifts.mean()) < 4.5 * drifts.std() / np.sqrt(400)


def test_re_evaluated_parents_decide_the_changes():
    """Told that the parents were worth 10, 15MR sees improvement; by their old values there is none."""
    ga, _, state = start(gesmr.OneFifth(rate=0.01))
    proposal = ga.ask(state)
    values = jnp.full(12, 5.0) + state.fitness.max()
    assert float(jnp.exp(ga.tell(state, proposal, values).controller)) == pytest.approx(0.005)
    told = ga.tell(state, proposal, values, parent_fitness=values + 5)
    assert float(jnp.exp(told.controller)) == pytest.approx(0.02)
    np.testing.assert_array_equal(told.fitness[0], state.best_fitness)


@pytest.mark.parametrize(("num_children", "dim"), [(1, 1), (2, 1), (1, 2)])
def test_the_smallest_runs(num_children, dim):
    for name in ("15MR", "UCB/5", "SAMR", "GESMR", "GESMR-AVG"):
        c = gesmr.controller(name, num_children)
        ga, problem, state = start(c, dim=dim, num_children=num_children)
        state, history = gesmr.evolve(ga, problem, state, 3)
        assert np.isfinite(np.asarray(history.elite)).all()


def test_a_million_genes():
    """Children are their parents and noise of their rates. Whether any is better is for rounding to decide."""
    ga, problem, state = start(gesmr.GESMR(), dim=10**6, num_children=4)
    before = float(state.best_fitness)
    state, history = gesmr.evolve(ga, problem, state, 12, batch_size=2)
    assert (np.diff([before, *history.elite.tolist()]) <= 0).all()
    np.testing.assert_allclose(state.fitness, problem(state.population), rtol=1e-4)
    proposal = ga.ask(state)
    np.testing.assert_array_equal(proposal.population[0], state.population[proposal.elite])
    steps = (proposal.candidates - state.population[proposal.parents]) / proposal.rates[:, None]
    np.testing.assert_allclose(steps.mean(axis=1), 0, atol=0.005)  # five standard errors
    np.testing.assert_allclose(steps.std(axis=1), 1, atol=0.004)


def test_integers_are_accepted_as_fitness():
    ga, _, state = start(gesmr.Fixed())
    proposal = ga.ask(state)
    after = ga.tell(state, proposal, np.arange(12))
    np.testing.assert_array_equal(after.fitness[1:], np.arange(12.0))
