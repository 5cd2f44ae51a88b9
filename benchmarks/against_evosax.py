"""Speed, compile time, memory and import cost of gesmr's GESMR beside evosax's GESMR_GA. See docs/performance.md.

python benchmarks/against_evosax.py --write docs/performance.md                          # on the CPU
JAX_PLATFORMS=cuda python benchmarks/against_evosax.py --write docs/performance.md       # on a GPU: another table
"""

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # read when jax is imported

import jax
import jax.numpy as jnp
from common import Line, conditions, has_marks, interleaved, marks, on_gpu, printed, replace_table
from evosax.algorithms import GESMR_GA  # pyright: ignore[reportMissingImports]

import gesmr
from gesmr.problems.functions import Function, get

GROUPS, LARGE = 10, 100_000
MEMBERS = 101


class Loop(NamedTuple):
    init: Callable  # key → first state
    run: Callable  # state → last state and, for each generation, the best value and the mean log rate
    compiles: bool = False  # itself, also for a state with an axis of seeds

    def started(self, seeds: int = 1) -> tuple[Callable, Any]:
        """What runs, and the state it begins with."""
        if seeds == 1:
            return self.run if self.compiles else jax.jit(self.run), jax.jit(self.init)(jax.random.key(0))
        state = jax.jit(jax.vmap(self.init))(jax.random.split(jax.random.key(0), seeds))
        return self.run if self.compiles else jax.jit(jax.vmap(self.run)), state


class Case(NamedTuple):
    dim: int
    seeds: int
    generations: int  # per timed call: enough for 0.1 s, in which taking memory is little
    required: float  # evosax's time / gesmr's
    members: int = MEMBERS


CASES = (
    Case(2, 1, 20_000, 2.5),
    Case(100, 1, 8_000, 3.0),
    Case(100, 40, 300, 2.0),
    Case(1_000, 1, 1_500, 8.0),
    Case(1_000, 40, 40, 6.0),
    Case(LARGE, 1, 20, 4.5),
)
GPU_CASES = (
    Case(2, 1, 4000, 2.0),
    Case(100, 1, 4000, 2.0),
    Case(100, 40, 4000, 3.0),
    Case(1_000, 40, 1000, 4.0),
    Case(LARGE, 1, 500, 4.0),
    Case(1_000_000, 1, 100, 5.5),
    Case(1_000_000, 1, 10, 5.5, members=1001),
)


def gesmr_loop(objective: Function, generations: int, members: int = MEMBERS, **options: Any) -> Loop:
    ga = gesmr.GA(gesmr.GESMR(GROUPS), members - 1)

    def init(key: jax.Array) -> gesmr.State:
        population = objective.init(key, members)
        return ga.init(key, population, objective(population))

    return Loop(init, lambda state: gesmr.evolve(ga, objective, state, generations, **options), compiles=True)


def evosax_loop(objective: Function, generations: int, members: int = MEMBERS) -> Loop:
    ga = GESMR_GA(population_size=members, solution=jnp.zeros(objective.num_genes), num_groups=GROUPS)
    params = ga.default_params

    def init(key: jax.Array) -> Any:
        population = objective.init(key, members)
        return ga.init(key, population, objective(population), params), key

    def generation(carry: Any, _) -> tuple[Any, Any]:
        state, key = carry
        key, ask_key, tell_key = jax.random.split(key, 3)
        population, state = ga.ask(ask_key, state, params)
        log_rate = jnp.mean(jnp.log(state.std))
        state, metrics = ga.tell(tell_key, population, objective(population), state, params)
        return (state, key), (metrics["best_fitness"], log_rate)

    return Loop(init, lambda carry: jax.lax.scan(generation, carry, None, length=generations))


def seconds(function: Callable, *args: Any) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - start


def time_per_generation(name: str, case: Case, repeats: int) -> Line:
    def timer(make_loop: Callable[..., Loop]) -> Callable[[], float]:
        loop = make_loop(get(name, case.dim), case.generations, case.members)
        run, state = loop.started(case.seeds)
        seconds(run, state)  # compiles
        return lambda: seconds(run, state) / case.generations

    theirs, ours, median = interleaved(timer(evosax_loop), timer(gesmr_loop), repeats)
    runs = "one run" if case.seeds == 1 else f"{case.seeds} seeds"
    children = "" if case.members == MEMBERS else f", {case.members - 1:,} children"
    what = f"Time per generation, {name}, d = {case.dim:,}, {runs}{children}: evosax / gesmr"
    times = (f"{1e6 * ours:,.1f} µs", f"{1e6 * theirs:,.1f} µs")
    return Line(what, *times, theirs / ours, median, at_least=case.required)


