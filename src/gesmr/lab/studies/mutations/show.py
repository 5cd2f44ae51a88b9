"""Shows the study of mutations from one point: where nine rates lead, what that changes, and claim 17."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binomtest

from ....problems.functions import FORMULAS, get
from ...errors import LabError
from ...run.store import StoredJob, runs_of
from ...show import stats
from ...show.claims import Finding, Rule
from ...show.collect import largest
from ...show.figures import PAGE_WIDTH, legend_below, mark, settled, style, title
from ...show.table import Table
from ...show.view import View
from .runs import Mutations

_POINT, _MUTANT, _OPTIMUM, _MEAN, _LOWEST = "#000000", "#56b4e9", "#d55e00", "#000000", "#d55e00"
_ZERO = "#8a8a8a"
_MARGIN = 2.5  # around what must be seen, the point and the optimum
_BASIN = 2.5  # of 2-D Ackley: every minimum but the global one is higher, the lowest of them 2.58
_TIMES = 10  # as likely to reach the global minimum as from either end of the rates


@dataclass(frozen=True)
class Result:
    spec: Mutations
    mutants: np.ndarray  # f[R, shown, 2]
    changes: np.ndarray  # f[R, samples]


Results = Mapping[str, Result]  # by function


def load(jobs: Sequence[StoredJob]) -> Results:
    """In the order of the functions; of those computed twice the one with more samples."""
    found = largest(runs_of(jobs, Mutations), lambda spec: spec.function, lambda spec: spec.samples)
    if not found:
        raise LabError("these results are of an older version of the study; run it again")
    results = {name: Result(spec, arrays["mutants"], arrays["changes"]) for name, (spec, arrays) in found.items()}
    return {name: results[name] for name in FORMULAS if name in results}


def reaching(result: Result) -> list[stats.Ratio]:
    """The share of mutants in the basin of Ackley's global minimum, by their value, for each rate."""
    point = float(get(result.spec.function, 2)(jnp.array([result.spec.point], jnp.float32))[0])
    shares = []
    for changes in result.changes:
        test = binomtest(int((point + changes < _BASIN).sum()), len(changes))
        shares.append(stats.Ratio(float(test.statistic), *map(float, test.proportion_ci())))
    return shares


def _only_moderate(results: Results) -> Finding | None:
    """Claim 17, on the function of the paper's figure."""
    if "ackley" not in results:
        return None
    rates, shares = results["ackley"].spec.rates, reaching(results["ackley"])
    most = max(shares)
    ends = shares[0], shares[-1]
    holds = most not in ends and all(most.value >= _TIMES * end.value and most.low > end.high for end in ends)
    return Finding(holds, "; ".join(f"σ = {rate:g}: {share}" for rate, share in zip(rates, shares, strict=True)))


RULES = (
    Rule(
        17,
        "Only moderate mutation rates reach the global minimum",
        f"of the mutants of one point of 2-D Ackley, the share with a value below {_BASIN} (so in the basin of the "
        "global minimum: all others are higher) is largest at a rate between the smallest and the largest, where it is "
        f"at least {_TIMES} times as large as at these two, and its 95% interval (Clopper and Pearson) above theirs",
        _only_moderate,
        "the mutations of Ackley this needs are not there",
    ),
)


def summary(results: Results) -> str:
    first = next(iter(results.values())).spec
    return f"{', '.join(map(str.capitalize, results))}: {first.samples:,} mutations at each of {len(first.rates)} rates"


def tables(results: Results) -> list[Table]:
    columns = ("Function", "σ", "mean Δ", "lowest Δ", "share improved")
    rows = []
    for function, result in results.items():
        for rate, changes in zip(result.spec.rates, result.changes.astype(np.float64), strict=True):
            finite = changes[np.isfinite(changes)]
            seen = (float(finite.mean()), float(finite.min())) if finite.size else (None, None)
            rows.append((function.capitalize(), float(rate), *seen, float((finite < 0).sum() / changes.size)))
    note = "; ".join(
        f"{name.capitalize()} from {result.spec.point}, {result.spec.samples:,} mutations at each rate"
        for name, result in results.items()
    )
    return [Table("mutations", "Mutations of one point", columns, tuple(rows), note)]


def figures(results: Results) -> dict[str, tuple[str, Figure]]:
    return {f"mutations-{function}": (_caption(result), draw(result)) for function, result in results.items()}


def _caption(result: Result) -> str:
    spec = result.spec
    return (
        f"Mutations of the point {spec.point} of 2-D {spec.function.capitalize()} at nine rates. Left: the function, "
        f"fainter where it is higher, the point, the optimum and {spec.shown} of the mutants. "
        "Right: the distribution of the change of value Δ, its mean and its minimum."
    )


