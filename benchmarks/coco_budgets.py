"""Which population size is best for a small budget: COCO's `bbob`, many sizes, and scipy's differential evolution.

    python benchmarks/coco_budgets.py --functions odd                  # where the rule is chosen
    python benchmarks/coco_budgets.py --write docs/budgets.md          # all of it, and the page

A run with a fixed size passes through all budgets: what `minimize` would have found with `maxfun` is its best value
after the last generation that ends within it. Only the rule has a run for each. `coco_budgets_page.py` makes the
tables.
"""

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # these are read when jax and numpy are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import coco_budgets_page as page
import numpy as np
from coco_problems import COPYING, Passing, Spent
from coco_summary import summarise
from coco_tasks import Task, add_arguments, check_arguments, compute
from scipy.optimize import differential_evolution

import gesmr

LOW, HIGH = -5.0, 5.0
INSTANCES = (1, 2, 3)
SMALL = {40: 9}  # the smallest population size that is tried, in so many variables


def by_minimize(objective: Passing, dim: int, seed: int, **options: Any) -> None:
    x0, budget = np.random.default_rng(seed).uniform(LOW, HIGH, dim), max(objective.gaps)
    if "popsize" not in options:
        options["popsize"] = page.popsize(budget)
    options = {**({} if "controller" in options else COPYING), **options}
    gesmr.minimize(objective, x0, bounds=(LOW, HIGH), maxfun=budget, rng=seed, vectorized=True, jit=False, **options)


def by_differential_evolution(objective: Passing, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    while True:  # it ends when its population has converged: then begin anew
        differential_evolution(objective, [(LOW, HIGH)] * dim, rng=rng)


TWO_GROUPS = {"controller": gesmr.GESMR(2, truncation=0.1), "truncation": 0.2}  # as by default, but for the number
OPTIMIZERS: dict[str, Callable[[Passing, int, int], None]] = {
    **{f"popsize {size}": partial(by_minimize, popsize=size) for size in page.SIZES},
    **{f"popsize {size}, 2 groups": partial(by_minimize, popsize=size, **TWO_GROUPS) for size in page.TWO_GROUPS},
    "rule": by_minimize,
    "DE": by_differential_evolution,
}


def run(task: Task) -> list[dict]:
    """The gaps of each instance, at each budget."""
    budgets, records = [share * task.dim for share in page.BUDGETS], []
    named = task._replace(optimizer=task.optimizer.partition(",")[0])  # the same seeds, whatever the groups
    for instance in task.instances:
        seed, gaps = named.seed(instance), []
        for these in [[budget] for budget in budgets] if task.optimizer == "rule" else [budgets]:
            objective = Passing(task.function, task.dim, instance, these)
            with suppress(Spent):
                OPTIMIZERS[task.optimizer](objective, task.dim, seed)
            gaps += objective.gaps.values()
        records.append({"instance": instance, "seed": seed, "gaps": gaps})
    return records


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*OPTIMIZERS]
    parser.add_argument("--optimizers", nargs="+", default=names, choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--functions", default="all", choices=("odd", "even", "all"))
    parser.add_argument("--dims", nargs="+", type=int, default=page.DIMS, choices=page.DIMS, metavar="D")
    add_arguments(parser, page.NAME)
    args = parser.parse_args()
    check_arguments(parser, args, page.NAME)
    return args


def main() -> int:
    args = arguments()
    functions = [f for f in range(1, 25) if args.functions == "all" or f % 2 == (args.functions == "odd")]
    too_small = {(f"popsize {size}", dim) for dim, least in SMALL.items() for size in page.SIZES if size < least}
    tasks = [
        Task(name, function, dim, INSTANCES, max(page.BUDGETS))
        for dim in args.dims for name in args.optimizers for function in functions if (name, dim) not in too_small
    ]  # fmt: skip
    compute(tasks, run, args.out, args.jobs, ("coco-experiment", "scipy"))
    if args.write:
        summarise(page.NAME, args.out, tasks, page.BUDGETS)
        page.write(args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
