"""Intervals, tests and running times, against scipy and by hand."""

import numpy as np
import pytest
from scipy import stats

from gesmr.comparing.statistics import all_pairs, holm, median_interval, running_time
from helpers.references import mann_whitney


@pytest.mark.parametrize("n", [1, 2, 5, 6, 9, 10, 25])
def test_the_interval_is_scipys(n):
    """scipy's exact interval of a quantile, which has the same rule on its own."""
    values = np.random.default_rng(n).permutation(np.arange(n) * 1.5)
    low, high, sure = median_interval(values, 0.95)
    theirs = stats.quantile_test(values, p=0.5).confidence_interval(0.95)
    if n >= 6:
        assert (low, high) == (theirs.low, theirs.high)
        assert sure >= 0.95
    else:
        assert np.isnan(theirs.low)  # there is none
        assert (low, high) == (values.min(), values.max())
    cut = int(np.searchsorted(np.sort(values), low))
    assert sure == pytest.approx(1 - 2 * stats.binom.cdf(cut, n, 0.5), abs=1e-12) or n == 1


def test_the_interval_covers_the_median():
    """4000 samples of ten: 97.9% in theory; beyond four standard deviations once in 16,000 such tests."""
    rng = np.random.default_rng(3)
    found = np.array([median_interval(rng.exponential(size=10), 0.95) for _ in range(4000)])
    covered = np.mean((found[:, 0] < np.log(2)) & (found[:, 1] > np.log(2)))
    assert found[0, 2] == pytest.approx(0.978516, abs=1e-6)
    assert abs(covered - found[0, 2]) < 4 * np.sqrt(found[0, 2] * (1 - found[0, 2]) / 4000)


def test_infinite_values_are_the_largest():
    assert median_interval(np.array([np.inf, 1, 2, 3, 4, np.inf, 5]), 0.95)[:2] == (1, np.inf)


def test_all_pairs():
    rng = np.random.default_rng(0)
    samples = [rng.normal(shift, size=8) for shift in (0, 0.5, 3)]
    single = [mann_whitney(samples[i], samples[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    found = all_pairs(samples)
    by_hand = np.maximum.accumulate(np.sort(single) * [3, 2, 1]).clip(max=1)
    np.testing.assert_allclose(np.sort(found[np.triu_indices(3, 1)]), by_hand)
    np.testing.assert_array_equal(found, found.T)


def test_pairs_that_are_alike_or_infinite():
    found = all_pairs([np.full(5, np.inf), np.arange(5.0), np.full(5, np.inf)])
    assert found[0, 2] == 1
    assert found[0, 1] == pytest.approx(3 * mann_whitney(np.full(5, 9.0), np.arange(5.0)))


def test_holm_by_hand():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, np.nan, 0.03])), [0.03, 0.06, np.nan, 0.06])


def test_running_time():
    assert running_time([10, None, 30], [100, 100, 100]) == (2, 70)
    assert running_time([None], [100]) == (0, np.inf)
