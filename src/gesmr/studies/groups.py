"""How many groups GESMR should have: final elite value for every K that divides N (claim 10).

K is data here: one program serves all K of an N, and all functions, spreads and seeds.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .. import _checks, noise, selection
from .._pytree import pytree
from ..controllers import Feedback
from ..controllers.base import HoldsLogRates, mutate
from ..evolve import evolve
from ..ga import GA, State
from ..problems.functions import Function
from .base import Compiled, Group, Program, Selection, Spec, Tick
from .functions import STDS, parts, subset
from .lanes import (
    NUM_CHILDREN,
    STEP,
    AnyFunction,
    Lanes,
    compile_for,
    deserves_own_program,
    lanes,
    lanes_shape,
    most_lanes,
    shape,
    step_lengths,
)

FUNCTIONS = ("ackley", "griewank", "rosenbrock", "sphere")
SIZES = (12, 60, 120, 360, 840, 2520)  # N, each with more divisors than any smaller number
DIM = 100
GENERATIONS = 1000
REVISION = 1  # raised when the same specification would give other random draws


@pytree
class MaskedGESMR(HoldsLogRates):
    """GESMR with K as data: arrays have room for N groups, and those from the K-th on are never used.

    It draws what `GESMR(groups=K)` draws, word for word. The state is log rates `f[N]`, of which K count.
    """

    groups: Any  # K, i32[]
    meta_rate: Any = 2.0  # τ
    truncation: Any = 0.5  # η_σ
    low: Any = 1e-3
    high: Any = 1e3

    def __post_init__(self):
        if isinstance(self.groups, int):
            _checks.integer("groups", self.groups, 1)

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Array:
        if isinstance(self.groups, int) and self.groups > num_children:
            raise ValueError(f"groups must be at most num_children ({num_children}), got {self.groups}")
        log_low, log_high = jnp.log(jnp.asarray(self.low, float)), jnp.log(jnp.asarray(self.high, float))
        slot = jnp.arange(num_children, dtype=log_low.dtype)
        position = jnp.where(self.groups == 1, 0.5, slot / jnp.maximum(self.groups - 1, 1))
        return log_low + (log_high - log_low) * jnp.minimum(position, 1.0)

    def rates(self, state: Array, parents: Array) -> Array:
        return jnp.exp(self.log_rates(state))

    def update(self, key: noise.Key, state: Array, feedback: Feedback) -> Array:
        n = state.shape[0]
        slot = jnp.arange(n)
        # Eq. 5: a group that cannot be judged is the worst, one that does not exist comes after it
        worth = jax.ops.segment_min(feedback.changes, self.group_of_child(n), n, indices_are_sorted=True)
        worth = jnp.minimum(worth, jnp.finfo(worth.dtype).max)
        worth = jnp.where(slot < self.groups, worth, jnp.inf)
        # Words 0 … K−1 draw survivors, the next K break ties, the next K mutate
        words = noise.bits(key, 3 * n)
        draw, tie, step = (lax.dynamic_slice_in_dim(words, i * jnp.asarray(self.groups), n) for i in range(3))
        # Eq. 6: the best rate, and K−1 drawn from the best l
        pool = selection.pool_size(self.truncation, self.groups)
        ranks = jnp.where(slot == 0, 0, noise.integer(draw, pool))
        survivors = state[selection.order(worth, tie)[ranks]]
        # Eq. 7: all but the best are mutated
        return jnp.where(slot == 0, survivors, mutate(step, survivors, self.meta_rate))

    def log_rates(self, state: Array) -> Array:
        """Of each child, `f[N]`: the mean is that of the K rates if K divides N."""
        return state[self.group_of_child(state.shape[0])]

    def group_of_child(self, num_children: int) -> Array:
        """Which group each child belongs to, `i32[N]`, as in GESMR."""
        return jnp.arange(num_children) * self.groups // num_children


def divisors(n: int) -> tuple[int, ...]:
    return tuple(k for k in range(1, n + 1) if n % k == 0)


@dataclass(frozen=True)
class GroupsRun:
    """One run of GESMR with K groups."""

    kind: ClassVar[str] = "groups"
    function: str
    num_children: int
    groups: int
    std: float
    seed: int
    dim: int = DIM
    generations: int = GENERATIONS
    revision: int = REVISION


class GroupsStudy:
    name: ClassVar[str] = "groups"
    title: ClassVar[str] = "How many groups: final value against K for populations of 12 to 2520, claim 10"
    profiles: ClassVar[tuple[str, ...]] = ("quick", "paper")

    def specs(self, selection: Selection) -> Sequence[GroupsRun]:
        """`quick` has the populations up to 360 and three seeds; dimension and generations are the paper's."""
        selection.check(self.name, ("functions", "seeds"))
        quick = _checks.choice("profile", selection.profile, self.profiles) == "quick"
        functions = subset("functions", selection.functions, FUNCTIONS, FUNCTIONS)
        default_seeds = 3 if quick else 10
        seeds = default_seeds if selection.seeds is None else _checks.integer("seeds", selection.seeds, 1, 2**31 - 1)
        return [
            GroupsRun(function, size, groups, std, seed)
            for size in SIZES
            if size <= 360 or not quick
            for function in functions
            for groups in divisors(size)
            for std in STDS
            for seed in range(seeds)
        ]

    def groups(self, specs: Sequence[Spec], memory: int) -> Sequence[Group]:
        """Runs of one population size and function together; the largest first, so that none of them comes last."""
        batches: dict[tuple, list[GroupsRun]] = defaultdict(list)
        for spec in specs:
            if isinstance(spec, GroupsRun):
                batches[spec.num_children, spec.function, spec.dim, spec.generations].append(spec)
        largest_first = sorted(batches.items(), key=lambda batch: -batch[0][0])
        return [
            MaskedGroup(part)
            for (size, _, dim, _), runs in largest_first
            for part in parts(tuple(runs), most_lanes(size, dim, memory))
        ]


