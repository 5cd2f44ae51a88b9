"""The paper's networks that classify images: MNIST and Fashion-MNIST, all methods, five seeds, 1,000 generations.

A run's training images are drawn by its seed and stay the same; methods share them, and their first populations, seed
by seed. The best network is scored on the whole test set along the way.

The paper says neither how pixels are scaled nor how networks start. Ours is from 0 to 1 and uniform; the authors'
program (github.com/akarshkumar0101/evolved-neuroevolution) standardises pixels, draws N(0, 0.1²) and trains on 5,000
images: `AUTHORS`, which `paper` runs beside ours.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .... import _checks, noise
from ....problems import datasets
from ....problems.images import Images, Scores, problem_of
from ....problems.networks import INITIALISATIONS, NORMAL, SEEN, STANDARDISED, UNIFORM, UNIT, ConvNet
from ...run.batch import BatchJob, Run, batches, populations_of
from ...run.compilation import Program, shape
from ...run.lanes import METHODS, NUM_CHILDREN, ORACLES, STEP, Lanes, Task
from ...run.reading import Reading
from ...run.specs import GetProgram, Job, Selection, Study, Tick
from ..functions.runs import summary

SETS = tuple(datasets.SOURCES)
MOST_IMAGES = 60_000
PAPER_IMAGES, FEW_IMAGES = 5000, 1000
OURS, AUTHORS = (UNIFORM, UNIT), (NORMAL, STANDARDISED)  # initialisation and pixels
GENERATIONS = 1000  # T
QUICK_GENERATIONS = 60
QUICK_METHODS = ("FMR", "15MR", "SAMR", "GESMR")
SEEDS = 5
_STEP_ON_A_CPU = 10  # generations per call, a few seconds of work: what is interrupted ends with a call


@dataclass(frozen=True)
class ImagesRun(Run):
    """One run of one method on the training images of its seed."""

    kind: ClassVar[str] = "images"
    dataset: str
    method: str
    seed: int
    images: int
    init: str
    generations: int
    pixels: str = UNIT
    num_children: int = NUM_CHILDREN
    revision: int = 2  # raised when the same specification would give other random draws


class ImagesStudy(Study[ImagesRun]):
    name = "images"
    title = "Networks that classify MNIST and Fashion-MNIST: curves, held-out accuracy, claim 11"
    takes = ("tasks", "methods", "seeds", "images", "init")

    def plan(self, selection: Selection) -> Sequence[ImagesRun]:
        """`paper`: 5,000 images as the authors ran it and as we do, 1,000 on MNIST with the other initialisations too.

        Oracles have 1,000 images and come last. With another number of `images` both settings have that many, and with
        an `init` ours has it, alone. `quick`: four methods, 1,000 images, fewer generations, one seed, as we run it.
        """
        quick = selection.quick
        sets = selection.chosen("tasks", SETS)
        seeds = selection.seeds_or(1 if quick else SEEDS)
        chosen = selection.chosen("methods", METHODS, QUICK_METHODS if quick else METHODS)
        ranked = tuple(method for method in chosen if method not in ORACLES)
        oracles = tuple(method for method in chosen if method in ORACLES)
        number = FEW_IMAGES if selection.images is None else selection.images
        _checks.integer("images", number, 1, MOST_IMAGES)
        if quick or selection.init is not None:
            how = UNIFORM if selection.init is None else selection.init
            plan = [(number, _checks.choice("init", how, tuple(INITIALISATIONS)), UNIT, sets, ranked + oracles)]
        elif selection.images is not None:
            plan = [(number, *AUTHORS, sets, ranked), (number, *OURS, sets, ranked + oracles)]
        else:
            plan = [
                (PAPER_IMAGES, *AUTHORS, sets, ranked),
                (PAPER_IMAGES, *OURS, sets, ranked),
                (FEW_IMAGES, *OURS, sets, ranked),
                *((FEW_IMAGES, how, UNIT, sets[:1], ranked) for how in INITIALISATIONS if how != UNIFORM),
                (FEW_IMAGES, *OURS, sets, oracles),
            ]
        generations = QUICK_GENERATIONS if quick else GENERATIONS
        return [
            ImagesRun(dataset, method, seed, number, how, generations, pixels)
            for number, how, pixels, chosen_sets, methods in plan
            for dataset in chosen_sets
            for method in methods
            for seed in seeds
        ]

    def jobs(self, specs: Sequence[ImagesRun], memory: int) -> Sequence[Job]:
        """Runs that differ in their seeds together; on a CPU, which they keep busy, seed by seed. In order."""

        def most(run: ImagesRun, methods: Sequence[str]) -> int:
            on_a_cpu = jax.default_backend() == "cpu"
            return 1 if on_a_cpu else memory // (ImagesTask(run.images, run.init).memory * populations_of(methods))

        return [ImagesJob(batch) for batch in batches(specs, ("seed",), most, fixed_rates=())]


class Data(NamedTuple):
    """Labelled images; of L runs with a first axis of L."""

    images: Array  # f[..., 22, 22, n]
    labels: Array  # i32[..., n]


@dataclass(frozen=True)
class ImagesTask(Task):
    """Networks on so many training images, which each lane has of its own."""

    images: int
    init: str = UNIFORM
    num_children: int = NUM_CHILDREN
    reading: Reading = Reading.TEXT

    @property
    def num_genes(self) -> int:
        return ConvNet().num_genes

    @property
    def memory(self) -> int:
        """Bytes, roughly, that evaluating a population on a GPU needs: what the first layer makes of some images."""
        return 4 * 1200 * self.num_children * min(self.images, 5120) + 4 * SEEN**2 * self.images

    def shapes(self, lanes: int) -> tuple[None, Data]:
        return None, _data_shape(self.images, lanes)

    def first(self, shared: None, own: Data, key: noise.Key) -> Array:
        return ConvNet().init(key, self.num_children + 1, self.init)

    def objective(self, shared: None, own: Data) -> Images:
        return Images(own.images, own.labels)


def _data_shape(number: int, *lanes: int) -> Data:
    return Data(shape(*lanes, SEEN, SEEN, number), shape(*lanes, number, dtype=jnp.int32))


def score(networks: Array, data: Data) -> Scores:
    """Loss and accuracy `f[N]` of N networks on images that are not trained on."""
    return Images(*data).scores(networks)


@dataclass(frozen=True)
class ImagesJob(BatchJob[ImagesRun]):
    """Runs of one method with different seeds."""

    keep_best = True

    @property
    def label(self) -> str:
        return f"{self.one.dataset} {self.one.images} images {self.one.pixels} {self.one.init} {self.one.method}"

    @property
    def task(self) -> ImagesTask:
        return ImagesTask(self.one.images, self.one.init, self.one.num_children)

    @property
    def step(self) -> int:
        return _STEP_ON_A_CPU if jax.default_backend() == "cpu" else STEP

    @property
    def weight(self) -> float:
        return self.one.images

    @property
    def programs(self) -> list[Program]:
        return [*super().programs, self._score]

    @property
    def _score(self) -> Program:
        return scoring(self.one.dataset, len(self.specs) * -(-self.one.generations // STEP))

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """The history, thinned, and the best network's loss and accuracy on the test set after every step."""
        run = self.one
        found = self.evolve(compiled, tick, images_lanes(self.specs))
        assert found.best is not None
        calls = 1 if run.method == "LAMR-100" else STEP // self.step  # that make up a step
        at_ends = np.concatenate([found.best[:, calls - 1 : -1 : calls], found.best[:, -1:]], axis=1)
        steps, networks = at_ends.shape[1], at_ends.reshape(-1, self.task.num_genes)
        scores = compiled(self._score)(networks, unseen_data(run.dataset, run.pixels))
        kept = summary(found)
        return {
            **{name: kept[name] for name in ("elite", "log_rate", "final", "mean_elite", "mean_log_rate")},
            "test_loss": np.asarray(scores.loss, np.float64).reshape(-1, steps),
            "test_accuracy": np.asarray(scores.accuracy, np.float64).reshape(-1, steps),
        }


