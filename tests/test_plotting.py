"""Pictures of results: what lines and bands show, on which axes, and that nothing is too odd to be drawn."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from gesmr.optimize.result import Result
from gesmr.optimize.run import History
from gesmr.plotting import plot
from helpers.refusals import assert_refused

INF, NAN = np.inf, np.nan


def result(values, *, rate=0.1, every=10, fun=None, restarts=0, diversity=None):
    """Of a run with these best values; its rates go from a tenth to ten times `rate`, and the elite has twice that."""
    values = np.asarray(values, float)
    length, log_rate = len(values), np.full(len(values), np.log(rate))
    log_rates = {"log_rate_low": log_rate - np.log(10), "log_rate_high": log_rate + np.log(10)}
    diversity = np.full(length, 0.5) if diversity is None else np.asarray(diversity)
    evaluations = every * np.arange(1, length + 1)
    history = History(
        values, log_rate, evaluations, log_rate_elite=log_rate + np.log(2), diversity=diversity, **log_rates
    )
    with np.errstate(invalid="ignore"):
        fun = np.nanmin(values, initial=INF) if fun is None else fun
    return Result(fun=fun, nit=length, history=history, restarts=restarts)


def drawn(axes, line=0):
    """Points of a line, those that are not shown left out."""
    x, y = axes.get_lines()[line].get_data()
    x, y = np.asarray(x, float), np.asarray(y, float)
    return x[np.isfinite(y)].tolist(), y[np.isfinite(y)].tolist()


def band(axes, number=0):
    """Lowest and highest of a band."""
    y = axes.collections[number].get_paths()[0].vertices[:, 1]
    return y.min(), y.max()


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_a_run():
    values, rates, diversity = plot(result([8.0, 3.0, 1.0])).axes
    assert drawn(values) == ([10, 20, 30], [8.0, 3.0, 1.0])
    assert drawn(rates)[1] == pytest.approx([0.1] * 3)
    assert drawn(rates, 1) == ([20, 30], pytest.approx([0.2] * 2))  # at first there is no group elite
    assert band(rates) == pytest.approx((0.01, 1.0))
    assert drawn(diversity) == ([10, 20, 30], [0.5] * 3)
    assert [axes.get_title(loc="left") for axes in (values, rates, diversity)] == [
        "Best value",
        "Mutation rate",
        "Diversity",
    ]
    assert {axes.get_xlabel() for axes in (values, rates, diversity)} == {"Evaluations"}
    assert texts(rates.get_legend()) == ["Mean", "Group elite", "Lowest to highest"]
    assert values.get_legend() is None


def test_by_generations():
    axes = plot(result([8.0, 3.0], every=100), by="generations").axes[0]
    assert drawn(axes)[0] == [1, 2]
    assert axes.get_xlabel() == "Generations"


def test_several_runs():
    """At 10: 8, 6, 1. At 20: 4, 6, 1. At 30 one has ended and keeps its value, but not its rate, and 2, 5, 1."""
    runs = [result([8.0, 4.0, 2.0], rate=0.1), result([6.0, 6.0, 5.0], rate=0.1), result([1.0, 1.0], rate=0.9)]
    values, rates, _ = plot(runs).axes
    assert drawn(values) == ([10, 20, 30], [6.0, 4.0, 2.0])
    low, high = band(values)
    assert (low, high) == (1.5, 7.0)  # halfway between 1 and 2 at 30, between 6 and 8 at 10
    assert drawn(rates)[1] == pytest.approx([0.1, 0.1, 0.1])
    assert texts(values.get_legend()) == ["Median of 3 runs", "Quartiles"]
    alone = plot([result([8.0, 4.0, 2.0], rate=0.1), result([1.0], rate=0.9)]).axes[1]
    assert drawn(alone)[1] == pytest.approx([0.3, 0.1, 0.1])  # the median of logarithms


def test_runs_with_other_numbers_of_evaluations():
    """A value holds until there is another."""
    values = plot([result([8.0, 4.0], every=10), result([6.0], every=15)]).axes[0]
    assert drawn(values) == ([10, 15, 20], [8.0, 7.0, 5.0])


def test_methods_by_name():
    figure = plot({"GESMR": [result([8.0, 3.0]), result([8.0, 1.0])], 7: result([9.0, 4.0])})
    values, rates, _ = figure.axes
    assert drawn(values)[1] == [8.0, 2.0]
    assert drawn(values, 1)[1] == [9.0, 4.0]
    assert texts(figure.legends[0]) == ["GESMR", "7", "Quartiles"]
    assert texts(rates.get_legend()) == ["Mean", "Group elite", "Lowest to highest"]
    assert len(rates.get_lines()) == 4


def test_many_methods_can_be_told_apart():
    """In colours and dashes; their rates without what would hide them."""
    figure = plot({f"method {number}": result([8.0, 3.0]) for number in range(30)})
    lines = figure.axes[0].get_lines()
    assert len({(line.get_color(), str(line._unscaled_dash_pattern)) for line in lines}) == 30
    assert len(figure.axes[1].get_lines()) == 30
    assert not figure.axes[1].collections
    assert len(texts(figure.legends[0])) == 30


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1e3, 1.0, 1e-3], "log"),
        ([50.0, 20.0, 4.0], "log"),
        ([5.0, 4.0, 3.0], "linear"),
        ([1e3, 1.0, 0.0], "log"),
        ([0.0, 0.0, 0.0], "linear"),
        ([-1.0, -2.0, -3.0], "linear"),
        ([2.0, 0.0, -3.0], "linear"),
        ([1e5, 10.0, -20.0], "symlog"),
        ([-1e5, -10.0, -1.0], "symlog"),
        ([INF, 5.0, 4.0], "linear"),
        ([], "linear"),
        ([INF, INF, NAN], "linear"),
    ],
)
def test_the_axis_suits_the_values(values, scale):
    axes = plot(result(values, fun=-1.0 if values[:1] == [-1e5] else None)).axes[0]
    assert axes.get_yscale() == scale
    low, high = axes.get_ylim()
    shown = [value for value in values if np.isfinite(value) and (value > 0 or scale != "log")]
    assert all(low < value < high for value in shown)


@pytest.mark.parametrize(
    ("values", "fun", "expected"),
    [
        ([INF, 5.0, 4.0], 4.0, ([20, 30], [5.0, 4.0])),
        ([-INF, -5.0, -4.0], -4.0, ([20, 30], [-5.0, -4.0])),  # maximised
        ([NAN, 1e307, 4.0], 4.0, ([30], [4.0])),
        ([INF, INF], INF, ([], [])),
    ],
)
def test_what_is_not_a_number_is_not_drawn(values, fun, expected):
    assert drawn(plot(result(values, fun=fun)).axes[0]) == expected


def test_what_is_not_found_yet_is_worse_than_any_value():
    """So that a median is there as soon as half of the runs have found something, and never looks better than it is."""
    runs = [result([INF, 5.0]), result([INF, INF]), result([3.0, 2.0])]
    assert drawn(plot(runs).axes[0]) == ([20], [5.0])
    risen = [result([-INF, 5.0], fun=5.0), result([-INF, -INF]), result([3.0, 4.0], fun=4.0)]
    assert drawn(plot(risen[:1] + risen[2:]).axes[0]) == ([20], [4.5])


def test_restarts_do_not_lose_what_was_found():
    values = [9.0, 2.0, 7.0, 1.0]
    assert drawn(plot(result(values, restarts=1)).axes[0])[1] == [9.0, 2.0, 2.0, 1.0]
    assert drawn(plot(result([1.0, 5.0, 2.0, 8.0], restarts=1, fun=8.0)).axes[0])[1] == [1.0, 5.0, 5.0, 8.0]
    assert drawn(plot(result(values)).axes[0])[1] == values  # a noisy one may rise


@pytest.mark.parametrize(
    "odd",
    [
        result([]),
        [result([]), result([3.0, 1.0])],
        {"a": result([]), "b": result([])},
        result([4.0]),
        result([1e300, -1e300, 1e-300]),
        result([1e140, 1e-140], diversity=[1e-300, 0.0]),
        result([3.0, 1.0], rate=1e-300),
        result([3.0, 1.0], rate=1e300, diversity=[NAN, INF]),
        result(np.geomspace(1e6, 1e-6, 100_000)),
    ],
)
def test_nothing_is_too_odd(odd):
    """Drawn, with warnings as errors."""
    figure = plot(odd)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert all(len(line.get_xdata()) <= 1000 for axes in figure.axes for line in axes.get_lines())


def test_the_first_generations_rates_do_not_set_the_axis():
    """They are spread over all magnitudes on purpose."""
    history = result(np.linspace(2, 1, 200)).history
    history.log_rate_low[0], history.log_rate_high[0] = np.log(1e-9), np.log(1e9)
    low, high = plot(Result(fun=1.0, history=history)).axes[1].get_ylim()
    assert 1e-3 < low < 0.01
    assert 1.0 < high < 10.0


def test_on_axes_of_ones_own():
    figure = Figure()
    with mpl.rc_context({"axes.spines.top": True}):
        axes = figure.subplots(3, 1)
    named = {"a": result([3.0, 2.0]), "b": result([3.0, 1.0])}
    assert plot(named, axes=axes) is figure
    assert drawn(axes[0], 1)[1] == [3.0, 1.0]
    assert texts(axes[0].get_legend()) == ["a", "b"]
    assert not figure.legends


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_files(tmp_path, suffix, begins):
    path = tmp_path / f"run.{suffix}"
    before = dict(mpl.rcParams)
    figure = plot(result([3.0, 1.0]), path=str(path))
    assert isinstance(figure, Figure)
    assert path.read_bytes().startswith(begins)
    assert dict(mpl.rcParams) == before


def test_nothing_is_imported_before_it_is_needed():
    code = """import sys, gesmr.plotting
