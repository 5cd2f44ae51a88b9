"""Feasible before infeasible, infeasible by how far: in selection, in what is best and in what a rate is worth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr import feasibility, noise, selection
from helpers.runs import ask, start, tell

INF = np.inf


def members(seed, n, ties=False):
    """Fitness and violations, half of them feasible, as states hold them."""
    rng = np.random.default_rng(seed)
    fitness, violation = rng.normal(size=n), np.where(rng.random(n) < 0.5, 0, rng.exponential(size=n))
    if ties:
        fitness, violation = np.round(fitness), np.round(violation)
    fitness[rng.random(n) < 0.1] = np.nan
    violation[rng.random(n) < 0.05] = np.nan
    return [np.asarray(array) for array in feasibility.cleaned(jnp.asarray(fitness), jnp.asarray(violation))]


def test_what_is_infeasible_has_no_value_and_nothing_is_nan():
    fitness, violation = feasibility.cleaned(
        jnp.array([1.0, jnp.nan, 3.0, -INF, 5.0, 6.0, 7.0]), jnp.array([0.0, 0.0, 0.5, 0.0, jnp.nan, INF, -1.0])
    )
    np.testing.assert_array_equal(fitness, [1, INF, INF, INF, INF, INF, 7])
    np.testing.assert_array_equal(violation, [0, 0, 0.5, 0, INF, INF, 0])
    assert feasibility.cleaned(jnp.array([jnp.nan]), None)[1] is None


@pytest.mark.parametrize("seed", range(20))
def test_the_best_is_that_of_a_sorted_list(seed):
    fitness, violation = members(seed, 12, ties=seed % 2 == 0)
    if seed % 5 == 0:
        violation = violation + 1
        fitness = np.full_like(fitness, INF)
    at = int(feasibility.best(jnp.asarray(fitness), jnp.asarray(violation)))
    assert (violation[at], fitness[at]) == min(zip(violation, fitness, strict=True))


def test_the_best_where_nothing_is_finite():
    nothing = jnp.full(3, INF)
    assert int(feasibility.best(nothing, nothing)) == 0
    assert int(feasibility.best(nothing, jnp.array([INF, 2.0, 1.0]))) == 2
    assert int(feasibility.best(jnp.array([INF, INF, 4.0]), jnp.array([1.0, 0.0, 0.0]))) == 2


# what a change is worth


@pytest.mark.parametrize("scale", [1.0, 1e7])
def test_parents_and_children_are_on_one_scale(scale):
    """Deb's rule for every pair, and a change between two of a kind is what it is without the others."""
    (before, outside), (after, beyond) = (members(seed, 200) for seed in (0, 1))
    before, after = np.float32(before * scale), np.float32(after * scale)
    parent, child = (np.asarray(x) for x in feasibility.comparable(*map(jnp.asarray, (before, outside, after, beyond))))
    kinds = set()
    for f, v, g, w, a, b in zip(before, outside, after, beyond, parent, child, strict=True):
        if not np.isfinite([v, w]).all() or (v == 0 and f == INF) or (w == 0 and g == INF):
            assert not np.isfinite([a, b]).all()  # which cannot be judged
            continue
        kinds.add((v > 0, w > 0))
        if v == w == 0:
            assert b - a == g - f
        elif v > 0 and w > 0:
            np.testing.assert_allclose(b - a, w - v, rtol=1e-5, atol=1e-6)
        else:
            assert (b > a) == (w > v)
            assert abs(b - a) >= np.float32(max(v, w)) * 0.99 or scale > 1
    assert len(kinds) == 4


def test_a_feasible_child_of_an_infeasible_parent_is_worth_more_than_a_nearer_one():
    fitness, violation = jnp.array([INF, INF, 5.0]), jnp.array([2.0, 2.0, 0.0])
    parent, child = feasibility.comparable(fitness, violation, jnp.array([9.0, INF, INF]), jnp.array([0.0, 1.5, 0.5]))
    np.testing.assert_array_equal(child - parent, [9 - (9 + 2), 1.5 - 2, 9 + 0.5 - 5])


def test_without_constraints_values_are_what_they_were():
    fitness = jnp.array([3.0, INF])
    assert feasibility.comparable(fitness, None, fitness, None) == (fitness, fitness)


# selection


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [2, 16, 17, 512, 513, 900])
def test_selection_orders_by_violation_then_value_then_chance(n, ties):
    fitness, violation = members(n, n, ties)
    tie = np.random.default_rng(n).permutation(n).astype(np.uint32)
    found = selection.order(jnp.asarray(fitness), jnp.asarray(tie), jnp.asarray(violation))
    np.testing.assert_array_equal(found, np.lexsort((tie, fitness, violation)))


