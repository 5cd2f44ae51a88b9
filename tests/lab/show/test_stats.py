"""Statistics, on numbers whose answers are known."""

from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from gesmr.lab.show import stats
from gesmr.lab.show.claims import shortfall


def test_comparisons_are_scipys_one_by_one():
    rng = np.random.default_rng(1)
    x, y = rng.normal(0, 1, 15), rng.normal(0.5, 2, (3, 15))
    compared = stats.compare(x, y)
    for i in range(3):
        assert compared.welch[i] == pytest.approx(scipy_stats.ttest_ind(x, y[i], equal_var=False)[1])
        assert compared.paired[i] == pytest.approx(scipy_stats.ttest_rel(x, y[i]).pvalue)
        assert compared.wilcoxon[i] == pytest.approx(scipy_stats.wilcoxon(x, y[i])[1])
        u: Any = scipy_stats.mannwhitneyu(x, y[i])
        assert compared.mann_whitney[i] == pytest.approx(u.pvalue)
        assert compared.probability_lower[i] == pytest.approx(1 - u.statistic / (15 * 15))
        pooled = np.sqrt((x.var(ddof=1) + y[i].var(ddof=1)) / 2)
        assert compared.cohen_d[i] == pytest.approx((x.mean() - y[i].mean()) / pooled)


def test_samples_without_variance():
    zeros, ones, varied = np.zeros(5), np.ones(5), np.arange(5.0)
    same, apart, shifted = (stats.compare(a, b) for a, b in ((zeros, zeros), (zeros, ones), (varied, varied + 1)))
    assert (same.welch, same.paired, same.wilcoxon, same.mann_whitney) == (1, 1, 1, 1)
    assert (same.cohen_d, same.probability_lower) == (0, 0.5)
    assert (apart.welch, apart.paired, apart.probability_lower) == (0, 0, 1)
    assert apart.cohen_d == -np.inf
    assert shifted.paired == 0
    assert 0 < shifted.welch < 1


def test_missing_values_have_no_p_value():
    x = np.array([1.0, 2.0, np.nan])
    assert np.isnan(stats.compare(x, np.ones(3)).welch)
    assert np.isnan(stats.compare(np.ones(1), np.zeros(1)).welch)


def test_resampled_means_and_their_interval():
    """Normal samples: the middle 95% of resampled means is about ±1.96 standard errors. NaN are left out."""
    values = np.random.default_rng(3).normal(5, 2, (2, 400))
    values[1, ::2] = np.nan
    means = stats.resampled_means(values)
    assert means.shape == (2, 1000)
    for row, spread_of_means in zip(values, means, strict=True):
        kept = row[np.isfinite(row)]
        half = 1.96 * kept.std() / np.sqrt(len(kept))
        np.testing.assert_allclose(stats.interval(spread_of_means), [kept.mean() - half, kept.mean() + half], atol=0.06)


def test_a_ratio_of_medians_and_its_interval():
    rng = np.random.default_rng(4)
    ratio = stats.ratio_of_medians(3 * np.exp(rng.normal(0, 0.1, 200)), np.exp(rng.normal(0, 0.1, 200)))
    assert ratio.low < 3 < ratio.high
    assert 2.8 < ratio.low < ratio.value < ratio.high < 3.2
    same = stats.ratio_of_medians(np.full(5, 2.0), np.full(5, 4.0))
    assert (same.value, same.low, same.high) == (0.5, 0.5, 0.5)


def test_shortfall():
    assert shortfall(seeds=(5, 40), generations=(60, 1000)) == "5 of 40 seeds, 60 of 1,000 generations"
    assert shortfall(seeds=(80, 40), generations=(1000, 1000)) == ""