assert "matplotlib" not in sys.modules
from types import SimpleNamespace as Some
from gesmr.optimize.result import Result
from gesmr.optimize.run import History
import numpy as np
names = "elite log_rate evaluations log_rate_low log_rate_high log_rate_elite diversity".split()
gesmr.plotting.plot(Result(fun=1.0, history=Some(**{name: np.ones(3) for name in names})))
assert "matplotlib.pyplot" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="plot needs matplotlib: pip install 'gesmr"):
        plot(result([3.0, 1.0]))


GOOD = result([3.0, 1.0])


@pytest.mark.parametrize(
    ("results", "options", "exception", "words"),
    [
        (3, {}, TypeError, ["results must be a result of gesmr.minimize", "3 (int)"]),
        ([GOOD, None], {}, TypeError, ["results", "None"]),
        ({"a": GOOD, "b": [GOOD, "x"]}, {}, TypeError, ["results['b']", "'x'"]),
        (Result(fun=1.0), {}, TypeError, ["gesmr.minimize"]),
        ([], {}, ValueError, ["at least one result"]),
        ({}, {}, ValueError, ["empty dictionary"]),
        ({"a": []}, {}, ValueError, ["results['a']"]),
        (GOOD, {"by": "time"}, ValueError, ["by must be one of 'evaluations', 'generations'", "'time'"]),
        (GOOD, {"path": 3}, TypeError, ["path must be the name of a file", "3"]),
        (GOOD, {"axes": [1, 2, 3]}, TypeError, ["axes must be three axes", "[1, 2, 3]"]),
    ],
)
def test_what_is_no_result_is_refused(results, options, exception, words):
    assert_refused(lambda: plot(results, **options), exception, words)
