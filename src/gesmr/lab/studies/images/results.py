"""The stored runs of the study `images`, on the seeds that methods share, and who is ahead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....problems.networks import INITIALISATIONS, UNIT
from ...errors import LabError
from ...run.lanes import METHODS, ORACLES
from ...run.store import StoredJob, runs_of
from ...show.collect import by_seed, on_shared_seeds
from .runs import AUTHORS, OURS, SETS, ImagesRun

RANKED = tuple(method for method in METHODS if method not in ORACLES)
SETTINGS = {AUTHORS: "in the authors' setting", OURS: "in our setting"}
_NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}


class Row(NamedTuple):
    """What methods are compared on."""

    dataset: str
    images: int
    init: str
    generations: int
    pixels: str = UNIT

    @property
    def setting(self) -> tuple[str, str]:
        return self.init, self.pixels

    @property
    def name(self) -> str:
        """Of the set."""
        return _NAMES.get(self.dataset, self.dataset)

    @property
    def label(self) -> str:
        how = [SETTINGS[AUTHORS]] if self.setting == AUTHORS else [how for how in self.setting if how not in OURS]
        return ", ".join((self.name, f"{self.images:,} images", *how))


@dataclass(frozen=True)
class Runs:
    """Of a method, on the seeds that all methods of the row have."""

    final: np.ndarray  # f[S]  training loss at the end
    elite: np.ndarray  # f[S, P]  training loss at the generations that are kept
    log_rate: np.ndarray  # f[S, P]
    test_loss: np.ndarray  # f[S, K]  of the best network after every step
    test_accuracy: np.ndarray  # f[S, K]


Results = Mapping[Row, Mapping[str, Runs]]


def load(jobs: Sequence[StoredJob]) -> Results:
    """By row the methods there are, on the seeds they share."""
    runs = ((run, arrays) for run, arrays in runs_of(jobs, ImagesRun) if run.dataset in SETS)
    found = by_seed(runs, Row, lambda run: run.method)
    results = {}
    for row in sorted(found, key=_order):
        _, methods = on_shared_seeds(found[row], METHODS)
        if methods:
            names = Runs.__dataclass_fields__
            results[row] = {method: Runs(*(arrays[name] for name in names)) for method, arrays in methods.items()}
    if not results:
        raise LabError("no set has runs of the same seeds for every method; run the study again")
    return results


def _order(row: Row) -> tuple:
    place = list(INITIALISATIONS).index(row.init), -row.images, SETS.index(row.dataset), -row.generations
    return row.setting != AUTHORS, row.pixels != UNIT, *place


def placed(runs: Mapping[str, Runs]) -> dict[str, float]:
    """Mean losses at the end of the methods that are no oracles, the lowest first; NaN last."""
    means = {method: float(runs[method].final.mean()) for method in RANKED if method in runs}
    return dict(sorted(means.items(), key=lambda item: (np.isnan(item[1]), item[1])))
