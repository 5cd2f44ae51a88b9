"""The stored runs of the study `beyond`, by row, column and seed, and what they say about pairs of columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from ....comparing.statistics import holm, mann_whitney
from ...run.function_task import WITH_OPTIMUM
from ...run.lanes import ORACLES
from ...run.store import StoredJob, runs_of
from ...show.collect import Arrays, by_seed, stacked
from ...show.resolution import resolved
from ...show.view import MissingError
from ..functions.runs import STDS
from .methods import CHOSEN, OURS, X
from .moved_task import FUNCTIONS
from .networks import BeyondControl, BeyondImages
from .runs import CHOICE_FUNCTIONS, OTHERS, PLACES, BeyondRun, Row

MAIN_PLACES = (*PLACES, (1000, False))
MAIN = tuple(
    Row(function, dim, std, turned) for dim, turned in MAIN_PLACES for function in WITH_OPTIMUM for std in STDS
)
# Rows that are counted together: all of the main ones, those of a dimension, those GESMR-X was chosen on and the others
GROUPS: dict[str, tuple[Row, ...]] = {
    "all": MAIN,
    **{
        f"d = {dim}{', turned' * turned}": tuple(row for row in MAIN if (row.dim, row.rotated) == (dim, turned))
        for dim, turned in MAIN_PLACES
    },
    "chosen on": tuple(row for row in MAIN if row.function in CHOICE_FUNCTIONS),
    "not chosen on": tuple(row for row in MAIN if row.function not in CHOICE_FUNCTIONS),
}


class Runs(NamedTuple):
    """Runs of one method on one row, seed by seed. A method need not have the seeds of another."""

    function: str
    seeds: tuple[int, ...]
    final: np.ndarray  # f[S]
    best: np.ndarray  # f[S, points]  after the evaluations of `runs.kept_generations`; NaN before the first value
    log_rate: np.ndarray | None = None  # f[S, points]  of a GA

    @property
    def resolved(self) -> np.ndarray:
        """Final values no lower than what single precision resolves, infinite where there is none, `f[S]`."""
        return np.where(np.isfinite(self.final), resolved(self.function, self.final, shifted=True), np.inf)

    @property
    def log_final(self) -> np.ndarray:
        """log10 of these."""
        return np.log10(self.resolved)

    @property
    def median(self) -> float:
        return float(np.median(self.resolved))


class ImagesRow(NamedTuple):
    dataset: str
    images: int
    generations: int


class ControlRow(NamedTuple):
    task: str
    generations: int


Networks = Mapping[
    tuple, Mapping[str, Arrays]
]  # by row and column what `networks` stores, with seeds as the first axis


@dataclass(frozen=True)
class Results:
    rows: Mapping[Row, Mapping[str, Runs]]  # then by column; the main rows first
    generations: Mapping[Row, int]
    images: Networks = field(default_factory=dict)  # by ImagesRow
    control: Networks = field(default_factory=dict)  # by ControlRow

    @property
    def columns(self) -> list[str]:
        """Of any row, in a fixed order."""
        return in_order(column for columns in self.rows.values() for column in columns)

    def shared(self, *columns: str) -> list[Row]:
        """The rows that have all of these columns."""
        return [row for row in self.rows if self.rows[row].keys() >= set(columns)]

    def medians(self, column: str, rows: Iterable[Row]) -> np.ndarray:
        return np.array([self.rows[row][column].median for row in rows])

    def lower(self, first: str, *others: str) -> dict[Row, bool]:
        """Whether the first has a lower median than each of the others, in every row that has them all."""
        return {
            row: all(self.rows[row][first].median < self.rows[row][other].median for other in others)
            for row in self.shared(first, *others)
        }

    def equal(self, first: str, second: str) -> dict[Row, bool]:
        """Whether both have the same median, as when both are as low as can be told."""
        return {
            row: self.rows[row][first].median == self.rows[row][second].median for row in self.shared(first, second)
        }

    def p_values(self, first: str, second: str) -> dict[Row, float]:
        """Of Mann and Whitney's test, corrected for the number of rows by Holm's method."""
        rows = self.shared(first, second)
        p = [mann_whitney(self.rows[row][first].resolved, self.rows[row][second].resolved) for row in rows]
        return dict(zip(rows, holm(np.array(p)).tolist(), strict=True))


def column_of(run: BeyondRun | BeyondImages | BeyondControl) -> str:
    """A method, and whether its population is its own rather than 100."""
    return run.method if run.popsize else own(run.method)


def own(method: str) -> str:
    """The column of another algorithm with the population that it has by default."""
    return f"{method}, own N"


_ORDER = (X, *(name for name in OURS if name != X and name not in ORACLES), *ORACLES,
          *OTHERS, *map(own, OTHERS))  # fmt: skip


def in_order(columns: Iterable[str]) -> list[str]:
    """Each once: GESMR-X, the other GAs, oracles, other algorithms; variants of GESMR-X last."""
    return sorted(set(columns), key=lambda column: (_ORDER.index(column) if column in _ORDER else len(_ORDER), column))


def load(jobs: Sequence[StoredJob]) -> Results:
    runs = list(runs_of(jobs, BeyondRun))
    images = _of_networks(by_seed(runs_of(jobs, BeyondImages), ImagesRow, column_of))
    control = _of_networks(by_seed(runs_of(jobs, BeyondControl), ControlRow, column_of))
    if not (runs or images or control):
        raise MissingError("runs")
    found = by_seed(runs, Row, column_of)

    def place(row: Row) -> tuple:
        return row not in MAIN, row.dim, row.rotated, FUNCTIONS.index(row.function), row.std

    rows = {
        row: {column: _runs(row, found[row][column]) for column in in_order(found[row])}
        for row in sorted(found, key=place)
    }
    generations = {Row(run.function, run.dim, run.std, run.rotated): run.generations for run, _ in runs}
    return Results(rows, generations, images, control)


def _of_networks(found: Mapping[tuple, Mapping[str, Mapping[int, Arrays]]]) -> Networks:
    return {
        row: {column: stacked(found[row][column], sorted(found[row][column])) for column in in_order(found[row])}
        for row in sorted(found)
    }


def _runs(row: Row, by_seed: Mapping[int, Arrays]) -> Runs:
    seeds = tuple(sorted(by_seed))
    return Runs(row.function, seeds, **stacked(by_seed, seeds))


class Tried(NamedTuple):
    """What a setting came to beside GESMR-X's, on the rows of that one."""

    ratio: np.ndarray  # f[R]  of final values, geometric means over seeds
    rank: float  # among all settings, the mean over rows

    @property
    def mean_ratio(self) -> float:
        """The geometric mean."""
        return float(np.exp(np.log(self.ratio).mean()))


