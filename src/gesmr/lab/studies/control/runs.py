"""The paper's control tasks (Appendix D): four tasks, eleven methods, five seeds, a hundred generations (claim 12).

A run's five episodes stay the same, and policies take the action they prefer. The authors' program samples actions and
has fresh episodes at every evaluation (github.com/akarshkumar0101/evolved-neuroevolution): `fresh` runs, beside ours.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jax import Array

from .... import _checks, noise
from ....problems.control import EPISODES, TASKS, Control, get
from ....problems.networks import UNIFORM, Policy
from ...run.batch import Batch, parts, populations_of
from ...run.lanes import FIXED_RATES, METHODS, NUM_CHILDREN, ORACLES, Lanes, compile_for, shape
from ...run.reading import Reading
from ...run.specs import Compiled, Job, Program, Selection, Spec, Tick
from ..functions.runs import subset

GENERATIONS, SEEDS = 100, 5
HELD_OUT = 100  # episodes, the same for all runs of a task
REVISION = 2  # raised when the same specification would give other random draws
_STEP = 25  # generations per call
_POPULATIONS_ON_A_CPU = 10  # at once: a minute or two of the longest task


@dataclass(frozen=True)
class ControlRun:
    """One run of one method on one task. Runs of a seed share their first population and their episodes.

    In `fresh` runs actions are sampled, where there are a few to choose from, and every candidate has episodes of its
    own at every evaluation.
    """

    kind: ClassVar[str] = "control"
    task: str
    method: str
    seed: int
    generations: int = GENERATIONS
    episodes: int = EPISODES
    init: str = UNIFORM
    fresh: bool = False
    num_children: int = NUM_CHILDREN
    revision: int = REVISION


class ControlStudy:
    name: ClassVar[str] = "control"
    title: ClassVar[str] = "Control: CartPole, Pendulum, Acrobot and MountainCar, claim 12"
    profiles: ClassVar[tuple[str, ...]] = ("quick", "paper")

    def specs(self, selection: Selection) -> Sequence[ControlRun]:
        """`paper` has fresh runs too, without oracles; `quick` three seeds, half of the generations and no oracles."""
        selection.check(self.name, ("tasks", "methods", "seeds"))
        quick = _checks.choice("profile", selection.profile, self.profiles) == "quick"
        tasks = subset("tasks", selection.tasks, tuple(TASKS), TASKS)
        usual = tuple(method for method in METHODS if method not in ORACLES) if quick else METHODS
        methods = subset("methods", selection.methods, usual, METHODS)
        ranked = tuple(method for method in methods if method not in ORACLES)
        seeds = selection.seeds_or(3 if quick else SEEDS)
        generations = GENERATIONS // 2 if quick else GENERATIONS
        return [
            ControlRun(task, method, seed, generations, fresh=fresh)
            for fresh, chosen in ((False, methods), (True, () if quick else ranked))
            for task in tasks
            for method in chosen
            for seed in seeds
        ]

    def jobs(self, specs: Sequence[Spec], memory: int) -> Sequence[Job]:
        """Runs of one task and method together; on a GPU also those of all fixed rates.

        The longest episodes first; fresh runs after the others.
        """
        seeds_of: dict[tuple, list[int]] = defaultdict(list)
        for spec in specs:
            if isinstance(spec, ControlRun):
                what = spec.task, spec.generations, spec.episodes, spec.init, spec.fresh, spec.method
                seeds_of[what].append(spec.seed)
        batches: dict[tuple, list[str]] = defaultdict(list)
        on_a_cpu = jax.default_backend() == "cpu"
        for (*what, method), seeds in seeds_of.items():
            family = "FMR" if method in FIXED_RATES and not (on_a_cpu and method == "OFMR") else method
            batches[(*what, family, tuple(seeds))].append(method)
        groups: list[ControlJob] = []
        for (task, generations, episodes, init, fresh, _, seeds), methods in batches.items():
            populations = populations_of(methods)
            most = max(1, memory // (populations * _memory_of_a_population(task, episodes)))
            if on_a_cpu:
                most = min(most, max(1, _POPULATIONS_ON_A_CPU // populations))
            groups += [
                ControlJob(ControlTask(task, episodes, init, fresh), tuple(methods), part, generations)
                for part in parts(seeds, most)
            ]
        groups.sort(key=lambda group: (group.task.fresh, -group.work))
        return groups


def _memory_of_a_population(task: str, episodes: int) -> int:
    """Bytes, roughly: two buffers of parameters, their other layout, and hidden layers of every episode."""
    policy = Policy(TASKS[task].observations, TASKS[task].outputs)
    return 4 * (NUM_CHILDREN + 1) * (4 * policy.num_genes + 2 * episodes * policy.hidden)


@dataclass(frozen=True)
class ControlTask:
    """A control task for lanes that each have a key: of the first population, of the run and of its episodes.

    If `fresh`, episodes come from the run's key instead.
    """

    name: str
    episodes: int = EPISODES
    init: str = UNIFORM
    fresh: bool = False
    num_children: int = NUM_CHILDREN
    reading: Reading = Reading.TEXT

    @property
    def is_random(self) -> bool:
        return self.fresh

    @property
    def sample(self) -> bool:
        return self.fresh and TASKS[self.name].discrete

    @property
    def num_genes(self) -> int:
        return Policy(TASKS[self.name].observations, TASKS[self.name].outputs).num_genes

    def shapes(self, lanes: int) -> tuple[None, noise.Key]:
        words = shape(lanes, dtype=np.uint32)
        return None, noise.Key(words, words)

    def first(self, shared: None, own: noise.Key, key: noise.Key) -> Array:
        return self.objective(shared, own).init(key, self.num_children + 1)

    def objective(self, shared: None, own: noise.Key) -> Control:
        return get(self.name, self.episodes, own, init=self.init, sample=self.sample, apart=self.fresh)

    def tailored(self, populations: int) -> "ControlTask":
        return self


def control_lanes(seeds: Sequence[int]) -> Lanes:
    """One lane per seed. All methods share first populations and episodes, seed by seed."""
    base, seed = noise.key(2022), np.asarray(seeds, np.uint32)
    return Lanes(None, noise.fold_in(base, seed, 1), noise.fold_in(base, seed))


@dataclass(frozen=True)
class HeldOut:
    """The returns of a policy on episodes that no run has seen, `f[HELD_OUT]`; actions as the task has them."""

    task: ControlTask

    def compile(self) -> Callable:
        return compile_for(self.function, shape(self.task.num_genes))

    def function(self, policy: Array) -> Array:
        return get(self.task.name, sample=self.task.sample).held_out(HELD_OUT).returns(policy)


@dataclass(frozen=True)
class ControlJob:
    task: ControlTask
    methods: tuple[str, ...]  # several only if all have fixed rates
    seeds: tuple[int, ...]
    generations: int
    alone: ClassVar[bool] = False

    @property
    def label(self) -> str:
        return f"{self.task.name}{' fresh' if self.task.fresh else ''} {', '.join(self.methods)}"

    @property
    def specs(self) -> list[ControlRun]:
        task, generations = self.task, self.generations
        return [
            ControlRun(task.name, method, seed, generations, task.episodes, task.init, task.fresh)
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
        """Returns, not values: `elite f[R, T]` over the run's own episodes, and of the best policy on others.

        In fresh runs the first are those of the one evaluation that made a policy the best, and lucky.
        """
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
