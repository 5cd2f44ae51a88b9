"""What a benchmark on COCO computes, piece by piece: a task is an optimiser on all instances of a problem.

Every task has a small file under the directory of the results. What is there is not computed again: killed and started
again it goes on.
"""

import argparse
import datetime
import json
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import has_marks, marks

from gesmr import _provenance
from gesmr._files import write_atomically

PRECISION = 1e-8  # COCO's last target: what is as near to the optimum is solved
MADE = "made.json"


class Task(NamedTuple):
    optimizer: str
    function: int
    dim: int
    instances: tuple[int, ...]
    budget: int  # evaluations per variable

    def path(self, out: Path) -> Path:
        return out / self.optimizer.replace(", ", "-").replace(" ", "-") / f"f{self.function:02}_d{self.dim:02}.json"

    def seed(self, instance: int) -> int:
        name = zlib.crc32(self.optimizer.encode())
        return int(np.random.SeedSequence([name, self.function, self.dim, instance]).generate_state(1)[0])


Runner = Callable[[Task], list[dict]]  # a record of each instance


def _run_and_write(task: Task, out: Path, run: Runner) -> float:
    """CPU seconds of the task."""
    start = time.process_time()
    whole = {**task._asdict(), "runs": run(task)}
    path = task.path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(whole).encode())
    return time.process_time() - start


def _take_note(out: Path, packages: Sequence[str]) -> None:
    """With what the results are made, and where."""
    versions = {name: version(name) for name in packages}
    made = {**_provenance.machine(), **versions, "date": f"{datetime.date.today()}"}
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / MADE, json.dumps(made, indent=1).encode() + b"\n")


def _missing(tasks: Sequence[Task], out: Path) -> list[Task]:
    """Those that are not there yet. A file of another budget or other instances is an error."""
    todo = []
    for task in tasks:
        if not task.path(out).exists():
            todo.append(task)
            continue
        found = json.loads(task.path(out).read_text())
        if (found["budget"], tuple(found["instances"])) != (task.budget, task.instances):
            raise SystemExit(f"{task.path(out)} has another budget or other instances: choose another --out")
    return todo


def _run_all(tasks: Sequence[Task], out: Path, jobs: int, run: Runner) -> Iterator[tuple[Task, float]]:
    if jobs == 1:
        for task in tasks:
            yield task, _run_and_write(task, out, run)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = [pool.submit(_run_and_write, task, out, run) for task in tasks]
        for task, future in zip(tasks, futures, strict=True):
            yield task, future.result()


def compute(tasks: Sequence[Task], run: Runner, out: Path, jobs: int, packages: Sequence[str]) -> None:
    """All tasks that are missing under `out`, and a note of the packages they were made with."""
    todo = _missing(tasks, out)
    print(f"{len(tasks)} tasks, {len(tasks) - len(todo)} of them done", flush=True)
    if todo:
        _take_note(out, packages)
    start = time.monotonic()
    for done, (task, seconds) in enumerate(_run_all(todo, out, jobs, run), 1):
        minutes = (time.monotonic() - start) / 60
        what = f"{task.optimizer}, f{task.function}, {task.dim}-D: {seconds:.1f} s"
        print(f"[{done}/{len(todo)}, {minutes:.1f} min] {what}", flush=True)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """--out, --jobs and --write, of results called `name`."""
    out = Path("runs") / name
    parser.add_argument("--out", type=Path, default=out, help=f"where results are kept ({out})")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"then results/{name} and the tables in it")


def check_arguments(parser: argparse.ArgumentParser, args: argparse.Namespace, name: str) -> None:
    if args.jobs < 1:
        parser.error("--jobs must be at least 1")
    if args.write and not has_marks(args.write, name):
        parser.error(f"--write needs a file with {' and '.join(marks(name))}, got {args.write}")
