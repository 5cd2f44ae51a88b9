"""Theorem 1: what follows from the expected minimum of normals at small rates, and claim 9."""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from gesmr import noise
from gesmr.analysis.order_statistics import expected_minimum
from gesmr.lab.run.runner import run
from gesmr.lab.run.store import Store
from gesmr.lab.show.claims import Verdict
from gesmr.lab.show.view import Options
from gesmr.lab.studies import Selection
from gesmr.lab.studies.theorem.results import Results, SimulatedMinimum, SmallRates, family_quantile, load
from gesmr.lab.studies.theorem.runs import (
    COUNTS,
    FUNCTIONS,
    GENERATIONS,
    SIGMAS,
    Local,
    Minimum,
    Moments,
    Point,
    TheoremStudy,
    elites,
    local,
    objectives,
    ratios,
)
from gesmr.lab.studies.theorem.show import VIEW
from gesmr.problems.functions import FORMULAS


def measured(name, x, sigma, q=10, samples=4096):
    function = FORMULAS[name].value
    near = jax.jit(partial(local, function))(x)
    return near, jax.jit(partial(objectives, function, q=q, samples=samples))(x, near.gradient, sigma, noise.key(5))


@pytest.mark.parametrize("q", [2, 10])
def test_on_a_linear_function_the_slope_is_that_of_the_theorem_at_every_rate(x64, q):
    """Changes are exactly normal. Within 4 standard errors, of which the rates share the noise."""
    near, found = measured("linear", jnp.linspace(-1.0, 2.0, 7), jnp.array([1e-6, 1.0, 1e6]), q)
    assert near.gradient == pytest.approx(math.sqrt(7))
    assert found.slope.dtype == jnp.float64
    np.testing.assert_allclose(found.slope, expected_minimum(q), atol=4 * float(found.slope_error[0]))
    np.testing.assert_allclose(found.mean, 0, atol=4 * float(found.mean_error[0]))
    np.testing.assert_allclose(found.slope, found.slope[0], rtol=1e-8)
    np.testing.assert_allclose(found.mean_error, 1 / math.sqrt(4096 * q), rtol=0.05)


