"""Changes of value by mutation: closed forms, streaming, densities, and what users may get wrong.

Statistical tests fix their seeds. Unless they say otherwise they allow five standard errors: a right implementation
fails once in 1.7 million comparisons, and there are a few hundred.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gesmr import analysis
from gesmr.analysis import Bins, best_rates, bins_for, delta_samples, objective_curves
from gesmr.lab.studies.landscape import show as view
from gesmr.problems import functions

SURE = 5.0
MIN_OF_TEN = -1.538753  # E of the least of ten standard normals (order statistics, as tabulated)
RATES = np.geomspace(1e-2, 10, 7)


def sphere(x):
    return jnp.sum(x * x, axis=-1)


def curves_of(name, dim, rates=RATES, samples=4000, key=1, **options):
    problem = functions.get(name, dim)
    return objective_curves(problem, problem.init, rates, samples=samples, key=key, **options)


@pytest.mark.parametrize("rate", [0.01, 1.0, 30.0])
def test_changes_of_sphere_have_the_mean_and_variance_of_the_closed_form(rate):
    x = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
    n, dim = 100_000, len(x)
    changes = np.asarray(delta_samples(functions.get("sphere", dim), x, rate, n, 3), np.float64)
    variance = 4 * rate**2 * (x @ x) + 2 * rate**4 * dim
    assert abs(changes.mean() - rate**2 * dim) < SURE * np.sqrt(variance / n)
    fourth = np.mean((changes - changes.mean()) ** 4)
    assert abs(changes.var() - variance) < SURE * np.sqrt((fourth - variance**2) / n)


def test_changes_of_many_points_belong_to_their_points():
    x = np.linspace(-5, 5, 2000, dtype=np.float32)[:, None]
    changes = np.asarray(delta_samples(sphere, x, 1e-3, 2000, 4))
    steps = changes / (2 * x[:, 0])  # to first order σε, except around 0
    far = np.abs(x[:, 0]) > 0.1
    assert abs(steps[far].std() / 1e-3 - 1) < SURE / np.sqrt(2 * far.sum())
    assert np.abs(np.asarray(delta_samples(sphere, np.float32([2.0]), 1e-3, 5, 4))).max() < 0.05


def test_mean_curve_of_sphere_is_the_closed_form_also_where_first_order_noise_would_hide_it():
    dim = 5
    curves = curves_of("sphere", dim)
    expected = RATES**2 * dim
    assert np.all(np.abs(curves.mean - expected) < SURE * curves.mean_error)
    assert np.all(curves.mean_error < 0.1 * expected)  # plain sampling would have 0.045 σ, nine times the mean at 0.01


def test_curves_of_linear_are_those_of_normals():
    dim = 30
    curves = curves_of("linear", dim, samples=20_000)
    size = RATES * np.sqrt(dim)
    assert np.all(np.abs(curves.lowest - MIN_OF_TEN * size) < SURE * curves.lowest_error)
    assert np.all(np.abs(curves.highest + MIN_OF_TEN * size) < SURE * curves.highest_error)
    assert np.all(np.abs(curves.mean) < 1e-4 * size)  # odd in ε: cancels up to rounding
    assert np.allclose(curves.lowest_error, 0.58681 * size / np.sqrt(2000), rtol=0.15)  # sd of that least: 0.58681


@pytest.mark.parametrize("group", [1, 2, 5])
def test_minimum_is_over_the_group(group):
    expected = {1: 0.0, 2: -1 / np.sqrt(np.pi), 5: -1.162964}[group]
    curves = curves_of("linear", 1, rates=[1.0], samples=20_000, group=group)
    assert abs(curves.lowest[0] - expected) < max(SURE * curves.lowest_error[0], 1e-6)


def test_standard_errors_are_those_of_repetitions():
    """Forty repetitions: their spread is known to 11 %, so 45 % is four standard errors (twice 3e-5 for 14 of them)."""
    repeated = [curves_of("ackley", 2, samples=400, key=seed) for seed in range(40)]
    for name in ("mean", "lowest"):
        spread = np.std([getattr(c, name) for c in repeated], axis=0, ddof=1)
        claimed = np.sqrt(np.mean([getattr(c, f"{name}_error") ** 2 for c in repeated], axis=0))
        assert np.allclose(spread, claimed, rtol=0.45)


def test_batches_change_no_draw():
    one = curves_of("rastrigin", 3, samples=400, bins=20)
    for batch in (20, 2600):
        other = curves_of("rastrigin", 3, samples=400, batch=batch, bins=one.density.bins)
        for name in ("mean", "lowest", "highest", "mean_error", "lowest_error"):
            assert np.allclose(getattr(one, name), getattr(other, name), rtol=2e-5, atol=2e-6), name
        assert np.abs(one.density.linear - other.density.linear).sum() <= 4  # rounding at an edge
        assert np.array_equal(one.counted, other.counted)
    assert not np.allclose(one.mean, curves_of("rastrigin", 3, samples=400, key=2).mean, rtol=1e-3)


def test_one_program_serves_all_batches_and_keys():
    traced = []

    def counting(x):
        traced.append(x.shape)
        return sphere(x)

    problem = functions.get("sphere", 3)
    for seed in (0, 1):
        objective_curves(counting, problem.init, RATES, samples=400, key=seed, batch=200)
    assert 1 < len(traced) <= 3  # up to two checks of shape, which run nothing, and one program for 28 batches


def test_density_counts_every_change_once():
    curves = curves_of("sphere", 2, samples=1000, bins=30)
    for counts in (curves.density.linear, curves.density.symlog):
        assert counts.shape == (len(RATES), 32)
        assert np.array_equal(counts.sum(axis=1), np.full(len(RATES), 1000))
    assert (curves.density.symlog[:, [0, -1]].sum() / 7000) < 0.01  # its bins reach about as far as a few points did


def test_density_is_that_of_normals():
    edges = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    curves = curves_of("linear", 1, rates=[1.0], samples=40_000, bins=Bins(1.0, edges, edges))
    share = curves.density.linear[0] / 40_000
    expected = np.array([0.02275, 0.135905, 0.341345, 0.341345, 0.135905, 0.02275])
    assert np.all(np.abs(share - expected) < SURE * np.sqrt(expected / 20_000))  # mirrored pairs: half as many


def test_bins_reach_what_they_are_made_for():
    changes = np.stack([np.linspace(-2e-3, 2e-3, 1001), np.linspace(-3.0, 400.0, 1001)])
    bins = bins_for(changes, 50)
    assert bins.near == 1e-3
    assert bins.symlog[0] == pytest.approx(-10)
    assert bins.symlog[-1] == pytest.approx(1000)
    assert len(bins.linear) == len(bins.symlog) == 51
    assert bins.linear[-1] <= -7 * bins.linear[0] * 1.001
    constant = bins_for(np.zeros((2, 5)), 4)
    assert constant.linear[0] < 0 < constant.linear[-1]


def test_what_is_not_finite_is_dropped_and_counted():
    def partly(x):
        return jnp.where(x[:, 0] > 1e3, jnp.nan, jnp.where(x[:, 0] < -1e3, jnp.inf, sphere(x)))

    problem = functions.get("sphere", 1)
    curves = objective_curves(partly, problem.init, [1.0, 1e3, 1e9], samples=400, key=0, bins=10)
    assert curves.dropped[0] == 0
    assert 80 < curves.dropped[1] < 180  # 32 % of 400 are beyond one σ: 127, and half as many independent ones
    assert curves.dropped[2] > 390
    assert np.array_equal(curves.counted + curves.dropped, [400, 400, 400])
    assert np.array_equal(curves.density.linear.sum(axis=1), curves.counted)
    assert curves.highest[1] <= 1e6
    assert np.isfinite(curves.mean[:2]).all()
    nowhere = objective_curves(lambda x: x[:, 0] * jnp.nan, problem.init, [1.0], samples=40, key=0)
    assert np.isnan(nowhere.mean[0])
    with pytest.raises(ValueError, match=r"curves must be finite.*NaN for all 1"):
        best_rates(nowhere)


def test_points_come_from_where_they_are_said_to():
    def elsewhere(key, n):
        return jnp.full((n, 2), 3.0)

    curves = objective_curves(sphere, elsewhere, [1e-2], samples=20_000, key=0)
    expected = MIN_OF_TEN * 1e-2 * np.sqrt(4 * 18) + 2e-4  # a first-order minimum, and σ²d to second order
    assert abs(curves.lowest[0] - expected) < SURE * curves.lowest_error[0]


def test_everything_is_computed_in_the_dtype_of_the_points(x64):
    problem = functions.get("sphere", 2)
    seen = []

    def noting(x):
        seen.append(x.dtype)
        return sphere(x)

    objective_curves(noting, lambda key, n: problem.init(key, n, jnp.float32), [1.0], samples=40, key=0)
    assert set(seen) == {jnp.float32.dtype}
    exact = objective_curves(sphere, problem.init, [1e-6], samples=400, key=0)
    assert abs(exact.mean[0] - 2e-12) < SURE * exact.mean_error[0] < 1e-12


PROBLEM = functions.get("sphere", 3)


def measure(objective=sphere, draw_point=PROBLEM.init, rates=(0.1, 1.0), samples=40, **options):
    return objective_curves(objective, draw_point, rates, samples=samples, key=0, **options)


CASES = {
    "a sum over everything": (lambda: measure(jnp.sum), ["objective", "[84]", "[]"]),
    "a value too many": (lambda: measure(lambda x: x), ["objective", "[84]", "[84, 3]"]),
    "integers": (lambda: measure(lambda x: jnp.argmax(x, -1)), ["objective", "floats", "int32"]),
    "a pair": (lambda: measure(lambda x: (sphere(x), 0)), ["objective", "tuple"]),
    "numpy": (lambda: measure(lambda x: np.linalg.norm(x, axis=-1)), ["objective", "JAX", "Tracer"]),
    "no function": (lambda: measure(3), ["objective", "3"]),
    "points of no dimension": (lambda: measure(draw_point=lambda key, n: jnp.zeros(n)), ["draw_point", "[1, d]"]),
    "points that are none": (lambda: measure(draw_point=None), ["draw_point", "None"]),
    "a group that does not divide": (lambda: measure(samples=50), ["samples", "20", "50"]),
    "too few samples": (lambda: measure(samples=20), ["samples", "40", "20"]),
    "a group of none": (lambda: measure(group=0), ["group", "1", "0"]),
    "a batch without a group": (lambda: measure(batch=19), ["batch", "20", "19"]),
    "rates that fall": (lambda: measure(rates=[1.0, 0.1]), ["rates", "increasing", "0.1"]),
    "a rate of zero": (lambda: measure(rates=[0.0, 1.0]), ["rates", "above 0", "0.0"]),
    "no bins": (lambda: measure(bins=0), ["bins", "1", "0"]),
    "edges that fall": (lambda: Bins(1.0, [1.0, 0.0], [0.0, 1.0]), ["linear", "increasing"]),
    "too many points": (lambda: delta_samples(sphere, np.zeros((3, 2)), 1.0, 4, 0), ["x", "n = 4", "(3, 2)"]),
    "a number for a point": (lambda: delta_samples(sphere, 1.0, 1.0, 4, 0), ["x", "()"]),
    "many rates": (lambda: delta_samples(sphere, np.zeros(2), [1.0, 2.0], 4, 0), ["rate", "(2,)"]),
    "a negative rate": (lambda: delta_samples(sphere, np.zeros(2), -1.0, 4, 0), ["rate", "above 0", "-1.0"]),
    "a wrong objective": (lambda: delta_samples(jnp.sum, np.zeros(2), 1.0, 4, 0), ["objective", "[5]"]),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named_before_any_work(name):
    call, words = CASES[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_an_objective_that_is_a_network():
    def loss(weights):
        hidden = jax.nn.relu(jnp.ones((weights.shape[0], 1, 2)) @ weights[:, :4].reshape(-1, 2, 2))
        return jnp.mean((hidden @ weights[:, 4:, None] - 1.0) ** 2, axis=(1, 2))

    curves = view.landscape_of(loss, 6, samples=400)
    _, lowest = best_rates(curves)
    assert 1e-3 < lowest < 10
    assert view.shape(curves).mean_grows


def test_names_are_public():
    assert {"Curves", "best_rates", "delta_samples", "objective_curves"} <= set(analysis.__all__)
