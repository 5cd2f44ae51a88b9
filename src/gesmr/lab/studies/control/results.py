"""The stored runs of the study `control`, by row, method and seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....problems.control import TASKS
from ...errors import LabError
from ...run.lanes import METHODS
from ...run.store import StoredJob, runs_of
from ...show.collect import by_seed, on_shared_seeds
from .runs import ControlRun

VARIANTS = {True: "sampled actions and fresh episodes", False: "fixed episodes"}  # by `ControlRun.fresh`


class Row(NamedTuple):
    """What methods are compared on."""

    task: str
    fresh: bool = False  # actions are sampled and episodes fresh at every evaluation, as the authors ran it


@dataclass(frozen=True)
class MethodRuns:
    """Runs of one method on one task, seed by seed."""

    seeds: tuple[int, ...]
    elite: np.ndarray  # f[S, T]  return of the best policy, mean over the run's own episodes; lucky if these are fresh
    log_rate: np.ndarray  # f[S, T]
    best: np.ndarray  # f[S, d]
    held_out: np.ndarray  # f[S, H]  returns of the last best policy on episodes no run has seen

    @property
    def final(self) -> np.ndarray:
        return self.elite[:, -1]

    @property
    def mean_elite(self) -> np.ndarray:
        """Over generations: high if a run is both fast and good."""
        return self.elite.mean(axis=1)

    @property
    def unseen(self) -> np.ndarray:
        """Mean return on the held-out episodes, `f[S]`."""
        return self.held_out.mean(axis=1)

    @property
    def best_seed(self) -> int:
        """That of the policy with the highest return on the held-out episodes."""
        return self.seeds[int(np.argmax(np.nan_to_num(self.unseen, nan=-np.inf)))]

    @property
    def best_policy(self) -> np.ndarray:
        """f[d]"""
        return self.best[self.seeds.index(self.best_seed)]


Results = Mapping[Row, Mapping[str, MethodRuns]]  # then by method


def load(jobs: Sequence[StoredJob]) -> Results:
    """By row the methods there are, on the seeds they share. The longest runs, if there are several lengths."""
    runs = list(runs_of(jobs, ControlRun))
    longest: dict[Row, int] = {}
    for run, _ in runs:
        row = Row(run.task, run.fresh)
        longest[row] = max(run.generations, longest.get(row, 0))
    whole = ((run, arrays) for run, arrays in runs if run.generations == longest[Row(run.task, run.fresh)])
    found = by_seed(whole, Row, lambda run: run.method)
    results: dict[Row, dict[str, MethodRuns]] = {}
    for row in (Row(task, fresh) for fresh in (False, True) for task in TASKS):
        seeds, methods = on_shared_seeds(found.get(row, {}), METHODS)
        if methods:
            results[row] = {method: MethodRuns(tuple(seeds), **arrays) for method, arrays in methods.items()}
    if not results:
        raise LabError("no task has runs of all its methods on the same seeds; run the study again")
    return results


def by_task(results: Results, fresh: bool) -> Mapping[str, Mapping[str, MethodRuns]]:
    """Of runs with fresh episodes, or of those with fixed ones."""
    return {row.task: methods for row, methods in results.items() if row.fresh == fresh}