@pytest.mark.parametrize("n", [12, 600])
def test_parents_are_the_best_by_that_order(n):
    ga = gesmr.GA(gesmr.Fixed(0.1), n, truncation=0.25)
    fitness, violation = members(3, n + 1)
    state = ga.init(0, np.arange(n + 1.0)[:, None], fitness, violation)
    proposal = ask(ga, state)
    best_first = sorted(range(n + 1), key=lambda i: (violation[i], fitness[i]))
    worst = best_first[n // 4 - 1]
    assert (violation[int(proposal.elite)], fitness[int(proposal.elite)]) == min(zip(violation, fitness, strict=True))
    chosen = np.asarray(proposal.parents)
    assert all((violation[i], fitness[i]) <= (violation[worst], fitness[worst]) for i in chosen)
    assert len(set(chosen.tolist())) > 1


# the genetic algorithm


@jax.jit
def tell_more(ga, state, proposal, values, violation=None, judged=None):
    return ga.tell(state, proposal, values, violation=violation, judged=judged)


def test_the_elite_is_never_lost_and_ends_where_the_constraint_begins():
    """min x·x with x₀ ≥ 1, from points that all violate it."""
    ga = gesmr.GA(gesmr.GESMR(groups=4), 12, truncation=0.2)
    population = -1 + 0.1 * np.random.default_rng(0).normal(size=(13, 2)).astype(np.float32)
    state = ga.init(0, population, np.full(13, INF, np.float32), 1 - population[:, 0])
    worst = 3.0, INF
    for _ in range(60):
        proposal = ask(ga, state)
        x = np.asarray(proposal.candidates)
        state = tell_more(ga, state, proposal, np.sum(x * x, axis=1), np.maximum(1 - x[:, 0], 0))
        at = int(feasibility.best(state.fitness, state.violation))
        now = float(state.violation[at]), float(state.fitness[at])
        assert now <= worst
        worst = now
    assert worst[0] == 0
    assert 1 <= worst[1] < 1.1
    assert state.best[0] >= 1


def test_violations_come_with_a_state_that_has_them_and_only_then():
    ga, problem, state = start(gesmr.GESMR(groups=4))
    proposal = ask(ga, state)
    values = problem(proposal.candidates)
    with pytest.raises(ValueError, match="violation must be given if the state"):
        ga.tell(state, proposal, values, violation=np.zeros(12))
    state = ga.init(0, state.population, state.fitness, np.zeros(13))
    with pytest.raises(ValueError, match="violation must be given if the state"):
        ga.tell(state, proposal, values)
    for wrong in (np.zeros(11), np.zeros((12, 1))):
        with pytest.raises(ValueError, match="violation must have shape"):
            ga.tell(state, proposal, values, violation=wrong)


def test_violations_that_are_all_zero_change_nothing():
    ga, problem, state = start(gesmr.GESMR(groups=4))
    constrained = state._replace(violation=jnp.zeros(13))
    for _ in range(3):
        one, other = ask(ga, state), ask(ga, constrained)
        np.testing.assert_array_equal(one.parents, other.parents)
        values = problem(one.candidates)
        state, constrained = tell(ga, state, one, values), tell_more(ga, constrained, other, values, jnp.zeros(12))
    jax.tree.map(np.testing.assert_array_equal, state, constrained._replace(violation=None))


# children that were not the ones proposed


def test_what_is_not_judged_teaches_a_controller_nothing(controller):
    """Whatever the values of such children are, the rates that follow are the same; their members are not. All judged
    is the same as nothing said."""
    ga, problem, state = start(controller)
    proposal = ask(ga, state)
    values = np.array(problem(proposal.candidates))
    judged = np.arange(12) % 3 > 0
    wonderful, awful = (
        tell_more(ga, state, proposal, np.where(judged, values, np.float32(other)), None, judged)
        for other in (-1e6, 1e6)
    )
    jax.tree.map(np.testing.assert_array_equal, wonderful.controller, awful.controller)
    assert float(wonderful.best_fitness) == -1e6
    assert float(awful.best_fitness) > -1e6
    said, unsaid = tell_more(ga, state, proposal, values, None, judged | True), tell(ga, state, proposal, values)
    jax.tree.map(np.testing.assert_array_equal, said, unsaid)


def test_the_rate_of_a_wonderful_child_is_kept_only_if_it_is_judged():
    """Worked by hand: of four groups of three, the third has the best change."""
    ga, _, state = start(gesmr.GESMR(groups=4))
    proposal = ask(ga, state)
    values = jnp.full(12, 1e3).at[7].set(-1e6).at[1].set(-1.0)
    judged = np.ones(12, bool)
    assert tell_more(ga, state, proposal, values, None, judged).controller[0] == state.controller[2]
    judged[7] = False
    assert tell_more(ga, state, proposal, values, None, judged).controller[0] == state.controller[0]


# siblings


@jax.jit
def ask_siblings(ga, state, proposal, key):
    return ga.ask_siblings(state, proposal, key)


def test_siblings_have_the_same_parents_and_rates_and_other_noise():
    """Noise divided by its rate: standard normal in both, and not the same."""
    ga = gesmr.GA(gesmr.GESMR(groups=4), 200)
    population = np.random.default_rng(0).normal(size=(201, 50)).astype(np.float32)
    state = ga.init(0, population, np.arange(201.0, dtype=np.float32))
    proposal = ask(ga, state)
    parents, rates = population[np.asarray(proposal.parents)], np.asarray(proposal.rates)[:, None]
    small = rates[:, 0] < 100  # or rounding of x + σε shows
    drawn = []
    for key in (noise.key(1), noise.key(2)):
        siblings = np.asarray(ask_siblings(ga, state, proposal, key))
        drawn.append(((siblings - parents) / rates)[small])
        # 10,000 draws: the mean of squares is 1 ± 0.015 in one standard deviation
        assert abs(np.mean(drawn[-1] ** 2) - 1) < 0.06
    drawn.append(((np.asarray(proposal.candidates) - parents) / rates)[small])
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.corrcoef(drawn[one].ravel(), drawn[other].ravel())[0, 1]) < 0.05


def test_siblings_are_inside_the_bounds():
    ga = gesmr.GA(gesmr.Fixed(1.0), 50, bounds=gesmr.Bounds(-1.0, 1.0))
    state = ga.init(0, np.zeros((51, 4), np.float32), np.zeros(51, np.float32))
    siblings = np.asarray(ask_siblings(ga, state, ask(ga, state), noise.key(1)))
    assert (np.abs(siblings) <= 1).all()
    assert np.abs(siblings).max() > 0.9
