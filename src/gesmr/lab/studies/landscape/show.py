"""Shows the landscape study, and does the same for anybody's objective: σ against Δ, claim 8."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator
from rich.console import Console

from ....analysis import Curves, best_rates, check_objective, objective_curves
from ....problems.functions import FORMULAS, get
from ...errors import LabError
from ...run.function_task import WITH_OPTIMUM
from ...run.store import StoredJob, runs_of, write_text
from ...show.claims import Finding, Rule
from ...show.collect import largest
from ...show.figures import PAGE_HEIGHT, PAGE_WIDTH, label, legend_below, save, settled, style, symmetric_log_y, title
from ...show.output import csv_text, finite, json_text, listed, say
from ...show.table import Table
from ...show.view import View
from .runs import BINS, DIMS, Panel, from_arrays

RATES = np.geomspace(1e-3, 1e3, 61)
_SURE = 5.0  # standard errors: among all pairs of rates in all panels chance alone exceeds it once in a hundred studies
_LINES = {"highest": ("E[max Δ]", "#009e73"), "mean": ("E[Δ]", "#000000"), "lowest": ("E[min Δ]", "#d55e00")}
_LEAST_SHARE = 1e-4

Results = Mapping[tuple[str, int], Curves]  # by function and dimension


def load(jobs: Sequence[StoredJob]) -> Results:
    """Curves in the study's order; of panels computed twice the one with more points."""
    found = largest(runs_of(jobs, Panel), lambda panel: (panel.function, panel.dim), lambda panel: panel.points)
    order = sorted(found, key=lambda where: (list(FORMULAS).index(where[0]), where[1]))
    return {where: from_arrays(*found[where]) for where in order}


def summary(results: Results) -> str:
    changes = min(int(curves.counted.sum()) for curves in results.values())
    functions = len({function for function, _ in results})
    dims = listed(dim for _, dim in results)
    return f"{len(results)} panels: {functions} functions, d = {dims}; {changes:,} changes each"


@dataclass(frozen=True)
class Shape:
    """What is true of curves, beyond chance or within it. Differences count from five standard errors."""

    mean_grows: bool  # E[Δ] is nowhere lower than at a smaller rate
    mean_lowest_first: bool  # and nowhere lower than at the smallest
    dips: bool  # E[min Δ] is lowest inside the grid, and falls before and rises after
    worse_far_out: bool  # E[Δ] > E[min Δ] > 0 at the largest rate


def shape(curves: Curves) -> Shape:
    finite = np.isfinite([curves.mean, curves.lowest, curves.mean_error, curves.lowest_error]).all(axis=0)
    mean, lowest = curves.mean[finite], curves.lowest[finite]
    mean_error, lowest_error = curves.mean_error[finite], curves.lowest_error[finite]
    if mean.size == 0:
        return Shape(False, False, False, False)
    mean_above, lowest_above = _above(mean, mean_error), _above(lowest, lowest_error)
    best = int(np.argmin(lowest))
    bottom = bool(lowest_above[0, best] and lowest_above[-1, best])
    falls = not np.triu(lowest_above[: best + 1, : best + 1].T).any()
    rises = not np.triu(lowest_above[best:, best:]).any()
    return Shape(
        mean_grows=not np.triu(mean_above).any(),
        mean_lowest_first=not mean_above[0].any(),
        dips=bottom and falls and rises,
        worse_far_out=bool(mean[-1] > lowest[-1] > _SURE * lowest_error[-1]),
    )


