"""Figures of the study `images`: curves of loss, rate and accuracy, and what the initialisation changes."""

from collections.abc import Mapping
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from scipy.stats import rankdata

from ....problems.networks import INITIALISATIONS, UNIFORM
from ...run.lanes import STEP
from ...show import stats
from ...show.figures import (
    PAGE_WIDTH,
    draw,
    draw_rate,
    label,
    legend,
    legend_below,
    log_y,
    mark,
    over_seeds,
    settled,
    title,
)
from ..functions.runs import kept_generations
from .results import RANKED, Results, Row
from .runs import AUTHORS, OURS

_LOOKS = (("#d55e00", "o"), ("#0072b2", "s"), ("#009e73", "^"), ("#cc79a7", "D"))
_STARTS = dict(zip(INITIALISATIONS, cycle(_LOOKS), strict=False))


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    figures = {}
    others = [row for row in results if row.setting != AUTHORS]
    usual = [row for row in others if row.setting == OURS] or others
    shown = {
        f"images_curves_{images}": [row for row in usual if row.images == images]
        for images in dict.fromkeys(row.images for row in usual)
    }
    shown["images_curves_authors"] = [row for row in results if row.setting == AUTHORS]
    for name, rows in shown.items():
        if rows:
            sizes = ", ".join(dict.fromkeys(f"{row.images:,}" for row in rows))
            how = " in the authors' setting" if rows[0].setting == AUTHORS else ""
            figures[name] = (
                f"Training loss, mutation rate and held-out accuracy over generations, {sizes} training images{how}: "
                "means over seeds (of the rate's logarithm), bands of one standard error.",
                _curves({row: results[row] for row in rows}),
            )
    compared = {row: runs for row, runs in results.items() if _starts_of(results, row) > 1}
    if compared:
        figures["images_starts"] = (
            "Training loss at the end for each initialisation: means over seeds, with one standard error.",
            _starts(compared),
        )
    return figures


def _starts_of(results: Results, row: Row) -> int:
    """How many initialisations there are of what else is the same."""
    return sum(row._replace(init=how) in results for how in INITIALISATIONS)


def _curves(results: Results) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH, 2.2 * len(results) + 0.6), layout=ConstrainedLayoutEngine(wspace=0.04))
    panels = figure.subplots(len(results), 3, squeeze=False)
    for (row, runs), (loss, rate, accuracy) in zip(results.items(), panels, strict=True):
        generation = kept_generations(row.generations)
        step = np.append(np.arange(STEP, row.generations, STEP), row.generations)
        _draw_lines(loss, {m: (generation, over_seeds(run.elite)) for m, run in runs.items()}, "Training loss")
        with np.errstate(over="ignore"):
            rates = {m: (generation, np.exp(over_seeds(run.log_rate))) for m, run in runs.items()}
        _draw_lines(rate, rates, "Mutation rate", log=True)
        scored = {m: (step, 100 * over_seeds(run.test_accuracy)) for m, run in runs.items()}
        _draw_lines(accuracy, scored, "Test accuracy (%)")
        title(loss, row.label)
    label(panels, "Generation")
    shown = [method for runs in results.values() for method in runs]
    legend(figure, shown, 5, bands="± 1 standard error", rates=True)
    return settled(figure)


def _draw_lines(axes: Axes, lines: Mapping[str, tuple[np.ndarray, np.ndarray]], of: str, log: bool = False) -> None:
    axes.set_ylabel(of)
    middles = np.concatenate([middle for _, (middle, *_) in lines.values()])
    middles = middles[np.isfinite(middles)]
    if middles.size and log:
        log_y(axes, middles.min(), middles.max())
    for method, (x, line) in lines.items():
        (draw_rate if log else draw)(axes, method, x, *line)
    if middles.size and not log:
        margin = 0.05 * max(float(np.ptp(middles)), 1e-3)
        axes.set_ylim(middles.min() - margin, middles.max() + margin)


def _starts(results: Results) -> Figure:
    """A panel for each set and size: methods in the order of their mean rank over initialisations."""
    sizes = list(dict.fromkeys(row._replace(init=UNIFORM) for row in results))
    figure = Figure(figsize=(PAGE_WIDTH, 2.6), layout=ConstrainedLayoutEngine(wspace=0.04))
    panels = figure.subplots(1, len(sizes), squeeze=False)
    for axes, usual in zip(panels[0], sizes, strict=True):
        rows = {how: results.get(usual._replace(init=how)) for how in INITIALISATIONS}
        present = {how: runs for how, runs in rows.items() if runs}
        methods = [m for m in RANKED if all(m in runs for runs in present.values())]
        means = np.array([[runs[m].final.mean() for m in methods] for runs in present.values()])
        methods = [methods[i] for i in np.argsort(rankdata(means, axis=1).mean(axis=0), kind="stable")]
        for offset, (how, runs) in zip(np.linspace(-0.22, 0.22, len(present)), present.items(), strict=True):
            colour, marker = _STARTS[how]
            finals = np.stack([runs[m].final for m in methods])
            error = np.nan_to_num(stats.standard_error(finals))
            axes.errorbar(np.arange(len(methods)) + offset, finals.mean(axis=1), error, fmt=marker, color=colour,
                          markersize=3.5, linewidth=0.9)  # fmt: skip
        axes.set_xticks(range(len(methods)), methods, rotation=90)
        title(axes, usual.label)
        axes.grid(axis="x", visible=False)
    label(panels, y="Training loss")
    shown = {row.init for row in results}
    looks = ((how, look) for how, look in _STARTS.items() if how in shown)
    legend_below(
        figure, [mark(marker, how.capitalize(), color=colour, markersize=3.5) for how, (colour, marker) in looks]
    )
    return settled(figure)
