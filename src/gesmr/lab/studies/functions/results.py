"""The stored runs of the function study as arrays: row × method × seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....problems.functions import FORMULAS
from ...run.lanes import METHODS, ORACLES
from ...run.reading import LAMR_NAME, Reading
from ...run.store import StoredJob, runs_of
from ...show.collect import Arrays, by_seed, stacked
from ...show.view import MissingError
from .runs import Cost, Run, generations_of, kept_generations

RUGGED = ("ackley", "griewank", "rastrigin")
SMOOTH = ("rosenbrock", "sphere")


class Row(NamedTuple):
    """A row of the paper's tables."""

    function: str
    dim: int
    std: float

    @property
    def label(self) -> str:
        return f"{self.function.capitalize()} {self.dim}-D, std {self.std:g}"


class Variant(NamedTuple):
    """Which runs of the study: with the optimum where the paper has it or moved, and by which reading of the paper."""

    shifted: bool = False
    reading: Reading = Reading.PRINT

    @property
    def name(self) -> str:
        return ("shifted" if self.shifted else "centred") + (", as text" if self.reading is Reading.TEXT else "")

    @property
    def label(self) -> str:
        where = "moved" if self.shifted else "where the paper has it"
        how = {Reading.PRINT: "computed as print was", Reading.TEXT: "by the paper's sentences alone"}[self.reading]
        return f"optimum {where}, {how}"


PRINTED = Variant()


class Curves(NamedTuple):
    generation: np.ndarray  # i[P]
    elite: np.ndarray  # f[S, P]
    log_rate: np.ndarray  # f[S, P]  natural logarithm of the mean rate


@dataclass(frozen=True)
class Results:
    """NaN where there is no run."""

    variant: Variant
    rows: tuple[Row, ...]  # in the paper's order
    methods: tuple[str, ...]  # likewise, the oracles first
    seeds: tuple[int, ...]
    final: np.ndarray  # f[R, M, S]  Table 1
    mean: np.ndarray  # f[R, M, S]  Table 2: elite value averaged over generations
    rate_error: np.ndarray  # f[R, M, S]  Table 3: mean square distance of the log rate from LAMR-100's
    used_rate_error: np.ndarray  # f[R, M, S]  the same by the rates that children were made with, generations 1 … T
    log_rate: np.ndarray  # f[R, M, S]  averaged over generations
    seconds: dict[int, np.ndarray]  # per dimension f[repeats, 2]: of a generation, fixed rate and GESMR
    histories: dict[tuple[Row, str], Curves]

    @property
    def ranked(self) -> tuple[str, ...]:
        """The methods that compete: all but the oracles."""
        return tuple(method for method in self.methods if method not in ORACLES)

    def columns(self, methods: Sequence[str]) -> list[int]:
        """Indices of these methods."""
        return [self.methods.index(method) for method in methods]

    def values(self, table: np.ndarray, row: Row, method: str) -> np.ndarray:
        """One of the arrays above for a row and a method, `f[S]`."""
        return table[self.rows.index(row), self.methods.index(method)]

    def select(self, functions: Sequence[str]) -> list[int]:
        """Indices of the rows of these functions."""
        return [i for i, row in enumerate(self.rows) if row.function in functions]

    def curves(self, row: Row, method: str) -> Curves:
        return self.histories[row, method]

    def histories_of(self, row: Row) -> dict[str, Curves]:
        """By method, of those that have run."""
        return {method: self.histories[row, method] for method in self.methods if (row, method) in self.histories}


_Runs = Mapping[Row, Mapping[str, Mapping[int, Arrays]]]  # by row, method and seed


def load(
    jobs: Sequence[StoredJob], shifted: bool = False, as_text: bool = False, seeds: range | None = None
) -> Results:
    """The stored runs of a variant, of these seeds or of all."""
    variant = Variant(shifted, Reading.TEXT if as_text else Reading.PRINT)
    found = load_variants(jobs, seeds)
    if variant not in found:
        raise MissingError(f"{variant.name} runs" + (f" of seeds {seeds.start}-{seeds.stop - 1}" if seeds else ""))
    return found[variant]


