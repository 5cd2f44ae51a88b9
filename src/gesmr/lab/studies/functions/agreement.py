"""How far our tables agree with printed ones, cell by cell."""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import LabError
from ...run.lanes import METHODS
from .results import Row
from .tables import FunctionTable

# The paper's captions say 40, its text five, its asterisks are what five give: a printed mean has the noise of five.
PRINTED_SEEDS = 5


@dataclass(frozen=True)
class Cell:
    """One mean of ours beside the printed one.

    They agree if they differ by at most three standard errors of the difference plus half a printed unit, or by at
    most 5%. Ours has the noise of n seeds and the printed one that of five: 3·√(1 + n/5)·SE, which is 9·SE for 40.
    """

    row: Row
    method: str
    ours: float
    standard_error: float
    seeds: int
    printed: float

    @property
    def allowed(self) -> float:
        noise = 3 * math.sqrt(1 + self.seeds / PRINTED_SEEDS) * self.standard_error if self.seeds > 1 else 0.0
        return max(noise + half_a_printed_unit(self.printed), 0.05 * abs(self.printed))

    @property
    def agrees(self) -> bool:
        return abs(self.ours - self.printed) <= self.allowed


@dataclass(frozen=True)
class Printed:
    cells: dict[tuple[Row, str], float]
    best: dict[Row, str]


def half_a_printed_unit(value: float) -> float:
    """Printed with one decimal below 1e4, with two significant digits from there."""
    return 0.05 if abs(value) < 1e4 else 0.5 * 10 ** (math.floor(math.log10(abs(value))) - 1)


def read_printed(path: Path) -> Printed:
    """A printed table as CSV: function, dim, std, a column per method, and `best`."""
    cells: dict[tuple[Row, str], float] = {}
    best: dict[Row, str] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                row = Row(line["function"], int(line["dim"]), float(line["std"]))
                cells |= {(row, method): float(line[method]) for method in METHODS if line.get(method)}
                best[row] = line.get("best") or ""
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error
    except (KeyError, ValueError, UnicodeDecodeError, TypeError) as error:
        raise LabError(f"{path} must be a CSV file with columns function, dim, std and methods: {error}") from error
    if not cells:
        raise LabError(f"{path} must be a CSV file with columns function, dim, std and methods, got none of these")
    return Printed(cells, best)


def printed_tables(path: Path, table: int | None = None) -> dict[str, Printed]:
    """By name, "table1" …: of a file, which is Table `table` if its name does not say, or all of a directory."""
    if path.is_file() and table is not None:
        return {f"table{table}": read_printed(path)}
    files = sorted(path.glob("*table[123]*.csv")) if path.is_dir() else [path]
    found = {which_table(file): read_printed(file) for file in files}
    if table is not None:
        found = {name: printed for name, printed in found.items() if name == f"table{table}"}
    if not found:
        raise LabError(f"{path} holds no printed table as table{table or 1}.csv")
    return found


def which_table(path: Path) -> str:
    """ "table1" … from a file's name."""
    match = re.search(r"table([123])", path.name)
    if not match:
        raise LabError(f"cannot tell from its name which table {path} is; say --table 1, 2 or 3")
    return f"table{match[1]}"


def agreement(table: FunctionTable, printed: Printed) -> list[Cell]:
    """Every cell that both tables have; without those of Table 3 that compare LAMR-100 with itself."""
    return [
        Cell(
            row,
            method,
            float(table.mean[i, m]),
            float(table.standard_error[i, m]),
            int(np.isfinite(table.values[i, m]).sum()),
            printed.cells[row, method],
        )
        for i, row in enumerate(table.rows)
        for m, method in enumerate(table.methods)
        if (row, method) in printed.cells and np.isfinite(table.mean[i, m]) and not table.compares_with_itself(method)
    ]


def counts(cells: Sequence[Cell]) -> str:
    """`12 of 40`: how many agree, of how many."""
    return f"{sum(cell.agrees for cell in cells)} of {len(cells)}" if cells else "–"
