"""Comparisons of two samples, many at a time: the paper's t-test, and what it leaves out."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """Of a sample x with samples y, both `f[..., n]`: p-values `f[...]`, two-sided, and effect sizes.

    NaN where either sample has missing values (or fewer than two). Two samples that are equal throughout have
    p = 1, two different constants p = 0.
    """

    welch: np.ndarray  # unpaired t-test without equal variances, the paper's
    paired: np.ndarray  # paired t-test: seeds share first populations
    wilcoxon: np.ndarray  # signed ranks, paired, for any distribution
    mann_whitney: np.ndarray  # ranks, unpaired
    cohen_d: np.ndarray  # difference of means in pooled standard deviations, negative if x is lower
    probability_lower: np.ndarray  # P(x < y) + P(x = y)/2 (Vargha and Delaney's A, for minimisation)


def compare(x: np.ndarray, y: np.ndarray) -> Comparison:
    pair = _pair(x, y)
    x, y, usable = pair
    difference = x.mean(-1) - y.mean(-1)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        spread = np.sqrt((x.var(-1, ddof=1) + y.var(-1, ddof=1)) / 2)
        cohen_d = np.where(difference == 0, 0.0, difference / spread)
    each = x[..., :, None] - y[..., None, :]
    lower = ((each < 0) + 0.5 * (each == 0)).mean((-2, -1))
    return Comparison(
        welch=_welch(pair),
        paired=_p_value(pair, stats.ttest_rel, ((x - y) == (x - y)[..., :1]).all(-1)),
        wilcoxon=np.where(usable, _wilcoxon(x - y), np.nan),
        mann_whitney=_p_value(pair, stats.mannwhitneyu, False),
        cohen_d=np.where(usable, cohen_d, np.nan),
        probability_lower=np.where(usable, lower, np.nan),
    )


def welch(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The paper's test alone, `f[...]`, along the last axis."""
    return _welch(_pair(x, y))


class _Pair(NamedTuple):
    x: np.ndarray  # f[..., n]
    y: np.ndarray  # f[..., n]
    usable: np.ndarray  # bool[...]  elsewhere both are zero


def _pair(x: np.ndarray, y: np.ndarray) -> _Pair:
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    usable = np.isfinite(x).all(-1) & np.isfinite(y).all(-1) & (x.shape[-1] > 1)
    x, y = (np.where(usable[..., None], a, 0.0) for a in (x, y))
    return _Pair(x, y, usable)


def _welch(pair: _Pair) -> np.ndarray:
    constant = (pair.x == pair.x[..., :1]).all(-1) & (pair.y == pair.y[..., :1]).all(-1)
    return _p_value(pair, stats.ttest_ind, constant, equal_var=False)


def _p_value(pair: _Pair, test: Callable[..., Any], certain: Any, **options: Any) -> np.ndarray:
    """The test's p-value, except where there is no variance for it to work with."""
    x, y, usable = pair
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # precision lost among nearly equal values
        p = test(x, y, axis=-1, **options).pvalue if usable.any() else np.nan
    return np.where(usable, np.where((x == y).all(-1), 1.0, np.where(certain, 0.0, p)), np.nan)


def _wilcoxon(difference: np.ndarray) -> np.ndarray:
    """p-values `f[...]`. Those without ties at once; with one tie among many scipy would take its slow way for all."""
    size = np.sort(np.abs(difference), axis=-1)
    tied = (size[..., :1] == 0).any(-1) | (np.diff(size, axis=-1) == 0).any(-1)
    p = np.ones(tied.shape)
    test: Callable[..., Any] = stats.wilcoxon
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # normal approximation for a small sample with ties
        if not tied.all():
            p[~tied] = test(difference[~tied], axis=-1).pvalue
        for place in map(tuple, np.argwhere(tied & (size[..., -1] > 0))):
            p[place] = test(difference[place]).pvalue
    return p


def standard_error(values: np.ndarray) -> np.ndarray:
    """Of the mean over the last axis, leaving out NaN; NaN with fewer than two."""
    count = np.isfinite(values).sum(-1)
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.where(count > 1, np.nanstd(values, axis=-1, ddof=1) / np.sqrt(count), np.nan)


def mean(values: np.ndarray) -> np.ndarray:
    """Over the last axis, leaving out NaN; NaN if there is nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=-1)


def median(values: np.ndarray) -> np.ndarray:
    """Over the last axis, leaving out NaN; NaN if there is nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmedian(values, axis=-1)


def resamples(n: int, count: int = 1000) -> np.ndarray:
    """Which of n things are in each of `count` samples of n drawn with replacement, `i[count, n]`. Always the same."""
    return np.random.default_rng(2022).integers(n, size=(count, n))


def resampled_means(values: np.ndarray) -> np.ndarray:
    """Means over the last axis of `f[..., S]` in every resample, `f[..., count]`, leaving out NaN."""
    n = values.shape[-1]
    times = np.stack([np.bincount(drawn, minlength=n) for drawn in resamples(n)], axis=1).astype(float)  # f[S, count]
    there = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (np.where(there, values, 0.0) @ times) / (there @ times)


def interval(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95% of what resampling gave, `f[count]`."""
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)


class Ratio(NamedTuple):
    """With its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g}–{self.high:.3g})"


def ratio_of_medians(x: np.ndarray, y: np.ndarray) -> Ratio:
    """Median of x over that of y, both `f[S]` and positive; the interval is from resampled seeds, each sample's own."""
    draws = [np.median(sample[resamples(len(sample))], axis=1) for sample in (x, y)]
    # y's samples go with x's in another order: the two are independent
    return Ratio(float(np.median(x) / np.median(y)), *interval(draws[0] / draws[1][::-1]))


def line_through(x: np.ndarray, y: np.ndarray) -> tuple[Ratio, float]:
    """Slope and intercept of y over x by least squares, `f[n]` both; the slope with the fit's own 95% interval."""
    line: Any = stats.linregress(x, y)
    half = float(line.stderr) * float(stats.t.ppf(0.975, len(x) - 2))
    slope = float(line.slope)
    return Ratio(slope, slope - half, slope + half), float(line.intercept)
