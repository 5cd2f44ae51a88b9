"""The overviews of ranks, and of `beyond`, again, from the tables that a folder of results holds: nothing is run.

python scripts/ranks_figure.py results/paper results/shifted results/beyond
"""

import csv
import sys
from pathlib import Path

import numpy as np

from gesmr.lab.run.lanes import METHODS
from gesmr.lab.show.figures import save_small
from gesmr.lab.studies.beyond import figures as of_beyond
from gesmr.lab.studies.beyond import results as beyond
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


def beyond_results(path: Path) -> beyond.Results:
    """What the table of medians says, as runs of a single seed."""
    rows: dict[beyond.Row, dict[str, beyond.Runs]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            row = beyond.Row(line["function"], int(line["dim"]), float(line["std"]), line["turned"] == "1")
            median = np.array([float(line["median"])])
            rows.setdefault(row, {})[line["method"]] = beyond.Runs(row.function, (0,), median, median[:, None])
    return beyond.Results(rows, {})


def redraw(folder: Path) -> None:
    if not (medians := folder / "beyond_final.csv").exists():
        return save_small(overview(results(folder)), folder / "overview.png")
    found = beyond_results(medians)
    for name, rows in of_beyond.overviews(found).items():
        save_small(of_beyond.overview(found, rows), folder / f"{name}.png")


def main() -> int:
    for folder in map(Path, sys.argv[1:]):
        redraw(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
