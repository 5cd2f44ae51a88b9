"""What the study `groups` shows: final value against K, the best K against N, claims 10 and 15, what to recommend."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from scipy import stats as scipy_stats

from ...errors import LabError
from ...run.store import StoredJob
from ...show import stats
from ...show.claims import Claim, Verdict, shortfall
from ...show.figures import PAGE_WIDTH, log_y, settled
from ...show.resolution import log10
from ...show.simple import SimpleTable, StudyView
from .runs import AUTHORS_GENERATIONS, AUTHORS_SIZES, FUNCTIONS, GENERATIONS, REVISION, divisors

RULES: dict[str, Callable[[int], float]] = {
    "√N": lambda n: n ** (1 / 2),
    "N^(2/3)": lambda n: n ** (2 / 3),
    "N^(3/4)": lambda n: n ** (3 / 4),
    "N/6": lambda n: max(2, n / 6),
    "N/8": lambda n: max(2, n / 8),
}
_SIZES = 3  # at least, for a claim about any N
_FACTOR = 2  # a K that loses no more is reasonable, one that loses as much drops: values range over orders of magnitude
_MANY = 50  # children, from which there is room between K = 1 and K = N: the authors' smallest population
_PAPER_SEEDS = 5
_COLOURS = {"ackley": "#0072b2", "griewank": "#d55e00", "rosenbrock": "#009e73", "sphere": "#cc79a7"}


class Row(NamedTuple):
    function: str
    std: float
    num_children: int
    generations: int = GENERATIONS


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

    @cached_property
    def resampled(self) -> np.ndarray:
        """The means of resampled seeds, `f[D, count]`."""
        return self.log_final[:, stats.resamples(self.log_final.shape[1])].mean(axis=-1)

    def at(self, groups: float) -> float:
        """The mean at any K, straight in log K between the divisors of N beside it."""
        return float(self._weights(groups) @ self.mean)

    def loss(self, groups: float) -> float:
        """How much higher, in log10, the mean is at that K than at the best."""
        return self.at(groups) - float(self.mean.min())

    def resampled_loss(self, groups: float) -> np.ndarray:
        """The same of resampled seeds, against the K that is best on all, `f[count]`."""
        return self._weights(groups) @ self.resampled - self.resampled[np.argmin(self.mean)]

    def _weights(self, groups: float) -> np.ndarray:
        """Of every divisor in the value at any K, `f[D]`."""
        return np.array([np.interp(np.log(groups), np.log(self.groups), unit) for unit in np.eye(len(self.groups))])


Results = Mapping[Row, Curve]


def load(groups: Sequence[StoredJob]) -> Results:
    """The rows for which every K that divides N has run, on the seeds that all of these share."""
    values: dict[Row, dict[int, dict[int, float]]] = {}
    for group in groups:
        for spec, final in zip(group.specs, group.arrays.get("final", ()), strict=False):
            if spec["kind"] == "groups" and spec["revision"] == REVISION:
                row = Row(spec["function"], spec["std"], spec["num_children"], spec["generations"])
                values.setdefault(row, {}).setdefault(spec["groups"], {})[spec["seed"]] = float(final)
    results = {}
    for row in sorted(values, key=_order):
        by_groups = values[row]
        seeds = sorted(set.intersection(*(set(runs) for runs in by_groups.values())))
        if seeds and tuple(sorted(by_groups)) == divisors(row.num_children):
            final = np.array([[by_groups[k][seed] for seed in seeds] for k in sorted(by_groups)])
            results[row] = Curve(np.array(sorted(by_groups)), log10(row.function, final))
    if not results:
        raise LabError("no population size has runs for every number of groups that divides it; run the study again")
    return results


def _order(row: Row) -> tuple:
    return -row.generations, FUNCTIONS.index(row.function), row.std, row.num_children


class Fit(NamedTuple):
    """log K* = intercept + slope · log N by least squares over rows, with the slope's 95% interval."""

    slope: float
    low: float
    high: float
    intercept: float


