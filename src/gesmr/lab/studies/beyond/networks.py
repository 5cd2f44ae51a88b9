"""Runs of the study `beyond` on networks: images and control, as the studies of that name have them.

A run's data, first population and scores are theirs. Images and generations are fewer, so that a CPU can compute them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....ga import GA
from ....problems.control import TASKS
from ....problems.networks import UNIFORM
from ...run.batch import batches
from ...run.compilation import Program, shape
from ...run.lanes import NUM_CHILDREN, Task
from ...run.peers import PEERS, Peer, PeerJob, default_population
from ...run.specs import GetProgram, Job, Selection, Tick
from ..control.runs import ControlJob, ControlRun, ControlTask, control_lanes, held_out
from ..images.runs import SETS, ImagesJob, ImagesRun, ImagesTask, images_lanes, scoring, unseen_data
from .budget import evaluations_of, kept_of, kept_of_peer
from .methods import DEFAULT, DEFAULT_X, X, ga_of

NETWORKS = (*SETS, *TASKS)
METHODS = ("GESMR", X, DEFAULT, DEFAULT_X, "FMR", "15MR", "SAMR", "UCB/10", *PEERS)
IMAGES, IMAGES_GENERATIONS = 500, 200
CONTROL_GENERATIONS = 100
IMAGES_SEEDS, CONTROL_SEEDS = range(3), range(5)
_LANES = 5  # seeds of control at once, on a CPU a minute of the longest task


@dataclass(frozen=True)
class BeyondImages(ImagesRun):
    """One run of one method on the training images of its seed."""

    kind: ClassVar[str] = "beyond-images"
    popsize: int = NUM_CHILDREN  # N of a GA; the population of another algorithm, 0 for what it is by default


@dataclass(frozen=True)
class BeyondControl(ControlRun):
    """One run of one method on one task of control."""

    kind: ClassVar[str] = "beyond-control"
    popsize: int = NUM_CHILDREN


def on_networks(selection: Selection, tasks: Sequence[str]) -> list[BeyondImages | BeyondControl]:
    """The runs on some of `NETWORKS`: control, which takes minutes, then images."""
    columns = [
        (method, popsize)
        for method in METHODS
        if selection.methods is None or method in selection.methods
        for popsize in ((NUM_CHILDREN, 0) if method in PEERS else (NUM_CHILDREN,))
    ]
    images = IMAGES if selection.images is None else selection.images
    control = [
        BeyondControl(task, method, seed, CONTROL_GENERATIONS, popsize=popsize)
        for task in TASKS
        if task in tasks
        for method, popsize in columns
        for seed in (CONTROL_SEEDS if selection.seeds is None else selection.seeds_or(0))
    ]
    return control + [
        BeyondImages(dataset, method, seed, images, UNIFORM, IMAGES_GENERATIONS, popsize=popsize)
        for seed in (IMAGES_SEEDS if selection.seeds is None else selection.seeds_or(0))
        for dataset in SETS
        if dataset in tasks
        for method, popsize in columns
    ]


def networks_jobs(specs: Sequence[BeyondImages | BeyondControl]) -> list[Job]:
    """Seeds of a method on a task of control together, images seed by seed."""
    control = [spec for spec in specs if isinstance(spec, BeyondControl)]
    images = [spec for spec in specs if isinstance(spec, BeyondImages)]
    made: list[Job] = [
        (ControlPeerJob if batch[0].method in PEERS else ControlGAJob)(batch)
        for batch in batches(control, ("seed",), lambda run, methods: _LANES, fixed_rates=())
    ]
    return made + [(ImagesPeerJob if run.method in PEERS else ImagesGAJob)((run,)) for run in images]


class _OurMethods:
    """A task with the methods of this study."""

    num_children: int

    def ga(self, method: str) -> GA:
        return ga_of(method, self.num_children)


@dataclass(frozen=True)
class BeyondImagesTask(_OurMethods, ImagesTask):
    pass


@dataclass(frozen=True)
class BeyondControlTask(_OurMethods, ControlTask):
    pass


@dataclass(frozen=True)
class ImagesGAJob(ImagesJob):
    @property
    def task(self) -> BeyondImagesTask:
        return BeyondImagesTask(self.one.images, self.one.init)

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """Losses in training, `best f[R, points]` and `final f[R]`, and the last network's scores on the test set."""
        found = super().run(compiled, tick)
        return {
            "best": kept_of(found["elite"]),
            "log_rate": kept_of(found["log_rate"]),
            "final": found["final"],
            "test_loss": found["test_loss"][:, -1],
            "test_accuracy": found["test_accuracy"][:, -1],
        }


