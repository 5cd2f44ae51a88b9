"""GESMR against CMA-ES (pycma) in 100 dimensions: value for evaluations and for seconds, and what a generation costs.

Neither is tuned. CMA-ES has pycma's defaults but a population of 101, as many as GESMR holds; it starts at the first
member of GESMR's first population, with σ₀ = std or as the paper's authors had it, and stops when pycma says so. It
computes and is evaluated in float64, GESMR in float32, by the same formulas.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import jax
import numpy as np

from ...run.batch import advances
from ...run.compilation import Program
from ...run.function_task import FunctionRun, FunctionTask, function_lanes, lanes_of
from ...run.lanes import NUM_CHILDREN, STEP, advance, enter, first
from ...run.specs import GetProgram, Job, Selection, Study, Tick, grouped
from . import pycma
from .pycma import POPULATION, STRATEGIES, Trace

FUNCTIONS = ("ackley", "griewank", "rastrigin", "rosenbrock", "sphere")
QUICK_FUNCTIONS = ("ackley", "griewank", "rosenbrock", "sphere")
AUTHORS_FUNCTIONS = ("ackley", "griewank", "rastrigin", "rosenbrock")  # of the paper's authors, by their public code
AUTHORS_SIGMA = 0.1  # and their σ₀
METHODS = ("GESMR", "CMA-ES", "sep-CMA-ES")  # axis 1 of a duel's arrays
COMPARISONS = ("paper", "time", "evaluations")  # what CMA-ES gets: 50 generations, as long, as many evaluations
SHORT = 50  # generations of CMA-ES in the paper's comparison
POINTS = 200  # of a curve that are kept, and generation `SHORT`
DIMS = (10, 100, 300, 1000, 2000, 5000, 10_000)  # where a generation's cost is measured
QUICK_DIMS = (10, 100, 1000, 10_000)
REVISION = 2  # raised when the same specification would give other random draws


@dataclass(frozen=True)
class Duel(FunctionRun):
    """GESMR, CMA-ES and separable CMA-ES from one start, one after the other."""

    kind: ClassVar[str] = "duel"
    function: str
    std: float
    shifted: bool
    seed: int
    cmaes_generations: int  # at equal evaluations
    gesmr_generations: int = 1000
    dim: int = 100
    num_children: int = NUM_CHILDREN
    sigma: float | None = None  # σ₀ of CMA-ES; None: std
    revision: int = REVISION

    @property
    def sigma0(self) -> float:
        return self.std if self.sigma is None else self.sigma


@dataclass(frozen=True)
class Cost:
    """Time and memory of a generation of one method on Sphere."""

    kind: ClassVar[str] = "generation"
    method: str
    dim: int
    generations: int  # in a turn; full CMA-ES decomposes its matrix about once in d/530 generations
    turns: int  # that are measured
    warm_ups: int = 1  # turns before, that are not
    num_children: int = NUM_CHILDREN
    revision: int = REVISION


class CmaesStudy(Study[Duel | Cost]):
    name = "cmaes"
    title = "GESMR against CMA-ES: equal time, equal evaluations, cost of a generation, claims 13, 16"
    takes = ("functions", "seeds")

    def plan(self, selection: Selection) -> Sequence[Duel | Cost]:
        quick = selection.quick
        functions = selection.chosen("functions", FUNCTIONS, QUICK_FUNCTIONS if quick else FUNCTIONS)
        seeds = {shifted: selection.seeds_or((2 if shifted else 3) if quick else 10) for shifted in (False, True)}
        duels = [
            Duel(function, std, shifted, seed, cmaes_generations=500 if quick and shifted else 1000)
            for shifted in (False, True)
            for std in ((1.0,) if quick else (1.0, 10.0))
            for function in functions
            for seed in seeds[shifted]
        ]
        authors = [
            Duel(function, 1.0, False, seed, cmaes_generations=1000, sigma=AUTHORS_SIGMA)
            for function in functions
            if function in AUTHORS_FUNCTIONS and not quick
            for seed in seeds[False]
        ]
        return [*duels, *authors, *(_cost(method, dim) for method in METHODS for dim in _dims(method, quick))]

    def jobs(self, specs: Sequence[Duel | Cost], memory: int) -> Sequence[Job]:
        """Duels that differ in their seed alone together; every cost by itself."""
        if specs:
            for module in ("cma", "threadpoolctl"):  # missed before anything is computed
                pycma.extra(module)
        duels = grouped((spec for spec in specs if isinstance(spec, Duel)), lambda duel: replace(duel, seed=0))
        costs = [CostJob((spec,)) for spec in specs if isinstance(spec, Cost)]
        return [*map(DuelJob, duels.values()), *costs]


def _dims(method: str, quick: bool) -> tuple[int, ...]:
    """Full CMA-ES needs minutes for a turn at the last, where there is memory for it at all."""
    return QUICK_DIMS[:-1] if quick and method == "CMA-ES" else QUICK_DIMS if quick else DIMS


def _cost(method: str, dim: int) -> Cost:
    widest = dim == DIMS[-1]
    if method == "CMA-ES":
        generations = {10: 50, 100: 50, 300: 20, 1000: 4, 2000: 8, 5000: 10, 10_000: 20}[dim]
        return Cost(method, dim, generations, turns=1 if dim >= 5000 else 3, warm_ups=0 if widest else 1)
    return Cost(method, dim, 10 if method == "sep-CMA-ES" else 20 if widest else STEP, turns=3 if widest else 5)


@dataclass(frozen=True)
class DuelJob(Job[Duel]):
    """Duels that differ in their seed alone."""

    alone = True

    @property
    def label(self) -> str:
        one = self.one
        where = "shifted " if one.shifted else ""
        return f"{where}{one.function} std={one.std:g} σ₀={one.sigma0:g}: {', '.join(METHODS)}, {len(self.specs)} seeds"

    @property
    def work(self) -> float:
        return float(2 * len(self.specs) * self.one.cmaes_generations * self._genes)

    @property
    def evaluation(self) -> float:
        return float(self.one.dim)

    @property
    def _genes(self) -> int:
        return POPULATION * self.one.dim

    @property
    def programs(self) -> list[Program]:
        task = FunctionTask(self.one.dim)
        return [first(task, 1), enter(("GESMR",), task, 1), *dict.fromkeys(program for _, program in self._advances)]

    @property
    def _advances(self) -> list[tuple[int, Program]]:
        return advances("GESMR", FunctionTask(self.one.dim), 1, self.one.gesmr_generations)

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """`generation`, `evaluations`, `seconds` and `best` [S, methods, POINTS + 1], padded with −1 and NaN;
        `values` and `reached` (generations) [S, comparisons, methods]; `stopped` [S, methods]."""
        self._gesmr(compiled, self.one)  # warms up
        with pycma.one_thread():
            summaries = [_summary(self._duel(compiled, tick, spec), spec.cmaes_generations) for spec in self.specs]
        return {name: np.stack([summary[name] for summary in summaries]) for name in summaries[0]}

    def _duel(self, compiled: GetProgram, tick: Tick, spec: Duel) -> list[Trace]:
        gesmr, start, shift = self._gesmr(compiled, spec)
        evaluate = pycma.objective(spec.function, shift)
        traces = [gesmr]
        for method in METHODS[1:]:
            begin = partial(STRATEGIES[method], start, spec.sigma0, spec.seed)
            pycma.run_cmaes(begin, evaluate, 2)  # warms up
            limits = spec.cmaes_generations, gesmr.seconds[-1]
            traces.append(pycma.run_cmaes(begin, evaluate, *limits, lambda n: tick(self._genes * n)))
        return traces

    def _gesmr(self, compiled: GetProgram, spec: Duel) -> tuple[Trace, np.ndarray, np.ndarray]:
        """A run of GESMR, with the first member of its first population and the shift, f[d]."""
        data = jax.block_until_ready(lanes_of([spec]))
        first, enter = map(compiled, self.programs[:2])
        advances = [(generations, compiled(program)) for generations, program in self._advances]
        done, clock = [0], [0.0]
        begin = time.perf_counter()
        population, fitness = first(data)
        start = np.asarray(population[0, 0])
        states, best = enter(data.key, population, fitness, None), [np.min(fitness, axis=1)]
        for generations, go_on in advances:
            states, elite, *_ = go_on(states, data)
            best.append(np.asarray(elite[0]))
            done.append(done[-1] + generations)
            clock.append(time.perf_counter() - begin)
        generation = np.arange(spec.gesmr_generations + 1)
        seconds = np.interp(generation, done, clock)
        evaluations = POPULATION + NUM_CHILDREN * generation
        values = np.concatenate(best).astype(np.float64)
        return Trace(generation, evaluations, seconds, values), start, np.asarray(data.own.shift[0])


def _summary(traces: Sequence[Trace], cmaes_generations: int) -> dict[str, np.ndarray]:
    """What is kept of a duel's traces, in the order of `METHODS`."""
    kept = [_kept(len(trace.best)) for trace in traces]
    arrays: dict[str, np.ndarray] = {
        name: np.stack([_padded(getattr(t, name)[k], empty) for t, k in zip(traces, kept, strict=True)])
        for name, empty in (("generation", -1), ("evaluations", -1), ("seconds", np.nan), ("best", np.nan))
    }
    gesmr, *others = traces
    whole = len(gesmr.best) - 1
    places = {
        "paper": [whole, *(min(SHORT, len(t.best)) - 1 for t in others)],
        "time": [whole, *(int(np.searchsorted(t.seconds, gesmr.seconds[-1], side="right")) - 1 for t in others)],
        "evaluations": [min(whole, cmaes_generations), *(min(cmaes_generations, len(t.best)) - 1 for t in others)],
    }
    at = [[(t, i) for t, i in zip(traces, places[name], strict=True)] for name in COMPARISONS]
    arrays["values"] = np.array([[t.best[i] if i >= 0 else np.nan for t, i in row] for row in at])
    arrays["reached"] = np.array([[t.generation[i] if i >= 0 else 0 for t, i in row] for row in at])
    arrays["stopped"] = np.array([t.stopped for t in traces], "U60")
    return arrays


