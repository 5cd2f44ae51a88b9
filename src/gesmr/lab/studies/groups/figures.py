"""Figures of the study `groups`: final value against K, and the best K against N."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from ...show import stats
from ...show.figures import (
    PAGE_WIDTH,
    band,
    colour_of,
    label,
    legend_below,
    log_ticks,
    log_y,
    mark,
    settled,
    shade,
    title,
)
from .results import Curve, Fit, Results, by_generations, fit, setting, sizes_of, stds_of
from .runs import FUNCTIONS, GENERATIONS

_TICKS = (1, 3, 10, 30, 100, 300, 1000, 3000)


def file_name(of: str, generations: int) -> str:
    """Of a file: ours is the plain one."""
    return of if generations == GENERATIONS else f"{of}_{generations}"


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    made = {}
    for t, rows in by_generations(results).items():
        caption = (
            f"Final elite value against the number of groups K, for each population size N, in {setting(t, rows)}: "
            "geometric mean over seeds, band of one standard error. Star: the best K. Ring: √N. Square: N^(3/4)."
        )
        made[file_name("groups", t)] = caption, _curves(rows)
    line = fit(results)
    if line is not None:
        caption = (
            f"The best K against N. A line through all: K* ∝ N^{line.slope.value:.2f}, 95% interval "
            f"{line.slope.low:.2f} to {line.slope.high:.2f}, which says nothing about larger N. The band is that of "
            "the line."
        )
        made["groups_best"] = caption, _best(results, line)
    return made


def _curves(results: Results) -> Figure:
    shown = dict.fromkeys((row.function, row.std) for row in results)
    sizes = sizes_of(results)
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(sizes)))
    lines = -(-len(shown) // 2)
    figure = Figure(figsize=(PAGE_WIDTH, 1.75 * lines + 0.7), layout=ConstrainedLayoutEngine(hspace=0.04))
    panels = figure.subplots(lines, 2, squeeze=False, sharex=True)
    for axes in panels.flat[len(shown) :]:
        axes.set_visible(False)
    for (function, std), axes in zip(shown, panels.flat, strict=False):
        curves = {row.num_children: curve for row, curve in results.items() if row[:2] == (function, std)}
        title(axes, f"{function.capitalize()}, std {std:g}")
        log_ticks(axes, "x", _TICKS)
        means = 10.0 ** np.concatenate([curve.mean for curve in curves.values()])
        log_y(axes, float(means.min()), float(means.max()))
        for n, curve in curves.items():
            _draw_curve(axes, curve, shades[sizes.index(n)])
    label(panels, "Number of groups K", "Final elite value")
    handles = [Line2D([], [], color=shade, label=f"N = {n}") for n, shade in zip(sizes, shades, strict=True)]
    marks = (("*", "#444444", 9, "Best K"), ("o", "white", 5, "√N"), ("s", "white", 4.5, "N^(3/4)"))
    for marker, face, size, text in marks:
        handles.append(mark(marker, text, markersize=size, markerfacecolor=face, markeredgecolor="#444444"))
    legend_below(figure, [*handles, shade("± 1 standard error")], 5, columnspacing=1.2)
    return settled(figure)


def _draw_curve(axes: Axes, curve: Curve, colour: np.ndarray) -> None:
    mean, error = curve.mean, stats.standard_error(curve.log_final)
    n = int(curve.groups[-1])
    axes.plot(curve.groups, 10.0**mean, color=colour, linewidth=1.1, zorder=3)
    if np.isfinite(error).all():
        band(axes, curve.groups, 10.0 ** (mean - error), 10.0 ** (mean + error), colour)
    for exponent, marker, size in ((1 / 2, "o", 4.5), (3 / 4, "s", 4.0)):
        k = n**exponent
        axes.plot(k, 10.0 ** curve.at(k), marker, markersize=size, markerfacecolor="white", markeredgecolor=colour,
                  zorder=4)  # fmt: skip
    axes.plot(curve.best, 10.0 ** mean.min(), "*", markersize=9, color=colour, markeredgecolor="white",
              markeredgewidth=0.5, zorder=5)  # fmt: skip


def _best(results: Results, line: Fit) -> Figure:
    sizes = sizes_of(results)
    figure = Figure(figsize=(0.72 * PAGE_WIDTH, 3.6), layout=ConstrainedLayoutEngine())
    axes = figure.subplots()
    log_ticks(axes, "x", _TICKS)
    log_ticks(axes, "y", _TICKS)
    x = np.geomspace(sizes[0] / 1.25, sizes[-1] * 1.25, 60)
    for name, exponent, dashes in (("√N", 1 / 2, ":"), ("N^(3/4)", 3 / 4, "--")):
        axes.plot(x, x**exponent, dashes, color="#777777", linewidth=1.0, label=name, zorder=2)
    middle, low, high = line.at(x)
    axes.plot(x, middle, color="black", linewidth=1.5, label=f"Fit, N^{line.slope.value:.2f}")
    axes.fill_between(x, low, high, color="black", alpha=0.13, linewidth=0, label="Its 95% interval", zorder=1)
    looks = dict(zip(stds_of(results), ("o", "D", "^"), strict=False))  # the first filled
    kinds = [(function, std) for function in FUNCTIONS for std in looks]
    for i, (function, std) in enumerate(kinds):
        points = [(row.num_children, c.best) for row, c in results.items() if row[:2] == (function, std)]
        if points:
            n, best = np.array(points).T
            beside = 1.022 ** (i - (len(kinds) - 1) / 2)  # apart, for they often coincide
            axes.plot(n * beside, best, looks[std], markersize=4.2, color=colour_of(function), linestyle="",
                      markerfacecolor=colour_of(function) if looks[std] == "o" else "white",
                      label=f"{function.capitalize()}, std {std:g}", zorder=4)  # fmt: skip
    axes.set_xlabel("Population size N")
    axes.set_ylabel("Best number of groups K*")
    figure.legend(loc="outside right center")
    return settled(figure)
