"""Children that take every gene from a parent of its own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gesmr
from gesmr import noise
from gesmr.controllers import Feedback
from gesmr.controllers.base import recombining
from helpers.runs import ask, start

N, DIM = 40, 50


def members_of(population, children):
    """Which member each gene was taken from, `i[children, d]`, where all genes of a column are different."""
    found = np.asarray(children)[:, None, :] == np.asarray(population)[None, :, :]
    assert (found.sum(axis=1) == 1).all()
    return found.argmax(axis=1)


def proposal_of(controller, seed=0, truncation=0.5, dim=DIM):
    """Of children that differ from their parents by nothing, so that one can see where their genes are from."""
    ga, _, state = start(controller, dim=dim, num_children=N, seed=seed, truncation=truncation)
    return state, ask(ga, state)


def quiet(**options):
    return gesmr.GESMR(groups=10, low=1e-30, high=1e-30, **options)


def pool_of(state, m):
    return set(np.argsort(np.asarray(state.fitness), kind="stable")[:m].tolist())


def test_genes_are_drawn_uniformly_from_the_selected():
    """Over 60 generations of 16 children with 50 genes (χ², error rate 1e-4), and never from any other member."""
    counts = np.zeros(N + 1)
    for seed in range(60):
        state, proposal = proposal_of(quiet(recombine=0.4), seed)
        member = members_of(state.population, proposal.candidates[-16:])
        assert set(np.unique(member).tolist()) <= pool_of(state, N // 2)
        ranks = np.empty(N + 1, int)
        ranks[np.argsort(np.asarray(state.fitness))] = np.arange(N + 1)
        counts += np.bincount(ranks[member].ravel(), minlength=N + 1)
    assert counts[N // 2 :].sum() == 0
    assert stats.chisquare(counts[: N // 2]).pvalue > 1e-4


def test_neighbouring_genes_and_children_are_independent():
    """Two genes have the same parent as often as chance says: 1 in 20 (binomial, error rate 1e-4 each)."""
    same = {"genes": [], "children": []}
    for seed in range(30):
        state, proposal = proposal_of(quiet(recombine=1.0), seed)
        member = members_of(state.population, proposal.candidates)
        same["genes"].append(member[:, 1:] == member[:, :-1])
        same["children"].append(member[1:] == member[:-1])
    for pairs in map(np.concatenate, same.values()):
        assert stats.binomtest(int(pairs.sum()), pairs.size, 2 / N).pvalue > 1e-4


def test_the_other_children_copy_the_parent_they_are_assigned():
    state, proposal = proposal_of(quiet(recombine=0.4))
    copies = np.asarray(state.population)[np.asarray(proposal.parents)[:24]]
    np.testing.assert_array_equal(proposal.candidates[:24], copies)
    _, alone = proposal_of(quiet())
    np.testing.assert_array_equal(proposal.candidates[:24], alone.candidates[:24])
    np.testing.assert_array_equal(proposal.population[0], alone.population[0])


def test_a_child_of_two_has_its_own_parent_and_another():
    state, proposal = proposal_of(quiet(recombine=1.0, mates=2))
    member, parents = members_of(state.population, proposal.candidates), np.asarray(proposal.parents)
    for child in range(N):
        assert set(member[child].tolist()) <= {parents[child], parents[(child + 1) % N]}
    own = (member == parents[:, None])[parents != np.roll(parents, -1)]
    assert stats.binomtest(int(own.sum()), own.size, 0.5).pvalue > 1e-4


@pytest.mark.parametrize(
    ("recombine", "groups", "expected"),
    [(0.0, 10, 0), (0.4, 10, 16), (1.0, 10, 40), (0.01, 10, 4), (0.4, 3, 13), (0.5, 1, 40), (0.34, None, 15)],
)
def test_how_many_recombine(recombine, groups, expected):
    """Whole groups, and one at least if there are to be any. By default there are eight, where some recombine."""
    controller = gesmr.GESMR(groups, recombine=recombine)
    found = controller.recombining(N)
    assert found == expected
    assert gesmr.Clip(controller, 1e-3, 1.0).recombining(N) == found
    assert gesmr.Fixed(recombine=recombine).recombining(N) == max(round(recombine * N), recombine > 0)


def test_rates_are_selected_within_their_class():
    """Copying groups that achieve nothing keep rates of their own, however well those that recombine do."""
    controller = gesmr.GESMR(groups=10, recombine=0.5, meta_rate=1.0)
    state = controller.init(noise.key(0), N, DIM)
    np.testing.assert_array_equal(state[:5], state[5:])
    marked = state.at[:5].add(-100.0)  # so that one can see where a rate is from
    change = jnp.where(jnp.arange(N) < N // 2, 1.0, -1.0)
    feedback = Feedback(jnp.int32(0), jnp.arange(N), jnp.ones(N), jnp.zeros(N), change)
    after = controller.update(noise.key(1), marked, feedback)
    assert (after[:5] < -50).all()
    assert (after[5:] > -50).all()


def test_the_best_rate_of_each_class_survives():
    controller = gesmr.GESMR(groups=8, recombine=0.5)
    state = controller.init(noise.key(0), N, DIM)
    change = -jnp.arange(N, dtype=jnp.float32)  # the last child of each class is its best
    feedback = Feedback(jnp.int32(0), jnp.arange(N), jnp.ones(N), jnp.zeros(N), change)
    after = controller.update(noise.key(1), state, feedback)
    assert after[0] == state[3]
    assert after[4] == state[7]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_genes_can_be_made_apart(dtype):
    """A population that holds only some genes gets the children it would have got as part of the whole."""
    ga, _, state = start(gesmr.GESMR(groups=5, recombine=0.6), dim=DIM, num_children=N, dtype=dtype)
    whole = ask(ga, state).population
    for first, end in ((0, 20), (20, DIM)):
        part = state._replace(population=state.population[:, first:end])
        apart = jax.jit(ga.ask)(part, noise.Genes(jnp.uint32(first), DIM)).population
        np.testing.assert_array_equal(apart, whole[:, first:end])


def test_siblings_have_other_genes_of_the_same_parents():
    ga, _, state = start(quiet(recombine=0.4), dim=DIM, num_children=N)
    proposal = ask(ga, state)
    siblings = jax.jit(ga.ask_siblings)(state, proposal, noise.key(5))
    np.testing.assert_array_equal(siblings[:24], proposal.candidates[:24])
    assert (siblings[24:] != proposal.candidates[24:]).mean() > 0.8
    assert set(np.unique(members_of(state.population, siblings[24:])).tolist()) <= pool_of(state, N // 2)


@pytest.mark.parametrize("bounds", ["reflect", "clip", "resample"])
def test_children_are_inside_their_bounds(bounds):
    ga, _, state = start(gesmr.GESMR(groups=5, recombine=0.6), dim=DIM, num_children=N)
    ga = gesmr.GA(ga.controller, N, bounds=gesmr.Bounds(-1.0, 1.0, bounds))
    state = state._replace(population=jnp.clip(state.population, -1, 1))
    children = ask(ga, state).candidates
    assert (jnp.abs(children) <= 1).all()


def test_it_is_ahead_where_variables_are_separate():
    """Shifted 30-D Rastrigin, five seeds: the worst of them is better than GESMR's best."""
    final = {}
    for share in (0.0, 0.4):
        found = [
            gesmr.minimize(
                gesmr.problems.functions.get("rastrigin", 30, shift=np.linspace(-1, 1, 30)),
                np.zeros(30), popsize=101, maxiter=300, rng=seed, truncation=0.5,
                controller=gesmr.GESMR(20, recombine=share), vectorized=True,
            ).fun
            for seed in range(5)
        ]  # fmt: skip
        final[share] = found
    assert max(final[0.4]) < min(final[0.0])


