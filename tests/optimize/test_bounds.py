"""Bounds as users write them: what is accepted, what they mean for starts and rates, and that nothing violates them."""

import numpy as np
import pytest
from scipy import stats

import gesmr
from gesmr.bounds import Bounds
from gesmr.optimize import layout
from gesmr.optimize.bounds import resolve, within
from gesmr.optimize.options import check
from helpers.refusals import assert_refused

INF = np.inf


KINDS = [(-5.0, 5.0), (0.1, 0.3), (None, 1.0), (-2.0, None), (0.7, 0.7), (None, None), (1e-6, 1e6)]


START = [0.0, 0.2, 0.0, 0.0, 0.7, 0.0, 1.0]


@pytest.mark.parametrize("handling", ["reflect", "clip", "resample"])
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"])
def test_never_violated(handling, dtype):
    """A million evaluations between the three of them; the optimum is outside, so children crowd at the bounds."""
    low = np.array([-INF if pair[0] is None else pair[0] for pair in KINDS])
    high = np.array([INF if pair[1] is None else pair[1] for pair in KINDS])
    seen = 0

    def fun(x):
        nonlocal seen
        seen += len(x)
        wide = x.astype(np.float64)
        rounding = np.where(low == high, 1e-7, 0.0)  # 0.7 is no number of single precision
        assert (wide >= low - rounding).all()
        assert (wide <= high + rounding).all()
        assert np.isfinite(wide).all()
        return np.sum(x[:, :5] * [1, -1, -1, 1, 1], axis=1) + np.abs(x[:, 5]) + 1e-6 * x[:, 6]

    bounds = Bounds(low, high, handling)
    result = gesmr.minimize(
        fun, START, bounds=bounds, popsize=10_001, maxiter=33, rng=0, vectorized=True, dtype=dtype, jit=False
    )
    assert seen == result.nfev == 10_001 + 33 * 10_000
    np.testing.assert_allclose(result.x[:2], [-5.0, 0.3], atol=0.5)
    assert result.x[4] == np.asarray(0.7, dtype)


def test_a_range_that_single_precision_cannot_hold_is_rounded_inwards():
    """0.1 and 0.3 are not numbers of single precision: none that is handed out lies beyond them."""
    bounds = resolve([(0.1, 0.3)], layout.of(np.zeros(1, "float32"))[0])
    assert np.float64(bounds.low[0]) >= 0.1
    assert np.float64(bounds.high[0]) <= 0.3
    assert np.nextafter(bounds.low[0], np.float32(0)).astype(float) < 0.1


def start_rates(bounds, **options):
    given = {"bounds": bounds, "popsize": 13, "rng": 0, **options}
    return gesmr.Optimizer(np.full(2, 0.5), **given), check(np.full(2, 0.5), given).ga(0).controller


def test_start_rates_lie_within_the_range_and_no_rate_leaves_it():
    opt, controller = start_rates([(0, 1), (0, 100)])
    key = gesmr.noise.key(0)
    rates = np.exp(np.asarray(controller.init(key, 12, 2)))
    np.testing.assert_allclose(rates, np.geomspace(1e-3, 1.0, len(rates)), rtol=1e-5)
    for _ in range(30):  # noise alone: rates wander, and stay below 1
        xs = opt.ask()
        opt.tell(xs, np.random.default_rng(0).random(len(xs)))
        if opt.result.nit:
            assert opt.result.mutation_rates.max() <= 1.0 + 1e-6


def test_rates_are_not_capped_while_a_variable_has_no_range():
    _, controller = start_rates([(0, 1), (0, None)])
    assert controller == check(np.zeros(2), {"popsize": 13}).ga(0).controller


def test_any_controller_is_kept_within():
    key = gesmr.noise.key(0)
    for controller in (gesmr.GESMR(4), gesmr.SAMR(), gesmr.UCB(3, high=10.0), gesmr.OneFifth(50.0), gesmr.Fixed(7.0)):
        kept = within(controller)
        assert np.exp(np.asarray(kept.log_rates(kept.init(key, 12, 2)))).max() <= 1.0 + 1e-6
    twice = within(gesmr.Clip(gesmr.GESMR(4), 1e-2, 10.0))
    assert twice == gesmr.Clip(gesmr.GESMR(4, high=1.0), 1e-2, 1.0)


