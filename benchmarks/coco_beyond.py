"""Recombination on COCO's `bbob` and `bbob-largescale`: how it is set, what it gains, and where other optimisers stand.

    python benchmarks/coco_beyond.py coco-beyond-choice --write docs/recombination.md   # settings, on the odd functions
    python benchmarks/coco_beyond.py coco-beyond --write docs/recombination.md docs/choosing.md    # on the even ones
    python benchmarks/coco_beyond.py coco-beyond-weak --write docs/choosing.md     # weak structure, other instances
    python benchmarks/coco_beyond.py coco-beyond-large --dims 80 --write           # in 80 dimensions, of up to 320

A run with a fixed size passes through all budgets, one whose size depends on the budget is run for each of them.
Everyone begins at the same point. `coco_beyond_page.py` makes the tables.
"""

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # these are read when jax and numpy are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import coco_beyond_page as page
import jax
import numpy as np
from coco_budgets import HIGH, LOW, by_differential_evolution, by_minimize
from coco_budgets_page import popsize as rule
from coco_optimizers import bipop_cma_es, evosax_strategy
from coco_problems import Passing, Spent
from coco_summary import summarise
from coco_tasks import Task, compute
from evosax.algorithms import CR_FM_NES, SNES  # pyright: ignore[reportMissingImports]

import gesmr

STD = 2.0  # with which distributions begin
PACKAGES = ("coco-experiment", "cma", "scipy", "evosax")


def by_setting(objective: Passing, dim: int, seed: int, popsize: int | None, setting: page.Setting) -> None:
    members = rule(max(objective.gaps)) if popsize is None else popsize
    controller = gesmr.GESMR(
        setting.groups(members - 1), truncation=setting.rates, recombine=setting.recombine, mates=setting.mates
    )
    by_minimize(objective, dim, seed, popsize=members, controller=controller, truncation=setting.parents)


def by_pycma(objective: Passing, dim: int, seed: int, **options: Any) -> None:
    bipop_cma_es(lambda x: float(objective(x)), dim, max(objective.gaps), seed, **options)


def by_evosax(objective: Passing, dim: int, seed: int, kind: type, popsize: int | None = None) -> None:
    """Clipped to the bounds, for the objective and for itself; begun anew when all candidates are one."""
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    few = 4 + int(3 * np.log(dim))  # as many as CMA-ES has
    with jax.enable_x64(True):
        strategy = evosax_strategy(kind, dim, popsize or few + few % 2, STD)
        while True:
            key, now = jax.random.split(key)
            state, rows = strategy.begun(now, rng.uniform(LOW, HIGH, dim)), np.array([[LOW], [HIGH]])
            while np.ptp(rows, axis=0).max() > 1e-14:
                key, population, state = strategy.ask(key, state)
                rows = np.array(population)
                key, state = strategy.tell(key, state, population, objective(rows))


Optimizer = Callable[[Passing, int, int], None]


def at_sizes(each: dict[str, Callable]) -> dict[str, Optimizer]:
    """What takes a size of population, at 101 and at the one that fits the budget."""
    return {
        page.sized(name, size): partial(by, popsize=members)
        for name, by in each.items() for size, members in page.SIZES.items()
    }  # fmt: skip


DEFAULTS = {
    "default-X": partial(by_setting, setting=page.CHOSEN),
    "default": partial(by_setting, setting=page.DEFAULT),
}
BETWEEN = {
    f"{name}, popsize {size}": partial(by, popsize=size) for name, by in DEFAULTS.items() for size in page.BETWEEN
}
PAPER = {"GESMR": partial(by_minimize, controller="GESMR")}
SETTINGS = {name: partial(by_setting, setting=setting) for name, setting in page.SETTINGS.items()}
LIKEWISE = {"recombine": page.CHOSEN.recombine, "mates": page.CHOSEN.mates}
OTHER_RATES = {
    "FMR-X": gesmr.Fixed(0.01, **LIKEWISE),
    "15MR-X": gesmr.OneFifth(0.01, **LIKEWISE),
    "SAMR-X": gesmr.SAMR(**LIKEWISE),
}
OURS = {
    **DEFAULTS,
    "GESMR-X": partial(by_minimize, controller="GESMR-X"),
    **PAPER,
    **{
        name: partial(by_minimize, controller=controller, truncation=page.CHOSEN.parents)
        for name, controller in OTHER_RATES.items()
    },
}
PEERS: dict[str, Optimizer] = {
    "CMA-ES": by_pycma,
    "sep-CMA-ES": partial(by_pycma, CMA_diagonal=True),
    "DE": by_differential_evolution,
    "CR-FM-NES": partial(by_evosax, kind=CR_FM_NES),
    "CR-FM-NES, popsize 100": partial(by_evosax, kind=CR_FM_NES, popsize=100),
    "SNES": partial(by_evosax, kind=SNES),
    "SNES, popsize 100": partial(by_evosax, kind=SNES, popsize=100),
}


