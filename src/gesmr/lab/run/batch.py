"""Whole runs, many at a time: what any study that compares methods on a task computes."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import numpy as np

from ...oracles import LAMR, OFMR
from .compilation import Program
from .lanes import FIXED_RATES, STEP, Lanes, Task, advance, enter, first, settle
from .specs import GetProgram, Job, Spec, Tick, grouped, parts


class Histories(NamedTuple):
    """Of R runs of T generations in S steps."""

    first: np.ndarray  # f[R]  elite value of the first population
    elite: np.ndarray  # f[R, T]
    log_rate: np.ndarray  # f[R, T]  with which a generation's children were made
    next_log_rate: np.ndarray  # f[R]  with which those of one more would have been
    best: np.ndarray | None = None  # f[R, S, d]  the best solution after each step, if asked for


class Run(Spec):
    """A run of a method, on a lane of its own."""

    method: str
    generations: int


R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class BatchJob(Job[R]):
    """Runs of a method; of several if all have fixed rates and the same lanes, method by method."""

    keep_best: ClassVar[bool] = False

    @property
    @abstractmethod
    def task(self) -> Task: ...

    @property
    def step(self) -> int:
        """Generations per call."""
        return STEP

    @property
    def weight(self) -> float:
        """How much work a gene is."""
        return 1.0

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.method for run in self.specs))

    @property
    def lanes(self) -> tuple[R, ...]:
        """Runs of the first method, a lane each: those of the others are on the same lanes."""
        return self.specs[: len(self.specs) // len(self.methods)]

    @property
    def programs(self) -> Sequence[Program]:
        programs = [self._first, self._enter, *(program for _, program in self._advances(self._ways))]
        if "OFMR" in self.methods:
            programs += [self._settle, *(program for _, program in self._advances(1))]
        return list(dict.fromkeys(programs))

    @property
    def work(self) -> float:
        """Genes that are mutated, by their weight."""
        settled = self._work(self.one.generations, 1) if "OFMR" in self.methods else 0.0
        return self._work(self.one.generations, self._ways) + settled

    @property
    def evaluation(self) -> float:
        return self.task.num_genes * self.weight

    def evolve(self, compiled: GetProgram, tick: Tick, lanes: Lanes) -> Histories:
        """Of all runs, given the data of their lanes."""
        start = lanes.key, *compiled(self._first)(lanes._replace(setting=None))
        states = compiled(self._enter)(*start, lanes.setting)
        first_elite = np.asarray(start[-1]).min(axis=1)
        found = self._evolve(compiled, tick, states, lanes, np.tile(first_elite, self._ways))
        if "OFMR" not in self.methods:
            return found
        begin = self.methods.index("OFMR") * len(self.lanes)
        end = begin + OFMR().grid * len(self.lanes)
        trials = found.elite[begin:end, -1].reshape(-1, len(self.lanes))
        settled = self._evolve(compiled, tick, compiled(self._settle)(*start, trials), lanes, first_elite)
        return jax.tree.map(lambda all, best: np.concatenate([all[:begin], best, all[end:]]), found, settled)

    @property
    def _method(self) -> str:
        return "FMR" if self.methods[0] in FIXED_RATES else self.methods[0]

    @property
    def _ways(self) -> int:
        """Populations of a lane: one of each method, but all trials of OFMR."""
        return len(self.methods) + (OFMR().grid - 1 if "OFMR" in self.methods else 0)

    @property
    def _first(self) -> Program:
        return first(self.task, len(self.lanes))

    @property
    def _enter(self) -> Program:
        return enter(self.methods, self.task, len(self.lanes))

    @property
    def _settle(self) -> Program:
        return settle(self.task, len(self.lanes))

    def _work(self, generations: int, ways: int) -> float:
        looking_ahead = LAMR().grid if self._method == "LAMR-100" else 0
        children = self.task.num_children * self.task.num_genes * generations
        return float(children * len(self.lanes) * (ways + looking_ahead)) * self.weight

    def _advances(self, ways: int) -> list[tuple[int, Program]]:
        at_once = LAMR().grid if self._method == "LAMR-100" else ways
        task = self.task.tailored(len(self.lanes) * at_once)
        step = STEP if self._method == "LAMR-100" else self.step
        return advances(self._method, task, len(self.lanes), self.one.generations, ways, step)

    def _evolve(self, compiled: GetProgram, tick: Tick, states: Any, lanes: Lanes, first: np.ndarray) -> Histories:
        """Whole runs from `states`, whose elite values are `first`."""
        ways = len(first) // len(self.lanes)
        found: list[Any] = []
        for generations, program in self._advances(ways):
            states, *histories = compiled(program)(states, lanes)
            found.append((*histories, _best(states) if self.keep_best else None))
            if len(found) > 1:  # fetched one step behind, so that the device never waits for this loop
                found[-2] = jax.device_get(found[-2])
            tick(self._work(generations, ways))
        found[-1] = jax.device_get(found[-1])
        elites, log_rates, next_log_rates, bests = zip(*found, strict=True)
        return Histories(
            first,
            np.concatenate(elites, axis=1),
            np.concatenate(log_rates, axis=1),
            next_log_rates[-1],
            np.stack(bests, axis=1) if self.keep_best else None,
        )


_best = jax.jit(jax.vmap(lambda state: state.best))  # the best solution of each state, `f[L, d]`


def advances(
    method: str, task: Task, lanes: int, generations: int, ways: int = 1, step: int = STEP
) -> list[tuple[int, Program]]:
    """The programs of a whole run, step by step, with how many generations each is."""
    whole, left = divmod(generations, step)
    steps = [step] * whole + [left] * (left > 0)
    return [(generations, advance(method, task, lanes, ways, generations)) for generations in steps]


def batches(
    runs: Iterable[R],
    lane: tuple[str, ...],
    most: Callable[[R, Sequence[str]], int],
    fixed_rates: Sequence[str] = FIXED_RATES,
) -> list[tuple[R, ...]]:
    """Runs for `BatchJob`s: those of a method that differ in the fields `lane` alone, at most `most` lanes at a time.

    The methods `fixed_rates` share a batch if they have the same lanes. `most` is asked with a run and the methods.
    """

    def what(run: R) -> tuple:
        return tuple(getattr(run, name) for name in run.__dataclass_fields__ if name not in ("method", *lane))

    def batch_of(mine: tuple[R, ...]) -> tuple:
        method = "FMR" if mine[0].method in fixed_rates else mine[0].method
        return what(mine[0]), method, tuple(tuple(getattr(run, name) for name in lane) for run in mine)

    found: list[tuple[R, ...]] = []
    by_method = grouped(runs, lambda run: (what(run), run.method))
    for together in grouped(by_method.values(), batch_of).values():
        lanes = max(1, most(together[0][0], [mine[0].method for mine in together]))
        found += [tuple(chain(*cut)) for cut in zip(*(parts(mine, lanes) for mine in together), strict=True)]
    return found


def populations_of(methods: Iterable[str]) -> int:
    """How many populations a lane has at once, LAMR-100's trials included."""
    return sum(OFMR().grid if method in ("OFMR", "LAMR-100") else 1 for method in methods)