@dataclass(frozen=True)
class ControlGAJob(ControlJob):
    @property
    def task(self) -> BeyondControlTask:
        return BeyondControlTask(self.one.task)

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """Returns of the best policy, `best f[R, points]` and `final f[R]`, and its mean return on other episodes."""
        found = super().run(compiled, tick)
        return {
            "best": kept_of(found["elite"]),
            "log_rate": kept_of(found["log_rate"]),
            "final": found["elite"][:, -1].astype(np.float64),
            "held_out": found["held_out"].mean(axis=1).astype(np.float64),
        }


@dataclass(frozen=True)
class ImagesPeerJob(PeerJob[BeyondImages]):
    @property
    def label(self) -> str:
        return f"{self.one.dataset} {self.one.images} images {self.peer}"

    @property
    def peer(self) -> Peer:
        return _peer(self.one, BeyondImagesTask(self.one.images, self.one.init))

    @property
    def task(self) -> BeyondImagesTask:
        return BeyondImagesTask(self.one.images, self.one.init, self.peer.population - 1)

    @property
    def evaluations(self) -> int:
        return evaluations_of(self.one.generations)

    @property
    def weight(self) -> float:
        return self.one.images

    @property
    def programs(self) -> list[Program]:
        return [*super().programs, scoring(self.one.dataset, len(self.specs))]

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        best, networks = self.optimize(compiled, tick, images_lanes(self.specs))
        scores = compiled(self.programs[-1])(networks, unseen_data(self.one.dataset, self.one.pixels))
        return {
            "best": kept_of_peer(best, self.peer, self.one.generations),
            "final": best[:, -1].astype(np.float64),
            "test_loss": np.asarray(scores.loss, np.float64),
            "test_accuracy": np.asarray(scores.accuracy, np.float64),
        }


@dataclass(frozen=True)
class ControlPeerJob(PeerJob[BeyondControl]):
    @property
    def label(self) -> str:
        return f"{self.one.task} {self.peer}"

    @property
    def peer(self) -> Peer:
        return _peer(self.one, BeyondControlTask(self.one.task))

    @property
    def task(self) -> BeyondControlTask:
        return BeyondControlTask(self.one.task, num_children=self.peer.population - 1)

    @property
    def evaluations(self) -> int:
        return evaluations_of(self.one.generations)

    @property
    def weight(self) -> float:
        return TASKS[self.one.task].steps / 200

    @property
    def programs(self) -> list[Program]:
        of_a_policy = Program(held_out, (BeyondControlTask(self.one.task),), (shape(self.task.num_genes),))
        return [*super().programs, of_a_policy]

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        best, policies = self.optimize(compiled, tick, control_lanes([run.seed for run in self.specs]))
        on_others = compiled(self.programs[-1])
        return {
            "best": -kept_of_peer(best, self.peer, self.one.generations),
            "final": -best[:, -1].astype(np.float64),
            "held_out": np.array([np.mean(on_others(policy)) for policy in policies], np.float64),
        }


def _peer(run: BeyondImages | BeyondControl, task: Task) -> Peer:
    return Peer(run.method, run.popsize or default_population(run.method, task.num_genes))
