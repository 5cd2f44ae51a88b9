"""The stored runs of the study `groups`: final values against K, the best K, and what other K lose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from ...errors import LabError
from ...run.store import StoredJob, runs_of
from ...show import stats
from ...show.collect import by_seed, on_shared_seeds
from ...show.resolution import log10
from .runs import AUTHORS_GENERATIONS, FUNCTIONS, GENERATIONS, GroupsRun, divisors

RULES_OF_THUMB: dict[str, Callable[[int], float]] = {
    "√N": lambda n: n ** (1 / 2),
    "N^(2/3)": lambda n: n ** (2 / 3),
    "N^(3/4)": lambda n: n ** (3 / 4),
    "N/6": lambda n: max(2, n / 6),
    "N/8": lambda n: max(2, n / 8),
}
ENOUGH_SIZES = 3  # for anything about any N


class Row(NamedTuple):
    function: str
    std: float
    num_children: int
    generations: int = GENERATIONS


@dataclass(frozen=True)
class Curve:
    """Final elite values of a row, for every K that divides N."""

    groups: np.ndarray  # i[D]  K, from 1 to N
    log_final: np.ndarray  # f[D, S]  log10

    @property
    def mean(self) -> np.ndarray:
        """Mean over seeds of log10, `f[D]`."""
        return self.log_final.mean(axis=1)

    @property
    def best(self) -> int:
        """The K with the lowest mean, K*."""
        return int(self.groups[np.argmin(self.mean)])

    @cached_property
    def resampled(self) -> np.ndarray:
        """The means of resampled seeds, `f[D, count]`."""
        return self.log_final[:, stats.resamples(self.log_final.shape[1])].mean(axis=-1)

    def at(self, groups: float) -> float:
        """The mean at any K, straight in log K between the divisors of N beside it."""
        return float(self._weights(groups) @ self.mean)

    def loss(self, groups: float) -> float:
        """How much higher, in log10, the mean is at that K than at the best."""
        return self.at(groups) - float(self.mean.min())

    def resampled_loss(self, groups: float) -> np.ndarray:
        """The same of resampled seeds, against the K that is best on all, `f[count]`."""
        return self._weights(groups) @ self.resampled - self.resampled[np.argmin(self.mean)]

    def _weights(self, groups: float) -> np.ndarray:
        """Of every divisor in the value at any K, `f[D]`."""
        return np.array([np.interp(np.log(groups), np.log(self.groups), unit) for unit in np.eye(len(self.groups))])


Results = Mapping[Row, Curve]


def load(jobs: Sequence[StoredJob]) -> Results:
    """The rows for which every K that divides N has run, on the seeds that all of these share."""
    runs = by_seed(runs_of(jobs, GroupsRun), Row, lambda run: run.groups)
    results = {}
    for row in sorted(runs, key=_order):
        wanted = divisors(row.num_children)
        _, found = on_shared_seeds(runs[row], wanted)
        if len(found) == len(wanted):
            final = np.stack([found[k]["final"] for k in wanted])
            results[row] = Curve(np.array(wanted), log10(row.function, final))
    if not results:
        raise LabError("no population size has runs for every number of groups that divides it; run the study again")
    return results


def _order(row: Row) -> tuple:
    return -row.generations, FUNCTIONS.index(row.function), row.std, row.num_children


def by_generations(results: Results) -> dict[int, Results]:
    """Our runs apart from those as the authors ran them, which are shorter."""
    lengths = dict.fromkeys(row.generations for row in results)
    return {t: {row: curve for row, curve in results.items() if row.generations == t} for t in lengths}


def setting(generations: int, results: Results) -> str:
    whose = {GENERATIONS: "our", AUTHORS_GENERATIONS: "the authors'"}.get(generations, "another")
    return f"{whose} setting (std {' and '.join(f'{std:g}' for std in stds_of(results))}, {generations} generations)"


def stds_of(results: Results) -> list[float]:
    return sorted({row.std for row in results})


def sizes_of(results: Results) -> list[int]:
    return sorted({row.num_children for row in results})


def growth(results: Results) -> dict[int, tuple[stats.Ratio, stats.Ratio]]:
    """K*/√N and K*/N^(3/4) for each N, geometric means over functions and spreads."""
    found = {}
    for n in sizes_of(results):
        curves = [curve for row, curve in results.items() if row.num_children == n]
        best = np.mean([np.log(curve.best) for curve in curves])
        draws = np.mean([np.log(curve.groups[curve.resampled.argmin(axis=0)]) for curve in curves], axis=0)
        ends = np.array([best, *stats.interval(draws)])
        found[n] = tuple(stats.Ratio(*map(float, np.exp(ends - power * np.log(n)))) for power in (1 / 2, 3 / 4))
    return found


def losses(results: Results) -> dict[str, np.ndarray]:
    """Of each rule of thumb for K in each row, `f[R]`: log10 of its final value over that of the best K."""
    return {
        rule: np.array([curve.loss(groups(row.num_children)) for row, curve in results.items()])
        for rule, groups in RULES_OF_THUMB.items()
    }


class Fit(NamedTuple):
    """log K* = intercept + slope · log N by least squares over rows."""

    slope: stats.Ratio
    intercept: float
    log_n: np.ndarray  # f[R]
    log_best: np.ndarray  # f[R]

    def at(self, n: np.ndarray) -> np.ndarray:
        """K* on the line for every N, and the ends of its 95% interval, `f[3, P]` of `f[P]`."""
        middle = self.intercept + self.slope.value * np.log(n)
        left = np.sum((self.log_best - self.intercept - self.slope.value * self.log_n) ** 2) / (len(self.log_n) - 2)
        away = (np.log(n) - self.log_n.mean()) ** 2 / np.sum((self.log_n - self.log_n.mean()) ** 2)
        half = float(t.ppf(0.975, len(self.log_n) - 2)) * np.sqrt(left * (1 / len(self.log_n) + away))
        return np.stack([np.exp(self.intercept) * n**self.slope.value, np.exp(middle - half), np.exp(middle + half)])


def fit(results: Results) -> Fit | None:
    """None with fewer than three population sizes."""
    if len(sizes_of(results)) < ENOUGH_SIZES:
        return None
    log_n = np.log([row.num_children for row in results])
    log_best = np.log([curve.best for curve in results.values()])
    return Fit(*stats.line_through(log_n, log_best), log_n, log_best)
