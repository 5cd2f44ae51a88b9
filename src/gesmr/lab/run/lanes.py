"""Many runs side by side ("lanes"): the programs that start them and carry them on, some generations per call.

A program is named by method, task, number of lanes and number of generations. The task says what shapes arrays;
everything else (which function, spreads, shifts, seeds, training images, fixed rates, settings) is data, so one program
serves many runs, of any length that is a whole number of steps.
"""

import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ... import noise
from ...controllers import PAPER_NAMES
from ...evolution import OBJECTIVE, evolve
from ...ga import GA, State
from ...oracles import OFMR, with_rate
from .masked import Setting
from .reading import LAMR_NAME, OFMR_NAME, Reading

NUM_CHILDREN = 100
STEP = 100  # generations per call; LAMR-100 looks ahead once in each
ORACLES = (OFMR_NAME, LAMR_NAME)
METHODS = (*ORACLES, *PAPER_NAMES)
FIXED_RATES = ("FMR", "1CMR", OFMR_NAME)  # one program serves these: a rate is a fixed-rate run's data
SWEEP = "sweep"  # GESMR, each lane with a setting of its own
_METHOD = np.uint32(2**29)  # the place below a lane's key where methods have theirs


class Task(ABC):
    """What lanes optimise, as far as it shapes arrays: a frozen dataclass. Equal tasks share programs."""

    num_children: int
    reading: Reading

    @property
    @abstractmethod
    def num_genes(self) -> int: ...

    @property
    def is_random(self) -> bool:
        """Whether values are draws, new in every generation."""
        return False

    @abstractmethod
    def shapes(self, lanes: int) -> tuple[Any, Any]:
        """Of what all lanes share, and of what each has of its own, with a first axis of `lanes`."""

    @abstractmethod
    def first(self, shared: Any, own: Any, key: noise.Key) -> Array:
        """A lane's first population `f[N+1, d]`."""

    @abstractmethod
    def objective(self, shared: Any, own: Any) -> Callable[..., Array]:
        """A lane's objective, from `f[n, d]` to `f[n]`; of a key as well if the task is random."""

    def tailored(self, populations: int) -> "Task":
        """The task whose program should compute so many populations at once: itself, unless another is faster."""
        return self


class Lanes(NamedTuple):
    """The data of L runs of a task that are computed side by side."""

    shared: Any
    own: Any  # [L, ...]
    key: noise.Key  # u32[L]  of the first population; that of a run's noise is below it (`key_of`)
    setting: Setting | None = None  # f[L] each, of a sweep


@dataclass(frozen=True)
class First:
    """The evaluated first populations `f[L, N+1, d]`, `f[L, N+1]` of lanes."""

    task: Task
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, lanes_shape(self.task, self.lanes))

    def function(self, lanes: Lanes) -> tuple[Array, Array]:
        def first(own: Any, key: noise.Key) -> tuple[Array, Array]:
            population, objective = self.task.first(lanes.shared, own, key), self.task.objective(lanes.shared, own)
            draws = noise.fold_in(key, OBJECTIVE, noise.BEFORE_THE_FIRST_GENERATION)
            return population, objective(population, draws) if self.task.is_random else objective(population)

        return jax.vmap(first)(lanes.own, lanes.key)


@dataclass(frozen=True)
class Enter:
    """The states in which a method starts from first populations. Those of fixed rates are not yet of one method."""

    method: str
    task: Task
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, *_enter_shapes(self.method, self.task, self.lanes))

    def function(self, key: noise.Key, population: Array, fitness: Array, setting: Setting | None) -> State:
        def enter(key: noise.Key, population: Array, fitness: Array, setting: Setting | None) -> State:
            key = key if self.method in FIXED_RATES else key_of(self.method, key)
            return ga_of(self.method, self.task, setting).init(key, population, fitness)

        return jax.vmap(enter)(key, population, fitness, setting)


@dataclass(frozen=True)
class Branch:
    """States of `Fixed` for every way a first state goes on: FMR, 1CMR, OFMR's trials. `[ways · L]`, way by way."""

    methods: tuple[str, ...]
    task: Task
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, state_shape("FMR", self.task, self.lanes))

    @property
    def ways(self) -> int:
        return sum(OFMR().grid if method == OFMR_NAME else 1 for method in self.methods)

    def function(self, states: State) -> State:
        def ways(method: str, state: State) -> State:
            state = state._replace(key=key_of(method, state.key))
            if method == OFMR_NAME:
                return OFMR().trials(state)
            return jax.tree.map(lambda leaf: leaf[None], with_rate(state, self._log_rate(method)))

        def all_ways(state: State) -> State:
            branches = [ways(method, state) for method in self.methods]
            return jax.tree.map(lambda *parts: jnp.concatenate(parts), *branches)

        states = jax.vmap(all_ways, out_axes=1)(states)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)

    def _log_rate(self, method: str) -> Array:
        fixed = self.task.reading.controller(method, self.task.num_children)
        return fixed.init(noise.key(0), self.task.num_children, self.task.num_genes)


