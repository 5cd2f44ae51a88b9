"""A generation of GESMR beside those of other libraries' nearest algorithms, on the CPU. See docs/performance.md.

    python benchmarks/peers.py --write docs/performance.md

A generation is all of it: 100 children or so are made, evaluated on the sphere and selected from. Each library gets the
function in its own arrays, a whole population at a time.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # read when jax is imported

import cma
import evotorch  # pyright: ignore[reportMissingImports]
import jax
import nevergrad  # pyright: ignore[reportMissingImports]
import numpy as np
import scipy.optimize
import torch  # pyright: ignore[reportMissingImports]
from against_evosax import evosax_loop, gesmr_loop
from common import Line, conditions, has_marks, interleaved, marks, printed, replace_table
from evotorch.algorithms import GeneticAlgorithm  # pyright: ignore[reportMissingImports]
from evotorch.operators import GaussianMutation  # pyright: ignore[reportMissingImports]
from evox.algorithms import DE  # pyright: ignore[reportMissingImports]
from evox.core import Problem  # pyright: ignore[reportMissingImports]
from evox.workflows import StdWorkflow  # pyright: ignore[reportMissingImports]
from numpy_gesmr import NumpyGESMR

from gesmr.problems.functions import get

TABLE = "peers"
MEMBERS, GROUPS = 101, 10
DIMS = (100, 1_000)

Generation = Callable[[], Any]


def sphere(xs: np.ndarray) -> np.ndarray:
    return np.sum(xs * xs, axis=1)


def of_loop(make_loop: Callable[..., Any], generations: int) -> Callable[[int], Generation]:
    """A compiled loop of so many generations."""

    def make(dim: int) -> Generation:
        run, state = make_loop(get("sphere", dim), generations).started()
        return lambda: jax.block_until_ready(run(state))

    return make


def in_numpy(dim: int) -> Generation:
    return NumpyGESMR(dim, MEMBERS, GROUPS, sphere).generation


def of_evotorch(dim: int) -> Generation:
    problem = evotorch.Problem(
        "min", lambda xs: torch.sum(xs * xs, dim=1), solution_length=dim, initial_bounds=(-1, 1), vectorized=True
    )
    mutation = GaussianMutation(problem, stdev=0.01)
    return GeneticAlgorithm(problem, operators=[mutation], popsize=MEMBERS, re_evaluate=False).step


class _Sphere(Problem):
    def evaluate(self, pop: Any) -> Any:
        return torch.sum(pop * pop, dim=1)


def of_evox(dim: int) -> Generation:
    workflow = StdWorkflow(DE(MEMBERS, -torch.ones(dim), torch.ones(dim)), _Sphere())
    workflow.init_step()
    return torch.compile(workflow.step)


def of_pycma(dim: int) -> Generation:
    strategy = cma.CMAEvolutionStrategy(dim * [1.0], 1.0, {"popsize": MEMBERS, "seed": 1, "verbose": -9})

    def generation() -> None:
        xs = strategy.ask()
        strategy.tell(xs, sphere(np.array(xs)).tolist())

    return generation


def of_nevergrad(dim: int) -> Generation:
    optimizer = nevergrad.optimizers.registry["DE"](parametrization=dim, budget=10**6, num_workers=MEMBERS)

    def generation() -> None:
        xs = [optimizer.ask() for _ in range(MEMBERS)]
        for x, value in zip(xs, sphere(np.array([x.value for x in xs])).tolist(), strict=True):
            optimizer.tell(x, value)

    return generation


def of_scipy(generations: int) -> Callable[[int], Generation]:
    def make(dim: int) -> Generation:
        first = np.random.default_rng(0).standard_normal((MEMBERS, dim))
        options: Any = {"init": first, "maxiter": generations - 1, "tol": 0, "polish": False, "rng": 0}
        bounds = [(-5.0, 5.0)] * dim
        return lambda: scipy.optimize.differential_evolution(
            lambda xs: sphere(xs.T), bounds, vectorized=True, updating="deferred", **options
        )

    return make


# name, what makes it for a dimension, generations of a call, calls that are timed together
OURS = 200
PEERS: tuple[tuple[str, Callable[[int], Generation], int, int], ...] = (
    ("GESMR in NumPy", in_numpy, 1, 50),
    ("evosax, GESMR_GA", of_loop(evosax_loop, OURS), OURS, 1),
    ("EvoTorch, GeneticAlgorithm with GaussianMutation", of_evotorch, 1, 50),
    ("EvoX, DE, compiled", of_evox, 1, 50),
    ("scipy, differential_evolution", of_scipy(20), 20, 1),
    ("nevergrad, DE", of_nevergrad, 1, 3),
    ("pycma, CMA-ES", of_pycma, 1, 3),
)


def timer(generation: Generation, generations: int, calls: int) -> Callable[[], float]:
    """Seconds per generation."""
    generation()  # compiles

    def seconds() -> float:
        start = time.perf_counter()
        for _ in range(calls):
            generation()
        return (time.perf_counter() - start) / (calls * generations)

    return seconds


def measure(quick: bool, repeats: int) -> Iterator[Line]:
    for dim in DIMS[:1] if quick else DIMS:
        ours = timer(of_loop(gesmr_loop, OURS)(dim), OURS, 1)
        for name, make, generations, calls in PEERS:
            their_time, our_time, median = interleaved(timer(make(dim), generations, calls), ours, repeats)
            times = (f"{1e6 * our_time:,.0f} µs", f"{1e6 * their_time:,.0f} µs")
            yield Line(f"d = {dim:,}: {name}", *times, their_time / our_time, median, at_least=1.0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the table in it")
    args = parser.parse_args()
    if args.write and (args.quick or not has_marks(args.write, TABLE)):
        parser.error(f"--write needs a full run and a file with {' and '.join(marks(TABLE))}, got {args.write}")
    return args


def main() -> int:
    args = arguments()
    warnings.filterwarnings("ignore", module="nevergrad")
    repeats = 1 if args.quick else 7
    packages = ("evosax", "evotorch", "evox", "torch", "cma", "nevergrad", "scipy", "jax")
    columns = ("a generation of 101", "gesmr", "other", "other / gesmr", "median", "required", "")
    made, all_met = printed(columns, measure(args.quick, repeats), conditions(packages, f"{repeats} stretches of each"))
    if args.write:
        replace_table(args.write, TABLE, made)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
