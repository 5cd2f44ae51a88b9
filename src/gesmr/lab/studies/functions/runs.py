"""The paper's main study (Tables 1–3): six functions, four dimensions, two spreads, eleven methods, forty seeds."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np

from ...run.batch import BatchJob, Histories, batches, populations_of
from ...run.batch import Run as BatchRun
from ...run.compilation import Program
from ...run.function_task import FunctionRun, FunctionTask, function_lanes, lanes_of
from ...run.lanes import METHODS, NUM_CHILDREN, STEP, advance, enter, first
from ...run.reading import PAPER_FUNCTIONS, Reading
from ...run.specs import GetProgram, Job, Selection, Study, Tick

GENERATIONS = {2: 100, 30: 300, 100: 1000, 1000: 2500}  # T of each dimension
LINEAR_GENERATIONS = 100
STDS = (1.0, 10.0)
REVISION = 2  # raised when the same specification would give other random draws
POINTS = 500  # of a history that are kept


@dataclass(frozen=True)
class Run(FunctionRun, BatchRun):
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


class FunctionsStudy(Study[Run | Cost]):
    name = "functions"
    title = "Six test functions: Tables 1–3, curves and claims 1–7 and 14"
    takes = ("functions", "dims", "methods", "seeds", "shifted", "as_text")

    def plan(self, selection: Selection) -> Sequence[Run | Cost]:
        dims = selection.chosen("dims", GENERATIONS, [d for d in GENERATIONS if d <= 100 or not selection.quick])
        functions = selection.chosen("functions", PAPER_FUNCTIONS)
        methods = selection.chosen("methods", METHODS)
        seeds = selection.seeds_or(5 if selection.quick else 40)
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

    def jobs(self, specs: Sequence[Run | Cost], memory: int) -> Sequence[Job]:
        """Runs of one function, dimension and method together; those with a fixed rate in one batch.

        The widest problems come first, so that later programs compile while they run.
        """

        def most(run: Run, methods: Sequence[str]) -> int:
            population = 4 * (NUM_CHILDREN + 1) * run.dim
            return memory // (4 * population * populations_of(methods))  # two buffers, and what evaluating needs

        runs = [spec for spec in specs if isinstance(spec, Run)]
        jobs = [RunJob(batch) for batch in batches(runs, ("std", "seed"), most)]
        jobs.sort(key=lambda job: -job.one.dim)
        return [*jobs, *(CostJob((spec,)) for spec in specs if isinstance(spec, Cost))]


@dataclass(frozen=True)
class RunJob(BatchJob[Run]):
    @property
    def label(self) -> str:
        how = ("shifted " if self.one.shifted else "") + ("as text " if self.task.reading is Reading.TEXT else "")
        return f"{how}{self.one.function} d={self.one.dim} {', '.join(self.methods)}"

    @property
    def task(self) -> FunctionTask:
        return FunctionTask(self.one.dim, function=self.one.function, reading=Reading(self.one.reading))

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        return summary(self.evolve(compiled, tick, lanes_of(self.lanes)))


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
class CostJob(Job[Cost]):
    """GESMR and a fixed rate by turns, with the programs of the study."""

    alone = True

    @property
    def label(self) -> str:
        return f"time of a generation d={self.one.dim}"

    @property
    def work(self) -> float:
        return float(self._genes_of_a_turn * 2 * (self.one.repeats + 1))

    @property
    def evaluation(self) -> float:
        return float(self.one.dim)

    @property
    def _genes_of_a_turn(self) -> int:
        return NUM_CHILDREN * self.one.dim * STEP * self.one.runs

    @property
    def programs(self) -> list[Program]:
        task, count = FunctionTask(self.one.dim, reading=Reading.PRINT), self.one.runs  # the programs of the study
        per_method = [(enter((method,), task, count), advance(method, task, count)) for method in ("FMR", "GESMR")]
        return [first(task, count), *(program for pair in per_method for program in pair)]

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """`seconds f[1, repeats, 2]` per generation, fixed rate and GESMR."""
        first, enter_fixed, fixed, enter_gesmr, gesmr = map(compiled, self.programs)
        data = function_lanes("sphere", self.one.dim, [1.0] * self.one.runs, range(self.one.runs), False)
        population, fitness = first(data)
        states = [enter(data.key, population, fitness, None) for enter in (enter_fixed, enter_gesmr)]
        seconds = np.zeros((1, self.one.repeats + 1, 2))
        for repeat in range(self.one.repeats + 1):
            for i, go_on in enumerate((fixed, gesmr)):
                start = time.perf_counter()
                states[i], *_ = jax.block_until_ready(go_on(states[i], data))
                seconds[0, repeat, i] = (time.perf_counter() - start) / STEP
                tick(self._genes_of_a_turn)
        return {"seconds": seconds[:, 1:]}  # without the first turn, which warms up


STUDY = FunctionsStudy()
