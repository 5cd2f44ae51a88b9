"""What a benchmark on COCO found, as it is committed: results/NAME/summary.csv.gz, a line for each run and budget."""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from coco_tasks import MADE, Task

SUMMARY = "summary.csv.gz"


class Run(NamedTuple):
    optimizer: str
    function: int
    dim: int
    instance: int
    budget: int  # evaluations per variable
    gap: float  # best value − optimum within it


def directory(name: str) -> Path:
    return Path(__file__).parents[1] / "results" / name


def summarise(name: str, out: Path, tasks: Iterable[Task], budgets: Sequence[int]) -> None:
    """results/NAME from the records of the tasks, which have a gap for each of the budgets within their own."""
    directory(name).mkdir(parents=True, exist_ok=True)
    with (
        gzip.GzipFile(directory(name) / SUMMARY, "wb", mtime=0) as packed,  # the same bytes for the same runs
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Run._fields)
        for task in tasks:
            passed = [budget for budget in budgets if budget <= task.budget]
            for run in json.loads(task.path(out).read_text())["runs"]:
                for budget, gap in zip(passed, run["gaps"], strict=True):
                    found = f"{max(gap, 0):.4g}"
                    writer.writerow((task.optimizer, task.function, task.dim, run["instance"], budget, found))
    (directory(name) / MADE).write_text((out / MADE).read_text("utf-8"), "utf-8")


def read(name: str) -> list[Run]:
    with gzip.open(directory(name) / SUMMARY, "rt", encoding="utf-8", newline="") as file:
        return [
            Run(row["optimizer"], int(row["function"]), int(row["dim"]), int(row["instance"]), int(row["budget"]),
                float(row["gap"]))
            for row in csv.DictReader(file)
        ]  # fmt: skip


def software(name: str) -> str:
    """With what it was made, and where."""
    made = json.loads((directory(name) / MADE).read_text(encoding="utf-8"))
    packages = ("gesmr", "coco-experiment", "cma", "scipy", "evosax", "jax", "numpy")
    versions = ", ".join(f"{package} {made[package]}" for package in packages if package in made)
    return f"{versions}, Python {made['python']}; {made['device']}; {made['date']}."
