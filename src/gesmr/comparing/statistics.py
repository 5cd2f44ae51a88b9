"""What samples of final values say: an interval for a median, tests of all pairs, how often a target was met."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np


def median_interval(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """Two of the `f[n]` values, as near as can be, between which the median lies with at least `level`, and with which
    probability it does.

    By order statistics: exact for any distribution without ties, on the safe side with them. With fewer than six
    values there is no such pair; then they are the extremes, and the probability is what it is.
    """
    ordered, n = np.sort(values), len(values)
    outside, cut = 2 * 0.5**n, 0  # of the interval that leaves out `cut` values at either end
    while cut + 1 <= (n - 1) // 2:
        wider = outside + 2 * math.comb(n, cut + 1) * 0.5**n
        if 1 - wider < level:
            break
        cut, outside = cut + 1, wider
    return float(ordered[cut]), float(ordered[n - 1 - cut]), max(1 - outside, 0.0)


def holm(p: np.ndarray) -> np.ndarray:
    """p-values `f[...]` of one family, corrected for their number by Holm's method. NaN stays, and does not count."""
    flat = np.ravel(p)
    order = np.argsort(flat)  # NaN last
    count = int(np.isfinite(flat).sum())
    corrected = np.full(flat.shape, np.nan)
    if count:
        multiplied = flat[order[:count]] * np.arange(count, 0, -1)
        corrected[order[:count]] = np.minimum(np.maximum.accumulate(multiplied), 1.0)
    return corrected.reshape(np.shape(p))


def mann_whitney(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of Mann and Whitney's test of two samples `f[n]` and `f[m]`, two-sided."""
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - slow to import

    both = np.concatenate([first, second])
    if (both == both[0]).all():  # of which scipy 1.18 says NaN
        return 1.0
    tested: Any = mannwhitneyu(first, second)
    return float(tested.pvalue)


def all_pairs(samples: Sequence[np.ndarray]) -> np.ndarray:
    """p-values of Mann and Whitney's test of every pair of samples, corrected for the number of pairs, `f[m, m]`."""
    pairs = list(combinations(range(len(samples)), 2))
    corrected = holm(np.array([mann_whitney(samples[i], samples[j]) for i, j in pairs]))
    table = np.ones((len(samples), len(samples)))
    for (i, j), p in zip(pairs, corrected, strict=True):
        table[i, j] = table[j, i] = p
    return table


def running_time(reached_at: Sequence[int | None], evaluations: Sequence[int]) -> tuple[int, float]:
    """How many runs met a target, and the evaluations it takes on average if runs that miss it are begun again."""
    met = sum(at is not None for at in reached_at)
    spent = sum(all_ if at is None else at for at, all_ in zip(reached_at, evaluations, strict=True))
    return met, spent / met if met else math.inf
