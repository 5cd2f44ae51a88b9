"""What the study `groups` shows: final value against K, the best K against N, claim 10, and what K to recommend."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from scipy import stats as scipy_stats

from ..studies.groups import FUNCTIONS, REVISION, divisors
from . import stats
from .claims import Claim, Verdict
from .errors import LabError
from .figures import PAGE_WIDTH, log_y, settled
from .resolution import log10
from .simple import SimpleTable, StudyView
from .store import StoredGroup

RULES: dict[str, Callable[[int], float]] = {
    "√N": lambda n: n ** (1 / 2),
    "N^(2/3)": lambda n: n ** (2 / 3),
    "N^(3/4)": lambda n: n ** (3 / 4),
    "N/6": lambda n: max(2, n / 6),
    "N/8": lambda n: max(2, n / 8),
}
_SIZES = 3  # at least, for a claim about how the best K grows
_COLOURS = {"ackley": "#0072b2", "griewank": "#d55e00", "rosenbrock": "#009e73", "sphere": "#cc79a7"}


class Row(NamedTuple):
    function: str
    std: float
    num_children: int


@dataclass(frozen=True)
class Curve:
    """Final elite values of a row, for every K that divides N."""

    groups: np.ndarray  # i[D]  K, from 1 to N
    log_final: np.ndarray  # f[D, S]  log10

    @property
    def mean(self) -> np.ndarray:
        """Mean over seeds of log10, `f[D]`."""
        return self.log_final.mean(axis=1)

    @property
    def best(self) -> int:
        """The K with the lowest mean, K*."""
        return int(self.groups[np.argmin(self.mean)])

    def at(self, groups: float) -> float:
        """The mean at any K, straight in log K between the divisors of N beside it."""
        return float(np.interp(np.log(groups), np.log(self.groups), self.mean))

    def loss(self, groups: float) -> float:
        """How much higher, in log10, the mean is at that K than at the best."""
        return self.at(groups) - float(self.mean.min())


Results = Mapping[Row, Curve]


def load(groups: Sequence[StoredGroup]) -> Results:
    """The rows for which every K that divides N has run, on the seeds that all of these share."""
    values: dict[Row, dict[int, dict[int, float]]] = {}
    for group in groups:
        for spec, final in zip(group.specs, group.arrays.get("final", ()), strict=False):
            if spec["kind"] == "groups" and spec["revision"] == REVISION:
                row = Row(spec["function"], spec["std"], spec["num_children"])
                values.setdefault(row, {}).setdefault(spec["groups"], {})[spec["seed"]] = float(final)
    results = {}
    for row in sorted(values, key=lambda row: (FUNCTIONS.index(row.function), row.std, row.num_children)):
        by_groups = values[row]
        seeds = sorted(set.intersection(*(set(runs) for runs in by_groups.values())))
        if seeds and tuple(sorted(by_groups)) == divisors(row.num_children):
            final = np.array([[by_groups[k][seed] for seed in seeds] for k in sorted(by_groups)])
            results[row] = Curve(np.array(sorted(by_groups)), log10(row.function, final))
    if not results:
        raise LabError("no population size has runs for every number of groups that divides it; run the study again")
    return results


class Fit(NamedTuple):
    """log K* = intercept + slope · log N by least squares over rows, with the slope's 95% interval."""

    slope: float
    low: float
    high: float
    intercept: float
    ratio: float  # geometric mean of K*/√N
    ceiling: float  # that of N^(1/4): the ratio if K* were N^(3/4)


def fit(results: Results) -> Fit | None:
    """None with fewer than three population sizes."""
    if len({row.num_children for row in results}) < _SIZES:
        return None
    x = np.log([row.num_children for row in results])
    y = np.log([curve.best for curve in results.values()])
    line = scipy_stats.linregress(x, y)
    slope, error, intercept = float(line.slope), float(line.stderr), float(line.intercept)  # type: ignore[attr-defined]
    half = error * float(scipy_stats.t.ppf(0.975, len(x) - 2))
    return Fit(
        slope, slope - half, slope + half, intercept, float(np.exp((y - x / 2).mean())), float(np.exp(x.mean() / 4))
    )


def decide(results: Results) -> list[Claim]:
    line = fit(results) if {row.function for row in results} == set(FUNCTIONS) else None
    holds, found = None, "the runs this needs are not all there"
    if line is not None:
        holds = line.low <= 3 / 4 and line.high >= 1 / 2 and 1 / 2 <= line.ratio <= 2 * line.ceiling
        found = (
            f"K* grows as N^{line.slope:.2f} (95% interval {line.low:.2f} to {line.high:.2f}); "
            f"K*/√N is {line.ratio:.2f} in the geometric mean, N^(1/4) is {line.ceiling:.2f}"
        )
    return [
        Claim(
            10,
            "The best number of groups K is near √N and tends to N^(3/4)",
            "with K* the divisor of N whose final value has the lowest mean logarithm, the 95% interval of b in log K* "
            "= a + b log N, by least squares over functions, spreads and at least three N, meets [1/2, 3/4], and the "
            "geometric mean of K*/√N is at least 1/2 and at most twice that of N^(1/4)",
            found,
            Verdict.of(holds),
        )
    ]


