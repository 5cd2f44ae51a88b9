"""The stored runs of the function study as arrays: row × method × seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...problems.functions import FORMULAS
from ...studies.functions import REVISION, generations_of, kept_generations
from ...studies.lanes import METHODS, ORACLES
from ..errors import LabError
from ..store import Store

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


class Curves(NamedTuple):
    generation: np.ndarray  # i[P]
    elite: np.ndarray  # f[S, P]
    log_rate: np.ndarray  # f[S, P]  natural logarithm of the mean rate


@dataclass(frozen=True)
class Results:
    """NaN where there is no run."""

    rows: tuple[Row, ...]  # in the paper's order
    methods: tuple[str, ...]  # likewise, the oracles first
    seeds: tuple[int, ...]
    final: np.ndarray  # f[R, M, S]  Table 1
    mean: np.ndarray  # f[R, M, S]  Table 2: elite value averaged over generations
    rate_error: np.ndarray  # f[R, M, S]  Table 3: mean square distance of the log rate from LAMR-100's
    log_rate: np.ndarray  # f[R, M, S]  averaged over generations
    seconds: dict[int, np.ndarray]  # per dimension f[repeats, 2]: of a generation, fixed rate and GESMR
    provenance: tuple[dict[str, Any], ...]  # of every stored group
    histories: dict[tuple[Row, str], Curves]

    @property
    def ranked(self) -> tuple[str, ...]:
        """The methods that compete: all but the oracles."""
        return tuple(method for method in self.methods if method not in ORACLES)

    def values(self, table: np.ndarray, row: Row, method: str) -> np.ndarray:
        """One of the arrays above for a row and a method, `f[S]`."""
        return table[self.rows.index(row), self.methods.index(method)]

    def select(self, functions: Sequence[str]) -> list[int]:
        """Indices of the rows of these functions."""
        return [i for i, row in enumerate(self.rows) if row.function in functions]

    def curves(self, row: Row, method: str) -> Curves:
        return self.histories[row, method]


def load(store: Store, *, shifted: bool = False) -> Results:
    """All runs in the store with the optimum where the paper has it, or moved."""
    runs: dict[tuple[Row, str], dict[int, dict[str, np.ndarray]]] = {}
    seconds: dict[int, np.ndarray] = {}
    provenance = []
    for group in store.groups():
        provenance.append(group.provenance)
        for i, spec in enumerate(group.specs):
            arrays = {name: array[i] for name, array in group.arrays.items()}
            if spec["revision"] != REVISION:
                continue
            if spec["kind"] == "cost":
                seconds[spec["dim"]] = arrays["seconds"]
            elif spec["kind"] == "run" and spec["shifted"] == shifted:
                cell = Row(spec["function"], spec["dim"], spec["std"]), spec["method"]
                runs.setdefault(cell, {})[spec["seed"]] = arrays
    if not runs:
        which = "shifted" if shifted else "centred"
        raise LabError(f"{store.directory} holds no {which} runs; `gesmr study run functions` makes some")
    return _assemble(runs, seconds, tuple(provenance))


def _assemble(
    runs: dict[tuple[Row, str], dict[int, dict[str, np.ndarray]]],
    seconds: dict[int, np.ndarray],
    provenance: tuple[dict[str, Any], ...],
) -> Results:
    order = list(FORMULAS)
    rows = sorted({row for row, _ in runs}, key=lambda row: (order.index(row.function), row.dim, row.std))
    methods = [method for method in METHODS if any(method == m for _, m in runs)]
    seeds = sorted({seed for cell in runs.values() for seed in cell})
    tables = {name: np.full((len(rows), len(methods), len(seeds)), np.nan) for name in _SCALARS}
    histories = {}
    for (row, method), cell in runs.items():
        place = rows.index(row), methods.index(method)
        for seed, arrays in cell.items():
            oracle = runs.get((row, "LAMR-100"), {}).get(seed)
            for name, scalar in _SCALARS.items():
                tables[name][*place, seeds.index(seed)] = scalar(arrays, oracle)
        stacked = {name: np.stack([cell[seed][name] for seed in sorted(cell)]) for name in ("elite", "log_rate")}
        generations = kept_generations(generations_of(row.function, row.dim))
        histories[row, method] = Curves(generations, stacked["elite"], stacked["log_rate"])
    without_optimum = [i for i, row in enumerate(rows) if FORMULAS[row.function].optimum is None]
    tables["rate_error"][without_optimum] = np.nan  # Table 3 has no such rows
    return Results(
        rows=tuple(rows),
        methods=tuple(methods),
        seeds=tuple(seeds),
        final=tables["final"],
        mean=tables["mean"],
        rate_error=tables["rate_error"],
        log_rate=tables["log_rate"],
        seconds=seconds,
        provenance=provenance,
        histories=histories,
    )


def _rate_error(arrays: dict[str, np.ndarray], oracle: dict[str, np.ndarray] | None) -> float:
    """Mean over generations of (log rate − LAMR-100's)², from moments in the stretches where the latter is constant."""
    if oracle is None:
        return np.nan
    first, second = arrays["window_log_rate"], arrays["window_log_rate_squared"]
    target = oracle["window_log_rate"]
    return float(np.maximum(second - 2 * target * first + target**2, 0).mean())


_SCALARS = {
    "final": lambda arrays, oracle: arrays["final"],
    "mean": lambda arrays, oracle: arrays["mean_elite"],
    "rate_error": _rate_error,
    "log_rate": lambda arrays, oracle: arrays["mean_log_rate"],
}
