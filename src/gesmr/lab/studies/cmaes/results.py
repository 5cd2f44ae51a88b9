"""The stored runs of the study `cmaes`: duels of three methods, and what a generation of each costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import LabError
from ...run.store import StoredJob, runs_of
from ...show.collect import Arrays, by_seed, stacked
from .runs import DIMS, FUNCTIONS, Cost, Duel


class Row(NamedTuple):
    function: str
    std: float
    shifted: bool
    cmaes_generations: int  # at equal evaluations
    gesmr_generations: int
    dim: int
    sigma0: float  # of CMA-ES

    @property
    def optimum(self) -> str:
        return "shifted" if self.shifted else "centred"

    @property
    def line(self) -> tuple:
        """What the rows in a line of panels share."""
        return self.shifted, -self.sigma0, self.cmaes_generations, self.gesmr_generations, self.dim


@dataclass(frozen=True)
class Duels:
    """Of one row, S seeds. Curves are padded at their end with NaN."""

    values: np.ndarray  # f[S, comparisons, methods]
    reached: np.ndarray  # i[S, comparisons, methods]  generations
    stopped: np.ndarray  # str[S, methods]
    generation: np.ndarray  # f[S, methods, P]
    evaluations: np.ndarray  # f[S, methods, P]
    seconds: np.ndarray  # f[S, methods, P]
    best: np.ndarray  # f[S, methods, P]


class Measured(NamedTuple):
    """The cost of a generation. NaN where there was not enough memory."""

    turns: np.ndarray  # f[turns]  seconds
    bytes: float

    @property
    def seconds(self) -> float:
        """In the fastest turn."""
        return float(self.turns.min())


@dataclass(frozen=True)
class Results:
    duels: Mapping[Row, Duels]
    costs: Mapping[tuple[str, int], Measured]  # by method and dimension

    @property
    def dims(self) -> list[int]:
        """Those measured, and the largest, where full CMA-ES may not have been."""
        return sorted({DIMS[-1], *(dim for _, dim in self.costs)})

    def measured(self, method: str) -> dict[int, Measured]:
        """By dimension, where there was memory enough."""
        found = {dim: self.costs[name, dim] for name, dim in sorted(self.costs) if name == method}
        return {dim: measured for dim, measured in found.items() if np.isfinite(measured.seconds)}


def load(jobs: Sequence[StoredJob]) -> Results:
    found = by_seed(runs_of(jobs, Duel), Row, lambda duel: duel.kind)
    costs = {(cost.method, cost.dim): Measured(a["seconds"], float(a["bytes"])) for cost, a in runs_of(jobs, Cost)}
    if not found and not costs:
        raise LabError("these results are of an older version of the study; run it again")
    rows = sorted(found, key=lambda row: (row.shifted, row.std, -row.sigma0, FUNCTIONS.index(row.function), row))
    return Results({row: _duels(found[row][Duel.kind]) for row in rows}, costs)


def _duels(runs: Mapping[int, Arrays]) -> Duels:
    arrays = stacked(runs, sorted(runs))
    for name in ("generation", "evaluations"):
        arrays[name] = np.where(arrays[name] < 0, np.nan, arrays[name])
    return Duels(**{name: arrays[name] for name in Duels.__annotations__})
