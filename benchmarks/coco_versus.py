"""A suite of COCO's in 10-D by several optimisers: what coco_mixint.py and coco_constrained.py share."""

import argparse
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from coco_problems import Spent, optimum, problem_of
from coco_summary import summarise
from coco_tasks import Task, add_arguments, check_arguments, compute
from coco_versus_page import DIM, Versus, write

Optimizer = Callable[[Any, int], None]  # of a recorder and a seed


def bounds(problem: Any) -> list[tuple[float, float]]:
    return list(zip(problem.low.tolist(), problem.high.tolist(), strict=True))


def drawn(problem: Any, rng: np.random.Generator) -> np.ndarray:
    """A point of the box, the same chance for all of its integers."""
    x, count = rng.uniform(problem.low, problem.high), problem.integers
    x[:count] = rng.integers(problem.low[:count], problem.high[:count], endpoint=True)
    return x


def _run(task: Task, suite: str, recorder: Callable, optimizers: Mapping[str, Optimizer]) -> list[dict]:
    """The gap of each instance; infinite where nothing feasible was found."""
    records = []
    for instance in task.instances:
        problem = problem_of(suite, task.function, task.dim, instance)
        recorded, seed = recorder(problem, optimum(problem), task.budget * task.dim), task.seed(instance)
        with suppress(Spent):
            optimizers[task.optimizer](recorded, seed)
        records.append({"instance": instance, "seed": seed, "gaps": [recorded.gap]})
        problem.free()
    return records


def main(doc: str | None, versus: Versus, recorder: Callable, optimizers: Mapping[str, Optimizer]) -> int:
    """Every optimiser on every function and instance, then the page; 1 if what is required is missed."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*optimizers]
    parser.add_argument("--optimizers", nargs="+", default=names, choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--functions", nargs="+", type=int, default=versus.functions, choices=versus.functions)
    parser.add_argument("--instances", nargs="+", type=int, default=versus.instances, metavar="I")
    add_arguments(parser, versus.name)
    args = parser.parse_args()
    check_arguments(parser, args, versus.name)
    tasks = [
        Task(name, function, DIM, tuple(args.instances), versus.budget)
        for name in args.optimizers for function in args.functions
    ]  # fmt: skip
    run = partial(_run, suite=versus.suite, recorder=recorder, optimizers=optimizers)
    compute(tasks, run, args.out, args.jobs, ("coco-experiment", "cma", "scipy"))
    if args.write:
        summarise(versus.name, args.out, tasks, [versus.budget])
        return write(args.write, versus)
    return 0
