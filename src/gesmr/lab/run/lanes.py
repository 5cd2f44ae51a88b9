"""Many runs side by side ("lanes"): the programs that start them and carry them on, some generations per call.

A program is named by method, task, number of lanes and number of generations. The task says what shapes arrays;
everything else (which function, spreads, shifts, seeds, training images, fixed rates, settings) is data, so one program
serves many runs, of any length that is a whole number of steps.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ... import noise
from ...controllers import PAPER_NAMES
from ...evolution import OBJECTIVE, evolve
from ...ga import GA, State
from ...oracles import OFMR
from .compilation import Program, keys_shape, shape
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

    def spread(self, shared: Any, own: Any, key: noise.Key) -> Array:
        """The standard deviation of a lane's first population, for what starts from a distribution."""
        return jnp.std(self.first(shared, own, key))

    @abstractmethod
    def objective(self, shared: Any, own: Any) -> Callable[..., Array]:
        """A lane's objective, from `f[n, d]` to `f[n]`; of a key as well if the task is random."""

    def ga(self, method: str) -> GA:
        """The GA of a method's runs. A study that has methods of its own says so here."""
        return GA(self.reading.controller(method, self.num_children), self.num_children)

    def tailored(self, populations: int) -> "Task":
        """The task whose program should compute so many populations at once: itself, unless another is faster."""
        return self


class Lanes(NamedTuple):
    """The data of L runs of a task that are computed side by side."""

    shared: Any
    own: Any  # [L, ...]
    key: noise.Key  # u32[L]  of the first population; that of a run's noise is below it (`key_of`)
    setting: Setting | None = None  # f[L] each, of a sweep


def first(task: Task, lanes: int) -> Program:
    """To the evaluated first populations `f[L, N+1, d]`, `f[L, N+1]` of lanes."""
    return Program(_first, (task,), (lanes_shape(task, lanes),))


def _first(task: Task, lanes: Lanes) -> tuple[Array, Array]:
    def first(own: Any, key: noise.Key) -> tuple[Array, Array]:
        population, objective = task.first(lanes.shared, own, key), task.objective(lanes.shared, own)
        draws = noise.fold_in(key, OBJECTIVE, noise.BEFORE_THE_FIRST_GENERATION)
        return population, objective(population, draws) if task.is_random else objective(population)

    return jax.vmap(first)(lanes.own, lanes.key)


def enter(methods: tuple[str, ...], task: Task, lanes: int) -> Program:
    """To the states in which methods start from first populations, `[ways · L]`, way by way: OFMR has its trials."""
    return Program(_enter, (methods, task), _enter_shapes(methods[0], task, lanes))


def _enter(
    methods: tuple[str, ...], task: Task, key: noise.Key, population: Array, fitness: Array, setting: Setting | None
) -> State:
    def ways(method: str, key: noise.Key, population: Array, fitness: Array, setting: Setting | None) -> State:
        state = ga_of(method, task, setting).init(key_of(method, key), population, fitness)
        return OFMR().trials(state) if method == OFMR_NAME else jax.tree.map(lambda leaf: leaf[None], state)

    def all_ways(*lane: Any) -> State:
        branches = [ways(method, *lane) for method in methods]
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), *branches)

    states = jax.vmap(all_ways, out_axes=1)(key, population, fitness, setting)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)


def settle(task: Task, lanes: int) -> Program:
    """To first states with the rate of OFMR's best trial, given the trials' final values `f[grid, L]`."""
    key, population, fitness, _ = _enter_shapes(OFMR_NAME, task, lanes)
    return Program(_settle, (task,), (key, population, fitness, shape(OFMR().grid, lanes)))


def _settle(task: Task, key: noise.Key, population: Array, fitness: Array, values: Array) -> State:
    def choose(key: noise.Key, population: Array, fitness: Array, values: Array) -> State:
        state = ga_of(OFMR_NAME, task).init(key_of(OFMR_NAME, key), population, fitness)
        return task.reading.ofmr.choose(state, values)

    return jax.vmap(choose, in_axes=(0, 0, 0, 1))(key, population, fitness, values)


def advance(method: str, task: Task, lanes: int, ways: int = 1, generations: int = STEP) -> Program:
    """To `generations` more of a method, "FMR" for all fixed rates; `ways` copies of the lanes follow one another.

    The states after, the histories `f[ways · L, generations]` of elite value and mean log rate, and the mean log rate
    `f[ways · L]` that the next generation would use.
    """
    states = _state_shape(method, task, ways * lanes)
    shapes = states, lanes_shape(task, lanes, method)
    return Program(_advance, (method, task, ways, generations), shapes, donate=(0,))


def _advance(
    method: str, task: Task, ways: int, generations: int, states: State, lanes: Lanes
) -> tuple[State, Array, Array, Array]:
    run: Callable = task.reading.lamr.evolve if method == LAMR_NAME else evolve
    if task.is_random:
        run = partial(run, keyed=True)  # which looking ahead does not know

    def one(state: State, own: Any, setting: Setting | None) -> tuple[State, Array, Array, Array]:
        ga = ga_of(method, task, setting)
        state, history = run(ga, task.objective(lanes.shared, own), state, generations)
        return state, history.elite, history.log_rate, jnp.mean(ga.controller.log_rates(state.controller))

    own = jax.tree.map(lambda leaf: jnp.tile(leaf, (ways, *(1,) * (leaf.ndim - 1))), lanes.own)
    return jax.vmap(one)(states, own, lanes.setting)


def ga_of(method: str, task: Task, setting: Setting | None = None) -> GA:
    return task.ga(method) if setting is None else setting.ga(task.num_children)


def key_of(method: str, key: noise.Key) -> noise.Key:
    """The key of a method's runs, given that of a first population: methods share no noise. Those of a sweep do."""
    return key if method == SWEEP else noise.fold_in(key, _METHOD, zlib.crc32(method.encode()))


def lanes_shape(task: Task, lanes: int, method: str = "") -> Lanes:
    return Lanes(*task.shapes(lanes), keys_shape(lanes), _setting_shape(method, lanes))


@cache
def _state_shape(method: str, task: Task, lanes: int) -> Any:
    return jax.eval_shape(partial(_enter, (method,), task), *_enter_shapes(method, task, lanes))


def _enter_shapes(method: str, task: Task, lanes: int) -> tuple[Any, ...]:
    members = task.num_children + 1
    population, fitness = shape(lanes, members, task.num_genes), shape(lanes, members)
    return keys_shape(lanes), population, fitness, _setting_shape(method, lanes)


def _setting_shape(method: str, lanes: int) -> Setting | None:
    reals = shape(lanes)
    return Setting(reals, reals, reals, shape(lanes, dtype=jnp.int32)) if method == SWEEP else None
