"""Many runs of one method side by side ("lanes"), a hundred generations per call of a compiled program.

A program is named by method, dimension, number of lanes and number of generations. The function, the spreads, the
shifts, the seeds and fixed rates are data, so one program serves them all, and runs of any length that is a whole
number of steps.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .. import noise
from .._pytree import pytree, static
from ..controllers import PAPER_NAMES, Fixed, controller
from ..evolve import evolve
from ..ga import GA, State
from ..oracles import LAMR, OFMR, with_rate
from ..problems.functions import AS_PRINTED, FORMULAS, Function

NUM_CHILDREN = 100
STEP = 100  # generations per call; LAMR-100 looks ahead once in each
METHODS = ("OFMR", "LAMR-100", *PAPER_NAMES)
ORACLES = ("OFMR", "LAMR-100")
FIXED_RATES = ("FMR", "1CMR", "OFMR")  # one program serves these: a rate is a fixed-rate run's data

# Above so many genes in a batch a GPU saves more by a program for one function alone than that program costs.
_OWN_PROGRAM_ABOVE = 2e7
_GENES_ON_A_CPU = 1_000_000  # at once: a few megabytes, which caches hold


class Lanes(NamedTuple):
    """What distinguishes runs that are computed side by side; L of them."""

    function: Array  # i32[]  index into FORMULAS
    std: Array  # f[L]
    shift: Array  # f[L, d]
    key: noise.Key  # u32[L]


def lanes(function: str, dim: int, stds: Sequence[float], seeds: Sequence[int], shifted: bool) -> Lanes:
    """One lane per spread and seed. All methods share first populations, seed by seed."""
    optimum = FORMULAS[function].optimum
    moved = shifted and optimum is not None
    std, seed = np.asarray(stds, np.float32), np.asarray(seeds, np.uint32)
    key, shift = _keys_and_shifts(std, seed, np.float32(optimum or 0), dim, moved)
    return Lanes(jnp.int32(list(FORMULAS).index(function)), jnp.asarray(std), shift, key)


@partial(jax.jit, static_argnums=(3, 4))
def _keys_and_shifts(std: Array, seed: Array, optimum: Array, dim: int, moved: bool) -> tuple[noise.Key, Array]:
    """A key for each lane, and a shift that puts the optimum at a draw of the initial distribution if it is moved."""
    base = noise.key(2022)
    shift = jnp.zeros((len(seed), dim), jnp.float32)
    if moved:
        shift = std[:, None] * noise.normal(noise.bits(noise.fold_in(base, seed, 1), dim)) - optimum
    return noise.fold_in(base, seed), shift


@pytree
class AnyFunction:
    """A function of the paper, as printed. Which one is data, unless it is for one function `only`.

    A CPU takes that function's branch; a GPU, where branching is slow, computes them all.
    """

    index: Any
    shift: Any
    only: str | None = static(default=None)

    def __call__(self, population: Array) -> Array:
        x = population - self.shift
        if self.only is not None:
            return AS_PRINTED[self.only].value(x)
        formulas = [formula.value for formula in AS_PRINTED.values()]
        if jax.default_backend() == "cpu":
            return lax.switch(self.index, formulas, x)
        return lax.select_n(self.index, *(value(x) for value in formulas))


@dataclass(frozen=True)
class First:
    """The evaluated first populations `f[L, N+1, d]`, `f[L, N+1]` of lanes."""

    dim: int
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, lanes_shape(self.dim, self.lanes))

    def function(self, lanes: Lanes) -> tuple[Array, Array]:
        def first(std: Array, shift: Array, key: noise.Key) -> tuple[Array, Array]:
            population = Function("sphere", self.dim, std).init(key, NUM_CHILDREN + 1, jnp.float32)
            return population, AnyFunction(lanes.function, shift)(population)

        return jax.vmap(first)(lanes.std, lanes.shift, lanes.key)


@dataclass(frozen=True)
class Enter:
    """The states in which a method starts from first populations."""

    method: str
    dim: int
    lanes: int

    def compile(self) -> Callable:
        population = shape(self.lanes, NUM_CHILDREN + 1, self.dim)
        fitness = shape(self.lanes, NUM_CHILDREN + 1)
        return compile_for(self.function, keys_shape(self.lanes), population, fitness)

    def function(self, key: noise.Key, population: Array, fitness: Array) -> State:
        return jax.vmap(_ga(self.method).init)(key, population, fitness)


@dataclass(frozen=True)
class Branch:
    """States of `Fixed` for every way a first state goes on: FMR, 1CMR, OFMR's trials. `[ways · L]`, way by way."""

    methods: tuple[str, ...]
    dim: int
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, state_shape("FMR", self.dim, self.lanes))

    @property
    def ways(self) -> int:
        return sum(OFMR().grid if method == "OFMR" else 1 for method in self.methods)

    def function(self, states: State) -> State:
        def ways(state: State) -> State:
            branches = [
                OFMR().trials(state)
                if method == "OFMR"
                else jax.tree.map(lambda leaf: leaf[None], with_rate(state, self._log_rate(method)))
                for method in self.methods
            ]
            return jax.tree.map(lambda *parts: jnp.concatenate(parts), *branches)

        states = jax.vmap(ways, out_axes=1)(states)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)

    def _log_rate(self, method: str) -> Array:
        fixed = controller(method, NUM_CHILDREN)
        return fixed.init(noise.key(0), NUM_CHILDREN, self.dim)


