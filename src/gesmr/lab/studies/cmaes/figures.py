"""Figures of the study `cmaes`: best value against evaluations and seconds, and a generation's cost against d."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from ...show.figures import LINES, PAGE_WIDTH, LineStyle, label, legend, log_y, settled, title
from .pycma import POPULATION, memory_needed
from .results import Duels, Results, Row
from .runs import FUNCTIONS, METHODS, SHORT

_POINTS = 300  # of a drawn curve
LOOKS = {
    "GESMR": LINES["GESMR"],
    "CMA-ES": LineStyle("#0072b2", (0.0, (5.0, 1.6)), "s", width=1.3),
    "sep-CMA-ES": LineStyle("#009e73", (0.0, (6.0, 1.5, 1.2, 1.5)), "D", width=1.3),
}
_MARK: dict[str, Any] = {"color": "#8a8a8a", "linewidth": 0.8, "linestyle": (0.0, (1.0, 1.4))}
_MARKED = {"evaluations": f"{SHORT} generations of CMA-ES", "seconds": "Where GESMR's run ends"}


def figures(results: Results) -> dict[str, tuple[str, Figure]]:
    made = {}
    for std in sorted({row.std for row in results.duels}):
        rows = [row for row in results.duels if row.std == std]
        start = f"d = {rows[0].dim}, first population N(0, {std:g}²). Means of the best value so far, bands over seeds."
        made[f"evaluations-std{std:g}"] = (
            f"Best value against evaluations, {start} Dotted: {SHORT} generations of CMA-ES, the paper's comparison.",
            _curves(results, rows, "evaluations", lambda duels: SHORT * POPULATION),
        )
        made[f"seconds-std{std:g}"] = (
            f"Best value against running time on this machine, {start} Dotted: where GESMR's run ends.",
            _curves(results, rows, "seconds", lambda duels: float(np.nanmax(duels.seconds[:, 0]))),
        )
    if results.costs:
        caption = "Time and memory of a generation against the dimension. Hollow: estimated, not run."
        made["cost"] = (caption, _cost(results))
    return made


def _curves(results: Results, rows: Sequence[Row], against: str, mark: Callable[[Duels], float]) -> Figure:
    """A panel for every function, a line of panels for centred, for shifted and for each σ₀."""
    lines = sorted({row.line for row in rows})
    functions = [f for f in FUNCTIONS if any(row.function == f for row in rows)]
    size = (PAGE_WIDTH, 1.9 * len(lines) + 0.6)
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(wspace=0.03))
    panels = figure.subplots(len(lines), len(functions), squeeze=False)
    for axes in panels.flat:
        axes.set_visible(False)
    for row in rows:
        axes = panels[lines.index(row.line), functions.index(row.function)]
        axes.set_visible(True)
        _panel(axes, results.duels[row], against, mark(results.duels[row]))
        title(axes, f"{row.function.capitalize()}\n{row.optimum}, σ₀ = {row.sigma0:g}")
    label(panels, against.capitalize(), "Best value")
    ends = Line2D([], [], label=_MARKED[against], **_MARK)
    legend(figure, LOOKS, 3, bands="Lowest to highest seed", more=[ends])
    return settled(figure)


def _panel(axes: Axes, duels: Duels, against: str, mark: float) -> None:
    positive = duels.best[np.isfinite(duels.best) & (duels.best > 0)]
    axes.set_xscale("log")
    if positive.size:
        log_y(axes, float(positive.min()), float(positive.max()))
    axes.axvline(mark, zorder=0, **_MARK)
    for m, method in enumerate(METHODS):
        x, curves = on_one_grid(getattr(duels, against)[:, m], duels.best[:, m])
        look = LOOKS[method]
        options = {**look.options, "marker": ""}
        axes.plot(x, curves.mean(axis=0), **options)
        axes.plot(x[-1:], curves.mean(axis=0)[-1:], **look.options)
        axes.fill_between(x, curves.min(axis=0), curves.max(axis=0), color=look.colour, alpha=0.18, linewidth=0)


def on_one_grid(x: np.ndarray, best: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Curves of S seeds `f[S, P]`, padded with NaN, on one grid `f[G]`: values `f[S, G]`.

    A run's last value is kept after its end. The grid goes from where all have begun to where the last one ends, and
    holds every run's last point.
    """
    x = np.where(np.isfinite(x) & (x > 0), x, np.nan)
    ends = np.nanmax(x, axis=1)
    grid = np.unique([*np.geomspace(np.nanmin(x, axis=1).max(), ends.max(), _POINTS), *ends])
    curves = []
    for places, values in zip(x, best, strict=True):
        there = np.isfinite(places)
        last = np.searchsorted(places[there], grid * (1 + 1e-12), side="right") - 1
        curves.append(values[there][np.maximum(last, 0)])
    return grid, np.stack(curves)


def _cost(results: Results) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH, 2.9), layout=ConstrainedLayoutEngine(wspace=0.05))
    measured = {method: results.measured(method) for method in METHODS}
    for axes, name, scale in zip(figure.subplots(1, 2), ("seconds", "bytes"), (1e3, 2**-20), strict=True):
        drawn = []
        for method, found in measured.items():
            if found:
                values = [scale * getattr(one, name) for one in found.values()]
                axes.plot(list(found), values, **LOOKS[method].options)
                drawn += values
        estimated = {dim: scale * memory_needed(dim) for dim in results.dims if dim not in measured["CMA-ES"]}
        if name == "bytes" and estimated:
            look = LOOKS["CMA-ES"]
            hollow = {"color": look.colour, "markerfacecolor": "none", "markersize": 5}
            axes.plot(list(estimated), list(estimated.values()), look.marker, label="Estimated, not run", **hollow)
            axes.legend()
            drawn += estimated.values()
        axes.set_xscale("log")
        if drawn:
            log_y(axes, min(drawn), max(drawn))
        axes.set_xlabel("Dimension d")
        axes.set_ylabel("Milliseconds a generation" if name == "seconds" else "Memory (MiB)")
    legend(figure, LOOKS)
    return settled(figure)