def losses(results: Results) -> dict[str, np.ndarray]:
    """Of each rule of thumb for K in each row, `f[R]`: log10 of its final value over that of the best K."""
    return {
        rule: np.array([curve.loss(groups(row.num_children)) for row, curve in results.items()])
        for rule, groups in RULES.items()
    }


def recommended(results: Results) -> str:
    """The rule with the lowest mean loss, if a paired t-test over rows tells it from √N; else √N."""
    loss = losses(results)
    lowest = min(loss, key=lambda rule: loss[rule].mean())
    return lowest if _p_against_default(loss, lowest) < stats.LEVEL else "√N"


def _p_against_default(loss: Mapping[str, np.ndarray], rule: str) -> float:
    p = float(stats.compare(loss[rule], loss["√N"]).paired)
    return p if np.isfinite(p) else 1.0


def make_tables(results: Results) -> list[SimpleTable]:
    rows = tuple(
        (
            row.function.capitalize(),
            row.std,
            row.num_children,
            curve.best,
            row.num_children**0.5,
            row.num_children**0.75,
            float(10 ** curve.mean.min()),
            float(10 ** curve.at(row.num_children**0.5)),
        )
        for row, curve in results.items()
    )
    columns = ("Function", "std", "N", "best K", "√N", "N^(3/4)", "final at best K", "final at √N")
    note = "Geometric means over seeds; at √N interpolated between the divisors of N beside it."
    return [SimpleTable("groups", "The best number of groups", columns, rows, note), _rules_table(results)]


def _rules_table(results: Results) -> SimpleTable:
    loss = losses(results)
    sizes = sorted({row.num_children for row in results})
    of_size = {n: np.array([row.num_children == n for row in results]) for n in sizes}
    rows = tuple(
        (
            f"K = {rule}",
            float(values.mean()),
            *(float(values[chosen].mean()) for chosen in of_size.values()),
            float(values.max()),
            None if rule == "√N" else _p_against_default(loss, rule),
        )
        for rule, values in loss.items()
    )
    best = recommended(results)
    advice = "keep K ≈ √N as the default" if best == "√N" else f"make K ≈ {best} the default in place of √N"
    note = (
        "log10 of the final value over that of the best K; 0 is as good as the best. N/6 and N/8 are at least 2. "
        f"Recommended is the rule with the lowest mean if a paired t-test over the {len(results)} rows tells it from "
        f"√N (p < 0.05): {advice}."
    )
    columns = ("Rule", "mean loss", *(f"N = {n}" for n in sizes), "worst row", "p against √N")
    return SimpleTable("groups_rules", "What a rule of thumb for K loses", columns, rows, note)


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    made = {
        "groups": (
            "Final elite value against the number of groups K, for each population size N (geometric mean over seeds, "
            "band of one standard error). Star: the best K. Ring: √N. Square: N^(3/4).",
            _curves(results),
        )
    }
    line = fit(results)
    if line is not None:
        caption = (
            f"The best K against N: K* ∝ N^{line.slope:.2f}, 95% interval {line.low:.2f} to {line.high:.2f}. The band "
            "is that of the fitted line."
        )
        made["groups_best"] = caption, _best(results, line)
    return made


def _curves(results: Results) -> Figure:
    functions = [name for name in FUNCTIONS if any(row.function == name for row in results)]
    stds = sorted({row.std for row in results})
    sizes = sorted({row.num_children for row in results})
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(sizes)))
    figure = Figure(figsize=(PAGE_WIDTH, 1.75 * len(functions) + 0.7), layout=ConstrainedLayoutEngine(hspace=0.04))
    panels = figure.subplots(len(functions), len(stds), squeeze=False, sharex=True)
    for function, line in zip(functions, panels, strict=True):
        for std, axes in zip(stds, line, strict=True):
            shown = {row: curve for row, curve in results.items() if (row.function, row.std) == (function, std)}
            axes.set_title(f"{function.capitalize()}, std {std:g}", loc="left", fontweight="bold")
            _count_axis(axes.xaxis, axes.set_xscale)
            if shown:
                means = 10.0 ** np.concatenate([curve.mean for curve in shown.values()])
                log_y(axes, float(means.min()), float(means.max()))
            for row, curve in shown.items():
                _draw_curve(axes, curve, shades[sizes.index(row.num_children)])
        line[0].set_ylabel("final elite value")
    for axes in panels[-1]:
        axes.set_xlabel("number of groups K")
    handles = [Line2D([], [], color=shade, label=f"N = {n}") for n, shade in zip(sizes, shades, strict=True)]
    marks = (("*", "#444444", 9, "best K"), ("o", "white", 5, "√N"), ("s", "white", 4.5, "N^(3/4)"))
    handles += [
        Line2D([], [], linestyle="", marker=marker, markersize=size, markerfacecolor=face, markeredgecolor="#444444",
               label=label)
        for marker, face, size, label in marks
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.2)
    return settled(figure)