@dataclass(frozen=True)
class Settle:
    """First states with the rate of OFMR's best trial, given the trials' final values `f[grid, L]`."""

    dim: int
    lanes: int

    def compile(self) -> Callable:
        return compile_for(self.function, state_shape("FMR", self.dim, self.lanes), shape(OFMR().grid, self.lanes))

    def function(self, states: State, values: Array) -> State:
        return jax.vmap(OFMR().choose, in_axes=(0, 1))(states, values)


@dataclass(frozen=True)
class Advance:
    """`generations` more generations of a method. `ways` copies of the lanes follow one another in the states."""

    method: str  # "FMR" for all fixed rates
    dim: int
    lanes: int
    ways: int = 1
    generations: int = STEP
    only: str | None = None  # the one function it is for; None: any

    def compile(self) -> Callable:
        states = state_shape(self.method, self.dim, self.ways * self.lanes)
        return compile_for(self.function, states, lanes_shape(self.dim, self.lanes), donate=(0,))

    def function(self, states: State, lanes: Lanes) -> tuple[State, Array, Array]:
        """The states after, and the histories `f[ways · L, generations]` of elite value and mean log rate."""
        ga = _ga(self.method)
        run = LAMR(window=STEP).evolve if self.method == "LAMR-100" else evolve

        def one(state: State, shift: Array) -> tuple[State, Array, Array]:
            objective = AnyFunction(lanes.function, shift, self.only)
            state, history = run(ga, objective, state, self.generations)
            return state, history.elite, history.log_rate

        return jax.vmap(one)(states, jnp.tile(lanes.shift, (self.ways, 1)))


def deserves_own_program(dim: int, populations: int) -> bool:
    """Whether so many populations of the dimension should have a program for their function alone."""
    return jax.default_backend() != "cpu" and populations * NUM_CHILDREN * dim > _OWN_PROGRAM_ABOVE


def most_lanes(num_children: int, dim: int, memory: int) -> int:
    """How many runs to compute at once: two buffers of the population, and what selection and evaluation need."""
    genes = (num_children + 1) * dim
    most = memory // (16 * genes + 64 * num_children)
    if jax.default_backend() == "cpu":
        most = min(most, _GENES_ON_A_CPU // genes)
    return max(1, most)


def step_lengths(generations: int) -> list[int]:
    """A run in steps of `STEP` generations, and what is left."""
    whole, left = divmod(generations, STEP)
    return [STEP] * whole + [left] * (left > 0)


def memory_per_lane(dim: int, ways: int) -> int:
    """Bytes, roughly: two buffers of the population and what evaluating it needs."""
    return 4 * 4 * (NUM_CHILDREN + 1) * dim * ways


def _ga(method: str) -> GA:
    return GA(Fixed() if method in ORACLES else controller(method, NUM_CHILDREN), NUM_CHILDREN)


# Tracing is Python: many threads at it would only keep those that run programs from their turn.
_TRACING = threading.Lock()


def compile_for(function: Callable, *shapes: Any, donate: tuple[int, ...] = ()) -> Callable:
    """`function` compiled for arguments of these shapes; those in `donate` lend their memory to the results."""
    with _TRACING:
        lowered = jax.jit(function, donate_argnums=donate).lower(*shapes)
    return lowered.compile()


def shape(*sizes: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, dtype)


def keys_shape(lanes: int) -> noise.Key:
    return noise.Key(shape(lanes, dtype=jnp.uint32), shape(lanes, dtype=jnp.uint32))  # type: ignore[arg-type]


def lanes_shape(dim: int, lanes: int) -> Any:
    return Lanes(shape(dtype=jnp.int32), shape(lanes), shape(lanes, dim), keys_shape(lanes))  # type: ignore[arg-type]


def state_shape(method: str, dim: int, lanes: int) -> Any:
    enter = Enter(method, dim, lanes)
    arguments = (keys_shape(lanes), shape(lanes, NUM_CHILDREN + 1, dim), shape(lanes, NUM_CHILDREN + 1))
    return jax.eval_shape(enter.function, *arguments)