def share_of_copying(name: str, dim: int, generations: int, repeats: int) -> Line:
    """How close a whole generation comes to reading and writing every gene once."""
    run, state = gesmr_loop(get(name, dim), generations).started()
    copies = jax.jit(lambda population: jax.lax.fori_loop(0, generations, lambda _, x: x + 1, population))

    def timer(function: Callable, arg: Any) -> Callable[[], float]:
        seconds(function, arg)  # compiles
        return lambda: seconds(function, arg) / generations

    copying, ours, median = interleaved(timer(copies, state.population), timer(run, state), repeats)
    genes = state.population.size / 1e9
    what = f"Genes per second, {name}, d = {dim:,}, one run: gesmr / reading and writing them"
    return Line(what, f"{genes / ours:,.3g} G/s", f"{genes / copying:,.3g} G/s", copying / ours, median)


def compile_time(name: str, repeats: int) -> Line:
    def timer(make_loop: Callable[..., Loop]) -> Callable[[], float]:
        new_dims = iter(range(200, 200 + repeats))

        def trace_and_compile() -> float:
            loop = make_loop(get(name, next(new_dims)), 100)
            state = jax.eval_shape(loop.init, jax.random.key(0))
            return seconds(lambda: jax.jit(loop.run).lower(state).compile())

        return trace_and_compile

    ours, theirs, median = interleaved(timer(gesmr_loop), timer(evosax_loop), repeats)
    what = f"Compile time of a new shape, {name}: gesmr / evosax"
    return Line(what, f"{ours:.2f} s", f"{theirs:.2f} s", ours / theirs, median, at_most=1.0, remark=" (aim 0.5)")


def peak_memory(name: str, donate: bool, batch_size: int | None, at_most: float) -> Line:
    def populations(loop: Loop) -> float:
        state = jax.eval_shape(loop.init, jax.random.key(0))
        compiled = jax.jit(loop.run, donate_argnums=0 if donate else ()).lower(state).compile()
        memory: Any = compiled.memory_analysis()
        held = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
        return (held - memory.alias_size_in_bytes) / (MEMBERS * LARGE * 4)

    objective = get(name, LARGE)
    ours = populations(gesmr_loop(objective, 10, donate=donate, batch_size=batch_size))
    theirs = populations(evosax_loop(objective, 10))
    what = f"Peak memory in populations, {name}, d = {LARGE:,}, {'state donated' if donate else 'plain'}"
    return Line(what, f"{ours:.2f}", f"{theirs:.2f}", ours, at_most=at_most)


def import_cost(repeats: int) -> Line:
    def timer(module: str) -> Callable[[], float]:
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return lambda: float(subprocess.check_output([sys.executable, "-c", code]))

    with_gesmr, jax_alone, _ = interleaved(timer("gesmr"), timer("jax"), repeats)
    cost = with_gesmr - jax_alone
    return Line("Import, in seconds beyond that of jax", f"{cost:.3f} s", "", cost, at_most=0.2, remark=" s")


def measure(quick: bool, repeats: int) -> Iterator[Line]:
    cases, dim = (GPU_CASES, 1_000_000) if on_gpu() else (CASES, LARGE)
    for name in ("sphere",) if quick else ("sphere", "rastrigin"):
        for case in cases[:2] if quick else cases:
            yield time_per_generation(name, case, repeats)
        if not quick:
            yield share_of_copying(name, dim, cases[-1].generations, repeats)
        if name == "sphere":
            yield compile_time(name, 2 if quick else 3)
        yield peak_memory(name, donate=True, batch_size=16, at_most=2.5)
        yield peak_memory(name, donate=False, batch_size=None, at_most=math.inf)
    yield import_cost(3 if quick else 7)


def table() -> str:
    return "evosax, GPU" if on_gpu() else "evosax"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run: two of the cases, few repeats")
    parser.add_argument("--repeats", type=int, help="timed calls of each loop (15; 3 with --quick)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the table in it")
    args = parser.parse_args()
    if args.repeats is None:
        args.repeats = 3 if args.quick else 15
    if args.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {args.repeats}")
    if args.write and args.quick:
        parser.error("--write needs a full run, without --quick")
    if args.write and not has_marks(args.write, table()):
        parser.error(f"--write needs a file with {' and '.join(marks(table()))}, got {args.write}")
    return args


def main() -> int:
    args = arguments()
    jax.config.update("jax_enable_compilation_cache", False)
    columns = ("", "gesmr", "evosax", "measured", "median", "required", "")
    closing = conditions(("evosax", "jax", "jaxlib"), f"{args.repeats} timed calls of each loop")
    made, all_met = printed(columns, measure(args.quick, args.repeats), closing)
    if args.write:
        replace_table(args.write, table(), made)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
