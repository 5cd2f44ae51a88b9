"""Figures of the study `beyond`: values and rates over evaluations, every row and method at once, and the choice."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from ...run.lanes import ORACLES
from ...run.reading import LAMR_NAME
from ...show import stats
from ...show.figures import (
    LINES,
    PAGE_HEIGHT,
    PAGE_WIDTH,
    LineStyle,
    band,
    colour_of,
    label,
    legend,
    legend_below,
    log_ticks,
    log_y,
    mark,
    settled,
    style,
    title,
)
from ..cmaes.figures import LOOKS as CMAES_LOOKS
from .budget import evaluations_of, kept_generations
from .methods import CHOSEN, Variant, X
from .results import MAIN, Choice, Results, Runs, choice, own
from .runs import CMAES, OTHERS, Row

LOOKS: dict[str, LineStyle] = {
    X: LineStyle("#882255", (0.0, ()), "X", width=1.8, above=6),
    **{name: LINES[name] for name in ("GESMR", "SAMR", LAMR_NAME)},
    "DE": LineStyle("#e69f00", (0.0, (5.0, 1.6)), "^", width=1.2),
    "CR-FM-NES": LineStyle("#56b4e9", (0.0, (6.0, 1.5, 1.2, 1.5)), "D", width=1.2),
    CMAES: CMAES_LOOKS[CMAES],
}
# Rugged, narrow and smooth; small and large; turned or not. Chosen before any of them was run.
TELLING = (
    Row("ackley", 100, 10.0, True), Row("rastrigin", 100, 10.0, False), Row("griewank", 30, 1.0, True),
    Row("rosenbrock", 100, 1.0, True), Row("sphere", 1000, 1.0, False), Row("ellipsoid", 100, 1.0, True),
)  # fmt: skip
_DECADES = 3  # of ratios that have colours of their own


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    """Those that the store has something for."""
    made: dict[str, tuple[str, Figure]] = {}
    if there := results.shared(X):
        shown = [row for row in TELLING if row in there] or there[: len(TELLING)]
        made["beyond_curves"] = (
            "Best value over evaluations, the median over seeds with a band from the lower to the upper quartile, for "
            f"populations of 100.{_absent(results, shown)}{_outside(shown)}",
            _curves(results, shown),
        )
        made["beyond_rates"] = (
            "Mutation rate over evaluations, the mean of its logarithm over the rates of a population, then the median "
            f"over seeds with quartiles. That of {X} is over the groups that copy and those that recombine.",
            _rates(results, shown),
        )
        for name, rows in overviews(results).items():
            which = "The main rows" if rows[0] in MAIN else "Rows outside the 50"
            made[name] = (
                f"{which}: log10 of a method's median final value over that of {X}. Blue: {X} is lower; red: the "
                f"other is; beyond ±{_DECADES} all alike; grey: not run. † An oracle.",
                overview(results, rows),
            )
    if (found := choice(results)) is not None:
        made["beyond_choice"] = (
            f"Final value over that of {X}, one parameter changed at a time and the others as the legends say: with "
            "markers the geometric means over rows and seeds, in colour the rows behind the first of them.",
            _choice(found),
        )
    return made


def overviews(results: Results) -> dict[str, list[Row]]:
    """The rows of each figure that has some."""
    there = results.shared(X)
    rows = {
        "beyond_overview": [row for row in there if row in MAIN],
        "beyond_overview_more": [row for row in there if row not in MAIN],
    }
    return {name: shown for name, shown in rows.items() if shown}


def _absent(results: Results, rows: Sequence[Row]) -> str:
    """What a reader would look for in vain."""
    lacking = {
        method: sum(method not in results.rows[row] for row in rows) for method in LOOKS if method in results.columns
    }
    said = [f"{method} was not run on {count} of {len(rows)}" for method, count in lacking.items() if count]
    return f" {'; '.join(said)}." if said else ""


def _outside(rows: Sequence[Row]) -> str:
    more = dict.fromkeys(row.function.capitalize() for row in rows if row not in MAIN)
    return f" {', '.join(more)}: outside the 50 rows." if more else ""


def _name(row: Row) -> str:
    return f"{row.function.capitalize()}, d = {row.dim}{', turned' * row.rotated}, std {row.std:g}"


def _panels(rows: Sequence[Row], height: float) -> tuple[Figure, np.ndarray]:
    """Two or three beside each other."""
    wide = min(len(rows), 3)
    lines = -(-len(rows) // wide)
    figure = Figure(figsize=(PAGE_WIDTH, height * lines + 0.7), layout=ConstrainedLayoutEngine(hspace=0.05))
    panels = figure.subplots(lines, wide, squeeze=False)
    for axes in panels.flat[len(rows) :]:
        axes.set_visible(False)
    for row, axes in zip(rows, panels.flat, strict=False):
        function, place = _name(row).split(", ", 1)
        title(axes, f"{function}\n{place}")
        axes.set_xscale("log")
    return figure, panels


def _curves(results: Results, rows: Sequence[Row]) -> Figure:
    figure, panels = _panels(rows, 2.2)
    for row, axes in zip(rows, panels.flat, strict=False):
        there = {method: results.rows[row][method] for method in LOOKS if method in results.rows[row]}
        drawn = {method: _quartiles(runs.best) for method, runs in there.items()}
        _draw(axes, results.generations[row], drawn)
    label(panels, "Evaluations", "Best value")
    legend(figure, {method: look for method, look in LOOKS.items() if method in results.columns}, 4, bands="Quartiles")
    return settled(figure)


def _rates(results: Results, rows: Sequence[Row]) -> Figure:
    figure, panels = _panels(rows, 1.9)
    for row, axes in zip(rows, panels.flat, strict=False):
        drawn = {
            method: np.exp(_quartiles(runs.log_rate))
            for method in LOOKS
            if (runs := results.rows[row].get(method)) is not None and runs.log_rate is not None
        }
        _draw(axes, results.generations[row], drawn)
    label(panels, "Evaluations", "Mutation rate")
    with_rates = [m for m in LOOKS if any(m in there and _has_rates(there[m]) for there in results.rows.values())]
    legend(figure, {method: LOOKS[method] for method in with_rates}, bands="Quartiles")
    return settled(figure)


def _has_rates(runs: Runs) -> bool:
    return runs.log_rate is not None


def _quartiles(history: np.ndarray | None) -> np.ndarray:
    """Median and quartiles over seeds `f[3, points]`, NaN where there is nothing yet."""
    history = np.asarray(history, np.float64)
    return np.stack([stats.median(history.T), *_nan_quantiles(history)])


def _nan_quantiles(history: np.ndarray) -> np.ndarray:
    there = np.isfinite(history).any(axis=0)
    found = np.full((2, history.shape[1]), np.nan)
    found[:, there] = np.nanquantile(history[:, there], (0.25, 0.75), axis=0, method="lower")
    return found


def _draw(axes: Axes, generations: int, drawn: Mapping[str, np.ndarray]) -> None:
    """Lines with bands, and a marker at the end of each; zeros leave at the bottom."""
    values = np.concatenate([middle[np.isfinite(middle) & (middle > 0)] for middle, *_ in drawn.values()])
    if not values.size:
        return
    log_y(axes, float(values.min()), float(values.max()))
    for method, (middle, low, high) in drawn.items():
        look = LOOKS[method]
        x = evaluations_of(kept_generations(generations))
        axes.plot(x, middle, **{**look.options, "marker": ""})
        if middle[-1] > 0:
            axes.plot(x[-1:], middle[-1:], **look.options, clip_on=False)
        band(axes, x, low, high, look.colour)


@style()
def overview(results: Results, rows: Sequence[Row]) -> Figure:
    """A cell for every row and method."""
    methods = [c for c in results.columns if c != X and Variant.named(c) is None]
    methods = [m for m in methods if any(m in results.rows[row] for row in rows)]
    logs = np.array([
        [np.log10(results.rows[row][m].median / results.rows[row][X].median) if m in results.rows[row] else np.nan
         for m in methods] for row in rows
    ])  # fmt: skip
    height = min(0.125 * len(rows) + 1.9, PAGE_HEIGHT)
    figure = Figure(figsize=(PAGE_WIDTH, height), layout=ConstrainedLayoutEngine())
    axes = figure.subplots()
    axes.grid(visible=False)
    colours = matplotlib.colormaps["RdBu"].with_extremes(bad="#d9d9d9")
    image = axes.imshow(
        np.ma.masked_invalid(np.clip(logs, -99, 99)), cmap=colours, norm=Normalize(-_DECADES, _DECADES), aspect="auto"
    )
    axes.set_yticks(range(len(rows)), [_name(row) for row in rows], fontsize=5.5)
    names = [f"{method}†" if method in ORACLES else method for method in methods]
    axes.set_xticks(range(len(methods)), names, rotation=60, ha="left", rotation_mode="anchor", fontsize=6.5)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks(np.arange(len(methods) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(visible=True, which="minor", color="white", linewidth=0.6)
    axes.tick_params(which="minor", length=0)
    for i, (row, after) in enumerate(pairwise(rows)):
        if (row.dim, row.rotated) != (after.dim, after.rotated):
            axes.axhline(i + 0.5, color="black", linewidth=0.8)
    others = [m for m in methods if m in OTHERS or m in map(own, OTHERS)]
    if others and len(others) < len(methods):
        axes.axvline(methods.index(others[0]) - 0.5, color="black", linewidth=0.8)
    bar = figure.colorbar(image, ax=axes, location="bottom", extend="both", shrink=0.5, aspect=40, pad=0.01)
    bar.set_label(f"Log10 of the median over that of {X}", fontsize=7)
    return settled(figure)


_PARAMETERS = {"share": "Share of groups that recombine", "groups": "Groups K", "truncation": "Parents η_x",
               "rate_truncation": "Surviving rates η_σ"}  # fmt: skip
_SYMBOLS = {"share": "share", "groups": "K", "truncation": "η_x", "rate_truncation": "η_σ"}
_MOST_LINES = 3


def _choice(found: Choice) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH, 5.2), layout=ConstrainedLayoutEngine(hspace=0.06))
    panels = figure.subplots(2, 2, squeeze=False)
    ratios = {v: tried.ratio for name, tried in found.tried.items() if (v := Variant.named(name)) is not None}
    for (parameter, text), axes in zip(_PARAMETERS.items(), panels.flat, strict=True):
        _slices(axes, parameter, ratios, found.rows)
        axes.set_xlabel(text)
    label(panels, y=f"Times {X}")
    functions = dict.fromkeys(row.function for row in found.rows)
    handles = [Line2D([], [], color=colour_of(function), linewidth=1.0, label=f"{function.capitalize()}, a row")
               for function in functions]  # fmt: skip
    handles.append(mark("o", X, color="black", markersize=8, markerfacecolor="none"))
    legend_below(figure, handles)
    return settled(figure)


def _slices(axes: Axes, parameter: str, ratios: Mapping[Variant, np.ndarray], rows: Sequence[Row]) -> None:
    """Settings that differ in one parameter: a line for each of a few others, and the rows of the first of these."""
    lines: dict[Variant, list[Variant]] = {}
    for variant in sorted(ratios, key=lambda variant: getattr(variant, parameter)):
        if not variant.shared and variant.mates is None:
            lines.setdefault(variant._replace(**{parameter: getattr(CHOSEN, parameter)}), []).append(variant)
    order = sorted(lines, key=lambda other: (CHOSEN not in lines[other] or len(lines[other]) < 2, -len(lines[other])))
    shown = [other for other in order if len(lines[other]) > 1][:_MOST_LINES]
    drawn = np.concatenate([ratios[v] for other in shown[:1] for v in lines[other]] or [np.ones(1)])
    means = [float(np.exp(np.log(ratios[v]).mean())) for other in shown for v in lines[other]] or [1.0]
    log_y(axes, min(float(drawn.min()), *means, 1.0), max(float(drawn.max()), *means, 1.0))
    ticks = sorted({getattr(v, parameter) for other in shown for v in lines[other]})
    if parameter == "groups":
        log_ticks(axes, "x", ticks)
    else:
        axes.set_xticks(ticks)
    for i, other in enumerate(shown):
        x = [getattr(v, parameter) for v in lines[other]]
        y = np.array([ratios[v] for v in lines[other]])  # f[V, R]
        for r, row in enumerate(rows if i == 0 else ()):
            axes.plot(x, y[:, r], color=colour_of(row.function), linewidth=0.7, alpha=0.6, zorder=2)
        said = ", ".join(f"{_SYMBOLS[name]} = {getattr(other, name):g}" for name in _PARAMETERS if name != parameter)
        axes.plot(x, np.exp(np.log(y).mean(axis=1)), color=("black", "#777777", "#aaaaaa")[i], marker="os^"[i],
                  linewidth=1.8 if i == 0 else 1.3, markersize=3.5, zorder=5 - i, label=said)  # fmt: skip
    if any(CHOSEN in lines[other] for other in shown):
        axes.plot(getattr(CHOSEN, parameter), 1.0, "o", markersize=9, markerfacecolor="none", color="black", zorder=6)
    if shown:
        axes.legend(loc="best", fontsize=6)
