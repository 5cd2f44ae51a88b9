"""Claims 13 and 16: GESMR against CMA-ES by an order of magnitude, and how costs grow with the dimension."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...show import stats
from ...show.claims import Finding, Rule, Verdict, shortfall
from ...show.output import listed
from .pycma import POPULATION
from .results import Results, Row
from .runs import AUTHORS_FUNCTIONS, AUTHORS_SIGMA, COMPARISONS, METHODS, QUICK_FUNCTIONS, SHORT

PAPER_GENERATIONS = 1000
_PAPER_SEEDS = 5
_RATIO = 0.1  # an order of magnitude
_LARGE = 1000  # dimensions: ten times a population, so that d² outweighs what grows with d alone
_LARGE_DIMS = 3  # at least, for a slope
_TOLERANCE = 0.25  # of an exponent


def _better_by_an_order(results: Results) -> Finding | None:
    """Claim 13, on what the paper compared: centred, std 1, d = 100."""
    authors = _against(results, AUTHORS_SIGMA, AUTHORS_FUNCTIONS)
    ours = _against(results, 1.0, QUICK_FUNCTIONS)
    decisive = ours if authors.holds is None else authors
    if decisive.holds is None:
        return None
    return decisive._replace(found=f"GESMR / CMA-ES. {authors.found}. {ours.found}")


def _against(results: Results, sigma: float, needed: Sequence[str]) -> Finding:
    rows = {row.function: duels for row, duels in results.duels.items() if _is_the_papers(row, sigma)}
    rows = {function: duels for function, duels in rows.items() if len(duels.values) > 1}
    if not set(needed) <= set(rows):
        return Finding(None, f"With σ₀ = {sigma:g} the runs are not all there")
    unequal, equal = (
        {f: ratio_of_means(duels.values[:, COMPARISONS.index(name)]) for f, duels in rows.items()}
        for name in ("paper", "evaluations")
    )
    shown = [", ".join(f"{function} {ratio}" for function, ratio in ratios.items()) for ratios in (unequal, equal)]
    holds = all(ratio.value <= _RATIO for ratio in unequal.values())
    found = f"With σ₀ = {sigma:g} this {Verdict.of(holds)}: {shown[0]}; after as many evaluations {shown[1]}"
    seeds = min(len(duels.values) for duels in rows.values())
    return Finding(holds, found, shortfall(seeds=(seeds, _PAPER_SEEDS)))


def _is_the_papers(row: Row, sigma: float) -> bool:
    wanted = (1.0, False, PAPER_GENERATIONS, 100, sigma)
    return (row.std, row.shifted, row.gesmr_generations, row.dim, row.sigma0) == wanted


def ratio_of_means(values: np.ndarray) -> stats.Ratio:
    """GESMR's mean over full CMA-ES's, of values `f[S, methods]`; a seed's two are resampled together."""
    values = np.maximum(values[:, :2], np.finfo(np.float64).tiny)
    ratio, draws = (m[..., 0] / m[..., 1] for m in (values.mean(0), values[stats.resamples(len(values))].mean(1)))
    return stats.Ratio(float(ratio), *stats.interval(draws))


class Slopes(NamedTuple):
    """Exponents b of d^b, by least squares of logarithms over the large dimensions that were measured."""

    dims: list[int]
    time: stats.Ratio
    memory: stats.Ratio

    def __str__(self) -> str:
        return f"time {self.time}, memory {self.memory} over d = {listed(self.dims)}"


def slopes(results: Results, method: str) -> Slopes | None:
    """None with fewer than three dimensions. Every turn is a point."""
    found = {dim: measured for dim, measured in results.measured(method).items() if dim >= _LARGE}
    if len(found) < _LARGE_DIMS:
        return None
    time = [(dim, seconds) for dim, measured in found.items() for seconds in measured.turns]
    memory = [(dim, measured.bytes) for dim, measured in found.items()]
    return Slopes(list(found), *(stats.line_through(*np.log(points).T)[0] for points in (time, memory)))


def _quadratic(results: Results) -> Finding | None:
    """Claim 16, on Sphere."""
    found = {method: slopes(results, method) for method in METHODS}
    ga, full = found["GESMR"], found["CMA-ES"]
    if ga is None or full is None:
        return None
    linear = [abs(b.value - 1) <= _TOLERANCE for b in (ga.time, ga.memory)]
    holds = all(linear) and abs(full.memory.value - 2) <= _TOLERANCE and full.time.value >= 2 - _TOLERANCE
    shown = "; ".join(f"{method}: {each}" for method, each in found.items() if each is not None)
    return Finding(holds, f"b of {shown}")


RULES = (
    Rule(
        13,
        f"GESMR beats CMA-ES at 1,000 generations against {SHORT}, by an order of magnitude, on four functions in "
        "100-D",
        "GESMR's mean final value is at most a tenth of CMA-ES's on every function, centred, std 1, of two seeds or "
        f"more: as the authors ran it (σ₀ = {AUTHORS_SIGMA:g}; {', '.join(AUTHORS_FUNCTIONS)}) or, without these runs, "
        f"with σ₀ = std ({', '.join(QUICK_FUNCTIONS)}, others if there). In brackets: 95% intervals of resampled seeds",
        _better_by_an_order,
    ),
    Rule(
        16,
        "CMA-ES needs time and memory quadratic in d, a GA linear",
        f"with a generation's cost ∝ d^b, fitted over at least {_LARGE_DIMS} d ≥ {_LARGE:,} (below, populations of "
        f"{POPULATION} and Python's own time count): b of full CMA-ES's memory is within 2 ± {_TOLERANCE}, that of its "
        f"time (d³ for a decomposition, once in about d/530 generations) at least {2 - _TOLERANCE}, and those of "
        f"GESMR's time and memory are within 1 ± {_TOLERANCE}. In brackets: the fit's 95% intervals",
        _quadratic,
        "the costs this needs are not all there",
    ),
)
