"""The overview of ranks again, from the tables that a folder of results holds: nothing is run.

python scripts/ranks_figure.py results/paper results/shifted
"""

import csv
import sys
from pathlib import Path

import numpy as np

from gesmr.lab.run.lanes import METHODS
from gesmr.lab.show.figures import save_small
from gesmr.lab.studies.functions.figures import overview
from gesmr.lab.studies.functions.results import PRINTED, Results, Row

TABLES = ("table1.csv", "table2.csv", "table3.csv")
Table = dict[Row, dict[str, float]]


def read(path: Path) -> Table:
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            Row(line["function"], int(line["dim"]), float(line["std"])): {name: float(line[name]) for name in METHODS}
            for line in csv.DictReader(lines)
        }


def results(folder: Path) -> Results:
    """What the tables say, as means of a single seed."""
    tables = [read(folder / name) for name in TABLES]
    rows = tuple(tables[0])
    final, mean, error = (
        np.array([[[table.get(row, {}).get(name, np.nan)] for name in METHODS] for row in rows]) for table in tables
    )
    return Results(PRINTED, rows, METHODS, (0,), final, mean, error, error, error, {}, {})


def main() -> int:
    for folder in map(Path, sys.argv[1:]):
        save_small(overview(results(folder)), folder / "overview.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
