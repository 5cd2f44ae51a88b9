"""What a generation costs with recombination, beside one without: Rastrigin, 100 children, compiled.

python benchmarks/recombining.py
"""

import sys
import time
from collections.abc import Callable

import jax
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


def run_of(controller: gesmr.Controller, dim: int, generations: int) -> Callable[[], object]:
    problem = functions.get("rastrigin", dim)
    ga, population = gesmr.GA(controller, CHILDREN), problem.init(0, CHILDREN + 1)
    state = ga.init(1, population, problem(population))
    return lambda: jax.block_until_ready(gesmr.evolve(ga, problem, state, generations))


def microseconds(dim: int) -> dict[str, tuple[float, float]]:
    """Wall clock and processor time of a generation, the best of several turns."""
    generations = max(20, 1_000_000 // dim)
    runs = {name: run_of(controller, dim, generations) for name, controller in METHODS.items()}
    clocks: dict[str, list[float]] = {name: [] for name in runs}
    processors: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(1 + REPEATS):  # the first turn compiles
        for name, run in runs.items():
            clock, processor = time.perf_counter(), time.process_time()
            run()
            clocks[name].append(1e6 * (time.perf_counter() - clock) / generations)
            processors[name].append(1e6 * (time.process_time() - processor) / generations)
    return {name: (min(clocks[name]), min(processors[name])) for name in runs}


def main() -> int:
    rows = []
    for dim in DIMS:
        found = microseconds(dim)
        clock, processor = found["GESMR"]
        cells = [f"{a / clock:.2f} ({b / processor:.2f})" for a, b in found.values()]
        rows.append([f"{dim:,}", f"{clock:,.0f}", *cells[1:]])
    print("\n".join(table(["d", "GESMR, µs", *(f"{name}, times" for name in METHODS if name != "GESMR")], rows)))
    print("", "In brackets: of processor time.", conditions(("jax",), f"best of {REPEATS}"), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
