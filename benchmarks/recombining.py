"""What a generation costs with recombination, beside one without: Rastrigin, 100 children, compiled.

By `evolve`, and by `minimize`, whose default recombines.

python benchmarks/recombining.py
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from coco_page import table
from common import conditions

import gesmr
from gesmr.problems import functions

DIMS, CHILDREN, REPEATS = (100, 1_000, 10_000, 100_000), 100, 7
METHODS = {
    "GESMR": gesmr.controller("GESMR"),
    "GESMR-X": gesmr.controller("GESMR-X"),
    "all recombine": gesmr.GESMR(10, recombine=1.0),
    "of two parents": gesmr.GESMR(10, recombine=0.4, mates=2),
}


Run = Callable[[], object]


def run_of(controller: gesmr.Controller, dim: int, generations: int) -> Run:
    problem = functions.get("rastrigin", dim)
    ga, population = gesmr.GA(controller, CHILDREN), problem.init(0, CHILDREN + 1)
    state = ga.init(1, population, problem(population))
    return lambda: jax.block_until_ready(gesmr.evolve(ga, problem, state, generations))


def minimizing(controller: str | None, dim: int, generations: int) -> Run:
    problem, x0 = functions.get("rastrigin", dim), np.ones(dim, np.float32)
    alike = partial(gesmr.minimize, problem, x0, vectorized=True, popsize=CHILDREN + 1, rng=0)
    return lambda: alike(controller=controller, maxiter=generations, chunk=generations)


def of_evolve(dim: int, generations: int) -> dict[str, Run]:
    return {name: run_of(controller, dim, generations) for name, controller in METHODS.items()}


def of_minimize(dim: int, generations: int) -> dict[str, Run]:
    return {"GESMR": minimizing("GESMR", dim, generations), "its default": minimizing(None, dim, generations)}


def microseconds(dim: int, make: Callable[[int, int], dict[str, Run]]) -> dict[str, tuple[float, float]]:
    """Wall clock and processor time of a generation, the best of several turns."""
    generations = max(20, 1_000_000 // dim)
    runs = make(dim, generations)
    clocks: dict[str, list[float]] = {name: [] for name in runs}
    processors: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(1 + REPEATS):  # the first turn compiles
        for name, run in runs.items():
            clock, processor = time.perf_counter(), time.process_time()
            run()
            clocks[name].append(1e6 * (time.perf_counter() - clock) / generations)
            processors[name].append(1e6 * (time.process_time() - processor) / generations)
    return {name: (min(clocks[name]), min(processors[name])) for name in runs}


def shown(make: Callable[[int, int], dict[str, Run]]) -> str:
    rows, others = [], [name for name in make(DIMS[0], 1) if name != "GESMR"]
    for dim in DIMS:
        found = microseconds(dim, make)
        clock, processor = found["GESMR"]
        cells = [f"{found[name][0] / clock:.2f} ({found[name][1] / processor:.2f})" for name in others]
        rows.append([f"{dim:,}", f"{clock:,.0f}", *cells])
    return "\n".join(table(["d", "GESMR, µs", *(f"{name}, times" for name in others)], rows))


def main() -> int:
    print("By evolve:", shown(of_evolve), "By minimize:", shown(of_minimize), sep="\n\n")
    print("", "In brackets: of processor time.", conditions(("jax",), f"best of {REPEATS}"), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
