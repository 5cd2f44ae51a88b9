"""COCO's `bbob` suite: gesmr beside pycma, scipy's differential evolution, evosax and random search.

    python benchmarks/coco.py --dims 2 3 --budget 100 --out /tmp/coco     # a try
    python benchmarks/coco.py --write docs/benchmarks.md                  # all of it, and the page

Every optimiser, function and dimension has a small file under --out with the improvements of every instance. What is
there is not computed again: killed and started again it goes on. `coco_page.py` makes tables and figure of it.
"""

import argparse
import os
import sys
import time
import warnings
from contextlib import suppress

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # these are read when jax and numpy are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cocoex
from coco_optimizers import OPTIMIZERS, VARIANTS
from coco_problems import Recorder, Spent, problem_of
from coco_tasks import Task, add_arguments, check_arguments, compute

DIMS = (20, 2, 3, 5, 10, 40)
FUNCTIONS = range(1, 25)
VARIANT_DIMS = (20, 5)  # where other settings of gesmr run too


def recorder(function: int, dim: int, instance: int, budget: int) -> Recorder:
    """The problem of COCO's suite, and its optimum as COCO itself gives it (`BareProblem.best_value`)."""
    problem = problem_of("bbob", function, dim, instance)
    return Recorder(problem, cocoex.BareProblem("bbob", function, dim, instance).best_value(), budget)


def run(task: Task) -> list[dict]:
    """A record of each instance."""
    warnings.filterwarnings("ignore", module="cma")
    optimizer, records = (OPTIMIZERS | VARIANTS)[task.optimizer], []
    for instance in task.instances:
        objective = recorder(task.function, task.dim, instance, task.budget * task.dim)
        seed = task.seed(instance)
        start = time.process_time()
        with suppress(Spent):
            optimizer(objective, task.dim, objective.budget, seed)
        seconds = time.process_time() - start
        assert objective.evaluations == objective.problem.evaluations
        record = {"instance": instance, "seed": seed, "evaluations": objective.evaluations, "seconds": seconds}
        records.append({**record, "points": objective.points})
        objective.problem.free()
    return records


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*OPTIMIZERS, *VARIANTS]
    parser.add_argument("--optimizers", nargs="+", default=names, choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--dims", nargs="+", type=int, default=DIMS, choices=sorted(DIMS), metavar="D", help="in this order"
    )
    parser.add_argument(
        "--functions", nargs="+", type=int, default=FUNCTIONS, choices=FUNCTIONS, metavar="F", help="1 to 24"
    )
    parser.add_argument("--instances", nargs="+", type=int, default=(1, 2, 3, 4, 5), metavar="I")
    parser.add_argument("--budget", type=int, default=1000, help="evaluations per variable (1000)")
    add_arguments(parser, "coco")
    args = parser.parse_args()
    if args.budget < 1 or min(args.instances) < 1:
        parser.error("--budget and --instances must be at least 1")
    check_arguments(parser, args, "coco")
    return args


def main() -> int:
    args = arguments()
    tasks = [
        Task(name, function, dim, tuple(args.instances), args.budget)
        for dim in args.dims for name in args.optimizers for function in args.functions
        if name in OPTIMIZERS or dim in VARIANT_DIMS
    ]  # fmt: skip
    compute(tasks, run, args.out, args.jobs, ("coco-experiment", "cma", "scipy", "evosax"))
    if args.write:
        import coco_page  # noqa: PLC0415

        coco_page.summarise(args.out, tasks)
        return coco_page.write(args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