def test_on_the_sphere_everything_is_known(x64):
    x = jnp.array([3.0, 0.0, -4.0])
    near, found = measured("sphere", x, jnp.array([1e-6, 1.0]))
    assert near.value == pytest.approx(25)
    assert near.gradient == pytest.approx(10)
    assert near.trace == pytest.approx(6)
    assert near.sigma_h == pytest.approx(10 / math.sqrt(9 + 6))
    np.testing.assert_allclose(found.slope[0], expected_minimum(10), atol=4 * float(found.slope_error[0]))
    np.testing.assert_allclose(found.mean, [3e-7, 0.3], atol=4 * float(found.mean_error.max()))  # σ²d / 10σ


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_sigma_h_both_orders_of_a_change_are_equally_large(x64, name):
    """Root mean square of the second-order part from (Δ(ε) + Δ(−ε))/2, within 5%, at a rate where it is small."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=6))
    function = jax.jit(FORMULAS[name].value)
    near = jax.device_get(jax.jit(partial(local, function))(x))
    sigma = 1e-3 * near.sigma_h
    epsilon = np.random.default_rng(1).normal(size=(20_000, 6))
    there, back = (np.asarray(function(x + sign * sigma * epsilon) - function(x)) for sign in (1, -1))
    first, second = (np.sqrt(np.mean(part**2)) for part in ((there - back) / 2, (there + back) / 2))
    assert first == pytest.approx(sigma * near.gradient, rel=0.05)
    assert second / first == pytest.approx(1e-3, rel=0.05)


def test_points_are_those_of_one_run_in_single_precision():
    best = np.asarray(jax.jit(partial(elites, 3, 12))(np.int32(FUNCTIONS.index("sphere"))))
    assert best.shape == (13, 3)
    assert best.dtype == np.float32
    values = (best**2).sum(axis=1)
    assert (np.diff(values) <= 0).all()
    assert values[-1] < values[0]


def test_rates_rise_from_a_ten_thousandth():
    for per_decade in (2, 4, 8):
        rates = ratios(per_decade)
        assert (np.diff(rates) > 0).all()
        assert (rates[0], rates[-1]) == pytest.approx((1e-4, math.sqrt(10)))


def test_specifications():
    study = TheoremStudy()
    specs = study.specs(Selection())
    assert len(specs) == len(set(specs)) == len(COUNTS) * len(SIGMAS) + len(FUNCTIONS) * 2 * len(GENERATIONS)
    chosen = study.specs(Selection(functions=("sphere", "ackley"), dims=(2,)))
    points = [spec for spec in chosen if isinstance(spec, Point)]
    assert {(p.function, p.dim) for p in points} == {("ackley", 2), ("sphere", 2)}
    groups = study.jobs(specs, 2**30)
    assert {spec for group in groups for spec in group.specs} == set(specs)
    assert len({program for group in groups for program in group.programs}) == len(COUNTS) + 2 * 2
    with pytest.raises(ValueError, match=r"functions must be one of 'ackley'.* got 'linear'"):
        study.specs(Selection(functions=("linear",)))
    with pytest.raises(ValueError, match="dims must be one of 2, 30"):
        study.specs(Selection(dims=(3,)))
    with pytest.raises(ValueError, match="methods means nothing to the study theorem"):
        study.specs(Selection(methods=("FMR",)))
    with pytest.raises(ValueError, match="profile must be one of"):
        study.specs(Selection(profile="fast"))


def made_up_point(function="sphere", dim=30, generation=0, slope=None, mean=0.0):
    """Slopes that rise by 10% a rate once curvature matters."""
    sigma = 10.0 ** np.arange(-4, 1)
    slopes = (expected_minimum(10) if slope is None else slope) * np.array([1, 1, 1, 0.9, 0.5])
    means, error = np.full(5, mean), np.full(5, 0.001)
    near = Local(*map(np.float64, (1.0, 2.0, 0.0, 1.0)))  # type: ignore[arg-type]
    moments = Moments(slopes, error, means, error)  # type: ignore[arg-type]
    return SmallRates(Point(function, dim, generation, 100, 4), sigma, near, moments)


@pytest.fixture
def results():
    minima = [
        SimulatedMinimum(Minimum(q, sigma, 100), expected_minimum(q) + 0.001, 0.001) for q in COUNTS for sigma in SIGMAS
    ]
    points = [made_up_point(f, dim, g) for f in FUNCTIONS for dim in (30, 100) for g in GENERATIONS]
    return Results(tuple(minima), tuple(points))


def verdict(results):
    (claim,) = VIEW.decide(results)
    assert claim.number == 9
    return claim.verdict


def test_the_claim_holds_when_all_is_as_predicted(results):
    assert verdict(results) == Verdict.HOLDS
    (claim,) = VIEW.decide(results)
    assert "24 of 24" in claim.found
    assert "40 of 40" in claim.found


def test_the_claim_fails_by_one_simulation_slope_or_mean(results):
    first, *others = results.minima
    far = replace(first, mean=first.predicted + 0.0036)  # intervals reach 3.53 standard errors
    near = replace(first, mean=first.predicted + 0.0035)
    uncertain = replace(first, error=0.3)  # its interval holds 0
    for minimum, expected in ((far, Verdict.FAILS), (near, Verdict.HOLDS), (uncertain, Verdict.FAILS)):
        assert verdict(replace(results, minima=(minimum, *others))) == expected
    steep, allowed, rising = (
        made_up_point("ackley", 30, 0, **odd)
        for odd in (
            {"slope": 1.021 * expected_minimum(10)},
            {"slope": 1.019 * expected_minimum(10)},
            {"mean": 0.004},
        )
    )
    for point, expected in ((steep, Verdict.FAILS), (allowed, Verdict.HOLDS), (rising, Verdict.FAILS)):
        assert verdict(replace(results, points=(point, *results.points[1:]))) == expected


def test_the_claim_is_not_decidable_without_every_part(results):
    without_ackley = tuple(p for p in results.points if p.spec.function != "ackley")
    one_dimension = tuple(p for p in results.points if p.spec.dim == 30)
    undefined = (made_up_point("ackley", 30, 0, slope=math.nan), *results.points[1:])
    for points in ((), without_ackley, one_dimension, results.points[1:], undefined):
        assert verdict(replace(results, points=points)) == Verdict.UNDECIDED
    assert verdict(replace(results, minima=results.minima[1:])) == Verdict.UNDECIDED
    assert verdict(Results((), ())) == Verdict.UNDECIDED


def test_where_linearity_ends():
    assert made_up_point().linear_until == pytest.approx(10**-1.5)  # halfway, on a log scale, from 0 to 10%
    straight = replace(made_up_point(), moments=made_up_point().moments._replace(slope=np.full(5, -1.5)))
    assert straight.linear_until is None


def test_intervals_of_a_family():
    assert family_quantile(1) == pytest.approx(2.5758, abs=1e-4)
    assert family_quantile(40) == pytest.approx(stats.norm.ppf(1 - 0.01 / 80))


class Small(TheoremStudy):
    """A few cheap pieces of work."""

    def specs(self, selection):
        return [Minimum(2, 1.0, 200), Minimum(2, 10.0, 200), Point("sphere", 2, 0, 64, 2), Point("sphere", 2, 5, 64, 2)]


def test_a_run_is_stored_and_shown(tmp_path):
    study, store = Small(), Store(tmp_path / "theorem", create=True)
    assert run(study, study.specs(Selection()), store, console=Console(quiet=True)) == 4
    assert run(study, study.specs(Selection()), store, console=Console(quiet=True)) == 0
    (points,) = (group for group in store.jobs() if group.specs[0]["kind"] == "point")
    assert {array.dtype for array in points.arrays.values()} == {np.dtype(np.float64)}
    assert jnp.zeros(1).dtype == jnp.float32  # double precision stayed inside the program
    np.testing.assert_allclose(points.arrays["sigma"], points.arrays["sigma_h"][:, None] * ratios(2))
    results = load(list(store.jobs()))
    assert [(m.spec.q, m.spec.sigma) for m in results.minima] == [(2, 1.0), (2, 10.0)]
    assert all(abs(m.deviation) < 4 for m in results.minima)
    assert [p.spec.generation for p in results.points] == [0, 5]
    assert results.points[1].local.value <= results.points[0].local.value
    assert all(abs(p.deviation) < 0.3 for p in results.points)
    chapter = VIEW.chapter(tmp_path / "theorem")
    assert chapter.runs == 4
    context = chapter.sections[0].context
    assert [len(table["rows"]) for table in context["tables"]] == [2, 2, 2]
    assert len(context["images"]) == 2
    assert VIEW.claims(store, Options())[0].verdict == Verdict.UNDECIDED


def test_of_two_computations_the_larger_one_counts(tmp_path):
    store = Store(tmp_path / "theorem", create=True)
    for samples, mean in ((100, -0.5), (1000, -0.6), (10, -0.7)):
        store.write([Minimum(2, 2.0, samples)], {"mean": np.array([mean]), "mean_error": np.array([0.1])}, {})
    (one,) = load(list(store.jobs())).minima
    assert (one.spec.samples, one.mean, one.error) == (1000, -0.3, 0.05)