AS_IT_IS = {"gesmr": partial(by_minimize, controller=None)}  # what `minimize` does by default
LARGE = {name: by for name, by in at_sizes({**DEFAULTS, "GESMR-X": OURS["GESMR-X"], **PAPER}).items()
         if name.endswith(page.AUTOMATIC)}  # fmt: skip


class Part(NamedTuple):
    """What is computed at a time."""

    optimizers: dict[str, Optimizer]
    functions: range
    dims: tuple[int, ...]
    instances: range = page.INSTANCES


PARTS = {
    page.CHOICE: Part({**at_sizes({**PAPER, **SETTINGS}), **BETWEEN}, range(1, 25, 2), page.CHOICE_DIMS),
    page.CONFIRMATION: Part({**at_sizes(OURS), **BETWEEN, **PEERS}, range(2, 25, 2), page.CHOICE_DIMS),
    page.WEAK: Part(
        {**at_sizes({**AS_IT_IS, "GESMR-X": OURS["GESMR-X"]}), **PEERS},
        page.GROUPS[page.WEAK_KIND],
        page.CHOICE_DIMS,
        page.FRESH_INSTANCES,
    ),
    page.LARGE: Part({**LARGE, **PEERS}, range(2, 25, 2), page.LARGE_DIMS),
}


def run(task: Task, part: str) -> list[dict]:
    """The gaps of each instance, at each budget."""
    budgets, records = [share * task.dim for share in page.BUDGETS[task.dim]], []
    adapted = task.optimizer.endswith(page.AUTOMATIC)
    for instance in task.instances:
        seed, gaps = task._replace(optimizer="").seed(instance), []
        for these in [[budget] for budget in budgets] if adapted else [budgets]:
            objective = Passing(task.function, task.dim, instance, these)
            with suppress(Spent):
                PARTS[part].optimizers[task.optimizer](objective, task.dim, seed)
            gaps += objective.gaps.values()
        records.append({"instance": instance, "seed": seed, "gaps": gaps})
    return records


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS])
    parser.add_argument("--optimizers", nargs="+", metavar="NAME", help="some of them")
    parser.add_argument("--functions", nargs="+", type=int, metavar="F", help="some of them")
    parser.add_argument("--dims", nargs="+", type=int, metavar="D", help="some of them")
    parser.add_argument("--out", type=Path, help="where results are kept (runs/PART)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--write", type=Path, nargs="*", metavar="FILE", help="then results/PART and tables in files")
    args = parser.parse_args()
    part, args.out = PARTS[args.part], args.out or Path("runs") / args.part
    for name in ("optimizers", "functions", "dims"):
        known = getattr(part, name)
        given = getattr(args, name) or [*known]
        setattr(args, name, given)
        if unknown := [each for each in given if each not in known]:
            parser.error(f"--{name} of {args.part} are {', '.join(map(str, known))}; got {unknown[0]}")
    if args.jobs < 1:
        parser.error("--jobs must be at least 1")
    page.check_writable(parser, args.write or ())
    return args


def main() -> int:
    args = arguments()
    tasks = [
        Task(name, function, dim, tuple(PARTS[args.part].instances), max(page.BUDGETS[dim]))
        for dim in args.dims for name in args.optimizers for function in args.functions
    ]  # fmt: skip
    compute(tasks, partial(run, part=args.part), args.out, args.jobs, PACKAGES)
    if args.write is not None:
        summarise(args.part, args.out, tasks, page.ALL_BUDGETS)
        page.write(args.write, page.TABLES[args.part])
    return 0


if __name__ == "__main__":
    sys.exit(main())