@style()
def draw(result: Result) -> Figure:
    """Nine maps with mutants beside nine histograms."""
    rates = result.spec.rates
    lines = -(-len(rates) // 3)
    figure = Figure(figsize=(PAGE_WIDTH, 1.2 * lines + 0.5), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.15), wspace=0.02)
    maps, histograms = parts
    line, image = _image(result.spec)
    _fill(maps, lines, rates, lambda axes, i: _draw_map(axes, result, i, line, image))
    _fill(histograms, lines, rates, lambda axes, i: _draw_histogram(axes, result.changes[i]))
    _legend(maps, [("Point", _POINT, "*"), ("Mutants", _MUTANT, "o"), ("Optimum", _OPTIMUM, "x")])
    _legend(histograms, [("No change", _ZERO, "|"), ("Mean Δ", _MEAN, "|"), ("Lowest Δ", _LOWEST, "|")])
    return settled(figure)


def _fill(part: Any, lines: int, rates: Sequence[float], draw_one: Callable[[Axes, int], None]) -> None:
    """A panel for each rate, three in a line."""
    panels = part.subplots(lines, 3, squeeze=False).flat
    for i, axes in enumerate(panels):
        if i >= len(rates):
            axes.set_visible(False)
            continue
        draw_one(axes, i)
        title(axes, f"σ = {rates[i]:g}", fontsize=7, pad=2)
        axes.tick_params(labelsize=5.5, pad=1, length=2)
        axes.grid(False)


def _image(spec: Mutations) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates `f[P]` of a square around the origin, and the function there `f[P, P]`, or its log if it is steep."""
    optimum = FORMULAS[spec.function].optimum or 0.0
    reach = max(np.abs(spec.point).max(), abs(optimum)) + _MARGIN
    line = np.linspace(-reach, reach, 141)
    grid = np.stack(np.meshgrid(line, line), axis=-1).astype(np.float32)
    values = np.asarray(jax.jit(get(spec.function, 2))(grid))
    return line, np.log1p(values - values.min()) if np.ptp(values) > 1e3 else values


def _draw_map(axes: Axes, result: Result, i: int, line: np.ndarray, image: np.ndarray) -> None:
    axes.contourf(line, line, image, levels=16, cmap="gray").set_rasterized(True)
    mutants, reach = result.mutants[i], line[-1]
    inside = (np.abs(mutants) < reach).all(axis=-1)
    axes.plot(*mutants[inside].T, "o", color=_MUTANT, markersize=1.6, markeredgewidth=0)
    if not inside.all():
        axes.text(0.97, 0.03, f"{(~inside).sum()} outside", transform=axes.transAxes, fontsize=5.5, ha="right")
    axes.plot(*result.spec.point, "*", color=_POINT, markersize=5, markeredgecolor="white", markeredgewidth=0.5)
    optimum = FORMULAS[result.spec.function].optimum
    if optimum is not None:
        axes.plot(optimum, optimum, "x", color=_OPTIMUM, markersize=3.5)
    axes.set_aspect("equal")
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=(), yticks=())
    axes.spines[:].set_visible(False)


def _draw_histogram(axes: Axes, changes: np.ndarray) -> None:
    finite = changes[np.isfinite(changes)].astype(np.float64)
    axes.set_yticks(())
    axes.spines["left"].set_visible(False)
    if finite.size == 0:
        return
    low, high = finite.min(), np.quantile(finite, 0.995)
    high = max(high, finite.mean())
    low, high = (low, high) if high > low else (low - 1, low + 1)
    axes.hist(finite, bins=50, range=(low, high), color="#bcd7ee")
    axes.axvline(0, color=_ZERO, linewidth=0.6)
    axes.axvline(finite.mean(), color=_MEAN, linewidth=1.1)
    axes.axvline(finite.min(), color=_LOWEST, linewidth=1.1)
    axes.locator_params(axis="x", nbins=4)


def _legend(part: Any, entries: Sequence[tuple[str, str, str]]) -> None:
    handles = [mark(m, text, color=colour, markersize=3 if m == "o" else 6) for text, colour, m in entries]
    legend_below(part, handles, handletextpad=0.2)


VIEW = View(
    name="mutations",
    title="Mutations of one point",
    text="Where do mutations lead from a point near the optimum? The paper has only moderate rates reach the global "
    "minimum, although most of their mutants are worse than the point they came from. Compare minimum and mean.",
    load=load,
    summary=summary,
    make_tables=tables,
    make_figures=figures,
    rules=RULES,
)
