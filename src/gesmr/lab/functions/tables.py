"""Tables 1–3: means over seeds, the best method in bold, the paper's asterisk; and the tests it leaves out."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import stats
from .results import Results, Row


@dataclass(frozen=True)
class FunctionTable:
    """One of the paper's tables. NaN where there is no run."""

    name: str  # "table1" …
    title: str
    rows: tuple[Row, ...]
    methods: tuple[str, ...]
    ranked: tuple[str, ...]  # those that compete: all but the oracles
    values: np.ndarray  # f[R, M, S]

    @property
    def mean(self) -> np.ndarray:
        """f[R, M]"""
        return stats.mean(self.values)

    @property
    def standard_error(self) -> np.ndarray:
        """f[R, M]"""
        return stats.standard_error(self.values)

    @property
    def median(self) -> np.ndarray:
        """f[R, M]"""
        return np.where(np.isnan(self.mean), np.nan, np.ma.median(np.ma.masked_invalid(self.values), axis=-1))

    @property
    def best(self) -> tuple[str | None, ...]:
        """Of each row, the method with the lowest mean that is no oracle; None if there is no run."""
        means = self.mean[:, [self.methods.index(method) for method in self.ranked]]
        return tuple(None if np.isnan(row).all() else self.ranked[int(np.nanargmin(row))] for row in means)

    @property
    def significant(self) -> tuple[bool, ...]:
        """The paper's asterisk: the best has p < 0.05 in Welch's t-test against every other that is no oracle."""
        return tuple(
            len(tests) > 0 and all(test["welch_p"] < stats.LEVEL for test in tests)
            for tests in (self._against_best(i) for i in range(len(self.rows)))
        )