def test_the_first_population_fills_the_range_unless_a_spread_is_given():
    wide = gesmr.Optimizer([0.5, 20.0], bounds=[(0, 1), (0, 100)], popsize=2001, rng=0).ask()
    for column, span in zip(wide[1:].T, (1, 100), strict=True):
        assert stats.kstest(column / span, stats.uniform.cdf).pvalue > 1e-3
    close = gesmr.Optimizer([0.5, 20.0], bounds=[(0, 1), (0, 100)], popsize=2001, rng=0, init_std=0.1).ask()
    np.testing.assert_allclose(close[1:].std(axis=0), 0.1, rtol=0.1)
    np.testing.assert_allclose(close[1:].mean(axis=0), [0.5, 20.0], atol=0.02)


def test_a_spread_for_each_variable_is_its_unit():
    """f is the same in both variables once each is measured by its spread; both then converge alike."""
    scale = np.array([1e-3, 1e3])
    result = gesmr.minimize(
        lambda x: np.sum(((x - scale) / scale) ** 2, axis=1),
        np.zeros(2),
        init_std=scale,
        vectorized=True,
        maxiter=120,
        rng=0,
    )
    np.testing.assert_allclose(result.x / scale, [1, 1], atol=1e-3)


def test_what_may_be_written():
    import scipy.optimize  # noqa: PLC0415

    expected = np.array([[-5, -5], [5, 5]])
    for given in ((-5, 5), [(-5, 5)] * 2, np.array([[-5, 5]] * 2), Bounds(-5, 5), scipy.optimize.Bounds([-5, -5], 5)):
        resolved = resolve(given, layout.of(np.zeros(2))[0])
        np.testing.assert_array_equal([resolved.low, resolved.high], expected)
    half = resolve([(None, 1), (0, None)], layout.of(np.zeros(2))[0])
    np.testing.assert_array_equal([half.low, half.high], [[-INF, 0], [1, INF]])


def test_bounds_of_a_pytree():
    start = {"a": np.zeros(2), "b": np.ones(())}
    low = {"a": np.array([-1.0, -2.0]), "b": np.array(0.5)}
    opt = gesmr.Optimizer(start, bounds=Bounds(low, 3.0), popsize=300, rng=0)
    lowest = np.min([[*x["a"], x["b"]] for x in opt.ask()], axis=0)
    assert (lowest >= [-1, -2, 0.5]).all()
    np.testing.assert_allclose(lowest, [-1, -2, 0.5], atol=0.1)


