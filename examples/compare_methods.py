"""The paper's methods on one test function: `python examples/compare_methods.py --help`.

Every method starts from the same first populations, seed by seed. The oracles (†) look ahead and are not ranked.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import gesmr
from gesmr.problems import functions

MEMBERS = 101
ORACLES = {"OFMR": gesmr.OFMR(), "LAMR-100": gesmr.LAMR(window=100)}


class Outcome(NamedTuple):
    elite: np.ndarray  # f[seeds, T]
    log_rate: np.ndarray  # f[seeds, T]

    @property
    def final(self) -> np.ndarray:
        return self.elite[:, -1]


def run(name: str, problem: functions.Function, generations: int, seeds: int) -> Outcome:
    controller = gesmr.Fixed() if name in ORACLES else gesmr.controller(name)
    ga = gesmr.GA(controller, MEMBERS - 1)
    evolve: Callable = ORACLES[name].evolve if name in ORACLES else gesmr.evolve

    def one_seed(key: gesmr.noise.Key) -> gesmr.History:
        population = problem.init(key, MEMBERS)
        state = ga.init(key, population, problem(population))
        return evolve(ga, problem, state, generations)[1]

    keys = jax.tree.map(lambda *words: jnp.stack(words), *map(gesmr.noise.key, range(seeds)))
    history = jax.device_get(jax.jit(jax.vmap(one_seed))(keys))
    return Outcome(history.elite, history.log_rate)


def mean_and_error(values: np.ndarray) -> str:
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{values.mean():.4g} ± {values.std(ddof=1) / np.sqrt(len(values)):.2g}"


def table(title: str, outcomes: dict[str, Outcome], ranking: list[str]) -> Table:
    best_rates = outcomes["LAMR-100"].log_rate
    result = Table(title=title, box=box.SIMPLE, caption="† An oracle: it looks ahead, and is not ranked.")
    result.add_column("Method")
    for heading in ("Final elite", "Mean elite", "Last log₁₀ rate", "MSE of ln rate"):
        result.add_column(heading, justify="right")
    for name in [*ORACLES, *ranking]:
        outcome = outcomes[name]
        result.add_row(
            f"{name}†" if name in ORACLES else name,
            mean_and_error(outcome.final),
            f"{outcome.elite.mean():.4g}",
            f"{outcome.log_rate[:, -1].mean() / np.log(10):z.2f}",
            f"{np.square(outcome.log_rate - best_rates).mean():.2f}",
            style="bold" if name == ranking[0] else None,
        )
    return result


def verdict(outcomes: dict[str, Outcome], ranking: list[str]) -> str:
    first, second = (outcomes[name].final for name in ranking[:2])
    return (
        f"{ranking[0]} won: its final elite is {first.mean():.4g}, against {second.mean():.4g} for {ranking[1]}, "
        f"the next best; seed by seed it is lower in {np.sum(first < second)} of {len(first)}."
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--function", choices=functions.FORMULAS, default="ackley", help="default: %(default)s")
    parser.add_argument("--dim", type=int, default=30, help="default: %(default)s")
    parser.add_argument("--std", type=float, default=10.0, help="of the first population; default: %(default)s")
    parser.add_argument("--seeds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--generations", type=int, default=300, help="default: %(default)s")
    args = parser.parse_args()
    for name in ("seeds", "generations"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(args, name)}")
    try:
        args.problem = functions.get(args.function, args.dim, args.std)
    except ValueError as error:
        parser.error(f"--{error}")
    return args


def main() -> None:
    args = arguments()
    names = [*ORACLES, *gesmr.PAPER_NAMES]
    outcomes = {}
    for number, name in enumerate(names, 1):
        start = time.perf_counter()
        outcomes[name] = run(name, args.problem, args.generations, args.seeds)
        took = f"{time.perf_counter() - start:.1f} s"
        print(f"[{number}/{len(names)}] {name}: {mean_and_error(outcomes[name].final)} ({took})", file=sys.stderr)
    ranking = sorted(gesmr.PAPER_NAMES, key=lambda name: outcomes[name].final.mean())
    title = f"{args.function}, d = {args.dim}, std = {args.std:g}, T = {args.generations}, seeds = {args.seeds}"
    console = Console()
    console.print(table(title, outcomes, ranking))
    console.print(verdict(outcomes, ranking), highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
