"""COCO's `bbob` suite: gesmr beside pycma, scipy's differential evolution, evosax and random search.

    python benchmarks/coco.py --dims 2 3 --budget 100 --out /tmp/coco     # a try
    python benchmarks/coco.py --write docs/benchmarks.md                  # all of it, and the page

Every optimiser, function and dimension has a small file under --out with the improvements of every instance. What is
there is not computed again: killed and started again it goes on. `coco_page.py` makes tables and figure of it.
"""

import argparse
import datetime
import json
import os
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # these are read when jax and numpy are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cocoex
import numpy as np
from coco_optimizers import HIGH, LOW, OPTIMIZERS, VARIANTS, Spent
from common import has_marks, marks

from gesmr import _provenance
from gesmr._files import write_atomically

PRECISION = 1e-8  # COCO's last target: what is as near to the optimum is solved
DIMS = (20, 2, 3, 5, 10, 40)
FUNCTIONS = range(1, 25)
VARIANT_DIMS = (20, 5)  # where other settings of gesmr run too


class Task(NamedTuple):
    optimizer: str
    function: int
    dim: int
    instances: tuple[int, ...]
    budget: int  # evaluations per variable

    def path(self, out: Path) -> Path:
        return out / self.optimizer.replace(", ", "-").replace(" ", "-") / f"f{self.function:02}_d{self.dim:02}.json"


class Recorder:
    """A problem that counts, notes improvements, and accepts none from outside the box or beyond the budget."""

    def __init__(self, problem: cocoex.Problem, optimum: float, budget: int):
        self.problem, self.optimum, self.budget = problem, optimum, budget
        self.evaluations, self.gap = 0, float("inf")
        self.points: list[tuple[int, float]] = []  # (evaluations, best − optimum)

    def __call__(self, x: np.ndarray) -> float:
        if self.evaluations >= self.budget or self.gap <= PRECISION:
            raise Spent
        value = self.problem(x)
        self.evaluations += 1
        gap = value - self.optimum
        if gap < self.gap:
            if x.min() < LOW or x.max() > HIGH:  # looked at where it would matter: it takes as long as a cheap problem
                raise ValueError(f"outside [{LOW}, {HIGH}]: {x}")
            self.gap = gap
            self.points.append((self.evaluations, gap))
        return value


def recorder(function: int, dim: int, instance: int, budget: int) -> Recorder:
    """The problem of COCO's suite, and its optimum as COCO itself gives it (`BareProblem.best_value`)."""
    suite = cocoex.Suite("bbob", f"instances: {instance}", f"dimensions: {dim} function_indices: {function}")
    problem = suite.get_problem_by_function_dimension_instance(function, dim, instance)
    return Recorder(problem, cocoex.BareProblem("bbob", function, dim, instance).best_value(), budget)


def run(task: Task) -> list[dict]:
    """A record of each instance."""
    optimizer, records = (OPTIMIZERS | VARIANTS)[task.optimizer], []
    for instance in task.instances:
        objective = recorder(task.function, task.dim, instance, task.budget * task.dim)
        name = zlib.crc32(task.optimizer.encode())
        seed = int(np.random.SeedSequence([name, task.function, task.dim, instance]).generate_state(1)[0])
        start = time.process_time()
        with suppress(Spent):
            optimizer(objective, task.dim, objective.budget, seed)
        seconds = time.process_time() - start
        assert objective.evaluations == objective.problem.evaluations
        record = {"instance": instance, "seed": seed, "evaluations": objective.evaluations, "seconds": seconds}
        records.append({**record, "points": objective.points})
        objective.problem.free()
    return records


def run_and_write(task: Task, out: Path) -> float:
    """CPU seconds of the task."""
    warnings.filterwarnings("ignore", module="cma")
    start = time.process_time()
    whole = {**task._asdict(), "runs": run(task)}
    path = task.path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(whole).encode())
    return time.process_time() - start


def take_note(out: Path) -> None:
    """With what the results are made, and where."""
    versions = {name: version(name) for name in ("coco-experiment", "cma", "scipy", "evosax")}
    made = {**_provenance.machine(), **versions, "date": f"{datetime.date.today()}"}
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "made.json", json.dumps(made, indent=1).encode() + b"\n")


def missing(tasks: list[Task], out: Path) -> list[Task]:
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


def run_all(tasks: list[Task], out: Path, jobs: int) -> Iterator[tuple[Task, float]]:
    if jobs == 1:
        for task in tasks:
            yield task, run_and_write(task, out)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = [pool.submit(run_and_write, task, out) for task in tasks]
        for task, future in zip(tasks, futures, strict=True):
            yield task, future.result()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*OPTIMIZERS, *VARIANTS]
    parser.add_argument("--optimizers", nargs="+", default=names, choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--dims", nargs="+", type=int, default=DIMS, choices=sorted(DIMS), metavar="D", help="in this order"
    )
    parser.add_argument(
        "--functions", nargs="+", type=int, default=FUNCTIONS, choices=FUNCTIONS, metavar="F", help="1 to 24"
    )
    parser.add_argument("--instances", nargs="+", type=int, default=(1, 2, 3, 4, 5), metavar="I")
    parser.add_argument("--budget", type=int, default=1000, help="evaluations per variable (1000)")
    parser.add_argument("--out", type=Path, default=Path("runs/coco"), help="where results are kept (runs/coco)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="then results/coco and the tables in it")
    args = parser.parse_args()
    if args.jobs < 1 or args.budget < 1 or min(args.instances) < 1:
        parser.error("--jobs, --budget and --instances must be at least 1")
    if args.write and not has_marks(args.write, "coco"):
        parser.error(f"--write needs a file with {' and '.join(marks('coco'))}, got {args.write}")
    return args


def main() -> int:
    args = arguments()
    tasks = [
        Task(name, function, dim, tuple(args.instances), args.budget)
        for dim in args.dims for name in args.optimizers for function in args.functions
        if name in OPTIMIZERS or dim in VARIANT_DIMS
    ]  # fmt: skip
    todo = missing(tasks, args.out)
    print(f"{len(tasks)} tasks, {len(tasks) - len(todo)} of them done", flush=True)
    if todo:
        take_note(args.out)
    start = time.monotonic()
    for done, (task, seconds) in enumerate(run_all(todo, args.out, args.jobs), 1):
        minutes = (time.monotonic() - start) / 60
        what = f"{task.optimizer}, f{task.function}, {task.dim}-D: {seconds:.1f} s"
        print(f"[{done}/{len(todo)}, {minutes:.1f} min] {what}", flush=True)
    if args.write:
        import coco_page  # noqa: PLC0415

        coco_page.summarise(args.out, tasks)
        return coco_page.write(args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
