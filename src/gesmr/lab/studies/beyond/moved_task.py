"""Test functions whose optimum is a draw of the first population's distribution, rotated if asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .... import noise
from ...._pytree import pytree
from ....ga import GA
from ....problems.functions import FORMULAS, Function
from ...run.compilation import shape
from ...run.function_task import WITH_OPTIMUM, value_of
from ...run.lanes import NUM_CHILDREN, Lanes, Task
from ...run.reading import Reading
from .methods import ga_of

ILL_CONDITIONED = ("ellipsoid", "cigar", "discus")
FUNCTIONS = (*WITH_OPTIMUM, *ILL_CONDITIONED)
_MINIMISERS = np.array([FORMULAS[name].optimum for name in FUNCTIONS], np.float32)  # every coordinate of each one's


class Place(NamedTuple):
    """Where L runs start, where their optimum is and how it is turned."""

    std: Array  # f[L]
    optimum: Array  # f[L, d]
    rotation: Array | None  # f[L, d, d], orthogonal
    which: Array | None = None  # i32[L]  of each one's function, if they have different ones


@dataclass(frozen=True)
class MovedTask(Task):
    """Any of `FUNCTIONS` in `dim` dimensions, with the methods of this study."""

    dim: int
    rotated: bool
    num_children: int = NUM_CHILDREN
    reading: Reading = Reading.TEXT
    mixed: bool = False  # whether lanes have different functions

    @property
    def num_genes(self) -> int:
        return self.dim

    def shapes(self, lanes: int) -> tuple[Any, Place]:
        rotation = shape(lanes, self.dim, self.dim) if self.rotated else None
        which = shape(lanes, dtype=jnp.int32) if self.mixed else None
        return shape(dtype=jnp.int32), Place(shape(lanes), shape(lanes, self.dim), rotation, which)

    def first(self, shared: Array, own: Place, key: noise.Key) -> Array:
        return Function("sphere", self.dim, own.std).init(key, self.num_children + 1, jnp.float32)

    def spread(self, shared: Array, own: Place, key: noise.Key) -> Array:
        return own.std

    def objective(self, shared: Array, own: Place) -> "Moved":
        return Moved(shared if own.which is None else own.which, own.optimum, own.rotation)

    def ga(self, method: str) -> GA:
        return ga_of(method, self.num_children)


@pytree
class Moved:
    """f(R(x − o) + m), m the function's own minimiser: the optimum is at o however it is turned, Rosenbrock's too."""

    index: Any  # of `FUNCTIONS`
    optimum: Any  # f[d]
    rotation: Any = None  # f[d, d]

    def __call__(self, population: Array) -> Array:
        x = population - self.optimum
        if self.rotation is not None:
            x = jnp.matmul(x, jnp.swapaxes(self.rotation, -1, -2), precision="highest")
        x = x + jnp.asarray(_MINIMISERS, x.dtype)[self.index]
        return value_of([FORMULAS[name].value for name in FUNCTIONS], self.index, x)


def moved_lanes(
    functions: Sequence[str], dim: int, stds: Sequence[float], seeds: Sequence[int], rotated: bool
) -> Lanes:
    """One lane per function, spread and seed. All share first populations, optima and rotations, seed by seed."""
    std, seed = np.asarray(stds, np.float32), np.asarray(seeds, np.uint32)
    key, optimum = _keys_and_optima(std, seed, dim)
    rotation = _rotations(dim, seeds) if rotated else None
    index = jnp.asarray([FUNCTIONS.index(function) for function in functions], jnp.int32)
    own = index if len(set(functions)) > 1 else None
    return Lanes(index[0], Place(jnp.asarray(std), optimum, rotation, own), key)


def _rotations(dim: int, seeds: Sequence[int]) -> Array:
    """Of each lane `f[L, d, d]`; those of a seed travel to the device once."""
    different = list(dict.fromkeys(seeds))
    matrices = jnp.asarray(np.stack([rotation_of(dim, seed) for seed in different]))
    return matrices[np.array([different.index(seed) for seed in seeds])]


@partial(jax.jit, static_argnums=2)
def _keys_and_optima(std: Array, seed: Array, dim: int) -> tuple[noise.Key, Array]:
    """Those of the study `functions` with `--shifted`."""
    base = noise.key(2022)
    return noise.fold_in(base, seed), std[:, None] * noise.normal(noise.bits(noise.fold_in(base, seed, 1), dim))


@lru_cache(maxsize=256)
def rotation_of(dim: int, seed: int) -> np.ndarray:
    """A seed's orthogonal matrix `f32[d, d]`, any as likely: Q of Gaussian noise, with R's diagonal positive."""
    q, r = np.linalg.qr(np.asarray(_gaussian(np.uint32(seed), dim), np.float64))
    return (q * np.sign(np.diag(r))).astype(np.float32)


@partial(jax.jit, static_argnums=1)
def _gaussian(seed: Array, dim: int) -> Array:
    return noise.normal(noise.bits(noise.fold_in(noise.key(2022), seed, 2), dim * dim)).reshape(dim, dim)
