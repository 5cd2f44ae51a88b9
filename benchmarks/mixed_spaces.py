"""What a generation costs in a mixed space beside one of as many variables with bounds.

python benchmarks/mixed_spaces.py --write docs/performance.md     # a minute
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # read when jax is imported

import jax.numpy as jnp
import numpy as np
from common import Line, conditions, has_marks, interleaved, marks, printed, replace_table

import gesmr

TABLE, MOST = "mixed spaces", 1.3
MEMBERS, GENERATIONS, COMPILED = 101, 30, 2000
NAMED = {
    "lr": gesmr.Float(1e-5, 1, log=True), "decay": gesmr.Float(1e-7, 0.1, log=True), "momentum": gesmr.Float(0, 0.99),
    "dropout": gesmr.Float(0, 0.7), "layers": gesmr.Int(1, 8), "width": gesmr.Int(16, 1024, log=True),
    "act": gesmr.Choice(0, 1, 2), "norm": gesmr.Choice(0, 1),
}  # fmt: skip
ARRAYS = {
    "w": gesmr.Float(-1, 1, shape=(40,)), "rates": gesmr.Float(1e-5, 1, log=True, shape=(20,)),
    "sizes": gesmr.Int(1, 64, shape=(20,)), "kinds": gesmr.Choice(*range(5), shape=(20,)),
}  # fmt: skip


def asked_and_told(start: Any, **options: Any) -> Callable[[], float]:
    """Seconds per generation beside the evaluations, over a stretch of a run."""
    optimizer, rng = gesmr.Optimizer(start, popsize=MEMBERS, rng=0, **options), np.random.default_rng(0)

    def generation() -> float:
        begun = time.perf_counter()
        xs = optimizer.ask()
        asked = time.perf_counter()
        values = rng.uniform(size=len(xs))
        evaluated = time.perf_counter()
        optimizer.tell(xs, values)
        return asked - begun + time.perf_counter() - evaluated

    for _ in range(5):
        generation()  # compiles
    return lambda: sum(generation() for _ in range(GENERATIONS)) / GENERATIONS


def compiled(fun: Callable, start: Any, **options: Any) -> Callable[[], float]:
    """Seconds per generation of a whole compiled run."""

    def run() -> float:
        begun = time.perf_counter()
        gesmr.minimize(fun, start, popsize=MEMBERS, maxiter=COMPILED, rng=0, jit=True, **options)
        return (time.perf_counter() - begun) / COMPILED

    run()  # compiles
    return run


def of_vector(x: Any) -> Any:
    return jnp.sum(x**2)


def of_parts(x: Any, sizes: tuple[int, ...]) -> Any:
    """The same sums as `of_solution`, so that the functions cost the same."""
    ends = np.cumsum(sizes)
    return sum(jnp.sum(x[end - size : end] ** 2) for end, size in zip(ends, sizes, strict=True))


def of_solution(solution: dict[str, Any]) -> Any:
    return sum(jnp.sum(jnp.asarray(value, float) ** 2) for value in solution.values())


def line(what: str, mixed: Callable[[], float], bounded: Callable[[], float], repeats: int) -> Line:
    first, second, median = interleaved(mixed, bounded, repeats)
    return Line(what, f"{1e6 * first:.0f} µs", f"{1e6 * second:.0f} µs", first / second, median, at_most=MOST)


def measure(repeats: int) -> Iterator[Line]:
    for name, variables in {"named": NAMED, "arrays": ARRAYS}.items():
        space = gesmr.Space(variables)
        x0, bounds = np.zeros(space.dim), {"bounds": (-5, 5)}
        whole = np.arange(space.dim) % 2 == 0
        described = f"{space.dim} variables, {name}"
        plain = asked_and_told(x0, **bounds)
        yield line(f"Ask and tell, {described}", asked_and_told(space), plain, repeats)
        yield line(
            f"Ask and tell, {space.dim}, half integral", asked_and_told(x0, integrality=whole, **bounds), plain, repeats
        )
        parts = compiled(partial(of_parts, sizes=tuple(one.size for one in space.variables)), x0, **bounds)
        yield line(f"Compiled, {described}", compiled(of_solution, space), parts, repeats)
        plain = compiled(of_vector, x0, **bounds)
        yield line(
            f"Compiled, {space.dim}, half integral",
            compiled(of_vector, x0, integrality=whole, **bounds),
            plain,
            repeats,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="timed stretches of each (15)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the table in it")
    args = parser.parse_args()
    if args.write and not has_marks(args.write, TABLE):
        parser.error(f"--write needs a file with {' and '.join(marks(TABLE))}, got {args.write}")
    columns = ("a generation of 101", "mixed", "bounds", "ratio", "median", "required", "")
    closing = conditions(
        ("jax", "jaxlib"), f"{args.repeats} stretches of {GENERATIONS} generations, or runs of {COMPILED}"
    )
    made, all_met = printed(columns, measure(args.repeats), closing)
    if args.write:
        replace_table(args.write, TABLE, made)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
