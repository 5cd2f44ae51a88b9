"""The paper's control tasks (Appendix D): four tasks, eleven methods, five seeds, a hundred generations (claim 12).

A run's five episodes stay the same, and policies take the action they prefer. The authors' program samples actions and
has fresh episodes at every evaluation (github.com/akarshkumar0101/evolved-neuroevolution): `fresh` runs, beside ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jax import Array

from .... import noise
from ....problems.control import EPISODES, TASKS, Control, get
from ....problems.networks import UNIFORM, Policy
from ...run.batch import BatchJob, Run, batches, populations_of
from ...run.compilation import Program, keys_shape, shape
from ...run.lanes import FIXED_RATES, METHODS, NUM_CHILDREN, ORACLES, Lanes, Task
from ...run.reading import Reading
from ...run.specs import GetProgram, Job, Selection, Study, Tick

GENERATIONS, SEEDS = 100, 5
HELD_OUT = 100  # episodes, the same for all runs of a task
_POPULATIONS_ON_A_CPU = 10  # at once: a minute or two of the longest task


@dataclass(frozen=True)
class ControlRun(Run):
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
    revision: int = 2  # raised when the same specification would give other random draws


class ControlStudy(Study[ControlRun]):
    name = "control"
    title = "Control: CartPole, Pendulum, Acrobot and MountainCar, claim 12"
    takes = ("tasks", "methods", "seeds")

    def plan(self, selection: Selection) -> Sequence[ControlRun]:
        """`paper` has fresh runs too, without oracles; `quick` three seeds, half of the generations and no oracles."""
        quick = selection.quick
        tasks = selection.chosen("tasks", TASKS)
        methods = selection.chosen("methods", METHODS, _ranked(METHODS) if quick else METHODS)
        seeds = selection.seeds_or(3 if quick else SEEDS)
        generations = GENERATIONS // 2 if quick else GENERATIONS
        return [
            ControlRun(task, method, seed, generations, fresh=fresh)
            for fresh, chosen in ((False, methods), (True, () if quick else _ranked(methods)))
            for task in tasks
            for method in chosen
            for seed in seeds
        ]

    def jobs(self, specs: Sequence[ControlRun], memory: int) -> Sequence[Job]:
        """Runs of one task and method together; on a GPU also those of all fixed rates.

        The longest episodes first; fresh runs after the others.
        """
        on_a_cpu = jax.default_backend() == "cpu"

        def most(run: ControlRun, methods: Sequence[str]) -> int:
            populations = populations_of(methods)
            lanes = memory // (populations * _memory_of_a_population(run.task, run.episodes))
            return min(lanes, _POPULATIONS_ON_A_CPU // populations) if on_a_cpu else lanes

        together = [method for method in FIXED_RATES if not (on_a_cpu and method == "OFMR")]
        jobs = [ControlJob(batch) for batch in batches(specs, ("seed",), most, together)]
        return sorted(jobs, key=lambda job: (job.one.fresh, -job.work))


def _ranked(methods: Sequence[str]) -> tuple[str, ...]:
    return tuple(method for method in methods if method not in ORACLES)


def _memory_of_a_population(task: str, episodes: int) -> int:
    """Bytes, roughly: two buffers of parameters, their other layout, and hidden layers of every episode."""
    policy = Policy(TASKS[task].observations, TASKS[task].outputs)
    return 4 * (NUM_CHILDREN + 1) * (4 * policy.num_genes + 2 * episodes * policy.hidden)


@dataclass(frozen=True)
class ControlTask(Task):
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
        return None, keys_shape(lanes)

    def first(self, shared: None, own: noise.Key, key: noise.Key) -> Array:
        return self.objective(shared, own).init(key, self.num_children + 1)

    def objective(self, shared: None, own: noise.Key) -> Control:
        return get(self.name, self.episodes, own, init=self.init, sample=self.sample, apart=self.fresh)


def control_lanes(seeds: Sequence[int]) -> Lanes:
    """One lane per seed. All methods share first populations and episodes, seed by seed."""
    base, seed = noise.key(2022), np.asarray(seeds, np.uint32)
    return Lanes(None, noise.fold_in(base, seed, 1), noise.fold_in(base, seed))


def held_out(task: ControlTask, policy: Array) -> Array:
    """The returns of a policy on episodes that no run has seen, `f[HELD_OUT]`; actions as the task has them."""
    return get(task.name, sample=task.sample).held_out(HELD_OUT).returns(policy)


@dataclass(frozen=True)
class ControlJob(BatchJob[ControlRun]):
    keep_best = True

    @property
    def label(self) -> str:
        return f"{self.one.task}{' fresh' if self.one.fresh else ''} {', '.join(self.methods)}"

    @property
    def task(self) -> ControlTask:
        return ControlTask(self.one.task, self.one.episodes, self.one.init, self.one.fresh)

    @property
    def step(self) -> int:
        return 25

    @property
    def weight(self) -> float:
        """Steps of episodes rather than genes: tasks differ in their time limits."""
        return TASKS[self.one.task].steps / 200

    @property
    def programs(self) -> list[Program]:
        return [*super().programs, self._held_out]

    @property
    def _held_out(self) -> Program:
        return Program(held_out, (self.task,), (shape(self.task.num_genes),))

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """Returns, not values: `elite f[R, T]` over the run's own episodes, and of the best policy on others.

        In fresh runs the first are those of the one evaluation that made a policy the best, and lucky.
        """
        histories = self.evolve(compiled, tick, control_lanes([run.seed for run in self.lanes]))
        assert histories.best is not None
        best = histories.best[:, -1]
        held_out = compiled(self._held_out)
        return {
            "elite": -histories.elite.astype(np.float32),
            "log_rate": histories.log_rate.astype(np.float32),
            "best": best.astype(np.float32),
            "held_out": np.array([held_out(policy) for policy in best], np.float32),
        }


STUDY = ControlStudy()
