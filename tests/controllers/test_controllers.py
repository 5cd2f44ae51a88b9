"""One update of each controller, worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr import Feedback, noise
from gesmr.controllers.group_elite import group_of_child

KEY = noise.key(11)


def feedback(changes, parents=None, elite=0, rates=None, parent_fitness=None):
    """Children that differ from their parents by `changes`."""
    changes = jnp.asarray(changes, jnp.float32)
    n = changes.shape[0]
    before = jnp.full(n, 5.0) if parent_fitness is None else jnp.asarray(parent_fitness, jnp.float32)
    parents = jnp.zeros(n, jnp.int32) if parents is None else jnp.asarray(parents)
    rates = jnp.ones(n) if rates is None else jnp.asarray(rates)
    return Feedback(jnp.int32(elite), parents, rates, before, before + changes)


def log10(values):
    return np.asarray(values) / np.log(10)


def steps(key, n, start=0):
    """What the rates are multiplied by: the exponents U(−1, 1) a controller draws."""
    return 2 * (np.asarray(noise.bits(key, n, start) >> 9, np.float64) + 0.5) / 2**23 - 1


# FMR, 1CMR


def test_fixed_rate_stays():
    c = gesmr.Fixed(0.25)
    state = c.init(KEY, 4, 7)
    np.testing.assert_allclose(c.rates(state, jnp.arange(4)), [0.25] * 4, rtol=1e-6)
    after = c.update(KEY, state, feedback([-1, -1, -1, -1]))
    np.testing.assert_allclose(c.rates(after, jnp.arange(4)), [0.25] * 4, rtol=1e-6)


def test_1cmr_is_one_over_the_dimension():
    c = gesmr.controller("1CMR")
    np.testing.assert_allclose(c.rates(c.init(KEY, 3, 40), jnp.arange(3)), [1 / 40] * 3, rtol=1e-6)


# 15MR


@pytest.mark.parametrize(
    ("changes", "factor"),
    [
        ([-1, -1, 1, 1, 1], 2.0),  # two fifths improved
        ([-1, 1, 1, 1, 1], 0.5),  # one fifth exactly is not more than one fifth
        ([0, 0, 0, 0, 0], 0.5),  # equal is not better
        ([-1, -1, -1, -1, -1], 2.0),
    ],
)
def test_one_fifth_rule(changes, factor):
    c = gesmr.controller("15MR")
    state = c.update(KEY, c.init(KEY, 5, 2), feedback(changes))
    np.testing.assert_allclose(jnp.exp(state), 0.01 * factor, rtol=1e-6)


def test_one_fifth_rule_does_not_count_what_cannot_be_judged():
    """Two of five children improved, but one of them on a parent that has no value."""
    c = gesmr.controller("15MR")
    told = feedback([-1, -1, 1, 1, 1], parent_fitness=[5, np.inf, 5, 5, 5])
    told = told._replace(child_fitness=told.child_fitness.at[1].set(3.0))
    np.testing.assert_allclose(jnp.exp(c.update(KEY, c.init(KEY, 5, 2), told)), 0.005, rtol=1e-6)


# UCB/R


def play(c, state, reward):
    return c.update(KEY, state, feedback([-reward, 1.0]))


def test_ucb_plays_every_arm_once_then_the_highest_bound():
    c = gesmr.UCB(3)
    assert c == gesmr.controller("UCB/3")
    state = c.init(KEY, 2, 2)
    np.testing.assert_allclose(np.exp(state.log_arms), [1e-3, 10**-1.5, 1.0], rtol=1e-5)
    for arm, reward in enumerate([1.0, 3.0, 2.0]):
        assert int(c.arm(state)) == arm
        np.testing.assert_allclose(c.rates(state, jnp.arange(2)), [10 ** (-3 + 1.5 * arm)] * 2, rtol=1e-5)
        state = play(c, state, reward)
    np.testing.assert_allclose(state.mean, [1, 3, 2])
    assert int(c.arm(state)) == 1  # all bonuses are equal
    state = play(c, state, 0.4)
    # arm 1: mean 1.7 of two plays; with t = 4: 1.7 + √(ln 5) = 2.969; arm 2: 2 + √(2 ln 5) = 3.794
    np.testing.assert_allclose(state.mean, [1, 1.7, 2], rtol=1e-6)
    assert int(c.arm(state)) == 2


def test_ucb_bonus_is_that_of_ucb1():
    """Arms with means 1 and 0 after 1 and n plays: arm 0 is left as soon as its bound is the lower one."""
    c = gesmr.UCB(arms=2)
    state = c.init(KEY, 2, 2)
    state = play(c, play(c, state, 1.0), 0.0)
    plays, means = np.array([1, 1]), np.array([1.0, 0.0])
    for _ in range(30):
        t = plays.sum()
        expected = int(np.argmax(means + np.sqrt(2 * np.log(t + 1) / plays)))
        assert int(c.arm(state)) == expected
        state = play(c, state, [1.0, 0.0][expected])
        plays[expected] += 1
    assert plays.min() > 2  # both were played, so the comparison above could have failed


def test_ucb_reward_is_the_best_improvement():
    c = gesmr.UCB(arms=1)
    state = c.update(KEY, c.init(KEY, 4, 2), feedback([3.0, -2.0, -7.0, 1.0]))
    np.testing.assert_allclose(state.mean, [7.0])


def test_ucb_arm_with_only_unjudged_plays_is_last():
    c = gesmr.UCB(arms=2)
    state = c.update(KEY, c.init(KEY, 2, 2), feedback([np.nan, np.inf]))
    assert int(c.arm(play(c, state, -50.0))) == 1


def test_ucb_unjudged_plays_stay_out_of_the_mean():
    c = gesmr.UCB(arms=1)
    state = c.update(KEY, c.init(KEY, 2, 2), feedback([np.nan, np.inf]))
    state = play(c, play(c, state, 4.0), 6.0)
    assert (int(state.plays[0]), int(state.judged[0]), float(state.mean[0])) == (3, 2, 5.0)


def test_ucb_forgets_what_is_older_than_its_window():
    c = gesmr.UCB(arms=1, window=3)
    state = c.init(KEY, 2, 2)
    rewards = [4.0, -1.0, 7.0, 2.0, 5.0]
    for t, reward in enumerate(rewards):
        state = play(c, state, reward)
        np.testing.assert_allclose(state.mean, [np.mean(rewards[max(0, t - 2) : t + 1])], rtol=1e-6)
    state = c.update(KEY, state, feedback([np.nan, np.nan]))  # not judged: nothing is forgotten for it
    np.testing.assert_allclose(state.mean, [np.mean(rewards[-3:])], rtol=1e-6)


@pytest.mark.parametrize(("exploration", "arm"), [(0.0, 1), (2.0, 1), (200.0, 0)])
def test_ucb_explores_as_much_as_it_is_told(exploration, arm):
    """Means 0 and 1 after 1 and 2 plays, t = 3: the bonuses are √(c ln 4) and √(c ln 4 / 2)."""
    c = gesmr.UCB(arms=2, exploration=exploration)
    state = play(c, play(c, c.init(KEY, 2, 2), 0.0), 1.0)
    state = state._replace(plays=jnp.array([1, 2]), judged=jnp.array([1, 2]))
    assert int(c.arm(state)) == arm


@pytest.mark.parametrize(
    ("options", "message"),
    [({"window": 0}, "window must be an integer of at least 1"), ({"exploration": -1.0}, "exploration must be")],
)
def test_ucb_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        gesmr.UCB(**options)


def test_ucb_takes_turns_while_nothing_can_be_judged():
    c = gesmr.UCB(arms=3)
    state = c.init(KEY, 2, 2)
    arms = []
    for _ in range(6):
        arms.append(int(c.arm(state)))
        state = c.update(KEY, state, feedback([np.nan, np.nan]))
    assert arms == [0, 1, 2, 0, 1, 2]


# SAMR


def test_samr_starts_log_spaced_and_dealt_at_random():
    c = gesmr.controller("SAMR")
    state = c.init(KEY, 6, 2)
    np.testing.assert_allclose(np.sort(log10(state)), np.linspace(-3, 3, 7), atol=1e-5)
    assert (np.asarray(state) != np.asarray(c.init(noise.key(12), 6, 2))).any()


def test_samr_child_is_made_with_the_parents_rate_and_inherits_a_mutated_copy():
    c = gesmr.SAMR(meta_rate=2.0)
    state = jnp.log(jnp.array([1.0, 10.0, 100.0, 1000.0]))
    parents = jnp.array([3, 1, 1])
    np.testing.assert_allclose(c.rates(state, parents), [1000, 10, 10], rtol=1e-5)
    after = np.exp(c.update(KEY, state, feedback([-1, 1, 1], parents, elite=2)))
    np.testing.assert_allclose(after[0], 100.0, rtol=1e-6)  # slot 0: the elite's own rate, unaltered
    np.testing.assert_allclose(after[1:], np.array([1000, 10, 10]) * 2.0 ** steps(KEY, 3), rtol=1e-5)


# GESMR


@pytest.mark.parametrize(
    ("n", "k", "sizes"), [(12, 4, [3] * 4), (12, 5, [3, 2, 3, 2, 2]), (7, 1, [7]), (5, 5, [1] * 5)]
)
def test_children_are_spread_evenly_in_consecutive_blocks(n, k, sizes):
    group = group_of_child(n, k)
    assert sorted(np.bincount(group)) == sorted(sizes)
    assert (np.diff(group) >= 0).all()
    assert (group[0], group[-1]) == (0, k - 1)


def test_groups_at_the_papers_size():
    """Children 1…10 to σ_1, 11…20 to σ_2, and so on."""
    c = gesmr.controller("GESMR")
    rates = c.rates(c.init(KEY, 100, 2), jnp.zeros(100, jnp.int32))
    np.testing.assert_allclose(rates, np.repeat(np.geomspace(1e-3, 1e3, 10), 10), rtol=1e-4)


def gesmr_update(changes, sigma, key=KEY, **kwargs):
    c = gesmr.GESMR(groups=len(sigma), **kwargs)
    return np.exp(c.update(key, jnp.log(jnp.asarray(sigma)), feedback(changes)))


def expected_survivors(sigma_best_first, k, key=KEY):
    """The best, and k − 1 drawn from all of `sigma_best_first`, mutated."""
    pool = len(sigma_best_first)
    draws = [int(w) * pool >> 32 for w in np.asarray(noise.bits(key, k))]
    factors = 2.0 ** steps(key, k, 2 * k)
    return [sigma_best_first[0]] + [sigma_best_first[draws[j]] * factors[j] for j in range(1, k)]


def test_gesmr_ranks_rates_by_the_best_change_in_their_group():
    """Two children a rate. Minima: −1, −9, −4, −2, so best first: 10, 100, 1000, 1; means would rank 100 first."""
    changes = [-1, -1, -9, 50, -4, -3, -2, 7]
    after = gesmr_update(changes, [1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_allclose(after, expected_survivors([10.0, 100.0], k=4), rtol=1e-5)


def test_gesmr_avg_ranks_rates_by_the_mean_change():
    """Means: −1, 20.5, −3.5, 2.5, so best first: 100, 1, 1000, 10."""
    changes = [-1, -1, -9, 50, -4, -3, -2, 7]
    after = gesmr_update(changes, [1.0, 10.0, 100.0, 1000.0], score="mean")
    np.testing.assert_allclose(after, expected_survivors([100.0, 1.0], k=4), rtol=1e-5)


def test_gesmr_fix_keeps_its_rates():
    after = gesmr_update([-1, -1, -9, 50], [1.0, 10.0], adapt=False)
    np.testing.assert_allclose(after, [1.0, 10.0], rtol=1e-6)


def test_gesmr_groups_that_do_not_divide():
    """Five rates, twelve children in blocks of 3, 2, 3, 2, 2; l = ⌊0.5·5 + ½⌋ = 3."""
    changes = [0, 0, -5, -1, 0, 0, -9, 0, 0, -7, 1, 1]
    after = gesmr_update(changes, [1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(after, expected_survivors([3.0, 4.0, 1.0], k=5), rtol=1e-5)


def test_gesmr_one_group_is_a_fixed_rate():
    c = gesmr.GESMR(groups=1)
    state = c.init(KEY, 5, 2)
    np.testing.assert_allclose(jnp.exp(state), [1.0], rtol=1e-6)  # the middle of 1e-3 … 1e3
    np.testing.assert_allclose(c.update(KEY, state, feedback([-1, -2, 3, 4, 5])), state)


def test_gesmr_a_group_for_every_child():
    sigma = [1.0, 2.0, 4.0, 8.0]
    after = gesmr_update([-1, -3, -2, 5], sigma)
    np.testing.assert_allclose(after, expected_survivors([2.0, 4.0], k=4), rtol=1e-5)


@pytest.mark.parametrize(
    ("truncation", "pool"), [(0.01, 1), (0.2, 1), (0.3, 2), (0.5, 3), (0.7, 4), (0.9, 5), (1.0, 5)]
)
def test_gesmr_truncation_rounds_half_up_and_keeps_one(truncation, pool):
    """With five rates: ⌊5η + ½⌋. Over many draws exactly the best `pool` rates have offspring."""
    sigma = jnp.log(1000.0) * jnp.arange(5)
    c = gesmr.GESMR(groups=5, truncation=truncation)
    update = jax.vmap(lambda key: c.update(key, sigma, feedback([0, 1, 2, 3, 4])))
    after = update(noise.fold_in(KEY, jnp.arange(40)))
    parents = set(np.round(np.asarray(after[:, 1:]) / np.log(1000)).astype(int).flat)
    assert parents == set(range(pool))


def test_a_rate_whose_children_cannot_be_judged_is_last():
    changes = [np.nan, np.nan, -1, 2, 3, 4]
    for score in ("min", "mean"):
        after = gesmr_update(changes, [1.0, 10.0, 100.0], score=score, truncation=0.3)
        np.testing.assert_allclose(after, expected_survivors([10.0], k=3), rtol=1e-5)


def test_unjudged_children_stay_out_of_a_mean():
    """Group means of what can be judged: −4 and −3."""
    after = gesmr_update([np.inf, -4, -3, -3], [1.0, 10.0], score="mean", truncation=0.5)
    np.testing.assert_allclose(after, expected_survivors([1.0], k=2), rtol=1e-5)


def test_gesmr_ties_favour_no_rate():
    """Four rates with equal changes: each is the survivor in a quarter of 4,000 keys (4σ: error rate 6e-5 each)."""
    c = gesmr.GESMR(groups=4)
    state = c.init(KEY, 8, 2)
    keys = noise.fold_in(KEY, jnp.arange(4000))
    best = jax.vmap(lambda k: c.update(k, state, feedback(jnp.zeros(8)))[0])(keys)
    counts = [int(jnp.sum(best == rate)) for rate in state]
    assert sum(counts) == 4000
    assert all(abs(n - 1000) < 4 * np.sqrt(4000 * 0.25 * 0.75) for n in counts)


def test_groups_have_about_eight_children_by_default_and_the_papers_number_by_its_name():
    for n, k, paper in [(1, 1, 1), (2, 2, 1), (12, 4, 3), (100, 12, 10), (1000, 125, 32)]:
        assert gesmr.GESMR().init(KEY, n, 2).shape == (k,)
        assert gesmr.controller("GESMR", n).init(KEY, n, 2).shape == (paper,)


@pytest.mark.parametrize("meta_rate", [2.0, 1e30])
def test_rates_stay_finite_and_positive_however_far_they_run(meta_rate):
    for c in (gesmr.GESMR(4, meta_rate=meta_rate), gesmr.SAMR(meta_rate=meta_rate), gesmr.OneFifth(factor=meta_rate)):
        for sign in (1, -1):
            state = c.init(KEY, 8, 2)
            told = feedback(sign * jnp.ones(8), parents=jnp.arange(8))
            keys = noise.fold_in(KEY, jnp.arange(300))
            state, _ = jax.lax.scan(lambda s, key, c=c, told=told: (c.update(key, s, told), None), state, keys)
            rates = np.asarray(c.rates(state, jnp.arange(8)))
            assert np.isfinite(rates).all()
            assert (rates > 0).all()


# Clip


def test_clip_bounds_what_is_used_and_what_is_held(controller):
    c = gesmr.Clip(controller, 0.05, 0.5)
    state = c.init(KEY, 12, 2)
    for t in range(20):
        rates = np.asarray(c.rates(state, jnp.arange(12)))
        held = np.exp(np.asarray(c.log_rates(state)))
        assert ((rates >= 0.05 * (1 - 1e-6)) & (rates <= 0.5 * (1 + 1e-6))).all()
        assert ((held >= 0.05 * (1 - 1e-6)) & (held <= 0.5 * (1 + 1e-6))).all()
        state = c.update(noise.fold_in(KEY, t), state, feedback(jnp.linspace(-1, 1, 12), parents=jnp.arange(12)))


def test_a_wide_clip_changes_nothing(controller):
    clipped = gesmr.Clip(controller, 1e-30, 1e30)
    told = feedback(jnp.linspace(-1, 1, 12), parents=jnp.arange(12))
    plain = controller.update(KEY, controller.init(KEY, 12, 2), told)
    jax.tree.map(np.testing.assert_array_equal, plain, clipped.update(KEY, clipped.init(KEY, 12, 2), told))


# Names


def test_the_papers_names_have_the_papers_parameters():
    paper = {name: gesmr.controller(name) for name in gesmr.PAPER_NAMES}
    start = {"meta_rate": 2.0, "low": 1e-3, "high": 1e3}
    assert paper == {
        "FMR": gesmr.Fixed(0.01),
        "1CMR": gesmr.Fixed(None),
        "15MR": gesmr.OneFifth(rate=0.01, target=0.2, factor=2.0),
        "UCB/5": gesmr.UCB(arms=5, low=1e-3, high=1.0),
        "UCB/10": gesmr.UCB(arms=10, low=1e-3, high=1.0),
        "SAMR": gesmr.SAMR(**start),
        "GESMR": gesmr.GESMR(groups=10, truncation=0.5, score="min", adapt=True, **start),
        "GESMR-AVG": gesmr.GESMR(groups=10, truncation=0.5, score="mean", adapt=True, **start),
        "GESMR-FIX": gesmr.GESMR(groups=10, truncation=0.5, score="min", adapt=False, **start),
    }
    assert gesmr.controller("UCB/7") == gesmr.UCB(arms=7)
    assert gesmr.controller("GESMR", num_children=2500) == gesmr.GESMR(groups=50)