def load_variants(jobs: Sequence[StoredJob], seeds: range | None = None) -> dict[Variant, Results]:
    """All variants that have runs, the printed ones first."""
    runs: dict[Variant, list[tuple[Run, Arrays]]] = {}
    for run, arrays in runs_of(jobs, Run):
        if seeds is None or run.seed in seeds:
            runs.setdefault(Variant(run.shifted, Reading(run.reading)), []).append((run, arrays))
    seconds = {cost.dim: arrays["seconds"] for cost, arrays in runs_of(jobs, Cost)}
    order = [Variant(moved, reading) for reading in Reading for moved in (False, True)]
    by_variant = {variant: by_seed(runs[variant], Row, lambda run: run.method) for variant in order if variant in runs}
    return {variant: _assemble(variant, found, seconds) for variant, found in by_variant.items()}


def _assemble(variant: Variant, runs: _Runs, seconds: dict[int, np.ndarray]) -> Results:
    order = list(FORMULAS)
    rows = sorted(runs, key=lambda row: (order.index(row.function), row.dim, row.std))
    methods = [method for method in METHODS if any(method in of_row for of_row in runs.values())]
    seeds = sorted({seed for of_row in runs.values() for cell in of_row.values() for seed in cell})
    names = ("final", "mean", "rate_error", "used_rate_error", "log_rate")
    tables = {name: np.full((len(rows), len(methods), len(seeds)), np.nan) for name in names}
    histories = {}
    cells = {(row, method): cell for row in rows for method, cell in runs[row].items()}
    for (row, method), cell in cells.items():
        generations = generations_of(row.function, row.dim)
        for seed, run in cell.items():
            oracle = runs[row].get(LAMR_NAME, {}).get(seed) if FORMULAS[row.function].optimum is not None else None
            here = rows.index(row), methods.index(method), seeds.index(seed)
            tables["final"][here] = run["final"]
            tables["mean"][here] = _mean_elite(run, generations, variant.reading)
            tables["log_rate"][here] = run["mean_log_rate"]
            if oracle is not None:  # Table 3 has no row without a minimum
                tables["used_rate_error"][here] = _used_rate_error(run, oracle)
                tables["rate_error"][here] = _rate_error(run, oracle, generations, variant.reading)
        arrays = stacked(cell, sorted(cell))
        histories[row, method] = Curves(kept_generations(generations), arrays["elite"], arrays["log_rate"])
    return Results(variant, tuple(rows), tuple(methods), tuple(seeds), **tables, seconds=seconds, histories=histories)


def _mean_elite(run: Arrays, generations: int, reading: Reading) -> float:
    """Over generations 1 … T; in print the first population counts too."""
    mean = float(run["mean_elite"])
    return mean if reading is Reading.TEXT else (generations * mean + float(run["first"])) / (generations + 1)


def _rate_error(run: Arrays, oracle: Arrays, generations: int, reading: Reading) -> float:
    """Mean over generations of (log rate − LAMR-100's)².

    In print a method's entry of generation t is what its update left in force, LAMR-100's the rate the generation used;
    entry 0 is what each starts with.
    """
    if reading is Reading.TEXT:
        return _used_rate_error(run, oracle)
    if run is oracle:
        return 0.0
    target = oracle["used"][0]
    start = (float(run["log_rate"][0]) - target[0]) ** 2
    return float((generations * _square_distance(run["left"], target) + start) / (generations + 1))


def _used_rate_error(run: Arrays, oracle: Arrays) -> float:
    return _square_distance(run["used"], oracle["used"][0])


def _square_distance(moments: np.ndarray, target: np.ndarray) -> float:
    """From moments `f[2, stretches]` in stretches of equal length, in each of which the target is constant."""
    first, second = moments
    return float(np.maximum(second - 2 * target * first + target**2, 0).mean())