@dataclass(frozen=True)
class Settle:
    """First states with the rate of OFMR's best trial, given the trials' final values `f[grid, L]`."""

    task: Task
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, state_shape("FMR", self.task, self.lanes), shape(OFMR().grid, self.lanes))

    def function(self, states: State, values: Array) -> State:
        states = states._replace(key=jax.vmap(lambda key: key_of(OFMR_NAME, key))(states.key))
        return jax.vmap(self.task.reading.ofmr.choose, in_axes=(0, 1))(states, values)


@dataclass(frozen=True)
class Advance:
    """`generations` more generations of a method. `ways` copies of the lanes follow one another in the states."""

    method: str  # "FMR" for all fixed rates
    task: Task
    lanes: int
    ways: int = 1
    generations: int = STEP

    def compile(self) -> Callable:
        states = state_shape(self.method, self.task, self.ways * self.lanes)
        return compile_for(self.function, states, lanes_shape(self.task, self.lanes, self.method), donate=(0,))

    def function(self, states: State, lanes: Lanes) -> tuple[State, Array, Array, Array]:
        """The states after, the histories `f[ways · L, generations]` of elite value and mean log rate, and the mean log
        rate `f[ways · L]` that the next generation would use."""
        run: Callable = self.task.reading.lamr.evolve if self.method == LAMR_NAME else evolve
        if self.task.is_random:
            run = partial(run, keyed=True)  # which looking ahead does not know

        def one(state: State, own: Any, setting: Setting | None) -> tuple[State, Array, Array, Array]:
            ga = ga_of(self.method, self.task, setting)
            state, history = run(ga, self.task.objective(lanes.shared, own), state, self.generations)
            return state, history.elite, history.log_rate, jnp.mean(ga.controller.log_rates(state.controller))

        own = jax.tree.map(lambda leaf: jnp.tile(leaf, (self.ways, *(1,) * (leaf.ndim - 1))), lanes.own)
        return jax.vmap(one)(states, own, lanes.setting)


@dataclass(frozen=True)
class Best:
    """The best solution of each state, `f[L, d]`."""

    method: str
    task: Task
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, state_shape(self.method, self.task, self.lanes))

    def function(self, states: State) -> Array:
        return jax.vmap(lambda state: state.best)(states)


def ga_of(method: str, task: Task, setting: Setting | None = None) -> GA:
    if setting is not None:
        return setting.ga(task.num_children)
    return GA(task.reading.controller(method, task.num_children), task.num_children)


def key_of(method: str, key: noise.Key) -> noise.Key:
    """The key of a method's runs, given that of a first population: methods share no noise. Those of a sweep do."""
    return key if method == SWEEP else noise.fold_in(key, _METHOD, zlib.crc32(method.encode()))


# Tracing is Python: many threads at it would only keep those that run programs from their turn.
_TRACING = threading.Lock()


def compile_for(function: Callable, *shapes: Any, donate: tuple[int, ...] = ()) -> Callable:
    """`function` compiled for arguments of these shapes; those in `donate` lend their memory to the results."""
    with _TRACING:
        lowered = jax.jit(function, donate_argnums=donate).lower(*shapes)
    return lowered.compile()


def shape(*sizes: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def keys_shape(lanes: int) -> noise.Key:
    return noise.Key(shape(lanes, dtype=jnp.uint32), shape(lanes, dtype=jnp.uint32))


def lanes_shape(task: Task, lanes: int, method: str = "") -> Lanes:
    return Lanes(*task.shapes(lanes), keys_shape(lanes), _setting_shape(method, lanes))


def state_shape(method: str, task: Task, lanes: int) -> Any:
    return jax.eval_shape(Enter(method, task, lanes).function, *_enter_shapes(method, task, lanes))


def _enter_shapes(method: str, task: Task, lanes: int) -> tuple[Any, ...]:
    members = task.num_children + 1
    population, fitness = shape(lanes, members, task.num_genes), shape(lanes, members)
    return keys_shape(lanes), population, fitness, _setting_shape(method, lanes)


def _setting_shape(method: str, lanes: int) -> Setting | None:
    reals = shape(lanes)
    return Setting(reals, reals, reals, shape(lanes, dtype=jnp.int32)) if method == SWEEP else None