def _draw_curve(axes: Axes, curve: Curve, colour: np.ndarray) -> None:
    mean, error = curve.mean, stats.standard_error(curve.log_final)
    n = int(curve.groups[-1])
    axes.plot(curve.groups, 10.0**mean, color=colour, linewidth=1.1, zorder=3)
    if np.isfinite(error).all():
        low, high = np.maximum([10.0 ** (mean - error), 10.0 ** (mean + error)], axes.get_ylim()[0])
        axes.fill_between(curve.groups, low, high, color=colour, alpha=0.18, linewidth=0, zorder=1)
    for exponent, marker, size in ((1 / 2, "o", 4.5), (3 / 4, "s", 4.0)):
        k = n**exponent
        axes.plot(k, 10.0 ** curve.at(k), marker, markersize=size, markerfacecolor="white", markeredgecolor=colour,
                  zorder=4)  # fmt: skip
    axes.plot(curve.best, 10.0 ** mean.min(), "*", markersize=9, color=colour, markeredgecolor="white",
              markeredgewidth=0.5, zorder=5)  # fmt: skip


def _best(results: Results, line: Fit) -> Figure:
    sizes = np.array(sorted({row.num_children for row in results}))
    figure = Figure(figsize=(0.72 * PAGE_WIDTH, 3.6), layout=ConstrainedLayoutEngine())
    axes = figure.subplots()
    _count_axis(axes.xaxis, axes.set_xscale)
    _count_axis(axes.yaxis, axes.set_yscale)
    x = np.geomspace(sizes[0] / 1.25, sizes[-1] * 1.25, 60)
    for label, exponent, dashes in (("√N", 1 / 2, ":"), ("N^(3/4)", 3 / 4, "--")):
        axes.plot(x, x**exponent, dashes, color="#777777", linewidth=1.0, label=label, zorder=2)
    axes.plot(x, np.exp(line.intercept) * x**line.slope, color="black", linewidth=1.5, label=f"fit, N^{line.slope:.2f}")
    low, high = _band(results, line, x)
    axes.fill_between(x, low, high, color="black", alpha=0.13, linewidth=0, label="its 95% interval", zorder=1)
    stds = sorted({row.std for row in results})
    kinds = [(function, std) for function in FUNCTIONS for std in stds]
    for i, (function, std) in enumerate(kinds):
        points = [
            (row.num_children, c.best) for row, c in results.items() if (row.function, row.std) == (function, std)
        ]
        if points:
            n, best = np.array(points).T
            beside = 1.022 ** (i - (len(kinds) - 1) / 2)  # apart, for they often coincide
            filled = std == stds[0]
            axes.plot(n * beside, best, "o" if filled else "D", markersize=4.2, color=_COLOURS[function], linestyle="",
                      markerfacecolor=_COLOURS[function] if filled else "white",
                      label=f"{function.capitalize()}, std {std:g}", zorder=4)  # fmt: skip
    axes.set_xlabel("population size N")
    axes.set_ylabel("best number of groups K*")
    figure.legend(loc="outside right center")
    return settled(figure)


def _band(results: Results, line: Fit, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95% interval of the fitted line at `x f[P]`."""
    log_n = np.log([row.num_children for row in results])
    log_k = np.log([curve.best for curve in results.values()])
    middle = line.intercept + line.slope * np.log(x)
    spread = np.sum((log_k - line.intercept - line.slope * log_n) ** 2) / (len(log_n) - 2)
    leverage = 1 / len(log_n) + (np.log(x) - log_n.mean()) ** 2 / np.sum((log_n - log_n.mean()) ** 2)
    half = float(scipy_stats.t.ppf(0.975, len(log_n) - 2)) * np.sqrt(spread * leverage)
    return np.exp(middle - half), np.exp(middle + half)


def _count_axis(axis, set_scale) -> None:
    """A log axis of whole numbers."""
    set_scale("log")
    axis.set_major_locator(FixedLocator([1, 3, 10, 30, 100, 300, 1000, 3000]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def summary(results: Results) -> str:
    functions = len({row.function for row in results})
    sizes = sorted({row.num_children for row in results})
    seeds = sorted({curve.log_final.shape[1] for curve in results.values()})
    counts = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]}–{seeds[-1]}"
    return f"{functions} functions in 100-D, 1000 generations, N = {', '.join(map(str, sizes))}, {counts} seeds"


VIEW = StudyView(
    name="groups",
    title="How many groups",
    text=(
        "GESMR with every number of groups K that divides the population size N. With few groups the rates explore too "
        "little; with many each is judged by too few children. Where is the best K, and how does it grow with N?"
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
    decide=decide,
)