def fit(results: Results) -> Fit | None:
    """None with fewer than three population sizes."""
    if len({row.num_children for row in results}) < _SIZES:
        return None
    x = np.log([row.num_children for row in results])
    y = np.log([curve.best for curve in results.values()])
    line = scipy_stats.linregress(x, y)
    slope, error, intercept = float(line.slope), float(line.stderr), float(line.intercept)  # type: ignore[attr-defined]
    half = error * float(scipy_stats.t.ppf(0.975, len(x) - 2))
    return Fit(slope, slope - half, slope + half, intercept)


def by_generations(results: Results) -> dict[int, Results]:
    """Our runs apart from those as the authors ran them, which are shorter."""
    lengths = dict.fromkeys(row.generations for row in results)
    return {t: {row: curve for row, curve in results.items() if row.generations == t} for t in lengths}


def _setting(generations: int, results: Results) -> str:
    whose = {GENERATIONS: "our", AUTHORS_GENERATIONS: "the authors'"}.get(generations, "another")
    return f"{whose} setting (std {' and '.join(f'{std:g}' for std in _stds(results))}, {generations} generations)"


def _name(of: str, generations: int) -> str:
    """Of a file: ours is the plain one."""
    return of if generations == GENERATIONS else f"{of}_{generations}"


def _stds(results: Results) -> list[float]:
    return sorted({row.std for row in results})


def _sizes(results: Results) -> list[int]:
    return sorted({row.num_children for row in results})


def growth(results: Results) -> dict[int, tuple[stats.Ratio, stats.Ratio]]:
    """K*/√N and K*/N^(3/4) for each N, geometric means over functions and spreads."""
    found = {}
    for n in _sizes(results):
        curves = [curve for row, curve in results.items() if row.num_children == n]
        best = np.mean([np.log(curve.best) for curve in curves])
        draws = np.mean([np.log(curve.groups[curve.resampled.argmin(axis=0)]) for curve in curves], axis=0)
        ends = np.array([best, *stats.interval(draws)])
        found[n] = tuple(stats.Ratio(*map(float, np.exp(ends - power * np.log(n)))) for power in (1 / 2, 3 / 4))
    return found


class Part(NamedTuple):
    """What a setting says about a claim."""

    holds: bool
    found: str

    @property
    def verdict(self) -> Verdict:
        return Verdict.of(self.holds)


def _reasonable(results: Results) -> Part:
    """Of claim 10: what K = √N loses."""
    root = {row: row.num_children**0.5 for row in results}
    loss = float(np.mean([curve.loss(root[row]) for row, curve in results.items()]))
    draws = np.mean([curve.resampled_loss(root[row]) for row, curve in results.items()], axis=0)
    ratio = _ratio(loss, draws)
    grown = "; ".join(f"N = {n}: {half}, {most}" for n, (half, most) in growth(results).items())
    return Part(ratio.value <= _FACTOR, f"K = √N ends {ratio} times as high as the best K; K*/√N, K*/N^(3/4): {grown}")


def _drops(results: Results) -> Part:
    """Of claim 15: what K = 1 and K = N lose."""
    many = {row: curve for row, curve in results.items() if row.num_children >= _MANY}
    holds, found = [], []
    for name, groups in (("K = 1", lambda n: 1), ("K = N", lambda n: n)):
        loss = np.array([curve.loss(groups(row.num_children)) for row, curve in many.items()])
        draws = np.median([curve.resampled_loss(groups(row.num_children)) for row, curve in many.items()], axis=0)
        dropped = int((loss >= np.log10(_FACTOR)).sum())
        holds.append(2 * dropped > len(many))
        ratio = _ratio(float(np.median(loss)), draws)
        found.append(
            f"{name} ends {ratio} times as high as the best K in the median row, {dropped} of {len(many)} drop"
        )
    return Part(all(holds), ", ".join(found))