BAD = {
    "upside down": ([(1, 0)] * 2, ValueError, ["bounds", "low=1.0", "high=0.0", "variable 0"]),
    "NaN": ([(np.nan, 0)] * 2, ValueError, ["bounds", "NaN"]),
    "too few": ([(0, 1)], ValueError, ["bounds", "2 pairs", "1 entries"]),
    "text": ("ab", ValueError, ["bounds", "number"]),
    "a number": (3, TypeError, ["bounds", "pair", "3"]),
    "triples": ([(0, 1, 2)] * 2, ValueError, ["bounds", "pair"]),
    "nothing left": ([(INF, INF)] * 2, ValueError, ["bounds"]),
    "x0 outside": ([(0, 1), (1, 2)], ValueError, ["x0", "within", "[1.0, 2.0]", "0.5", "variable 1"]),
    "a range beyond the dtype": ([(-1.5e308, 1.5e308)] * 2, ValueError, ["bounds", "range", "float64"]),
    "of another size": (Bounds([0.0] * 3, 1.0), ValueError, ["bounds", "low", "2 numbers"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_bounds_are_named(name):
    bounds, exception, words = BAD[name]
    assert_refused(lambda: gesmr.Optimizer([0.5, 0.5], bounds=bounds), exception, words)


def test_more_that_is_refused():
    with pytest.raises(ValueError, match="handling must be one of 'reflect', 'clip', 'resample', got 'wrap'"):
        Bounds(0, 1, "wrap")
    with pytest.raises(ValueError, match="init must be within bounds"):
        gesmr.Optimizer([0.5], bounds=[(0, 1)], init=[[2.0]])
    with pytest.raises(TypeError, match=r"bounds must be a gesmr.Bounds"):
        gesmr.GA(bounds=(0, 1))
    with pytest.raises(TypeError, match="clip"):
        within(object())


def test_bounds_without_a_number_between_them_are_refused():
    """Single precision has steps of 128 there; a fixed variable is the nearest number."""
    low, high = 1.7e9 + 10, 1.7e9 + 60
    with pytest.raises(
        ValueError, match=r"no float32 between low=1700000010.0 and high=1700000060.0 of variable 1.*64"
    ):
        gesmr.Optimizer(np.float32([0, 1.7e9]), bounds=[(-1, 1), (low, high)])
    inside = gesmr.Optimizer(np.float64([0, low + 5]), bounds=[(-1, 1), (low, high)], dtype="float64").ask()
    assert ((inside[:, 1] >= low) & (inside[:, 1] <= high)).all()
    fixed = gesmr.Optimizer(np.float32([0, 0.1]), bounds=[(-1, 1), (0.1, 0.1)]).ask()
    np.testing.assert_allclose(fixed[:, 1], 0.1, rtol=1e-6)


@pytest.mark.parametrize("handling", ["reflect", "clip", "resample"])
@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (-5e306, 5e306, "float64"),
        (-1e37, 1e37, "float32"),
        (0, 2.5e-308, "float64"),
        (1.2e-38, 2e-38, "float32"),
        (-1e-37, 0, "float32"),
    ],
)
def test_ranges_at_the_ends_of_a_precision(low, high, dtype, handling):
    """As wide and as narrow as is accepted, nothing is ever outside, or no number."""
    seen = []

    def fun(x):
        seen.append(x)
        return float(x[0] / high if high else x[0] / low)

    start = np.full(2, low / 2 + high / 2)
    gesmr.minimize(fun, start, bounds=Bounds(low, high, handling), dtype=dtype, popsize=20, maxiter=20, rng=0)
    assert (np.asarray(seen) >= low).all()
    assert (np.asarray(seen) <= high).all()


@pytest.mark.parametrize(
    ("low", "high", "dtype", "words"),
    [
        (-8e307, 8e307, "float64", ["range", "float64", "-8e+307", "None"]),
        (-1e308, 1e308, "float64", ["range", "float64"]),
        (-1.5e38, 1.5e38, "float32", ["range", "float32"]),
        (0, 1e-310, "float64", ["0 or at least", "float64"]),
        (1e-40, 2e-40, "float32", ["0 or at least", "float32"]),
    ],
)
def test_ranges_beyond_a_precision_are_refused(low, high, dtype, words):
    start = np.full(2, low / 2 + high / 2)
    assert_refused(lambda: gesmr.minimize(abs, start, bounds=(low, high), dtype=dtype), ValueError, words)


def test_units_of_what_has_no_range():
    """Those that a Bounds names count, before those of init_std."""

    def spreads(**options):
        result = gesmr.minimize(lambda x: 0.0, np.zeros(2), controller=gesmr.Fixed(1.0), rng=0, maxiter=1, **options)
        return np.std(result.population, axis=0)

    plain = spreads(init_std=1e-9)
    np.testing.assert_allclose(spreads(init_std=1e-9, bounds=Bounds(unit=100.0)), 100 * plain, rtol=1e-5)
    np.testing.assert_allclose(spreads(init_std=1e-9, bounds=Bounds(unit=[1.0, 100.0])), [1, 100] * plain, rtol=1e-5)
    np.testing.assert_allclose(spreads(init_std=[1e-9] * 2, bounds=Bounds(unit=[7.0, 7.0])), 7 * plain, rtol=1e-5)
    for unit in (0, -1.0, np.nan, "a", [1.0, 2.0, 3.0], None):
        assert_refused(lambda unit=unit: spreads(bounds=Bounds(unit=unit)), ValueError, ["unit"])


def test_a_start_that_bfloat16_rounds_across_its_bound():
    for x, bounds in ((0.3, (0.3, 1)), (0.7, (0, 0.7)), (0.301, (0.3, 1))):
        result = gesmr.minimize(lambda x: float(x[0]), [x], bounds=bounds, dtype="bfloat16", popsize=5, maxiter=2)
        assert bounds[0] <= result.x[0] <= bounds[1]
    with pytest.raises(ValueError, match="x0 must be within bounds"):
        gesmr.minimize(lambda x: float(x[0]), [0.29], bounds=(0.3, 1), dtype="bfloat16")
