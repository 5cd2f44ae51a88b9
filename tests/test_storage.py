"""Populations in bfloat16: what is kept, what survives in the mean, and what everything else still has."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr import noise, storage
from helpers.runs import start

BFLOAT16 = jnp.dtype(jnp.bfloat16)


def keys(n, generation=0):
    return noise.fold_in(noise.key(0), jnp.arange(n), generation)


def test_what_bfloat16_holds_is_kept_to_the_bit():
    """All 65,536 of them, NaN and infinities included."""
    bits = np.arange(2**16, dtype=np.uint16)
    all_of_them = jnp.asarray(bits.view(BFLOAT16)).reshape(256, 256)
    again = storage.rounded(storage.wide(all_of_them), BFLOAT16, keys(256))
    np.testing.assert_array_equal(np.asarray(again).view(np.uint16).ravel(), bits)
    packed = storage.packed(all_of_them)
    np.testing.assert_array_equal(packed.ravel(), bits)
    np.testing.assert_array_equal(np.asarray(storage.unpacked(packed, BFLOAT16)).view(np.uint16).ravel(), bits)
    finite = np.isfinite(np.asarray(all_of_them, np.float32))
    np.testing.assert_array_equal(
        np.asarray(storage.wide(packed))[finite], np.asarray(all_of_them).astype(np.float32)[finite]
    )


@pytest.mark.parametrize("x", [1.001, -1.001, 0.99999, 1.3e38, 2.0**-120 * 1.7])
def test_rounding_is_right_in_the_mean(x):
    """Only the two neighbours occur, and their mean is x: within 5 standard errors of a million draws."""
    draws = np.asarray(storage.rounded(jnp.full((1000, 1000), x, jnp.float32), BFLOAT16, keys(1000)), np.float64)
    low, high = np.unique(draws)
    x = float(np.float32(x))
    assert low < x < high
    assert np.float32(high).astype(BFLOAT16) == np.nextafter(
        np.float32(low).astype(BFLOAT16), np.asarray(high, BFLOAT16)
    )
    share = (x - low) / (high - low)
    assert abs((draws == high).mean() - share) < 5 * np.sqrt(share * (1 - share) / 1e6)


@pytest.mark.slow
def test_rounding_does_not_know_the_noise():
    """Whether a gene is rounded up has nothing to do with its mutation: no correlation with it or its square."""
    words = noise.bits(keys(1000), 1000)
    epsilon = np.asarray(noise.normal(words), np.float64).ravel()
    up = (np.asarray(noise.another(words)).ravel() >> 16) / 2.0**16 - 0.5
    for feature in (epsilon, epsilon**2 - 1, np.abs(epsilon) - np.sqrt(2 / np.pi), np.sign(epsilon), epsilon**3):
        correlation = np.mean(feature * up) / (np.std(feature) * np.std(up))
        assert abs(correlation) < 5e-3  # 5 standard errors
    for part in range(20):  # nor in any slice of it
        inside = up[np.floor(20 * (0.5 + np.argsort(np.argsort(epsilon))) / epsilon.size).astype(int) == part]
        assert abs(inside.mean()) < 5 * np.sqrt(1 / 12 / inside.size)


def test_mutations_below_the_precision_survive():
    """Genes of 1 and a rate of 2⁻¹²: to the nearest, all children would be copies."""
    ga = gesmr.GA(gesmr.Fixed(2.0**-12), num_children=500)
    state = ga.init(0, jnp.ones((501, 2000), jnp.bfloat16), jnp.zeros(501))
    proposal = ga.ask(state)
    assert proposal.population.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(proposal.population[0], np.float32), 1.0)  # the elite
    children = np.asarray(proposal.candidates, np.float64)
    same = ga.ask(state._replace(population=jnp.ones((501, 2000)))).candidates
    wanted = np.asarray(same, np.float64)
    assert 0.01 < (children != 1.0).mean() < 0.1
    assert abs((children - wanted).mean()) < 5 * (children - wanted).std() / 1000  # unbiased
    direction = np.sign(wanted - 1.0)
    assert np.mean((children - 1.0) * direction) == pytest.approx(np.mean((wanted - 1.0) * direction), rel=0.03)


def test_everything_but_the_population_is_in_single_precision():
    ga, problem, state = start(gesmr.GESMR(groups=3))
    seen = []

    def objective(x):
        seen.append(x.dtype)
        return problem(x)

    state = ga.init(0, state.population.astype(jnp.bfloat16), problem(state.population).astype(jnp.bfloat16))
    final, history = gesmr.evolve(ga, objective, state, 4, batch_size=5, record=lambda s: s.population)
    assert final.population.dtype == history.extra.dtype == jnp.bfloat16
    assert state.fitness.dtype == final.fitness.dtype == history.elite.dtype == jnp.float32
    assert final.controller.dtype == jnp.float32
    wide = problem(final.population.astype(jnp.float32))
    np.testing.assert_allclose(final.fitness[1:], wide[1:], rtol=1e-5)  # of what is stored, not of what it was
    assert set(seen) == {jnp.dtype("float32")}


@pytest.mark.slow
def test_batches_change_nothing():
    ga, problem, state = start(gesmr.SAMR(), num_children=23)
    state = state._replace(population=state.population.astype(jnp.bfloat16))
    one, _ = gesmr.evolve(ga, problem, state, 10)
    for batch_size in (1, 5, 23):
        other, _ = gesmr.evolve(ga, problem, state, 10, batch_size=batch_size)
        np.testing.assert_array_equal(np.asarray(one.population, np.float32), np.asarray(other.population, np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("handling", ["reflect", "clip", "resample"])
def test_bounds_hold_after_rounding(handling):
    """0.1 and 0.3 are not in bfloat16: the bounds are its neighbours within."""
    opt = gesmr.Optimizer(
        np.full(50, 0.2), bounds=gesmr.Bounds(0.1, 0.3, handling), popsize=60, rng=0, dtype="bfloat16"
    )
    for _ in range(5):
        xs = opt.ask()
        assert xs.dtype == np.float32
        assert xs.min() >= 0.1
        assert xs.max() <= 0.3
        opt.tell(xs, -np.abs(xs - 0.2).sum(axis=1))
    assert opt.result.x.dtype == np.float32


def test_ask_and_tell_and_checkpoints(tmp_path):
    opt = gesmr.Optimizer(np.zeros(5), popsize=13, rng=0, dtype="bfloat16", maxiter=5)
    for _ in range(3):
        xs = opt.ask()
        assert not xs.flags.writeable
        np.testing.assert_array_equal(xs, xs.astype(BFLOAT16).astype(np.float32))
        opt.tell(np.array(xs), np.sum((xs - 1) ** 2, axis=1))
    opt.save(tmp_path / "run.npz")
    again = gesmr.Optimizer.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(opt.ask(), again.ask())
    stored = np.load(tmp_path / "run.npz")["population"]
    assert stored.dtype == np.uint16
    assert opt.result.population.dtype == BFLOAT16
    np.testing.assert_array_equal(opt.result.population, stored.view(BFLOAT16))
    follower = gesmr.Optimizer(np.zeros(5), init=opt.result.population, popsize=13, rng=1)
    np.testing.assert_array_equal(follower.ask(), opt.result.population.astype(np.float64))


@pytest.mark.slow
def test_minimize_in_bfloat16(tmp_path):
    def fun(x):
        assert x.dtype == jnp.float32
        return jnp.sum((x - 1) ** 2)

    options = {"popsize": 33, "rng": 0, "dtype": "bfloat16", "batch_size": 7}
    whole = gesmr.minimize(fun, np.zeros(5), maxiter=60, **options)
    assert whole.fun < 0.01
    assert whole.x.dtype == np.float32
    assert float(fun(whole.x)) == pytest.approx(whole.fun, rel=1e-5)
    gesmr.minimize(fun, np.zeros(5), maxiter=20, checkpoint=tmp_path / "run.npz", **options)
    resumed = gesmr.minimize(fun, np.zeros(5), maxiter=60, checkpoint=tmp_path / "run.npz", resume=True, **options)
    np.testing.assert_array_equal(resumed.population, whole.population)


@pytest.mark.slow
def test_a_python_function_gets_single_precision():
    def fun(x):
        assert x.dtype == np.float32
        return float(np.sum(x**2))

    result = gesmr.minimize(fun, np.ones(3), popsize=13, maxiter=5, rng=0, dtype=jnp.bfloat16)
    assert result.fun == pytest.approx(fun(result.x))
    assert jax.tree.leaves(result.population)[0].dtype == BFLOAT16
