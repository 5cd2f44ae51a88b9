"""Figures of the function study: elite value and mutation rate over generations, and who wins where."""

from collections.abc import Sequence
from itertools import groupby

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from scipy.stats import rankdata

from ....problems.functions import FORMULAS
from ...errors import LabError
from ...show import stats
from ...show.figures import (
    PAGE_HEIGHT,
    PAGE_WIDTH,
    draw,
    draw_rate,
    label,
    legend,
    log_y,
    over_seeds,
    settled,
    style,
    symmetric_log_y,
    title,
)
from .results import Results, Row

DEFAULT_ROWS = tuple(Row(function, 100, 10.0) for function in ("ackley", "griewank", "rastrigin", "rosenbrock"))
MOST_ROWS = 6  # in one figure of curves

RANKED = {
    "final": "Table 1: final elite value",
    "mean": "Table 2: mean elite value",
    "rate_error": "Table 3: error of log rate",
}


def make_figures(results: Results, rows: Sequence[str] = ()) -> dict[str, tuple[str, Figure]]:
    """Curves of rows like "ackley,100,10", and the overview of ranks, unless only oracles ran."""
    chosen = list(map(_row, rows))
    names = [f"{row.function}-{row.dim}d-std{row.std:g}" for row in chosen]
    caption = (
        "Elite value and mean mutation rate over generations: means over seeds, bands of one standard error. UCB's "
        "rate leaps at every generation: its line is the mean over a twenty-fifth of the run, its band the range there."
    )
    made = {"_".join(["curves", *names]): (caption, curves(results, chosen or None))}
    if results.ranked:
        made["overview"] = "The rank of every method in every row of Tables 1–3.", overview(results)
    return made


def _row(text: str) -> Row:
    """`ackley,100,10` as a row."""
    try:
        function, dim, std = text.split(",")
        return Row(function.strip().lower(), int(dim), float(std))
    except ValueError as error:
        raise LabError(f"--row must be like ackley,100,10 (function, d, std), got {text!r}") from error


@style()
def curves(results: Results, rows: Sequence[Row] | None = None) -> Figure:
    """A pair of panels for each of up to six rows: elite value and mean mutation rate over generations.

    Means over seeds, of the rate's logarithm rather than of the rate, with bands of one standard error if there are
    two seeds or more. Without `rows`: those of `DEFAULT_ROWS` that there are or, if none, the widest problems with the
    widest first populations.
    """
    rows = default_rows(results) if rows is None else tuple(rows)
    if not 1 <= len(rows) <= MOST_ROWS:
        raise LabError(f"a figure of curves has 1 to {MOST_ROWS} rows, got {len(rows)}")
    for row in rows:
        if row not in results.rows:
            raise LabError(f"there are no runs of {row.label}; there are some of {_described(results.rows)}")
    height = min(1.9 * len(rows), PAGE_HEIGHT - 0.6) + 0.6
    figure = Figure(figsize=(PAGE_WIDTH, height), layout=ConstrainedLayoutEngine(wspace=0.04))
    panels = figure.subplots(len(rows), 2, squeeze=False)
    for row, (elite, rate) in zip(rows, panels, strict=True):
        _draw_row(results, row, elite, rate)
        title(elite, row.label)
    label(panels, "Generation")
    shown = [method for row, method in results.histories if row in rows]
    bands = "± 1 standard error" if len(results.seeds) > 1 else ""
    legend(figure, shown, 5, bands=bands, rates=True)
    return settled(figure)


@style()
def overview(results: Results) -> Figure:
    """The rank of every method that is no oracle in every row of Tables 1–3; the best mean rank first."""
    if not results.ranked:
        raise LabError("there is nothing to rank: only oracles have runs")
    groups = groupby(results.rows, key=lambda row: row.function)
    lines = ["Mean rank", *(line for function, rows in groups for line in (function.capitalize(), *rows))]
    figure = Figure(figsize=(PAGE_WIDTH, min(1.2 + 0.155 * len(lines), PAGE_HEIGHT)), layout="constrained")
    panels = figure.subplots(1, len(RANKED), sharey=True)
    for axes, table in zip(panels, RANKED, strict=True):
        _draw_ranks(axes, results, table, lines)
    _label_lines(panels[0], lines)
    return settled(figure)


def default_rows(results: Results) -> tuple[Row, ...]:
    present = tuple(row for row in DEFAULT_ROWS if row in results.rows)
    hardest = max((row.dim, row.std) for row in results.rows)
    return present or tuple(row for row in results.rows if (row.dim, row.std) == hardest)


def ranks(results: Results, table: str) -> np.ndarray:
    """Ranks `f[R, ranked methods]` of the means over seeds, 1 for the lowest. Equal ones share; NaN if no run."""
    means = stats.mean(getattr(results, table)[:, results.columns(results.ranked)])
    return rankdata(means, axis=-1, nan_policy="omit")