@dataclass(frozen=True)
class MaskedGroup:
    """Runs of one population size, function, dimension and length."""

    specs: tuple[GroupsRun, ...]
    alone: ClassVar[bool] = False

    @property
    def label(self) -> str:
        first = self.specs[0]
        return f"{first.function} N={first.num_children} K={first.groups}…{self.specs[-1].groups}"

    @property
    def work(self) -> float:
        first = self.specs[0]
        return float(first.num_children * first.dim * first.generations * len(self.specs))

    @property
    def programs(self) -> list[Program]:
        return list(dict.fromkeys([self._start, *self._advances]))

    @property
    def _start(self) -> "Start":
        return Start(self.specs[0].num_children, self.specs[0].dim, len(self.specs))

    @property
    def _advances(self) -> list["Advance"]:
        """The programs of a whole run, step by step."""
        first, count = self.specs[0], len(self.specs)
        own = deserves_own_program(first.dim, count * first.num_children // NUM_CHILDREN)
        only = first.function if own else None
        return [Advance(first.num_children, first.dim, count, s, only) for s in step_lengths(first.generations)]

    def run(self, compiled: Compiled, tick: Tick) -> dict[str, np.ndarray]:
        first = self.specs[0]
        stds, seeds = [run.std for run in self.specs], [run.seed for run in self.specs]
        data = Sweep(
            lanes(first.function, first.dim, stds, seeds, False),
            jnp.asarray([run.groups for run in self.specs], jnp.int32),
        )
        states = compiled(self._start)(data)
        return run_steps([compiled(program) for program in self._advances], states, data, tick, self.work)


def run_steps(steps: Sequence[Callable], states: State, data: Any, tick: Tick, work: float) -> dict[str, np.ndarray]:
    """Whole runs, step by step: final elite value and its mean over generations, `f[runs]`."""
    elites: list[Any] = []
    for step in steps:
        states, elite = step(states, data)
        elites.append(elite)
        if len(elites) > 1:  # fetched one step behind, so that the device never waits for this loop
            elites[-2] = jax.device_get(elites[-2])
        tick(work / len(steps))
    elite = np.concatenate(jax.device_get(elites), axis=1).astype(np.float64)
    return {"final": elite[:, -1], "mean_elite": elite.mean(axis=1)}


class Sweep(NamedTuple):
    lanes: Lanes
    groups: Array  # i32[L]  K


@dataclass(frozen=True)
class Start:
    """The states in which runs start; those of one spread and seed share their first population."""

    num_children: int
    dim: int
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, _sweep_shape(self.dim, self.lanes))

    def function(self, sweep: Sweep) -> State:
        def start(std: Array, shift: Array, key: noise.Key, groups: Array) -> State:
            population = Function("sphere", self.dim, std).init(key, self.num_children + 1, jnp.float32)
            fitness = AnyFunction(sweep.lanes.function, shift)(population)
            return GA(MaskedGESMR(groups), self.num_children).init(key, population, fitness)

        return jax.vmap(start)(sweep.lanes.std, sweep.lanes.shift, sweep.lanes.key, sweep.groups)


@dataclass(frozen=True)
class Advance:
    """`generations` more generations: the states after, and the elite values `f[L, generations]`."""

    num_children: int
    dim: int
    lanes: int
    generations: int = STEP
    only: str | None = None  # the one function it is for; None: any

    def compile(self) -> Callable:
        sweep = _sweep_shape(self.dim, self.lanes)
        states = jax.eval_shape(Start(self.num_children, self.dim, self.lanes).function, sweep)
        return compile_for(self.function, states, sweep, donate=(0,))

    def function(self, states: State, sweep: Sweep) -> tuple[State, Array]:
        def one(state: State, shift: Array, groups: Array) -> tuple[State, Array]:
            objective = AnyFunction(sweep.lanes.function, shift, self.only)
            ga = GA(MaskedGESMR(groups), self.num_children)
            state, history = evolve(ga, objective, state, self.generations)
            return state, history.elite

        return jax.vmap(one)(states, sweep.lanes.shift, sweep.groups)


def _sweep_shape(dim: int, lanes: int) -> Any:
    return Sweep(lanes_shape(dim, lanes), shape(lanes, dtype=jnp.int32))  # type: ignore[arg-type]
