"""The stored runs of the study `beyond`, by row, column and seed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...run.store import StoredJob, runs_of
from ...show.collect import Arrays, by_seed, stacked
from ...show.resolution import log10
from ...show.view import MissingError
from .methods import OURS
from .moved_task import FUNCTIONS
from .runs import OTHERS, BeyondRun, Row


class Runs(NamedTuple):
    """Runs of one method on one row, seed by seed. A method need not have the seeds of another."""

    function: str
    seeds: tuple[int, ...]
    final: np.ndarray  # f[S]
    best: np.ndarray  # f[S, points]  after the evaluations of `runs.kept_generations`; NaN before the first value
    log_rate: np.ndarray | None = None  # f[S, points]  of a GA

    @property
    def log_final(self) -> np.ndarray:
        """log10 of what single precision resolves, `f[S]`."""
        return log10(self.function, self.final, shifted=True)


Results = Mapping[Row, Mapping[str, Runs]]  # then by column


def column_of(run: BeyondRun) -> str:
    """A method, and whether its population is its own rather than 100."""
    return run.method if run.popsize else f"{run.method}, own N"


def load(jobs: Sequence[StoredJob]) -> Results:
    """By row and column what there is, in a fixed order; variants of GESMR-X last."""
    found = by_seed(runs_of(jobs, BeyondRun), Row, column_of)
    if not found:
        raise MissingError("runs")
    order = [*OURS, *(column for method in OTHERS for column in (method, f"{method}, own N"))]

    def place(column: str) -> tuple[int, str]:
        return order.index(column) if column in order else len(order), column

    rows = sorted(found, key=lambda row: (row.dim, row.rotated, FUNCTIONS.index(row.function), row.std))
    return {row: {column: _runs(row, found[row][column]) for column in sorted(found[row], key=place)} for row in rows}


def _runs(row: Row, by_seed: Mapping[int, Arrays]) -> Runs:
    seeds = tuple(sorted(by_seed))
    return Runs(row.function, seeds, **stacked(by_seed, seeds))