def images_lanes(runs: Sequence[ImagesRun]) -> Lanes:
    """A lane for each of some runs that differ in their seeds."""
    one, keys = runs[0], _keys(np.array([run.seed for run in runs], np.uint32))
    return Lanes(None, _training_data(one.dataset, one.images, keys, one.pixels), keys)


def scoring(dataset: str, networks: int) -> Program:
    """To the scores of so many networks on the test set."""
    images = len(_data(dataset, "test").labels)
    return Program(score, (), (shape(networks, ConvNet().num_genes), _data_shape(images)))


def unseen_data(dataset: str, pixels: str) -> Data:
    test = problem_of(_data(dataset, "test"), pixels=pixels)
    return Data(test.images, test.labels)


@jax.jit
def _keys(seeds: Array) -> noise.Key:
    return noise.fold_in(noise.key(2022), seeds)


_LOADING, _load = threading.Lock(), cache(datasets.load)


def _data(dataset: str, part: str) -> datasets.Labelled:
    with _LOADING:  # jobs run in threads: one reads, the others wait for it
        return _load(dataset, part)


def _training_data(dataset: str, number: int, keys: Any, pixels: str) -> Data:
    """Of each lane, those its key draws."""
    data = _data(dataset, "train")
    runs = [noise.Key(*pair) for pair in zip(*keys, strict=True)]
    problems = [problem_of(data, images=number, key=key, pixels=pixels) for key in runs]
    return Data(jnp.stack([p.images for p in problems]), jnp.stack([p.labels for p in problems]))


STUDY = ImagesStudy()
