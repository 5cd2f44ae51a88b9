"""How changes are distributed: counts in bins of Δ for each mutation rate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _checks

_SLOPE = 10 / 9  # of a symmetric log axis near 0, as matplotlib draws it
MOST_BINS = 2**20


@dataclass(frozen=True)
class Bins:
    """Edges of bins, increasing, on two axes of Δ: a linear one, and one that is linear up to ±`near` and then log."""

    near: float
    linear: np.ndarray  # f[B+1]
    symlog: np.ndarray  # f[C+1]

    def __post_init__(self):
        _checks.number("near", self.near, 0.0)
        for name in ("linear", "symlog"):
            given = getattr(self, name)
            _checks.real(name, given)
            edges = np.asarray(given, np.float64)
            if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
                raise ValueError(f"{name} must be two or more increasing finite edges, got {_checks.show(given)}")
            object.__setattr__(self, name, edges)


@dataclass(frozen=True)
class Density:
    """Counts of finite changes for each of S rates; first and last column: those below and above all edges."""

    bins: Bins
    linear: np.ndarray  # i64[S, B+2]
    symlog: np.ndarray  # i64[S, C+2]


def bins_for(changes: Any, count: int) -> Bins:
    """Bins that suit changes `f[S, M]` for S increasing rates, `count` on either axis.

    The linear axis starts at the lowest of a thousand changes and ends at the highest of a thousand, but at most seven
    times as far up as down: changes for the worse often have no bound. The other one shows all powers of ten from the
    typical size of a change at the lowest rate.
    """
    given = _checks.array("changes", changes, "numbers f[S, M]")
    if given.dtype.kind not in "iuf" or given.ndim != 2 or not len(given):
        raise ValueError(f"changes must be numbers f[S, M], got {_checks.described(given)}")
    count = _checks.integer("count", count, 1, most=MOST_BINS)
    changes = given.astype(np.float64)
    finite = changes[np.isfinite(changes)]
    finite = finite if finite.size else np.zeros(1)
    smallest = np.abs(changes[0][np.isfinite(changes[0]) & (changes[0] != 0)])
    sizes = smallest if smallest.size else np.abs(finite[finite != 0])
    near = 10.0 ** np.floor(np.log10(np.median(sizes))) if sizes.size else 1.0
    low, high = np.quantile(finite, [0.001, 0.999])
    high = min(high, -7 * low) if low < 0 else high
    if not high > low:
        low, high = low - near, high + near
    down, up = (10.0 ** np.ceil(np.log10(max(end, near) / near)) for end in (-finite.min(), finite.max()))
    edges = np.linspace(_symlog(-down), _symlog(up), count + 1)
    return Bins(float(near), np.linspace(low, high, count + 1), near * _inverse(edges))


def _symlog(x: float | np.ndarray) -> np.ndarray:
    size = np.abs(x)
    return np.where(size <= 1, _SLOPE * x, np.sign(x) * (_SLOPE + np.log10(np.maximum(size, 1))))


def _inverse(t: np.ndarray) -> np.ndarray:
    size = np.abs(t)
    return np.where(size <= _SLOPE, t / _SLOPE, np.sign(t) * 10.0 ** (np.maximum(size, _SLOPE) - _SLOPE))
