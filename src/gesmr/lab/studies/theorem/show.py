"""What the study of Theorem 1 shows: constants, slopes at small rates, where linearity ends, claim 9."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy import stats

from ....analysis.order_statistics import expected_minimum
from ...show.claims import Finding, Rule
from ...show.figures import PAGE_WIDTH, mark, settled, shade, title
from ...show.output import listed
from ...show.table import Table
from ...show.view import View
from .results import LEVEL, Results, SimulatedMinimum, SmallRates, family_quantile, load
from .runs import COUNTS, FUNCTIONS, GENERATIONS, SIGMAS

_TOLERANCE = 0.02  # of a slope
_COLOURS = ("#000000", "#0072b2", "#009e73", "#d55e00", "#cc79a7")
_MARKERS = (("s", 7.0), ("D", 4.5), ("o", 2.2))  # one fits into the other


def _theorem(results: Results) -> Finding | None:
    minima, points = results.minima, results.points
    if not _complete(results):
        return None
    of_minima, of_points = family_quantile(len(minima)), family_quantile(len(points))
    right = [abs(m.deviation) <= of_minima and m.mean + of_minima * m.error < 0 for m in minima]
    slopes = [_slope_is_right(point, of_points) for point in points]
    flat = [abs(point.mean_deviation) <= of_points for point in points]
    ends = [end / p.local.sigma_h for p in points if (end := p.linear_until) is not None]
    found = (
        f"{sum(right)} of {len(right)} simulated minima negative and as computed, the furthest "
        f"{max(abs(m.deviation) for m in minima):.1f} standard errors away; {sum(slopes)} of {len(slopes)} slopes "
        f"as predicted, the furthest {100 * max(abs(p.deviation) for p in points):.2f}% away; E[Δ] flat at "
        f"{sum(flat)} of {len(flat)} points, the furthest {max(abs(p.mean_deviation) for p in points):.1f} "
        "standard errors away"
    )
    if ends:
        found += f"; linearity ends at {min(ends):.2g} to {max(ends):.2g} σ_H"
    return Finding(all(right) and all(slopes) and all(flat), found)


RULES = (
    Rule(
        9,
        "E[min of q iid N(0, σ²)] = σ·E[min at σ = 1] < 0 (Theorem 1); so for small σ E[min Δ] falls linearly in σ‖∇f‖ "
        "while E[Δ] stays at 0",
        "every simulated minimum over σ is within its family-wise 99% interval of the quadrature, and the interval is "
        "below 0; at the least rate of every point the slope of E[min Δ] in σ‖∇f‖ is within 2%, or its family-wise 99% "
        "interval, of −c_q, and E[Δ]/(σ‖∇f‖) is within its interval of its second-order value, which is at most 10⁻⁴",
        _theorem,
        "the simulations and points this needs are not all there",
    ),
)


def _slope_is_right(point: SmallRates, quantile: float) -> bool:
    allowed = max(_TOLERANCE, quantile * float(point.moments.slope_error[0]) / abs(point.predicted))
    return abs(point.deviation) <= allowed


def _complete(results: Results) -> bool:
    """Every q at every σ, and every function with a minimum at each generation, in two dimensions at least."""
    minima = {(m.spec.q, m.spec.sigma) for m in results.minima if np.isfinite(m.deviation)}
    usable = [p for p in results.points if np.isfinite([p.deviation, p.mean_deviation]).all()]
    dims = [
        {p.spec.dim for p in usable if (p.spec.function, p.spec.generation) == (function, generation)}
        for function in FUNCTIONS
        for generation in GENERATIONS
    ]
    all_minima = minima >= {(q, sigma) for q in COUNTS for sigma in SIGMAS}
    return all_minima and all(len(found) > 1 for found in dims) and len(usable) == len(results.points)


def tables(results: Results) -> list[Table]:
    minima, points = results.minima, results.points
    reach = [family_quantile(len(family)) for family in (minima, points)]
    rounding = max((point.rounding for point in points), default=0.0)
    made = [
        Table(
            "minima",
            "Theorem 1: the expected minimum of q independent N(0, σ²), over σ",
            ("q", "σ", "Samples", "Quadrature", "Simulation", "± SE", "Deviation in SE"),
            tuple(map(_minimum_row, minima)),
            f"All {len(minima)} deviations stay below {reach[0]:.2f} standard errors in 99% of such studies.",
        ),
        Table(
            "slopes",
            "E[min Δ] at small rates: its slope in σ‖∇f‖ at points of runs of GESMR",
            ("Function", "d", "Generation", "‖∇f‖", "σ", "Slope", "± SE", "Predicted", "Deviation %", "Linear until σ",
             "σ/σ_H there"),
            tuple(map(_slope_row, points)),
            f"Groups of q = {listed(p.spec.q for p in points)}. σ is 10⁻⁴σ_H, σ_H the rate at which the second-order "
            "part of Δ is as large as the first; linear until the slope has changed by 5%. A family-wise 99% interval "
            f"reaches {reach[1]:.2f} standard errors. Rounding of f is at most {rounding:.1g} of σ‖∇f‖.",
        ),
        Table(
            "means",
            "E[Δ] at small rates, over σ‖∇f‖",
            ("Function", "d", "Generation", "σ", "E[Δ]/(σ‖∇f‖)", "± SE", "Second order", "Deviation in SE"),
            tuple(map(_mean_row, points)),
            "Second order: ½σ tr H/‖∇f‖, what curvature alone gives. A family-wise 99% interval reaches "
            f"{reach[1]:.2f} standard errors.",
        ),
    ]  # fmt: skip
    return [table for table in made if table.rows]


def _place(point: SmallRates) -> tuple[str, int, int]:
    return point.spec.function.capitalize(), point.spec.dim, point.spec.generation


def _minimum_row(m: SimulatedMinimum) -> tuple:
    return m.spec.q, m.spec.sigma, m.spec.samples, f"{m.predicted:.10f}", m.mean, m.error, m.deviation


def _slope_row(p: SmallRates) -> tuple:
    end = p.linear_until
    measured = float(p.moments.slope[0]), float(p.moments.slope_error[0])
    ends = (end, end / float(p.local.sigma_h)) if end is not None else (None, None)
    return *_place(p), float(p.local.gradient), float(p.sigma[0]), *measured, p.predicted, 100 * p.deviation, *ends


def _mean_row(p: SmallRates) -> tuple:
    measured = float(p.moments.mean[0]), float(p.moments.mean_error[0])
    return *_place(p), float(p.sigma[0]), *measured, p.second_order, p.mean_deviation


def figures(results: Results) -> dict[str, tuple[str, Figure]]:
    made = {}
    if results.minima:
        caption = (
            "Theorem 1. Left: the expected minimum of q normals over σ, by quadrature (line) and simulated at three σ. "
            "Right: how far the simulations are from the line; the band holds all of them in 99% of such studies."
        )
        made["minima"] = caption, _minima_figure(results.minima)
    for dim in sorted({point.spec.dim for point in results.points}):
        points = [point for point in results.points if point.spec.dim == dim]
        caption = (
            f"Both objectives over σ‖∇f‖ at the best solution of a run of GESMR in {dim} dimensions, after "
            f"{listed(p.spec.generation for p in points)} generations. Solid: E[min Δ] in groups of "
            f"{listed(p.spec.q for p in points)}; dashed: E[Δ]; grey: what Theorem 1 gives for small σ. Circles: where "
            "the slope of E[min Δ] has changed by 5%."
        )
        made[f"small_rates_{dim}"] = caption, _small_rates_figure(points)
    return made


def _minima_figure(minima: Sequence[SimulatedMinimum]) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    q = np.unique(np.round(np.geomspace(2, max(m.spec.q for m in minima), 100)).astype(int))
    left.plot(q, [expected_minimum(int(one)) for one in q], color="#8a8a8a", linewidth=1.2, label="Quadrature")
    reach = family_quantile(len(minima))
    right.axhspan(-reach, reach, color="#8a8a8a", alpha=0.2, linewidth=0, label="Holds all in 99% of studies")
    right.axhline(0, color="#8a8a8a", linewidth=1.2)
    sigmas = sorted({m.spec.sigma for m in minima})
    for i, sigma in enumerate(sigmas):
        mine = [m for m in minima if m.spec.sigma == sigma]
        marker, size = _MARKERS[i % len(_MARKERS)]
        look = {"color": _COLOURS[i % len(_COLOURS)], "marker": marker, "linestyle": "none"}
        counts = np.array([m.spec.q for m in mine])
        means = [m.mean for m in mine]
        left.plot(counts, means, **look, markersize=size, markerfacecolor="none", label=f"Simulated, σ = {sigma:g}")
        beside = counts * 1.13 ** (i - (len(sigmas) - 1) / 2)
        right.plot(beside, [m.deviation for m in mine], **look, markersize=3.4)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("Size of the group q")
    left.set_ylim(top=0)
    left.set_ylabel("E[min] / σ")
    left.legend()
    right.legend(loc="upper right")
    right.set_ylabel("Simulation − quadrature (SE)")
    right.set_ylim(-1.25 * max(reach, _largest(minima)), 1.25 * max(reach, _largest(minima)))
    return settled(figure)


def _largest(minima: Sequence[SimulatedMinimum]) -> float:
    return float(np.nanmax(np.abs([m.deviation for m in minima])))


def _small_rates_figure(points: Sequence[SmallRates]) -> Figure:
    """A panel for each function, and the legend in a place of its own."""
    functions = [function for function in FUNCTIONS if any(p.spec.function == function for p in points)]
    generations = sorted({p.spec.generation for p in points})
    colours = {generation: _COLOURS[i % len(_COLOURS)] for i, generation in enumerate(generations)}
    rows = -(-(len(functions) + 1) // 3)
    figure = Figure(figsize=(PAGE_WIDTH, 2.1 * rows + 0.2), layout="constrained")
    panels = figure.subplots(rows, 3, sharey=True, squeeze=False).ravel()
    for axes, function in zip(panels, functions, strict=False):
        mine = [p for p in points if p.spec.function == function]
        for level in {0.0, *(p.predicted for p in mine)}:
            axes.axhline(level, color="#8a8a8a", linewidth=1.6, alpha=0.6)
        for point in mine:
            _draw_point(axes, point, colours[point.spec.generation])
        axes.set_xscale("log")
        title(axes, function.capitalize())
        axes.set_ylim(-2.0, 2.0)
        axes.set_xlabel("Mutation rate σ")
    for axes in panels[: len(functions) : 3]:
        axes.set_ylabel("Objective / σ‖∇f‖")
    for axes in panels[len(functions) :]:
        axes.set_axis_off()
    lines = [Line2D([], [], color=colours[g], label=f"After {g} generations") for g in generations]
    kinds = [
        Line2D([], [], color="#555555", label="E[min Δ]"),
        Line2D([], [], color="#555555", linestyle="--", label="E[Δ]"),
        Line2D([], [], color="#8a8a8a", linewidth=1.6, alpha=0.6, label="Theorem 1, small σ"),
        shade("99% interval"),
        mark("o", "Slope changed by 5%", color="#555555", markerfacecolor="white"),
    ]
    panels[-1].legend(handles=[*lines, *kinds], loc="center")
    return settled(figure)


def _draw_point(axes: Axes, point: SmallRates, colour: str) -> None:
    reach = float(stats.norm.isf(LEVEL / 2))
    both = (
        (point.moments.slope, point.moments.slope_error, "-"),
        (point.moments.mean, point.moments.mean_error, "--"),
    )
    for middle, error, dashes in both:
        axes.plot(point.sigma, middle, color=colour, linestyle=dashes, linewidth=1.0)
        axes.fill_between(
            point.sigma, middle - reach * error, middle + reach * error, color=colour, alpha=0.18, linewidth=0
        )
    if (end := point.linear_until) is not None:
        there = np.interp(np.log(end), np.log(point.sigma), point.moments.slope)
        axes.plot(end, there, marker="o", color=colour, markerfacecolor="white", markersize=4.5, zorder=4)


def _summary(results: Results) -> str:
    return (
        f"{len(results.minima)} simulations of minima, {sum(m.spec.samples for m in results.minima):,} samples; "
        f"{len(results.points)} points of runs of GESMR, {listed(p.spec.samples for p in results.points)} groups of "
        "children at each rate"
    )


VIEW = View(
    name="theorem",
    title="Theorem 1 and small mutation rates",
    text=(
        "Why the best change of a group is a better guide than the mean change: for small σ the first falls in "
        "proportion to σ‖∇f‖, with a factor that depends on the size q of the group alone, while the second stays at "
        "0. Both are measured in double precision at solutions that GESMR found, from rates at which curvature is "
        "negligible to rates at which it dominates. The figures show up to which rates this is so, for solutions "
        "found early and late in a run."
    ),
    load=load,
    summary=_summary,
    make_tables=tables,
    make_figures=figures,
    rules=RULES,
)
