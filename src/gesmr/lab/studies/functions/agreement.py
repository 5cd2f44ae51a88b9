"""How far our tables agree with printed ones, by method and dimension and cell by cell."""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from ...errors import LabError
from ...run.lanes import METHODS
from ...run.store import Store, write_text
from ...show.output import csv_text, finite, json_text, say
from .results import Results, Row
from .tables import Estimates, estimates, number

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
    if not path.exists():
        raise LabError(f"--against: there is no file or directory {path}")
    files = sorted(path.glob("*table[123]*.csv")) if path.is_dir() else [path]
    found = {which_table(file): read_printed(file) for file in files}
    if table is not None:
        found = {name: printed for name, printed in found.items() if name == f"table{table}"}
    if not found:
        raise LabError(f"--against: {path} holds no printed table as table{table or 1}.csv")
    return found


def which_table(path: Path) -> str:
    """ "table1" … from a file's name."""
    match = re.search(r"table([123])", path.name)
    if not match:
        raise LabError(f"cannot tell from its name which table {path} is; say --table 1, 2 or 3")
    return f"table{match[1]}"


def agreement(table: Estimates, printed: Printed) -> list[Cell]:
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


def say_agreement(
    store: Store, results: Results, against: Path, table: int | None, to: Path, console: Console | None
) -> list[str]:
    """Print how far the tables agree with printed ones, to the console or as JSON, and write every cell as CSV; the
    names of these files."""
    printed = printed_tables(against, table)
    ours = {made.name: made for made in estimates(results, also_used=True)}
    if missing := printed.keys() - ours.keys():
        raise LabError(f"there are no runs for {', '.join(sorted(missing))}")
    written, plain = [], []
    for name, made in ours.items():
        if (of := name.partition("_")[0]) in printed:
            cells = agreement(made, printed[of])
            if not cells:
                raise LabError(f"{against} has no row and method in common with the runs in {store.directory}")
            if console is not None:
                _say_agreement(made, cells, printed[of], console)
            plain.append({"table": name, "title": made.title, "cells": [_plain(cell) for cell in cells]})
            written.append(f"agreement_{name}.csv")
            write_text(to / written[-1], _agreement_csv(cells))
    if console is None:
        print(json_text(plain), end="")
    return written


def _plain(cell: Cell) -> dict[str, Any]:
    """For JSON; a standard error needs two seeds."""
    numbers = {"ours": cell.ours, "standard_error": finite(cell.standard_error), "seeds": cell.seeds}
    verdict = {"printed": cell.printed, "allowed": cell.allowed, "agrees": cell.agrees}
    return {**cell.row._asdict(), "method": cell.method, **numbers, **verdict}


def _say_agreement(table: Estimates, cells: list[Cell], printed: Printed, console: Console) -> None:
    """By method and dimension, cell by cell where they differ, and in all."""
    console.print(_agreement_table(table, cells))
    for cell in cells:
        if not cell.agrees:
            say(console, f"differs: {cell.row.label}, {cell.method}: ours {number(cell.ours)} "
                 f"± {cell.standard_error:.2g}, printed {number(cell.printed)}")  # fmt: skip
    same = sum(printed.best.get(row) == best for row, best in zip(table.rows, table.best, strict=True))
    left_out = [method for method in table.methods if table.compares_with_itself(method)]
    said = f" ({', '.join(left_out)} compared with itself is not counted)" if left_out else ""
    console.print(
        f"{table.title}: [bold]{counts(cells)}[/bold] cells agree with the printed ones{said}; "
        f"the best method is the printed one in {same} of {len(table.rows)} rows.",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _agreement_table(table: Estimates, cells: list[Cell]) -> Table:
    text = Table(title=f"{table.title}: cells that agree", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    text.add_column("Method")
    dims = sorted({cell.row.dim for cell in cells})
    for heading in (*(f"d = {dim}" for dim in dims), "all"):
        text.add_column(heading, justify="right")
    for method in (*table.methods, "all"):
        mine = [cell for cell in cells if method in (cell.method, "all")]
        if mine:
            text.add_row(method, *(counts([c for c in mine if c.row.dim == dim]) for dim in dims), counts(mine))
    return text


def _agreement_csv(cells: list[Cell]) -> str:
    header = ["function", "dim", "std", "method", "ours", "se", "seeds", "printed", "allowed", "agrees"]
    rows = []
    for c in cells:
        numbers = [f"{x:.6g}" for x in (c.ours, c.standard_error)]
        verdict = [f"{c.printed:g}", f"{c.allowed:.4g}", int(c.agrees)]
        rows.append([*c.row[:2], f"{c.row.std:g}", c.method, *numbers, c.seeds, *verdict])
    return csv_text(header, rows)
