"""How a run starts: its key, and the first population that is drawn with it."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import noise, storage
from ..bounds import Bounds
from ..devices import REPLICATED, Shards
from .options import Setup
from .space import precision

_RESTARTS = np.uint32(2**29)  # the keys of restarts are at (this, number), apart from all places a run draws from


class First(NamedTuple):
    """The first population of a run, not all of its values known yet."""

    population: Array  # f[N+1, d]
    values: np.ndarray  # f[N+1], NaN where they are not known
    known: np.ndarray  # bool[N+1]


def first(setup: Setup, run: int, shards: Shards | None = None) -> First:
    """The first population of the run after so many restarts: only the first of all has x0 and `init` in it."""
    members = setup.members(run)
    given = [] if run else [rows for rows in (setup.init, setup.x0[None]) if rows is not None]
    head = np.concatenate(given)[:members] if given else np.empty((0, setup.space.dim), setup.x0.dtype)
    with precision(setup.space.dtype):
        around, size = (setup.x0, setup.init_std, setup.bounds), (members, setup.space.dtype)
        if shards is None:
            population = _draw(key(setup, run), head, *around, *size)
        else:
            population = _draw_sharded(key(setup, run), head, around, *size, shards)
    values, known = np.full(members, np.nan, setup.space.wide), np.zeros(members, bool)
    if run == 0 and setup.init_values is not None:
        known[: len(setup.init_values)] = True
        values[known] = setup.init_values
    return First(population, values, known)


def key(setup: Setup, run: int) -> noise.Key:
    return _key(np.uint32(setup.seed & 0xFFFFFFFF), np.uint32(setup.seed >> 32), np.uint32(run))


@jax.jit
def _key(low: Array, high: Array, run: Array) -> noise.Key:
    """The key of a run: that of the seed, as `noise.key` makes it, and below it those of the restarts."""
    key = noise.fold_in(noise.Key(jnp.uint32(0), jnp.uint32(0)), low, high)
    below = noise.fold_in(key, _RESTARTS, run)
    return noise.Key(*(jnp.where(run == 0, first, other) for first, other in zip(key, below, strict=True)))


def _rows(
    key: noise.Key,
    head: Array,
    x0: Array,
    std: Array | None,
    bounds: Bounds | None,
    members: int,
    dtype: str,
    start: Any = 0,
) -> Array:
    """`head` and draws around x0, or over the range of a variable that has one and no spread was asked for.

    `start` is the number of the first variable, where these are only some.
    """
    keys = noise.fold_in(key, jnp.arange(members), noise.BEFORE_THE_FIRST_GENERATION)
    words = noise.bits(keys, x0.shape[0], start)
    spread = jnp.asarray(1.0 if std is None else std, x0.dtype)
    population = (x0 + spread * noise.normal(words)).astype(x0.dtype)
    if bounds is not None:
        span = bounds.high - bounds.low
        if std is None:
            anywhere = bounds.low + jnp.where(jnp.isfinite(span), span, 0) * noise.uniform(words)
            population = jnp.where(jnp.isfinite(span), anywhere.astype(x0.dtype), population)
        population = bounds.repair(population)
    population = storage.rounded(population, dtype, keys, start)
    return population.at[: head.shape[0]].set(head.astype(dtype))


_draw = partial(jax.jit, static_argnums=(5, 6))(_rows)


def _draw_sharded(key: noise.Key, head: np.ndarray, around: tuple, members: int, dtype: str, shards: Shards) -> Array:
    """`_rows` on many devices, of the variables that each holds."""

    def part(key: noise.Key, head: Array, around: tuple) -> Array:
        x0, std, bounds = around
        return _rows(key, head, x0, std, bounds, members, dtype, shards.genes.first)

    draw = jax.jit(shards.map(part, (REPLICATED, shards.by_gene, shards.per_gene(around)), shards.by_gene))
    return draw(shards.replicate(key), shards.shard(head), shards.shard_genes(around))
