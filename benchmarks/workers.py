"""What workers gain and cost: processes and Ray actors beside one process, and beside two without any scheduling.

See docs/performance.md. Without --write it is a short run.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # read when jax is imported

import numpy as np
from common import Line, conditions, has_marks, marks, printed, replace_table

import gesmr
from gesmr import _ray
from gesmr.optimize import layout
from gesmr.optimize.called import PlainValues
from gesmr.optimize.options import Objective

TABLE = "workers"
CANDIDATES, DIM = 100, 10
SECONDS = 0.01  # a candidate takes
RAY: dict[str, Any] = {"num_cpus": 4, "object_store_memory": 4 * 2**30}  # a population of 10⁶ variables has 0.8 GB


def sleeping(x: np.ndarray, seconds: float) -> float:
    time.sleep(seconds)
    return 0.0


def computing(x: np.ndarray, rounds: int) -> float:
    total = 0
    for i in range(rounds):
        total += i * i
    return float(total % 7)


def nothing(x: np.ndarray) -> float:
    return 0.0


class Bare:
    """Two processes that evaluate half of the candidates each, without asking anybody."""

    def __init__(self, fun: Callable, argument: float):
        context = multiprocessing.get_context("spawn")
        self._ends, self._processes = [], []
        for _ in range(2):
            ours, theirs = context.Pipe()
            process = context.Process(target=_bare, args=(theirs, fun, argument), daemon=True)
            process.start()
            self._ends.append(ours)
            self._processes.append(process)
        for end in self._ends:
            end.recv()

    def __call__(self, rows: np.ndarray) -> None:
        for end, half in zip(self._ends, np.array_split(rows, 2), strict=True):
            end.send(half)
        for end in self._ends:
            end.recv()

    def close(self) -> None:
        for end, process in zip(self._ends, self._processes, strict=True):
            end.send(None)
            process.join()


def _bare(connection: Connection, fun: Callable, argument: float) -> None:
    connection.send("ready")
    while (rows := connection.recv()) is not None:
        connection.send([fun(row, argument) for row in rows])


def seconds(call: Callable[[np.ndarray], Any], rows: np.ndarray) -> float:
    start = time.perf_counter()
    call(rows)
    return time.perf_counter() - start


def values(workers: Any, fun: Callable, *args: Any, dim: int = DIM) -> PlainValues:
    return PlainValues(Objective(fun, args, workers=workers), layout.of(np.zeros(dim))[0])


def in_turn(calls: dict[str, Callable], rows: np.ndarray, repeats: int) -> dict[str, list[float]]:
    """Times of each, one after the other, `repeats` times, after two that do not count."""
    for call in calls.values():
        for _ in range(2):
            call(rows)
    rounds = [{name: seconds(call, rows) for name, call in calls.items()} for _ in range(repeats)]
    return {name: [times[name] for times in rounds] for name in calls}


def ratio(what: str, ours: list[float], other: list[float], **required: float) -> Line:
    """other / ours, the median of the rounds."""
    median = statistics.median(b / a for a, b in zip(ours, other, strict=True))
    shown = [f"{statistics.median(times) * 1e3:,.0f} ms" for times in (ours, other)]
    return Line(what, *shown, median, **required)  # type: ignore[arg-type]


def starts(rows: np.ndarray, repeats: int) -> Iterator[Line]:
    """How long it takes from nothing to the values of a first generation."""
    for name, make in {"processes": lambda: gesmr.Pool(2), "Ray": lambda: gesmr.Ray(**RAY, actors=2)}.items():
        times = []
        for _ in range(repeats):
            with ExitStack() as stack:
                start = time.perf_counter()
                values(stack.enter_context(make()), nothing)(rows)
                times.append(time.perf_counter() - start)
        median = statistics.median(times)
        yield Line(f"Start of 2 {_label(name)}, in s", f"{median:.1f} s", "", median)


def crews(stack: ExitStack) -> dict[str, Any]:
    """Processes and actors, with ranges of candidates and one by one."""
    stack.enter_context(_ray.connected(**RAY))
    made = {
        "processes": gesmr.Pool(2),
        "Ray": gesmr.Ray(actors=2),
        "processes, one by one": gesmr.Pool(2, chunk=1),
        "Ray, one by one": gesmr.Ray(actors=2, chunk=1),
    }
    return {name: stack.enter_context(crew) for name, crew in made.items()}


def rounds_of(seconds: float) -> int:
    """How many rounds of `computing` take so long, at least."""
    start = time.perf_counter()
    computing(np.zeros(1), 200_000)
    return int(200_000 * seconds / (time.perf_counter() - start))


def measure(repeats: int, dims: list[int]) -> Iterator[Line]:
    rows = np.zeros((CANDIDATES, DIM))
    yield from starts(rows, repeats)
    with ExitStack() as stack:
        made = crews(stack)
        yield from gains(made, rows, repeats)
        yield from shares(made, rows, repeats)
        yield from chunks(made, rows, repeats)
        for dim in dims:
            yield from overheads(made, np.zeros((CANDIDATES, dim)), repeats)


def gains(made: dict[str, Any], rows: np.ndarray, repeats: int) -> Iterator[Line]:
    names = {"processes": 1.7, "Ray": 1.5}
    calls = {name: values(made[name], sleeping, SECONDS) for name in names}
    times = in_turn({"serial": values(None, sleeping, SECONDS), **calls}, rows, repeats)
    for name, required in names.items():
        yield ratio(f"Sleeping 10 ms: serial / 2 {_label(name)}", times[name], times["serial"], at_least=required)


def shares(made: dict[str, Any], rows: np.ndarray, repeats: int) -> Iterator[Line]:
    rounds = rounds_of(SECONDS)
    names = {"processes": 0.85, "Ray": 0.75}
    bare = Bare(computing, rounds)
    calls = {name: values(made[name], computing, rounds) for name in names}
    times = in_turn({"serial": values(None, computing, rounds), "bare": bare, **calls}, rows, repeats)
    bare.close()
    yield ratio("Computing 10 ms: serial / bare, two processes without a schedule", times["bare"], times["serial"])
    for name, required in names.items():
        yield ratio(f"Computing 10 ms: bare / 2 {_label(name)}", times[name], times["bare"], at_least=required)


def chunks(made: dict[str, Any], rows: np.ndarray, repeats: int) -> Iterator[Line]:
    calls = {name: values(crew, sleeping, SECONDS / 10) for name, crew in made.items()}
    times = in_turn({"serial": values(None, sleeping, SECONDS / 10), **calls}, rows, repeats)
    for name in calls:
        yield ratio(f"Sleeping 1 ms: serial / 2 {_label(name)}", times[name], times["serial"])


def overheads(made: dict[str, Any], rows: np.ndarray, repeats: int) -> Iterator[Line]:
    dim = rows.shape[1]
    for name in ("processes", "Ray"):
        times = in_turn({name: values(made[name], nothing, dim=dim)}, rows, repeats)[name]
        overhead = statistics.median(times) * 1e3
        yield Line(f"A generation of 100, d = {dim:,}, 2 {_label(name)}, in ms", f"{overhead:,.1f} ms", "", overhead)


def _label(name: str) -> str:
    return name.replace("Ray", "Ray actors")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="replace the table in this file; the whole measurement")
    args = parser.parse_args()
    if args.write and not has_marks(args.write, TABLE):
        parser.error(f"{args.write} must have the marks {' and '.join(marks(TABLE))}")
    return args


def main() -> int:
    args = arguments()
    repeats, dims = (5, [10, 1000, 100_000, 1_000_000]) if args.write else (3, [10, 10_000])
    columns = ("100 candidates, two cores", "gesmr", "other", "measured", "required", "")
    closing = conditions(("jax", "numpy", "ray"), f"medians of {repeats}, in turn")

    def show(line: Line) -> str:
        cells = str(line).split(" | ")
        return " | ".join(cells[:4] + cells[5:])  # without the median: it is what is measured

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "2 .* are slower than none")  # `nothing` is, of course
        table, all_met = printed(columns, measure(repeats, dims), closing, show)
    if args.write:
        replace_table(args.write, TABLE, table)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