def _ratio(log: float, draws: np.ndarray) -> stats.Ratio:
    """From log10 of a ratio and of its resamples `f[count]`."""
    return stats.Ratio(*(float(10**end) for end in (log, *stats.interval(draws))))


def decide(results: Results) -> list[Claim]:
    """Claims 10 and 15, in each setting that has every function, three N of `_MANY` or more, and two seeds."""
    settings = {t: rows for t, rows in by_generations(results).items() if _complete(rows)}
    used = [(row, curve) for rows in settings.values() for row, curve in rows.items()]
    largest = max((row.num_children for row, _ in used), default=0)
    seeds = min((curve.log_final.shape[1] for _, curve in used), default=0)
    short = shortfall(seeds=(seeds, _PAPER_SEEDS), children=(largest, AUTHORS_SIZES[-1])) if used else ""
    where = f"in each setting (ours, the authors') with all functions, three N of {_MANY} or more and two seeds or more"
    intervals = "In brackets: 95% intervals of resampled seeds"
    reasonable, losing = _joined(settings, _reasonable)
    drops, dropping = _joined(settings, _drops)
    limit = f". What K* tends to as N grows is not decidable from N up to {largest:,}" if used else ""
    return [
        Claim(
            10,
            "K = √N groups are reasonable; as N grows the best K tends to N^(3/4)",
            f"decided is the first half: {where}, the final value at K = √N is at most {_FACTOR} times that at K*, the "
            "best divisor of N, in the geometric mean over seeds, functions, spreads and N (between divisors straight "
            f"in log K). The limit is not decided: K*/√N and K*/N^(3/4) are stated for each N. {intervals}",
            losing + limit,
            Verdict.of(reasonable),
            short,
        ),
        Claim(
            15,
            "Performance drops very fast as K → 1 and as K → N",
            f"{where}, the final value at K = 1 is at least {_FACTOR} times that at the best K, in the geometric mean "
            f"over seeds, in more than half of the rows with N ≥ {_MANY}, and so is that at K = N. {intervals}",
            dropping,
            Verdict.of(drops),
            short,
        ),
    ]


def _joined(settings: Mapping[int, Results], part_of: Callable[[Results], Part]) -> tuple[bool | None, str]:
    """Whether a claim holds in every setting, and what each says."""
    parts = {_setting(t, rows): part_of(rows) for t, rows in settings.items()}
    if not parts:
        return None, "the runs this needs are not all there"
    found = [f"In {name} this {part.verdict}: {part.found}" for name, part in parts.items()]
    differ = ["The settings differ"] * (len({part.holds for part in parts.values()}) > 1)
    return all(part.holds for part in parts.values()), ". ".join(found + differ)


def _complete(results: Results) -> bool:
    sizes = [n for n in _sizes(results) if n >= _MANY]
    seeds = min(curve.log_final.shape[1] for curve in results.values())
    return {row.function for row in results} == set(FUNCTIONS) and len(sizes) >= _SIZES and seeds > 1


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
            row.generations,
            row.num_children,
            curve.best,
            row.num_children**0.5,
            row.num_children**0.75,
            float(10 ** curve.mean.min()),
            float(10 ** curve.at(row.num_children**0.5)),
        )
        for row, curve in results.items()
    )
    columns = ("Function", "std", "T", "N", "best K", "√N", "N^(3/4)", "final at best K", "final at √N")
    note = "T: generations. Geometric means over seeds; at √N interpolated between the divisors of N beside it."
    settings = by_generations(results)
    made = [_rules_table(t, of_setting) for t, of_setting in settings.items()]
    return [SimpleTable("groups", "The best number of groups", columns, rows, note), *made, _growth_table(settings)]


