"""Writes the table in docs/devices.md: what storing a population in bfloat16 costs in quality.

python scripts/bfloat16_quality.py [--write docs/devices.md]
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

import gesmr

DIM, CHILDREN, GENERATIONS, SEEDS = 1000, 100, (500, 2000, 8000), 3
START, END = "<!-- bfloat16 -->", "<!-- /bfloat16 -->"
Run = Callable[[gesmr.GA, gesmr.problems.functions.Function, gesmr.State], Array]


def evolve(ga: gesmr.GA, problem: gesmr.problems.functions.Function, state: gesmr.State) -> Array:
    return gesmr.evolve(ga, problem, state, max(GENERATIONS), batch_size=50)[1].elite


def rounding_at_random(ga: gesmr.GA, problem: gesmr.problems.functions.Function, state: gesmr.State) -> Array:
    return evolve(ga, problem, state._replace(population=state.population.astype(jnp.bfloat16)))


@jax.jit
def rounding_to_nearest(ga: gesmr.GA, problem: gesmr.problems.functions.Function, state: gesmr.State) -> Array:
    """What storing children in bfloat16 as hardware rounds would do."""

    def generation(state: gesmr.State, _: None) -> tuple[gesmr.State, Array]:
        proposal = ga.ask(state)
        rounded = lax.reduce_precision(proposal.population, exponent_bits=8, mantissa_bits=7)
        state = ga.tell(state, proposal._replace(population=rounded), problem(rounded[1:]))
        return state, state.best_fitness

    start = state._replace(population=lax.reduce_precision(state.population, exponent_bits=8, mantissa_bits=7))
    return lax.scan(generation, start, None, length=max(GENERATIONS))[1]


WAYS: dict[str, Run] = {
    "float32": evolve,
    "bfloat16": rounding_at_random,
    "bfloat16 to the nearest": rounding_to_nearest,
}


class Case(NamedTuple):
    what: str
    function: str
    moved: bool  # whether the optimum is at a random place
    controller: gesmr.Controller = gesmr.GESMR(groups=10)


CASES = (
    Case("Sphere, optimum at 0", "sphere", False),
    Case("Sphere, optimum at a random place", "sphere", True),
    Case("the same, with a fixed rate of 0.0005", "sphere", True, gesmr.Fixed(0.0005)),
    Case("Rastrigin, optimum at a random place", "rastrigin", True),
)


def medians(run: Run, case: Case) -> list[float]:
    """The best value after each of `GENERATIONS`, the median over seeds."""
    found = []
    for seed in range(SEEDS):
        shift = jax.random.normal(jax.random.key(seed), (DIM,)) if case.moved else jnp.zeros(DIM)
        problem = gesmr.problems.functions.get(case.function, DIM, shift=shift)
        ga = gesmr.GA(case.controller, CHILDREN)
        population = problem.init(seed, CHILDREN + 1).astype(jnp.bfloat16).astype(jnp.float32)
        elite = run(ga, problem, ga.init(seed, population, problem(population)))
        found.append([float(elite[t - 1]) for t in GENERATIONS])
    return [statistics.median(values) for values in zip(*found, strict=True)]


def table() -> str:
    lines = [f"| | generations | {' | '.join(WAYS)} |", f"|:--|--:|{'--:|' * len(WAYS)}"]
    for case in CASES:
        columns = [medians(run, case) for run in WAYS.values()]
        for i, generations in enumerate(GENERATIONS):
            cells = " | ".join(f"{column[i]:.3g}" for column in columns)
            lines.append(f"| {case.what if i == 0 else ''} | {generations:,} | {cells} |")
    lines += ["", f"gesmr {gesmr.__version__}, jax {jax.__version__}, {jax.devices()[0].platform}."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace what is between {START} and {END}")
    args = parser.parse_args()
    made = table()
    print(made)
    if args.write:
        before, _, rest = args.write.read_text("utf-8").partition(START)
        _, _, after = rest.partition(END)
        args.write.write_text(f"{before}{START}\n{made}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