def _draw_row(results: Results, row: Row, elite: Axes, rate: Axes) -> None:
    """The two panels of a row. The scales come first: bands depend on where a log axis ends."""
    histories = results.histories_of(row)
    values = {method: over_seeds(history.elite) for method, history in histories.items()}
    with np.errstate(over="ignore"):
        rates = {method: np.exp(over_seeds(history.log_rate)) for method, history in histories.items()}
    for axes, lines, of, paint in ((elite, values, "Elite value", draw), (rate, rates, "Mutation rate", draw_rate)):
        axes.set_ylabel(of)
        axes.yaxis.set_label_coords(-0.15, 0.5)
        if lines:
            _choose_scale(axes, np.array([middle for middle, *_ in lines.values()]))
        for method, line in lines.items():
            paint(axes, method, histories[method].generation, *line)


def _choose_scale(axes: Axes, lines: np.ndarray) -> None:
    """A log axis for lines `f[M, P]` that are never negative; else one that is linear near zero, or throughout."""
    values = lines[np.isfinite(lines)]
    positive = values[values > 0]
    if positive.size and values.min() >= 0:
        return log_y(axes, positive.min(), positive.max())
    start = np.abs(lines[:, 0])
    start = start[np.isfinite(start) & (start > 0)]
    near = 10.0 ** np.floor(np.log10(np.median(start))) if start.size else 1.0
    if values.size and np.abs(values).max() > 100 * near:
        symmetric_log_y(axes, float(near), values.min(), values.max())


def _draw_ranks(axes: Axes, results: Results, table: str, lines: Sequence[Row | str]) -> None:
    """One panel: a heat map with a line for each row, its head being the methods' mean ranks."""
    rank = ranks(results, table)
    mean = stats.mean(rank.T)
    order = np.argsort(mean, kind="stable")  # NaN last
    methods = [results.ranked[i] for i in order]
    left_out = [table == "rate_error" and FORMULAS[row.function].optimum is None for row in results.rows]
    shown = [i for i, row in enumerate(results.rows) if not left_out[i]]
    places = [lines.index(results.rows[i]) for i in shown]
    cells = np.full((len(lines), len(methods)), np.nan)
    cells[places] = rank[shown][:, order]
    norm, colours = Normalize(1, len(methods) + 1), matplotlib.colormaps["Blues_r"]
    edges = np.arange(len(methods) + 1), np.arange(len(lines) + 1)
    mesh = axes.pcolormesh(*edges, np.ma.masked_invalid(cells), cmap=colours, norm=norm)
    mesh.set(edgecolor="white", linewidth=0.7)
    for place in places:
        for column, value in enumerate(cells[place]):
            colour = "black" if np.isnan(value) else _readable_on(colours(norm(value)))
            _write_cell(axes, column, place, f"{value:g}", colour=colour, bold=value == 1)
    for column, value in enumerate(mean[order]):
        _write_cell(axes, column, 0, f"{value:.1f}", colour="black", bold=True)
    axes.set_title(RANKED[table], fontweight="bold")
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(methods)) + 0.5, methods, rotation=90)
    for text in axes.get_xticklabels():
        text.set_fontweight("bold" if text.get_text() == "GESMR" else "normal")
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)


def _readable_on(background: tuple[float, float, float, float]) -> str:
    """Black or white, whichever has more contrast."""
    luminance = np.dot([0.2126, 0.7152, 0.0722], np.power(background[:3], 2.2))
    return "black" if luminance > 0.18 else "white"


def _write_cell(axes: Axes, column: int, line: int, text: str, *, colour: str, bold: bool) -> None:
    text = "–" if text == "nan" else text
    weight = "bold" if bold else "normal"
    cell = axes.text(column + 0.5, line + 0.5, text, color=colour, fontweight=weight, fontsize=6.5, ha="center")
    cell.set(va="center_baseline", in_layout=False)


def _label_lines(axes: Axes, lines: Sequence[Row | str]) -> None:
    labels = [f"{line.dim}-D, std {line.std:g}" if isinstance(line, Row) else line for line in lines]
    axes.set_yticks(np.arange(len(lines)) + 0.5, labels, fontsize=6.5)
    axes.set_ylim(len(lines), 0)
    for line, text in zip(lines, axes.get_yticklabels(), strict=True):
        text.set_fontweight("normal" if isinstance(line, Row) else "bold")


def _described(rows: Sequence[Row]) -> str:
    functions, dims, stds = (dict.fromkeys(column) for column in zip(*rows, strict=True))
    dimensions, spreads = (", ".join(f"{value:g}" for value in sorted(values)) for values in (dims, stds))
    return f"{', '.join(functions)}; dimensions {dimensions}; stds {spreads}"
