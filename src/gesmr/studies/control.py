"""The paper's control tasks (Appendix D): four tasks, eleven methods, five seeds, a hundred generations (claim 12)."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jax import Array

from .. import _checks, noise
from ..problems.control import EPISODES, TASKS, Control, get
from ..problems.networks import UNIFORM, Policy
from .base import Compiled, Group, Program, Selection, Spec, Tick
from .batch import Batch, parts, populations_of
from .functions import subset
from .lanes import FIXED_RATES, METHODS, NUM_CHILDREN, ORACLES, Lanes, compile_for, shape
from .reading import Reading

GENERATIONS = 100
HELD_OUT = 100  # episodes, the same for all runs of a task
REVISION = 2  # raised when the same specification would give other random draws
_STEP = 25  # generations per call
_POPULATIONS_ON_A_CPU = 10  # at once: a minute or two of the longest task


@dataclass(frozen=True)
class ControlRun:
    """One run of one method on one task. Runs of a seed share their first population and their episodes."""

    kind: ClassVar[str] = "control"
    task: str
    method: str
    seed: int
    generations: int = GENERATIONS
    episodes: int = EPISODES
    init: str = UNIFORM
    num_children: int = NUM_CHILDREN
    revision: int = REVISION


class ControlStudy:
    name: ClassVar[str] = "control"
    title: ClassVar[str] = "Control: CartPole, Pendulum, Acrobot and MountainCar, claim 12"
    profiles: ClassVar[tuple[str, ...]] = ("quick", "paper")

    def specs(self, selection: Selection) -> Sequence[ControlRun]:
        """`quick` has three seeds, half of the generations and no oracles."""
        selection.check(self.name, ("tasks", "methods", "seeds"))
        quick = _checks.choice("profile", selection.profile, self.profiles) == "quick"
        tasks = subset("tasks", selection.tasks, tuple(TASKS), TASKS)
        usual = tuple(method for method in METHODS if method not in ORACLES) if quick else METHODS
        methods = subset("methods", selection.methods, usual, METHODS)
        seeds = selection.seeds_or(3 if quick else 5)
        generations = GENERATIONS // 2 if quick else GENERATIONS
        return [ControlRun(task, method, seed, generations) for task in tasks for method in methods for seed in seeds]

    def groups(self, specs: Sequence[Spec], memory: int) -> Sequence[Group]:
        """Runs of one task and method together; on a GPU also those of all fixed rates. The longest episodes first."""
        seeds_of: dict[tuple, list[int]] = defaultdict(list)
        for spec in specs:
            if isinstance(spec, ControlRun):
                seeds_of[spec.task, spec.generations, spec.episodes, spec.init, spec.method].append(spec.seed)
        batches: dict[tuple, list[str]] = defaultdict(list)
        on_a_cpu = jax.default_backend() == "cpu"
        for (*what, method), seeds in seeds_of.items():
            family = "FMR" if method in FIXED_RATES and not (on_a_cpu and method == "OFMR") else method
            batches[(*what, family, tuple(seeds))].append(method)
        groups = []
        for (task, generations, episodes, init, _, seeds), methods in batches.items():
            populations = populations_of(methods)
            most = max(1, memory // (populations * _memory_of_a_population(task, episodes)))
            if on_a_cpu:
                most = min(most, max(1, _POPULATIONS_ON_A_CPU // populations))
            groups += [
                ControlGroup(ControlTask(task, episodes, init), tuple(methods), part, generations)
                for part in parts(seeds, most)
            ]
        return sorted(groups, key=lambda group: -group.work)


def _memory_of_a_population(task: str, episodes: int) -> int:
    """Bytes, roughly: two buffers of parameters, their other layout, and hidden layers of every episode."""
    policy = Policy(TASKS[task].observations, TASKS[task].outputs)
    return 4 * (NUM_CHILDREN + 1) * (4 * policy.num_genes + 2 * episodes * policy.hidden)


@dataclass(frozen=True)
class ControlTask:
    """A control task for lanes that each have a key: of the first population, of the run and of its episodes."""

    name: str
    episodes: int = EPISODES
    init: str = UNIFORM
    num_children: int = NUM_CHILDREN
    reading: Reading = Reading.TEXT

    @property
    def num_genes(self) -> int:
        return Policy(TASKS[self.name].observations, TASKS[self.name].outputs).num_genes

    def shapes(self, lanes: int) -> tuple[None, noise.Key]:
        words = shape(lanes, dtype=np.uint32)
        return None, noise.Key(words, words)

    def first(self, shared: None, own: noise.Key, key: noise.Key) -> Array:
        return self.objective(shared, own).init(key, self.num_children + 1)

    def objective(self, shared: None, own: noise.Key) -> Control:
        return get(self.name, self.episodes, own, init=self.init)

    def tailored(self, populations: int) -> "ControlTask":
        return self


def control_lanes(seeds: Sequence[int]) -> Lanes:
    """One lane per seed. All methods share first populations and episodes, seed by seed."""
    base, seed = noise.key(2022), np.asarray(seeds, np.uint32)
    return Lanes(None, noise.fold_in(base, seed, 1), noise.fold_in(base, seed))


@dataclass(frozen=True)
class HeldOut:
    """The returns of a policy on episodes that no run has seen, `f[HELD_OUT]`."""

    task: ControlTask

    def compile(self) -> Callable:
        return compile_for(self.function, shape(self.task.num_genes))

    def function(self, policy: Array) -> Array:
        return get(self.task.name).held_out(HELD_OUT).returns(policy)


@dataclass(frozen=True)
class ControlGroup:
    task: ControlTask
    methods: tuple[str, ...]  # several only if all have fixed rates
    seeds: tuple[int, ...]
    generations: int
    alone: ClassVar[bool] = False

    @property
    def label(self) -> str:
        return f"{self.task.name} {', '.join(self.methods)}"

    @property
    def specs(self) -> list[ControlRun]:
        task, generations = self.task, self.generations
        return [
            ControlRun(task.name, method, seed, generations, task.episodes, task.init)
            for method in self.methods
            for seed in self.seeds
        ]

    @property
    def work(self) -> float:
        """Steps of episodes rather than genes: tasks differ in their time limits."""
        return self._batch.work * self._weight

    @property
    def programs(self) -> list[Program]:
        return [*self._batch.programs, HeldOut(self.task)]

    @property
    def _batch(self) -> Batch:
        return Batch(self.task, self.methods, len(self.seeds), self.generations, _STEP, keep_best=True)

    @property
    def _weight(self) -> float:
        return TASKS[self.task.name].steps / 200

    def run(self, compiled: Compiled, tick: Tick) -> dict[str, np.ndarray]:
        """Returns, not values: `elite f[R, T]` over the run's own episodes, and of the best policy on others."""
        histories = self._batch.run(compiled, lambda work: tick(work * self._weight), control_lanes(self.seeds))
        assert histories.best is not None
        best = histories.best[:, -1]
        held_out = compiled(HeldOut(self.task))
        return {
            "elite": -histories.elite.astype(np.float32),
            "log_rate": histories.log_rate.astype(np.float32),
            "best": best.astype(np.float32),
            "held_out": np.array([held_out(policy) for policy in best], np.float32),
        }