def _kept(generations: int) -> np.ndarray:
    """Which of a run's generations are kept: ever fewer, the first, the last, and CMA-ES's `SHORT`-th."""
    spread = np.round(np.geomspace(1, generations, POINTS)).astype(int)
    return np.unique([*spread, min(SHORT, generations)]) - 1


def _padded(values: np.ndarray, empty: float) -> np.ndarray:
    return np.concatenate([values, np.full(POINTS + 1 - len(values), empty, values.dtype)])


@dataclass(frozen=True)
class CostJob(Job[Cost]):
    alone = True

    @property
    def label(self) -> str:
        return f"a generation of {self.one.method} d={self.one.dim}"

    @property
    def work(self) -> float:
        return float((self.one.turns + self.one.warm_ups) * self._genes)

    @property
    def evaluation(self) -> float:
        return float(self.one.dim)

    @property
    def _genes(self) -> int:
        """In a turn."""
        return NUM_CHILDREN * self.one.dim * self.one.generations

    @property
    def programs(self) -> list[Program]:
        if self.one.method != "GESMR":
            return []
        task = FunctionTask(self.one.dim)
        advanced = advance("GESMR", task, 1, generations=self.one.generations)
        return [first(task, 1), enter(("GESMR",), task, 1), advanced]

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """`seconds` per generation `f[1, turns]` and `bytes f[1]` at the peak; NaN if there is not enough memory."""
        try:
            seconds, size = self._gesmr(compiled, tick) if self.one.method == "GESMR" else self._cmaes(tick)
        except MemoryError:
            seconds, size = np.full(self.one.turns, np.nan), np.nan
            tick(self.work)
        return {"seconds": np.asarray(seconds)[None], "bytes": np.array([size], np.float64)}

    def _turns(self, turn: Callable[[], None], tick: Tick) -> np.ndarray:
        seconds = []
        for _ in range(self.one.turns + self.one.warm_ups):
            begin = time.perf_counter()
            turn()
            seconds.append((time.perf_counter() - begin) / self.one.generations)
            tick(self._genes)
        return np.array(seconds[self.one.warm_ups :])

    def _gesmr(self, compiled: GetProgram, tick: Tick) -> tuple[np.ndarray, float]:
        first, enter, advance = map(compiled, self.programs)
        data = function_lanes("sphere", self.one.dim, [1.0], [0], False)
        states = enter(data.key, *first(data), None)

        def turn() -> None:
            nonlocal states
            states, *_ = jax.block_until_ready(advance(states, data))

        used: Any = advance.memory_analysis()  # type: ignore[attr-defined]
        outside = used.argument_size_in_bytes + used.output_size_in_bytes - used.alias_size_in_bytes
        return self._turns(turn, tick), float(outside + used.temp_size_in_bytes)

    def _cmaes(self, tick: Tick) -> tuple[np.ndarray, float]:
        dim = self.one.dim
        start = np.random.default_rng(0).standard_normal(dim)
        evaluate = pycma.objective("sphere", np.zeros(dim))
        begin = partial(STRATEGIES[self.one.method], start, 1.0, 0)
        with pycma.one_thread():
            seconds = self._turns(partial(pycma.run_generations, begin(), evaluate, self.one.generations), tick)
            peak = pycma.traced_memory(begin, evaluate)
        return seconds, float(peak + (8 * pycma.EIGH_MATRICES * dim**2 if self.one.method == "CMA-ES" else 0))


STUDY = CmaesStudy()
