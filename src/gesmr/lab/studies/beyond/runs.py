"""Beyond the paper: GAs some of whose children recombine, against the paper's methods and against other algorithms.

Optima are moved to draws of the first population's distribution and, in half of the rows, coordinates are turned: a
method can gain neither from an optimum at 0 nor from one that has the same value in every coordinate. All have as many
evaluations, 101 + 100·T.

What GESMR-X is was chosen on the profile `choice` alone: Ackley and Rosenbrock, seeds that no other profile has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import numpy as np

from .... import _checks
from ...run.batch import BatchJob, Run, batches, populations_of
from ...run.compilation import Program
from ...run.function_task import WITH_OPTIMUM, most_lanes
from ...run.lanes import NUM_CHILDREN, Lanes
from ...run.peers import PEERS, Peer, PeerJob, default_population
from ...run.peers import extra as evosax
from ...run.reading import LAMR_NAME
from ...run.specs import GetProgram, Job, Selection, Study, Tick
from ..cmaes import pycma
from ..functions.runs import GENERATIONS, STDS
from .budget import evaluations_of, kept_of, kept_of_peer
from .methods import DEFAULT, DEFAULT_X, GRID, MIXING, OURS, PAPERS, PARTLY_MIXING, Variant, X
from .moved_task import FUNCTIONS, ILL_CONDITIONED, MovedTask, Place, moved_lanes
from .networks import NETWORKS, BeyondControl, BeyondImages, networks_jobs, on_networks

ON_FUNCTIONS = "functions"  # among the tasks
CHOICE_FUNCTIONS = ("ackley", "rosenbrock")
CHOICE_SEEDS = range(1000, 1020)
CMAES = "CMA-ES"
OTHERS = (*PEERS, CMAES)  # each with a population of 100 and with its own
_CMAES_RUNS = 3  # of a job: a minute or less
_RESTARTED = 10_000  # how far apart the seeds of CMA-ES's restarts are
REVISION = 1  # raised when the same specification would give other random draws


@dataclass(frozen=True)
class BeyondRun(Run):
    """One run of one method from one first population, or start."""

    kind: ClassVar[str] = "beyond"
    function: str
    dim: int
    std: float
    rotated: bool
    method: str
    seed: int
    generations: int  # T, of a population of 100; others have as many evaluations
    popsize: int = NUM_CHILDREN  # N of a GA; the population of another algorithm, 0 for what it is by default
    revision: int = REVISION


class Row(NamedTuple):
    """What methods are compared on."""

    function: str
    dim: int
    std: float
    rotated: bool


class Block(NamedTuple):
    """Some methods on some rows, with some seeds."""

    methods: Sequence[str]
    rows: Sequence[Row]
    seeds: range


def _rows(functions: Sequence[str], *places: tuple[int, bool]) -> list[Row]:
    """Of every dimension, turned or not."""
    return [Row(function, dim, std, rotated) for dim, rotated in places for function in functions for std in STDS]


PLACES = ((30, False), (30, True), (100, False), (100, True))
FIRST = ("GESMR", X, DEFAULT, DEFAULT_X)
SEEDS = range(40)
CMAES_SEEDS = range(10)  # a run of pycma is a second to ten of a CPU
LAMR_SEEDS = range(10)  # in 1,000 dimensions, where looking ahead is a hundred times the work


def _blocks(profile: str) -> list[Block]:
    """What a profile has, in the order of what matters most."""
    if profile == "quick":
        return [Block((*FIRST, "SAMR", PEERS[0]), _rows(("ackley", "sphere"), (30, False)), range(5))]
    if profile == "choice":
        return [Block(["GESMR", DEFAULT, *map(str, GRID)], _rows(CHOICE_FUNCTIONS, *PLACES), CHOICE_SEEDS)]
    near, far = _rows(WITH_OPTIMUM, *PLACES), _rows(WITH_OPTIMUM, (1000, False))
    near_ill, far_ill = _rows(ILL_CONDITIONED, *PLACES), _rows(ILL_CONDITIONED, (1000, False))
    small, far_turned = _rows(WITH_OPTIMUM, (2, False), (2, True)), _rows(WITH_OPTIMUM, (1000, True))
    ranked = (*FIRST, *PAPERS, *MIXING)
    return [
        Block((*FIRST, *PAPERS), near, SEEDS),
        Block(FIRST, far, SEEDS),
        Block((LAMR_NAME, *MIXING, *PARTLY_MIXING), near, SEEDS),
        Block(PEERS, near, SEEDS),
        Block((*PAPERS, *PEERS), far, SEEDS),
        Block((*ranked, *PEERS), near_ill, SEEDS),
        Block((CMAES,), [*near, *near_ill], CMAES_SEEDS),
        Block((*FIRST, *PEERS), far_ill, SEEDS),
        Block((*ranked, *PEERS), small, SEEDS),
        Block((*FIRST, *PAPERS, *PEERS), far_turned, SEEDS),
        Block(MIXING, far, SEEDS),
        Block((LAMR_NAME,), far, LAMR_SEEDS),
    ]


class BeyondStudy(Study[BeyondRun | BeyondImages | BeyondControl]):
    name = "beyond"
    title = "Beyond the paper: recombination on moved and turned functions, against other algorithms"
    takes = ("functions", "dims", "methods", "seeds", "tasks", "images")
    profiles = ("quick", "choice", "paper")

    def plan(self, selection: Selection) -> Sequence[BeyondRun | BeyondImages | BeyondControl]:
        """Functions, then networks if the profile is `paper` or they are asked for by their tasks."""
        everything = (ON_FUNCTIONS, *NETWORKS)
        tasks = selection.chosen("tasks", everything, everything if selection.profile == "paper" else everything[:1])
        return [*(self._on_functions(selection) if ON_FUNCTIONS in tasks else ()), *on_networks(selection, tasks)]

    def _on_functions(self, selection: Selection) -> list[BeyondRun]:
        """Methods that a profile does not have may be asked for: they get the rows and seeds of its first block."""
        functions, dims = selection.chosen("functions", FUNCTIONS), selection.chosen("dims", GENERATIONS)
        blocks = _blocks(selection.profile)
        known = {method for block in blocks for method in block.methods}
        others = [method for method in selection.methods or () if method not in known]
        for method in others:
            if method not in OURS and method not in OTHERS and Variant.named(method) is None:
                _checks.choice("methods", method, (*OURS, *OTHERS))
        return [
            BeyondRun(*row, method, seed, GENERATIONS[row.dim], popsize)
            for block in [*blocks, blocks[0]._replace(methods=others)]
            for method in block.methods
            if selection.methods is None or method in selection.methods
            for popsize in ((NUM_CHILDREN, 0) if method in OTHERS else (NUM_CHILDREN,))
            for row in block.rows
            if row.function in functions and row.dim in dims
            for seed in (block.seeds if selection.seeds is None else selection.seeds_or(0))
        ]

    def jobs(self, specs: Sequence[BeyondRun | BeyondImages | BeyondControl], memory: int) -> Sequence[Job]:
        """Runs of one function, dimension and method together, in the order of the plan; networks last.

        On a GPU, which computes many runs in the time of one, those of all functions.
        """
        for method in dict.fromkeys(spec.method for spec in specs):
            check_installed(method)  # what is missing is missed before anything is computed

        def most(run: BeyondRun, methods: Sequence[str]) -> int:
            if run.method == CMAES:
                return _CMAES_RUNS
            return most_lanes(population_of(run), run.dim, memory) // populations_of(methods)

        on_functions = [spec for spec in specs if isinstance(spec, BeyondRun)]
        networks = [spec for spec in specs if not isinstance(spec, BeyondRun)]
        lane = ("std", "seed") if jax.default_backend() == "cpu" else ("function", "std", "seed")
        found = batches(on_functions, lane, most, fixed_rates=())
        kinds = dict.fromkeys(PEERS, BeyondPeerJob) | {CMAES: CmaesJob}
        jobs = [kinds.get(batch[0].method, BeyondJob)(batch) for batch in found]
        return [*jobs, *networks_jobs(networks)]


def population_of(run: BeyondRun) -> int:
    """What a run holds, but for an elite."""
    return run.popsize or default_population(run.method, run.dim)


def check_installed(method: str) -> None:
    """Say what to install for a method that is not ours."""
    if method in PEERS:
        evosax()
    elif method == CMAES:
        for module in ("cma", "threadpoolctl"):
            pycma.extra(module)


def _lanes_of(runs: Sequence[BeyondRun]) -> Lanes:
    functions, stds, seeds = zip(*((run.function, run.std, run.seed) for run in runs), strict=True)
    return moved_lanes(functions, runs[0].dim, stds, seeds, runs[0].rotated)


class _Labelled(Job[BeyondRun]):
    @property
    def functions(self) -> list[str]:
        return list(dict.fromkeys(run.function for run in self.specs))

    @property
    def label(self) -> str:
        one, functions = self.one, self.functions
        turned = "turned " if one.rotated else ""
        what = functions[0] if len(functions) == 1 else f"{len(functions)} functions"
        population = f" N={population_of(one)}" if one.method in OTHERS else ""
        return f"{turned}{what} d={one.dim} {one.method}{population}, {len(self.specs)} runs"


@dataclass(frozen=True)
class BeyondJob(_Labelled, BatchJob[BeyondRun]):
    """Runs of a GA."""

    @property
    def task(self) -> MovedTask:
        return MovedTask(self.one.dim, self.one.rotated, self.one.popsize, mixed=len(self.functions) > 1)

    @property
    def weight(self) -> float:
        """A gene of what is turned takes a product with a row of the matrix."""
        return 1 + self.one.dim / 100 if self.one.rotated else 1.0

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """`best` and `log_rate f[R, points]` after the generations that are kept, and the `final` value `f[R]`."""
        found = self.evolve(compiled, tick, _lanes_of(self.lanes))
        return {
            "best": kept_of(found.elite),
            "log_rate": kept_of(found.log_rate),
            "final": found.elite[:, -1].astype(np.float64),
        }


@dataclass(frozen=True)
class BeyondPeerJob(_Labelled, PeerJob[BeyondRun]):
    @property
    def peer(self) -> Peer:
        return Peer(self.one.method, population_of(self.one))

    @property
    def task(self) -> MovedTask:
        return MovedTask(self.one.dim, self.one.rotated, self.peer.population - 1, mixed=len(self.functions) > 1)

    @property
    def evaluations(self) -> int:
        return evaluations_of(self.one.generations)

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """`best f[R, points]` after as many evaluations as a GA has had, NaN where it was not begun; `final f[R]`."""
        best, _ = self.optimize(compiled, tick, _lanes_of(self.specs))
        return _summary(best, self.peer, self.one.generations)


def _summary(best: np.ndarray, peer: Peer, generations: int) -> dict[str, np.ndarray]:
    """What is kept of best values `f[R, 1 + G]`, before the first generation and after each."""
    return {"best": kept_of_peer(best, peer, generations), "final": best[:, -1].astype(np.float64)}


@dataclass(frozen=True)
class CmaesJob(_Labelled):
    """Runs of CMA-ES as pycma has it, in double precision. One that stops by itself starts again, with other draws."""

    @property
    def programs(self) -> list[Program]:
        return []

    @property
    def work(self) -> float:
        return float(self._generations * population_of(self.one) * self.one.dim * len(self.specs))

    @property
    def evaluation(self) -> float:
        return float(self.one.dim)

    @property
    def _generations(self) -> int:
        return evaluations_of(self.one.generations) // population_of(self.one)

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        with pycma.one_thread():
            best = [self._run(spec, tick) for spec in self.specs]
        return _summary(np.stack(best), Peer(CMAES, population_of(self.one)), self.one.generations)

    def _run(self, run: BeyondRun, tick: Tick) -> np.ndarray:
        """Best values `f[1 + G]`, infinite before the first generation."""
        lanes, population = _lanes_of([run]), population_of(run)
        objective = pycma.in_double(MovedTask(run.dim, run.rotated).objective(lanes.shared, _only(lanes.own)))
        start, restarts = partial(pycma.full_cmaes, np.zeros(run.dim), run.std, population=population), 0
        strategy, best = start(seed=run.seed), [np.inf]
        for _ in range(self._generations):
            if strategy.stop():
                restarts += 1
                strategy = start(seed=run.seed + _RESTARTED * restarts)
            best.append(min(best[-1], pycma.run_generation(strategy, objective)))
            tick(float(population * run.dim))
        return np.array(best)


def _only(own: Place) -> Place:
    """That of a single lane."""
    return jax.tree.map(lambda leaf: leaf[0], own)


STUDY = BeyondStudy()
