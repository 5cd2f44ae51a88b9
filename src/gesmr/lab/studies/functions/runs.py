"""The paper's main study (Tables 1–3): six functions, four dimensions, two spreads, eleven methods, forty seeds."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np

from .... import _checks
from ....problems.functions import FORMULAS
from ...run.batch import Batch, Histories, parts, populations_of
from ...run.function_task import FunctionTask, function_lanes
from ...run.lanes import FIXED_RATES, METHODS, NUM_CHILDREN, STEP, Advance, Enter, First
from ...run.reading import Reading
from ...run.specs import Compiled, Job, Program, Selection, Spec, Tick

GENERATIONS = {2: 100, 30: 300, 100: 1000, 1000: 2500}  # T of each dimension
LINEAR_GENERATIONS = 100
STDS = (1.0, 10.0)
REVISION = 2  # raised when the same specification would give other random draws
POINTS = 500  # of a history that are kept


@dataclass(frozen=True)
class Run:
    """One run of one method from one first population."""

    kind: ClassVar[str] = "run"
    function: str
    dim: int
    std: float
    method: str
    seed: int
    shifted: bool
    generations: int
    reading: str = Reading.PRINT.value
    num_children: int = NUM_CHILDREN
    revision: int = REVISION


@dataclass(frozen=True)
class Cost:
    """Time of a generation under GESMR and under a fixed rate, measured alternately."""

    kind: ClassVar[str] = "cost"
    dim: int
    runs: int  # side by side
    repeats: int = 21
    num_children: int = NUM_CHILDREN
    revision: int = REVISION


def generations_of(function: str, dim: int) -> int:
    return LINEAR_GENERATIONS if function == "linear" else GENERATIONS[dim]


def kept_generations(generations: int) -> np.ndarray:
    """The generations (from 1) whose values are kept: all, or `POINTS` of them with the first and the last."""
    if generations <= POINTS:
        return np.arange(1, generations + 1)
    return 1 + np.round(np.linspace(0, generations - 1, POINTS)).astype(int)


class FunctionsStudy:
    name: ClassVar[str] = "functions"
    title: ClassVar[str] = "Six test functions: Tables 1–3, curves and claims 1–7 and 14"
    profiles: ClassVar[tuple[str, ...]] = ("quick", "paper")

    def specs(self, selection: Selection) -> Sequence[Run | Cost]:
        selection.check(self.name, ("functions", "dims", "methods", "seeds", "shifted", "as_text"))
        quick = _checks.choice("profile", selection.profile, self.profiles) == "quick"
        dims = subset("dims", selection.dims, tuple(d for d in GENERATIONS if d <= 100 or not quick), GENERATIONS)
        functions = subset("functions", selection.functions, tuple(FORMULAS), FORMULAS)
        methods = subset("methods", selection.methods, METHODS, METHODS)
        seeds = selection.seeds_or(5 if quick else 40)
        shifted, reading = selection.shifted, selection.reading.value
        runs: list[Run | Cost] = [
            Run(function, dim, std, method, seed, shifted, generations_of(function, dim), reading)
            for function in functions
            for dim in dims
            for std in STDS
            for method in methods
            for seed in seeds
        ]
        if {"GESMR", "FMR"} <= set(methods) and not (shifted or selection.as_text):
            runs += [Cost(dim, len(seeds) * len(STDS)) for dim in dims]
        return runs

    def jobs(self, specs: Sequence[Spec], memory: int) -> Sequence[Job]:
        """Runs of one function, dimension and method together; those with a fixed rate in one batch.

        The widest problems come first, so that later programs compile while they run.
        """
        lanes_of: dict[tuple, list[tuple[float, int]]] = defaultdict(list)
        for spec in specs:
            if isinstance(spec, Run):
                what = spec.function, spec.dim, spec.shifted, spec.generations, Reading(spec.reading)
                lanes_of[(*what, spec.method)].append((spec.std, spec.seed))
        batches: dict[tuple, list[str]] = defaultdict(list)
        for (*what, method), pairs in lanes_of.items():
            family = "FMR" if method in FIXED_RATES else method
            batches[(*what, family, tuple(pairs))].append(method)
        groups: list[RunJob] = []
        for (function, dim, shifted, generations, reading, _, pairs), methods in batches.items():
            most = max(1, memory // _memory_per_lane(dim, populations_of(methods)))
            for part in parts(pairs, most):
                groups.append(RunJob(function, dim, shifted, generations, tuple(methods), part, reading))
        groups.sort(key=lambda group: -group.dim)
        return [*groups, *(CostJob(spec) for spec in specs if isinstance(spec, Cost))]


@dataclass(frozen=True)
class RunJob:
    function: str
    dim: int
    shifted: bool
    generations: int
    methods: tuple[str, ...]  # several only if all have fixed rates
    pairs: tuple[tuple[float, int], ...]  # std and seed of each lane
    reading: Reading = Reading.PRINT
    alone: ClassVar[bool] = False

    @property
    def label(self) -> str:
        how = ("shifted " if self.shifted else "") + ("as text " if self.reading is Reading.TEXT else "")
        return f"{how}{self.function} d={self.dim} {', '.join(self.methods)}"

    @property
    def specs(self) -> list[Run]:
        return [
            Run(self.function, self.dim, std, method, seed, self.shifted, self.generations, self.reading.value)
            for method in self.methods
            for std, seed in self.pairs
        ]

    @property
    def work(self) -> float:
        return self._batch.work

    @property
    def programs(self) -> list[Program]:
        return self._batch.programs

    @property
    def _batch(self) -> Batch:
        task = FunctionTask(self.dim, function=self.function, reading=self.reading)
        return Batch(task, self.methods, len(self.pairs), self.generations)

    def run(self, compiled: Compiled, tick: Tick) -> dict[str, np.ndarray]:
        stds, seeds = zip(*self.pairs, strict=True)
        lanes = function_lanes(self.function, self.dim, stds, seeds, self.shifted)
        return summary(self._batch.run(compiled, tick, lanes))


def summary(histories: Histories) -> dict[str, np.ndarray]:
    """What is kept of histories.

    The means over generations are taken here, before thinning. So are the first two moments of the log rate in
    every stretch of `STEP` generations: LAMR-100's rate is constant there, so Table 3's mean square difference
    follows from them, whichever of the two methods ran first. `used` are the rates that generations 1 … T were made
    with, `left` those in force after them: the same sequence, one step on.
    """
    elite, log_rate = histories.elite, histories.log_rate
    kept = kept_generations(elite.shape[1]) - 1
    used = log_rate.astype(np.float64)
    left = np.column_stack([used[:, 1:], histories.next_log_rate])
    return {
        "elite": elite[:, kept].astype(np.float32),
        "log_rate": log_rate[:, kept].astype(np.float32),
        "first": histories.first.astype(np.float64),
        "final": elite[:, -1].astype(np.float64),
        "mean_elite": elite.astype(np.float64).mean(axis=1),
        "mean_log_rate": used.mean(axis=1),
        "used": _moments(used),
        "left": _moments(left),
    }


def _moments(log_rate: np.ndarray) -> np.ndarray:
    """Mean and mean square in every stretch of `STEP` generations, `f[R, 2, stretches]`."""
    starts = np.arange(0, log_rate.shape[1], STEP)
    lengths = np.diff([*starts, log_rate.shape[1]])
    return np.stack([np.add.reduceat(x, starts, axis=1) / lengths for x in (log_rate, log_rate**2)], axis=1)


@dataclass(frozen=True)
class CostJob:
    """GESMR and a fixed rate by turns, with the programs of the study."""

    spec: Cost
    alone: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return f"time of a generation d={self.spec.dim}"

    @property
    def specs(self) -> list[Cost]:
        return [self.spec]

    @property
    def work(self) -> float:
        return float(NUM_CHILDREN * self.spec.dim * STEP * self.spec.runs * 2 * (self.spec.repeats + 1))

    @property
    def programs(self) -> list[Program]:
        task, count = FunctionTask(self.spec.dim, reading=Reading.PRINT), self.spec.runs  # the programs of the study
        per_method = [(Enter(method, task, count), Advance(method, task, count)) for method in ("FMR", "GESMR")]
        return [First(task, count), *(program for pair in per_method for program in pair)]

    def run(self, compiled: Compiled, tick: Tick) -> dict[str, np.ndarray]:
        """`seconds f[1, repeats, 2]` per generation, fixed rate and GESMR."""
        first, enter_fixed, fixed, enter_gesmr, gesmr = map(compiled, self.programs)
        data = function_lanes("sphere", self.spec.dim, [1.0] * self.spec.runs, range(self.spec.runs), False)
        population, fitness = first(data)
        states = [enter(data.key, population, fitness, None) for enter in (enter_fixed, enter_gesmr)]
        seconds = np.zeros((1, self.spec.repeats + 1, 2))
        for repeat in range(self.spec.repeats + 1):
            for i, advance in enumerate((fixed, gesmr)):
                start = time.perf_counter()
                states[i], *_ = jax.block_until_ready(advance(states[i], data))
                seconds[0, repeat, i] = (time.perf_counter() - start) / STEP
                tick(NUM_CHILDREN * self.spec.dim * STEP * self.spec.runs)
        return {"seconds": seconds[:, 1:]}  # without the first turn, which warms up


def _memory_per_lane(dim: int, populations: int) -> int:
    """Bytes, roughly: two buffers of the population and what evaluating it needs."""
    return 4 * 4 * (NUM_CHILDREN + 1) * dim * populations


def subset(name: str, chosen: tuple | None, default: tuple, known: Iterable) -> tuple:
    """`chosen`, in the study's order, if every one is known."""
    if chosen is None:
        return default
    for item in chosen:
        _checks.choice(name, item, tuple(known))
    return tuple(item for item in known if item in chosen)
