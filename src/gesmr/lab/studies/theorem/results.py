"""What the study of Theorem 1 found: simulated minima, and both objectives at small rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ....analysis.order_statistics import expected_minimum
from ...run.store import StoredJob, runs_of
from ...show.collect import Arrays, largest
from .runs import FUNCTIONS, Local, Minimum, Moments, Point

LEVEL = 0.01  # the probability that any interval of a family misses by chance
_DEPARTURE = 0.05  # of a slope, at which linearity has ended


@dataclass(frozen=True)
class SimulatedMinimum:
    spec: Minimum
    mean: float  # divided by σ
    error: float  # likewise

    @property
    def predicted(self) -> float:
        return expected_minimum(self.spec.q)

    @property
    def deviation(self) -> float:
        """In standard errors."""
        return (self.mean - self.predicted) / self.error


@dataclass(frozen=True)
class SmallRates:
    """Both objectives at a point, over σ‖∇f‖, for rates in ascending order."""

    spec: Point
    sigma: np.ndarray  # f[S]
    local: Local
    moments: Moments  # of f[S]

    @property
    def predicted(self) -> float:
        """−c_q, the slope of E[min Δ] in σ‖∇f‖."""
        return expected_minimum(self.spec.q)

    @property
    def deviation(self) -> float:
        """Of the slope at the least rate, as a part of what is predicted."""
        return float(self.moments.slope[0]) / self.predicted - 1

    @property
    def second_order(self) -> float:
        """E[Δ]/(σ‖∇f‖) at the least rate, as curvature alone would have it: ½σ tr H/‖∇f‖."""
        return float(self.sigma[0] * self.local.trace / (2 * self.local.gradient))

    @property
    def mean_deviation(self) -> float:
        """Of E[Δ] at the least rate from `second_order`, in standard errors."""
        return float((self.moments.mean[0] - self.second_order) / self.moments.mean_error[0])

    @property
    def rounding(self) -> float:
        """The unit of rounding of f at the point, over σ‖∇f‖ at the least rate."""
        return float(np.finfo(np.float64).eps * abs(self.local.value) / (self.sigma[0] * self.local.gradient))

    @property
    def linear_until(self) -> float | None:
        """Where the slope is 5% off what it is at the least rate, which has the same noise; None if nowhere.

        Between two rates by interpolation on a log scale.
        """
        off = np.abs(self.moments.slope / self.moments.slope[0] - 1)
        if not (beyond := off > _DEPARTURE).any():
            return None
        i = int(np.argmax(beyond))
        part = (_DEPARTURE - off[i - 1]) / (off[i] - off[i - 1])
        return float(np.exp(np.interp(part, (0, 1), np.log(self.sigma[i - 1 : i + 1]))))


@dataclass(frozen=True)
class Results:
    minima: tuple[SimulatedMinimum, ...]
    points: tuple[SmallRates, ...]


def load(jobs: Sequence[StoredJob]) -> Results:
    """Of what was computed several times, that with the most samples."""
    minima = largest(runs_of(jobs, Minimum), lambda one: (one.q, one.sigma), lambda one: one.samples)
    points = largest(runs_of(jobs, Point), _order, lambda point: point.samples)
    return Results(
        tuple(
            SimulatedMinimum(spec, *(float(arrays[name]) / spec.sigma for name in ("mean", "mean_error")))
            for _, (spec, arrays) in sorted(minima.items())
        ),
        tuple(
            SmallRates(spec, arrays["sigma"], Local(*_taken(arrays, Local)), Moments(*_taken(arrays, Moments)))
            for _, (spec, arrays) in sorted(points.items())
        ),
    )


def _taken(arrays: Arrays, kind: type[tuple]) -> Any:
    """The fields of a NamedTuple, by name."""
    return [arrays[name] for name in kind._fields]  # type: ignore[attr-defined]


def _order(point: Point) -> tuple[int, int, int, int]:
    return FUNCTIONS.index(point.function), point.dim, point.q, point.generation


def family_quantile(count: int) -> float:
    """How many standard errors the intervals of a family of `count` reach, so that all hold with 99% (Bonferroni)."""
    return float(stats.norm.isf(LEVEL / 2 / max(count, 1)))