def _growth_table(settings: Mapping[int, Results]) -> SimpleTable:
    rows = tuple((t, n, *half, *most) for t, rows in settings.items() for n, (half, most) in growth(rows).items())
    columns = ("T", "N", "K*/√N", "√N: from", "√N: to", "K*/N^(3/4)", "N^(3/4): from", "N^(3/4): to")
    note = "T: generations. Geometric means over functions and spreads; from … to: 95% intervals of resampled seeds."
    return SimpleTable("groups_growth", "The best number of groups against √N and N^(3/4)", columns, rows, note)


def _rules_table(generations: int, results: Results) -> SimpleTable:
    loss = losses(results)
    sizes = _sizes(results)
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
    name = _name("groups_rules", generations)
    return SimpleTable(name, f"What a rule of thumb for K loses: {_setting(generations, results)}", columns, rows, note)


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    made = {}
    for t, rows in by_generations(results).items():
        caption = (
            f"Final elite value against the number of groups K, for each population size N, in {_setting(t, rows)}: "
            "geometric mean over seeds, band of one standard error. Star: the best K. Ring: √N. Square: N^(3/4)."
        )
        made[_name("groups", t)] = caption, _curves(rows)
    line = fit(results)
    if line is not None:
        caption = (
            f"The best K against N. A line through all: K* ∝ N^{line.slope:.2f}, 95% interval {line.low:.2f} to "
            f"{line.high:.2f}, which says nothing about larger N. The band is that of the line."
        )
        made["groups_best"] = caption, _best(results, line)
    return made


def _curves(results: Results) -> Figure:
    shown = dict.fromkeys((row.function, row.std) for row in results)
    sizes = _sizes(results)
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(sizes)))
    lines = -(-len(shown) // 2)
    figure = Figure(figsize=(PAGE_WIDTH, 1.75 * lines + 0.7), layout=ConstrainedLayoutEngine(hspace=0.04))
    panels = figure.subplots(lines, 2, squeeze=False, sharex=True)
    for axes in panels.flat[len(shown) :]:
        axes.set_visible(False)
    for (function, std), axes in zip(shown, panels.flat, strict=False):
        curves = {row.num_children: curve for row, curve in results.items() if row[:2] == (function, std)}
        axes.set_title(f"{function.capitalize()}, std {std:g}", loc="left", fontweight="bold")
        _count_axis(axes.xaxis, axes.set_xscale)
        means = 10.0 ** np.concatenate([curve.mean for curve in curves.values()])
        log_y(axes, float(means.min()), float(means.max()))
        for n, curve in curves.items():
            _draw_curve(axes, curve, shades[sizes.index(n)])
    for axes in panels[:, 0]:
        axes.set_ylabel("final elite value")
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
    sizes = _sizes(results)
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
    looks = dict(zip(_stds(results), ("o", "D", "^"), strict=False))  # the first filled
    kinds = [(function, std) for function in FUNCTIONS for std in looks]
    for i, (function, std) in enumerate(kinds):
        points = [(row.num_children, c.best) for row, c in results.items() if row[:2] == (function, std)]
        if points:
            n, best = np.array(points).T
            beside = 1.022 ** (i - (len(kinds) - 1) / 2)  # apart, for they often coincide
            axes.plot(n * beside, best, looks[std], markersize=4.2, color=_COLOURS[function], linestyle="",
                      markerfacecolor=_COLOURS[function] if looks[std] == "o" else "white",
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
    seeds = sorted({curve.log_final.shape[1] for curve in results.values()})
    counts = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]}–{seeds[-1]}"
    settings = "; ".join(
        f"{t} generations, N = {', '.join(map(str, _sizes(rows)))}" for t, rows in by_generations(results).items()
    )
    return f"{functions} functions in 100-D, {settings}, {counts} seeds"


VIEW = StudyView(
    name="groups",
    title="How many groups",
    text=(
        "GESMR with every number of groups K that divides the population size N. With few groups the rates explore too "
        "little; with many each is judged by too few children. Where is the best K, how does it grow with N, and what "
        "does another K lose? The runs with std 5 are as the paper's authors ran them."
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
    decide=decide,
)
