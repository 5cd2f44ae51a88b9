"""Time and memory of a generation with many variables and many children, and how they grow. See docs/performance.md.

python benchmarks/large.py --write docs/performance.md                          # on the CPU
JAX_PLATFORMS=cuda python benchmarks/large.py --write docs/performance.md       # on a GPU: another table
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # read when jax is imported

import jax
import numpy as np
from common import Line, conditions, has_marks, marks, on_gpu, printed, replace_table

import gesmr
from gesmr import _compilation
from gesmr.problems.functions import get

POPULATIONS = 2.1  # at most, of memory
BATCH = 16  # children at a time, so that what evaluates them needs little
REPEATS = 3
LAUNCHES = 10  # times the time of the smallest: from there on time is not that of launching programs


class Sizes:
    """Numbers of children N and of variables d."""

    def __init__(self, quick: bool):
        tens = [10**n for n in range(2, 8)]
        self.genes_per_call = 3e10 if on_gpu() else 1e9
        dim, most = (10_000, 1.5e10) if on_gpu() else (1_000, 1e9)
        if quick:
            dim, most = 100, 1e6
        self.over_dims = [(100, d) for d in tens if 100 * d <= most]
        self.over_children = [(n, dim) for n in tens[:4] if n * dim <= most]
        self.largest = [(n, d) for n, d in ((1_000, 10**7), (10**5, 10**5)) if n * d <= most]


def measured(children: int, dim: int, genes_per_call: float) -> tuple[float, float]:
    """Seconds of a generation, and the memory of its loop in populations."""
    objective, ga = get("sphere", dim), gesmr.GA(gesmr.GESMR(10), children)
    generations = int(np.clip(genes_per_call / (children * dim), 4, 1000))

    def start(key: jax.Array) -> gesmr.State:
        population = objective.init(key, children + 1)
        return ga.init(key, population, objective(population))

    def run(state: gesmr.State) -> Any:
        return gesmr.evolve(ga, objective, state, generations, donate=True, batch_size=min(BATCH, children))

    state = jax.jit(start)(jax.random.key(0))
    compiled = jax.jit(run, donate_argnums=0).lower(state).compile(_compilation.OPTIONS)
    held: Any = compiled.memory_analysis()
    memory = (
        held.argument_size_in_bytes + held.output_size_in_bytes + held.temp_size_in_bytes - held.alias_size_in_bytes
    )
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        state, _ = jax.block_until_ready(compiled(state))
        times.append((time.perf_counter() - began) / generations)
    return min(times), memory / (4 * (children + 1) * dim)


def measure(sizes: Sizes) -> Iterator[Line]:
    for sweep, name in ((sizes.over_dims, "d"), (sizes.over_children, "N"), (sizes.largest, "")):
        found = []
        for children, dim in sweep:
            what = f"N = {children:,}, d = {dim:,}"
            try:
                spent, memory = measured(children, dim, sizes.genes_per_call)
            except jax.errors.JaxRuntimeError as error:
                if "RESOURCE_EXHAUSTED" not in str(error):
                    raise
                yield Line(what, "does not fit", "", np.nan, at_most=POPULATIONS)
                continue
            found.append((children * dim, spent))
            rate = f"{children * dim / spent / 1e9:,.3g} G/s"
            # Small populations need little beside what stands beside them, and few children are one batch.
            most = POPULATIONS if children * dim >= 1e6 and children > 10 * BATCH else np.inf
            yield Line(what, f"{1e3 * spent:,.4g} ms", rate, memory, at_most=most)
        large = np.log([(size, spent) for size, spent in found if spent > LAUNCHES * found[0][1]])
        if name and len(large) > 1:
            slope = np.polyfit(large[:, 0], large[:, 1], 1)[0]
            yield Line(f"log-log slope of the time over {name}", "", "", slope, at_least=0.9, at_most=1.1)


def table() -> str:
    return "large, GPU" if on_gpu() else "large"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run, with few genes")
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the table in it")
    args = parser.parse_args()
    if args.write and (args.quick or not has_marks(args.write, table())):
        parser.error(f"--write needs a full run and a file with {' and '.join(marks(table()))}, got {args.write}")
    return args


def main() -> int:
    args = arguments()
    columns = ("", "a generation", "genes", "measured", "", "required", "")
    closing = conditions(("jax", "jaxlib"), f"the best of {REPEATS} calls")
    made, all_met = printed(columns, measure(Sizes(args.quick)), closing)
    if args.write:
        replace_table(args.write, table(), made)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
