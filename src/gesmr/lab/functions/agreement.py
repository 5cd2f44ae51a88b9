"""How far our tables agree with printed ones, cell by cell."""

import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...problems.functions import FORMULAS
from ...studies.lanes import METHODS
from ..errors import LabError
from .results import Row
from .tables import FunctionTable

# The printed asterisks are what about five seeds give, so a printed mean carries the noise of five.
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

    @property
    def counted(self) -> bool:
        """Whether it enters the total. Linear's printed values contradict its definition, and UCB's swing by orders
        of magnitude between neighbouring rows: those are shown, not counted."""
        return FORMULAS[self.row.function].optimum is not None and not self.method.startswith("UCB")


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


def which_table(path: Path) -> str:
    """ "table1" … from a file's name."""
    match = re.search(r"table([123])", path.name)
    if not match:
        raise LabError(f"cannot tell from its name which table {path} is; say --table 1, 2 or 3")
    return f"table{match[1]}"


def agreement(table: FunctionTable, printed: Printed) -> list[Cell]:
    """Every cell that both tables have."""
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
        if (row, method) in printed.cells and np.isfinite(table.mean[i, m])
    ]