def _above(values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """`bool[S, S]`: whether value i surely exceeds value j."""
    return values[:, None] - values[None, :] > _SURE * np.hypot(errors[:, None], errors[None, :])


def _mean_and_minimum(results: Results) -> Finding:
    """Claim 8, over all functions with a minimum in all dimensions of the study."""
    wanted = [(function, dim) for function in WITH_OPTIMUM for dim in DIMS]
    panels = [results[where] for where in wanted if where in results]
    if len(panels) < len(wanted):
        absent = len(wanted) - len(panels)
        return Finding(None, f"{absent} of the {len(wanted)} panels this needs are not there")
    shapes = list(map(shape, panels))
    counted = {field.name: sum(getattr(s, field.name) for s in shapes) for field in fields(Shape)}
    exactly = sum(best_rates(curves)[0] == curves.rates[0] for curves in panels)
    linear = [curves for (function, _), curves in results.items() if function not in WITH_OPTIMUM]
    falling = sum(best_rates(curves)[1] == curves.rates[-1] for curves in linear)
    found = (
        f"of {len(wanted)} panels E[Δ] grows in {counted['mean_grows']}, is lowest at the smallest σ within error in "
        f"{counted['mean_lowest_first']} (exactly in {exactly}); E[min Δ] falls, then rises in {counted['dips']}; "
        f"at the largest σ E[Δ] > E[min Δ] > 0 in {counted['worse_far_out']}"
    )
    if linear:
        found += f". Linear, the exception: E[min Δ] is lowest at the largest σ in {falling} of {len(linear)}"
    return Finding(all(n == len(wanted) for n in counted.values()), found)


RULES = (
    Rule(
        8,
        "E[Δ] grows monotonically with σ, so σ*_mean → 0; E[min Δ] falls, then rises, so σ*_min > 0; as σ → ∞ both "
        "are positive, E[Δ] above E[min Δ]",
        "all of it in every panel of the five functions with a minimum (Linear has none, and is the paper's "
        "exception), for σ from 10⁻³ to 10³ and groups of ten: E[Δ] at no σ lower than at a smaller one; E[min Δ] "
        f"lowest inside the grid, never rising before and never falling after. Differences of less than {_SURE:g} "
        "standard errors do not count against it; the depth of the dip and the signs at the largest σ must exceed them",
        _mean_and_minimum,
    ),
)


def tables(results: Results) -> list[Table]:
    rows = [(function.capitalize(), dim, *_row(curves)) for (function, dim), curves in results.items()]
    note = _NOTE + _LINEAR * any(function == "linear" for function, _ in results)
    heading = "Change of value Δ against mutation rate σ"
    return [Table("landscape", heading, ("f", "d", *_COLUMNS), tuple(rows), note)]


_COLUMNS = ("σ*_mean", "σ*_min", "largest σ", "E[Δ] there", "E[min Δ] there", "E[Δ] grows", "E[min Δ] dips", "dropped")
_NOTE = (
    "σ* is where E[Δ] or E[min Δ] is lowest on the grid; at small σ differences of E[Δ] can be within error. "
    "Grows: nowhere surely lower than at a smaller σ. Dips: lowest inside the grid, falling before and rising after. "
    "Dropped: changes that are not finite."
)
_WHAT = (
    "Colour: how the changes Δ by mutations of points x ~ N(0, I) are distributed for each rate σ. Lines: E[Δ] with "
    "twice its standard error, and the means of minimum and maximum over groups of ten mutants of one point. Dots: "
    "where E[Δ] and E[min Δ] are lowest."
)
_LINEAR = " E[Δ] of Linear is 0 at every σ: its σ*_mean is chance."


def _row(curves: Curves) -> tuple[Any, ...]:
    seen = shape(curves)
    best = best_rates(curves)
    ends = float(curves.rates[-1]), float(curves.mean[-1]), float(curves.lowest[-1])
    return (*best, *ends, *("yes" if yes else "no" for yes in (seen.mean_grows, seen.dips)), int(curves.dropped.sum()))


def figures(results: Results) -> dict[str, tuple[str, Figure]]:
    large = ("ackley", 2) if ("ackley", 2) in results else next(iter(results))
    name = _title(*large)
    alone = f"{name}, Δ on a linear and on a log axis. {_WHAT}"
    made = {f"landscape-{large[0]}-{large[1]}d": (alone, draw(results[large], name))}
    if len(results) > 1:
        made["landscape"] = f"All panels, with Δ on a log axis that is linear around 0. {_WHAT}", draw_all(results)
    return made


@style()
def draw(curves: Curves, name: str) -> Figure:
    """One objective, Δ on a linear and on a symmetric log axis."""
    figure = Figure(figsize=(PAGE_WIDTH, 3.3), layout="constrained")
    panels = figure.subplots(1, 2, squeeze=False)
    _draw_panel(panels[0, 0], curves, "linear")
    mesh = _draw_panel(panels[0, 1], curves, "symlog")
    label(panels, "Mutation rate σ", "Change of value Δ")
    title(panels[0, 0], name)
    figure.colorbar(mesh, ax=panels, label="Share of the changes at σ", pad=0.01, aspect=30)
    _legend(figure, curves)
    return settled(figure)


@style()
def draw_all(results: Results) -> Figure:
    """Small multiples: functions down, dimensions across, Δ on a symmetric log axis."""
    functions = list(dict.fromkeys(function for function, _ in results))
    dims = sorted({dim for _, dim in results})
    height = min(1.4 * len(functions) + 0.7, PAGE_HEIGHT)
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    panels = figure.subplots(len(functions), len(dims), squeeze=False, sharex=True)
    for function, line in zip(functions, panels, strict=True):
        for dim, axes in zip(dims, line, strict=True):
            if (function, dim) not in results:
                axes.set_visible(False)
                continue
            _draw_panel(axes, results[function, dim], "symlog", width=0.9)
            title(axes, _title(function, dim), fontsize=7, pad=2)
            axes.tick_params(labelsize=5.5, pad=1)
    label(panels, "Mutation rate σ", "Change Δ", fontsize=7)
    _legend(figure, next(iter(results.values())))
    return settled(figure)


def _title(function: str, dim: int) -> str:
    return f"{function.capitalize()}, {dim}-D"


def _draw_panel(axes: Axes, curves: Curves, axis: str, width: float = 1.3) -> Any:
    """Density and curves on one axis of Δ; the mesh of the density."""
    if curves.density is None:
        raise LabError("there is no density to draw")
    edges, counts = getattr(curves.density.bins, axis), getattr(curves.density, axis)
    share = (counts[:, 1:-1] / np.maximum(counts.sum(axis=1, keepdims=True), 1)).T
    axes.set_xscale("log")
    if axis == "symlog":
        lines = np.array([getattr(curves, name) for name in _LINES])
        low, high = np.nanmin(lines, initial=0), np.nanmax(lines, initial=0)
        low, high = max(edges[0], 4 * min(low, -curves.density.bins.near)), min(edges[-1], 4 * max(high, 0))
        symmetric_log_y(axes, curves.density.bins.near, low, high)
        axes.set_yticks(_symlog_ticks(curves.density.bins.near, low, high, most=10 if width > 1 else 7))
    else:
        low, high = edges[0], edges[-1]
    norm = LogNorm(_LEAST_SHARE, 1)
    mesh = axes.pcolormesh(_rate_edges(curves.rates), edges, np.ma.masked_equal(share, 0), cmap="Blues", norm=norm)
    mesh.set_rasterized(True)
    axes.axhline(0, color="#8a8a8a", linewidth=0.5, zorder=2)
    for name, (_, colour) in _LINES.items():
        axes.plot(curves.rates, getattr(curves, name), color=colour, linewidth=width, zorder=3)
    band = curves.mean - 2 * curves.mean_error, curves.mean + 2 * curves.mean_error
    axes.fill_between(curves.rates, *band, color=_LINES["mean"][1], alpha=0.25, linewidth=0, zorder=2)
    for name, rate in zip(("mean", "lowest"), best_rates(curves), strict=True):
        value = getattr(curves, name)[curves.rates == rate]
        colour = _LINES[name][1]
        axes.plot(
            rate, value, "o", color=colour, markersize=3 * width, markeredgecolor="white", zorder=4, clip_on=False
        )
        axes.axvline(rate, color=colour, linewidth=0.6 * width, linestyle=":", zorder=2)
    axes.set_ylim(low, high)
    axes.set_xlim(curves.rates[0], curves.rates[-1])
    axes.xaxis.set_major_locator(LogLocator(numticks=4))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(False)
    return mesh


def _symlog_ticks(near: float, low: float, high: float, most: int) -> np.ndarray:
    """0 and powers of ten on either side, about `most` of these."""
    decades = np.log10([max(-low, near) / near, max(high, near) / near]).sum()
    apart = max(1, int(np.ceil(decades / most)))
    sizes = near * 10.0 ** np.arange(apart, 40, apart)
    return np.concatenate([-sizes[sizes <= -low][::-1], [0.0], sizes[sizes <= high]])


def _rate_edges(rates: np.ndarray) -> np.ndarray:
    """`f[S+1]` around log-spaced rates `f[S]`."""
    if len(rates) == 1:
        return rates[0] * np.array([0.5, 2.0])
    middles = np.sqrt(rates[1:] * rates[:-1])
    return np.concatenate([[rates[0] ** 2 / middles[0]], middles, [rates[-1] ** 2 / middles[-1]]])


def _legend(figure: Figure, curves: Curves) -> None:
    names = {name: symbol.replace(" Δ", f" of {curves.group} Δ") for name, (symbol, _) in _LINES.items()}
    handles = [Line2D([], [], color=colour, linewidth=1.3, label=names[name]) for name, (_, colour) in _LINES.items()]
    for name, symbol in (("mean", r"$\sigma^*_\mathrm{mean}$"), ("lowest", r"$\sigma^*_\mathrm{min}$")):
        handles.append(Line2D([], [], color=_LINES[name][1], marker="o", markersize=4, linestyle=":", label=symbol))
    handles.append(Line2D([], [], color="#8a8a8a", linewidth=0.5, label="No change"))
    legend_below(figure, handles, handlelength=2.2)


VIEW = View(
    name="landscape",
    title="Change of value against mutation rate",
    text="A mutation changes the value by Δ. Its mean grows with the rate σ, so a method that looks at the mean lets "
    "the rate vanish. The best of a group of mutants is best at a rate of some size: look for the dip of the orange "
    "line.",
    load=load,
    summary=summary,
    make_tables=tables,
    make_figures=figures,
    rules=RULES,
)


def landscape_of(
    objective: Callable, dim: int, *, samples: int = 2000, group: int = 10, std: float = 1.0, key: Any = 0
) -> Curves:
    """Curves and density of an objective `f[N, dim] → f[N]` from points x ~ N(0, std² I), `samples` for each rate.

    `samples` is rounded up to whole points with two groups each.
    """
    try:
        if group < 1:
            raise ValueError(f"group must be an integer of at least 1, got {group}")
        samples = max(2, -(-samples // (2 * group))) * 2 * group
        check_objective(objective, dim)
        draw_point = get("sphere", dim, std).init
        return objective_curves(objective, draw_point, RATES, samples=samples, group=group, key=key, bins=BINS)
    except (TypeError, ValueError) as error:
        raise LabError(str(error)) from error


def show_landscape(
    objective: Callable,
    dim: int,
    out: Path,
    console: Console,
    samples: int = 2000,
    group: int = 10,
    std: float = 1.0,
    as_json: bool = False,
) -> None:
    """Print what `landscape_of` finds, or all of it as JSON, and write it to `out` as landscape.csv and a figure."""
    curves = landscape_of(objective, dim, samples=samples, group=group, std=std)
    name = getattr(objective, "__name__", type(objective).__name__)
    if not np.isfinite(curves.mean).any():
        raise LabError(f"{name} has no finite change of value for any σ from {RATES[0]:g} to {RATES[-1]:g}")
    heading = f"{name}, {dim}-D: change of value Δ against mutation rate σ, from x ~ N(0, {std:g}² I)"
    table = Table("landscape", heading, _COLUMNS, (_row(curves),), _NOTE)
    ends = (f"{name}{error}" for name in ("mean", "lowest", "highest") for error in ("", "_error"))
    columns = ["rates", *ends, "counted", "dropped"]
    if as_json:
        curve = {name: list(map(finite, getattr(curves, name).tolist())) for name in columns}
        print(json_text({**table.plain(), "curves": curve}), end="")
        console = Console(stderr=True)
    else:
        console.print(table.text(console.width))
    write_text(
        out / "landscape.csv", csv_text(columns, zip(*(getattr(curves, c).tolist() for c in columns), strict=True))
    )
    save(draw(curves, f"{name}, {dim}-D"), out / "landscape")
    say(console, f"written to {out}: landscape (csv, pdf, svg, png)")
