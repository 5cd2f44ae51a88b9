"""What a generation on a processor spends its time on: its parts, one after another, beside reading and writing.

python benchmarks/parts.py --write docs/performance.md

Every line does what the line above it does, and one thing more. Sphere, 100 children, one run, compiled.
"""

import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from coco_page import table
from common import conditions, print_or_write
from jax import Array, lax

import gesmr
from gesmr import _compilation, noise
from gesmr.problems.functions import get

DIMS, CHILDREN, REPEATS = (100, 1_000, 100_000), 100, 9
Loop = Callable[[Array, int], object]
Step = Callable[[Array, Array], Array]


def looped(step: Step) -> Loop:
    """So many times `step(population, generation)`."""
    return _compilation.jit(lambda population, times: lax.fori_loop(0, times, lambda t, x: step(x, t), population))


def chosen(generation: Array) -> Array:
    """Parents that differ in every generation, found by next to nothing."""
    return (jnp.arange(CHILDREN + 1) * 7 + generation) % (CHILDREN + 1)


def words(population: Array, generation: Array) -> Array:
    keys = noise.fold_in(noise.key(0), jnp.arange(population.shape[0]), generation)
    return noise.bits(keys, population.shape[1])


def gathered(population: Array, generation: Array) -> Array:
    return population[chosen(generation)] + 1


def with_words(population: Array, generation: Array) -> Array:
    return population[chosen(generation)] + words(population, generation).astype(jnp.int32).astype(jnp.float32)


def with_noise(population: Array, generation: Array) -> Array:
    return population[chosen(generation)] + 1e-3 * noise.normal(words(population, generation))


def whole(dim: int) -> Loop:
    problem, ga = get("sphere", dim), gesmr.GA(gesmr.GESMR(10), CHILDREN)

    @jax.jit
    def start(population: Array) -> gesmr.State:
        return ga.init(0, population, problem(population))

    def run(population: Array, times: int) -> object:
        return gesmr.evolve(ga, problem, start(population), times)

    return run


def loops(dim: int) -> dict[str, Loop]:
    return {
        "genes read and written": looped(lambda x, t: x + 1),
        "and gathered from parents": looped(gathered),
        "and random words added": looped(with_words),
        "and normal draws instead of words": looped(with_noise),
        "and all the rest of a generation": whole(dim),
    }


def measured(dim: int) -> dict[str, tuple[float, float]]:
    """Microseconds of a generation, the best of several turns, and how many cores that turn used."""
    times, population = max(20, 2_000_000 // dim), jnp.zeros((CHILDREN + 1, dim)) + jnp.arange(CHILDREN + 1)[:, None]
    runs, found = loops(dim), {}
    for _ in range(1 + REPEATS):  # the first turn compiles
        for name, run in runs.items():
            clock, processor = time.perf_counter(), time.process_time()
            jax.block_until_ready(run(population, times))
            clock, processor = time.perf_counter() - clock, time.process_time() - processor
            found.setdefault(name, []).append((1e6 * clock / times, processor / clock))
    return {name: min(turns[1:]) for name, turns in found.items()}


def page() -> str:
    columns = [measured(dim) for dim in DIMS]
    rows = []
    for name in columns[0]:
        cells = []
        for dim, column in zip(DIMS, columns, strict=True):
            clock, cores = column[name]
            cells += [f"{clock:,.1f}", f"{1e-3 * (CHILDREN + 1) * dim / clock:.2g}", f"{cores:.1f}"]
        rows.append([name, *cells])
    titles = [f"{title}{dim:,}" for dim in DIMS for title in ("µs, d = ", "G genes/s, d = ", "cores, d = ")]
    closing = conditions(("jax", "jaxlib", "numpy"), f"best of {REPEATS}, in turn")
    return "\n".join([*table(["", *titles], rows), "", closing])


if __name__ == "__main__":
    sys.exit(print_or_write(__doc__, "parts", page))