class Choice(NamedTuple):
    """What GESMR-X was chosen from."""

    rows: list[Row]
    tried: dict[str, Tried]  # by column, the best mean rank first: variants, and what stood beside them
    missing: list[str]  # columns that do not have all rows


def choice(results: Results) -> Choice | None:
    """None: the chosen setting was not run as one of several."""
    columns = results.columns
    if str(CHOSEN) not in columns:
        return None
    rows = results.shared(str(CHOSEN))
    names = [column for column in columns if all(column in results.rows[row] for row in rows)]
    logs = np.array([[results.rows[row][name].log_final.mean() for row in rows] for name in names])
    ratios, ranks = 10.0 ** (logs - logs[names.index(str(CHOSEN))]), rankdata(logs, axis=0).mean(axis=1)
    found = {name: Tried(ratio, float(rank)) for name, ratio, rank in zip(names, ratios, ranks, strict=True)}
    ordered = dict(sorted(found.items(), key=lambda item: item[1].rank))
    return Choice(rows, ordered, [column for column in columns if column not in names])


class Count(NamedTuple):
    """In how many rows something is so, of those in which it can be told, of all."""

    so: int
    told: int
    rows: int

    @classmethod
    def of(cls, told: Mapping[Row, bool], rows: Sequence[Row]) -> "Count":
        answers = [told[row] for row in rows if row in told]
        return cls(sum(answers), len(answers), len(rows))

    def __str__(self) -> str:
        return f"{self.so} of {self.told}" if self.told else "–"
