"""What software that nobody here wrote says."""

from typing import Any

from scipy.stats import mannwhitneyu


def mann_whitney(first: Any, second: Any) -> float:
    """scipy's p. Its stubs of different versions do not agree on what it returns."""
    found: Any = mannwhitneyu(first, second)
    return float(found.pvalue)