@pytest.mark.parametrize("method", [gesmr.GESMR, gesmr.Fixed, gesmr.OneFifth, gesmr.SAMR])
@pytest.mark.parametrize("given", [-0.1, 1.5, float("nan"), True, "half", None, [0.5]])
def test_a_share_is_from_0_to_1(method, given):
    with pytest.raises(ValueError, match="recombine must be one number of at least 0 and at most 1, got"):
        method(recombine=given)


@pytest.mark.parametrize("given", [1, 0, 2.5, True])
def test_a_child_has_two_parents_at_least(given):
    with pytest.raises((TypeError, ValueError), match="mates must be an integer of at least 2, got"):
        gesmr.GESMR(recombine=0.5, mates=given)


def test_a_name_for_it():
    found = gesmr.controller("GESMR-X", 100)
    assert isinstance(found, gesmr.GESMR)
    assert found.recombine > 0
    assert found.init(noise.key(0), 100, 3).shape == (found.groups,)
    for n in (1, 2, 3, 7, 1000):
        assert 0 <= recombining(gesmr.controller("GESMR-X", n), n) <= n
        jax.eval_shape(lambda n=n: gesmr.controller("GESMR-X", n).init(noise.key(0), n, 3))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("mates", [None, 2])
def test_a_large_population_has_the_children_of_a_small_one(monkeypatch, dtype, mates):
    """They are made a few at a time, in blocks of which the last overlaps the one before."""
    ga, _, state = start(gesmr.GESMR(recombine=0.4, mates=mates), dim=7, num_children=301, dtype=dtype)
    small = jax.jit(ga.ask)(state).population
    monkeypatch.setattr("gesmr.ga._LARGE", 1)
    large = jax.jit(partial(ga.ask))(state).population  # a function that was not traced yet
    np.testing.assert_array_equal(large, small)
