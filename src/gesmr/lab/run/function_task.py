"""The paper's six functions as a task: which one, spread and shift are data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ... import noise
from ..._pytree import pytree, static
from ...problems.functions import AS_PRINTED, FORMULAS, LINEAR, Function
from ...sums import Sums
from .compilation import shape
from .lanes import NUM_CHILDREN, Lanes, Task
from .masked import Setting
from .reading import PAPER_FUNCTIONS, Reading
from .specs import Spec

WITH_OPTIMUM = tuple(name for name in PAPER_FUNCTIONS if FORMULAS[name].optimum is not None)
# Above so many genes in a batch a GPU saves more by a program for one function alone than that program costs.
_OWN_PROGRAM_ABOVE = 2e7
_GENES_ON_A_CPU = 1_000_000  # at once: a few megabytes, which caches hold


class Place(NamedTuple):
    """Where L runs start and where their optimum is."""

    std: Array  # f[L]
    shift: Array  # f[L, d]


@dataclass(frozen=True)
class FunctionTask(Task):
    """Any of the functions in `dim` dimensions. `function` is what a tailored task would be for, and shapes nothing."""

    dim: int
    num_children: int = NUM_CHILDREN
    function: str | None = field(default=None, compare=False)
    only: str | None = None  # the one function it is for; None: any
    reading: Reading = Reading.TEXT

    @property
    def num_genes(self) -> int:
        return self.dim

    def shapes(self, lanes: int) -> tuple[Any, Place]:
        return shape(dtype=jnp.int32), Place(shape(lanes), shape(lanes, self.dim))

    def first(self, shared: Array, own: Place, key: noise.Key) -> Array:
        return Function("sphere", self.dim, own.std).init(key, self.num_children + 1, jnp.float32)

    def objective(self, shared: Array, own: Place) -> "AnyFunction":
        return AnyFunction(shared, own.shift, self.only, self.reading)

    def tailored(self, populations: int) -> "FunctionTask":
        genes = populations * self.num_children * self.dim
        alone = jax.default_backend() != "cpu" and genes > _OWN_PROGRAM_ABOVE
        return replace(self, only=self.function) if alone else self


@pytree
class AnyFunction:
    """A function of the paper, term by term as printed. Which one is data, unless it is for one function `only`."""

    index: Any
    shift: Any
    only: str | None = static(default=None)
    reading: Reading = static(default=Reading.TEXT)

    def __call__(self, population: Array) -> Array:
        x = population - self.shift
        linear = partial(LINEAR.value, weight=self.reading.coefficients(x.shape[-1]))
        values = {name: AS_PRINTED[name].value for name in PAPER_FUNCTIONS} | {"linear": linear}
        if self.only is not None:
            return values[self.only](x)
        return value_of(list(values.values()), self.index, x)

    @property
    def sums(self) -> Sums:
        """The function as sums over genes: a kernel takes the branch of the one there is."""
        weight = self.reading.coefficients(self.shift.shape[-1])
        names = PAPER_FUNCTIONS if self.only is None else (self.only,)
        formulas = tuple(summed for name in names if (summed := AS_PRINTED[name].summed))
        return Sums(formulas, self.index, self.shift, weight)


def value_of(formulas: Sequence[Callable[[Array], Array]], index: Any, x: Array) -> Array:
    """Of the formula at `index`: a CPU takes its branch; a GPU, where branching is slow, computes all."""
    if jax.default_backend() == "cpu":
        return lax.switch(index, formulas, x)
    return lax.select_n(index, *(value(x) for value in formulas))


class FunctionRun(Spec):
    """A run on one of the functions."""

    function: str
    dim: int
    std: float
    shifted: bool
    seed: int


def lanes_of(runs: Sequence[FunctionRun], setting: Setting | None = None) -> Lanes:
    """A lane for each of some runs on the same function."""
    one, stds, seeds = runs[0], [run.std for run in runs], [run.seed for run in runs]
    return function_lanes(one.function, one.dim, stds, seeds, one.shifted, setting)


def function_lanes(
    function: str,
    dim: int,
    stds: Sequence[float],
    seeds: Sequence[int],
    shifted: bool,
    setting: Setting | None = None,
) -> Lanes:
    """One lane per spread and seed. All methods share first populations, seed by seed."""
    optimum = FORMULAS[function].optimum
    moved = shifted and optimum is not None
    std, seed = np.asarray(stds, np.float32), np.asarray(seeds, np.uint32)
    key, shift = _keys_and_shifts(std, seed, np.float32(optimum or 0), dim, moved)
    return Lanes(jnp.int32(PAPER_FUNCTIONS.index(function)), Place(jnp.asarray(std), shift), key, setting)


@partial(jax.jit, static_argnums=(3, 4))
def _keys_and_shifts(std: Array, seed: Array, optimum: Array, dim: int, moved: bool) -> tuple[noise.Key, Array]:
    """A key for each lane, and a shift that puts the optimum at a draw of the initial distribution if it is moved."""
    base = noise.key(2022)
    shift = jnp.zeros((len(seed), dim), jnp.float32)
    if moved:
        shift = std[:, None] * noise.normal(noise.bits(noise.fold_in(base, seed, 1), dim)) - optimum
    return noise.fold_in(base, seed), shift


def most_lanes(num_children: int, dim: int, memory: int) -> int:
    """How many runs to compute at once: two buffers of the population, and what selection and evaluation need."""
    genes = (num_children + 1) * dim
    most = memory // (16 * genes + 64 * num_children)
    if jax.default_backend() == "cpu":
        most = min(most, _GENES_ON_A_CPU // genes)
    return max(1, most)
