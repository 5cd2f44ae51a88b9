"""Truncation selection in one kernel: compared by pairs, ranked and drawn by a single program."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl

from .. import noise
from . import barrier, load, options, store

_AT_ONCE, _WARPS = 32, 4


def truncated(
    key: noise.Key, values: Array, pool: Any, place: tuple[int | np.uint32, Array] | None
) -> tuple[Array, Array]:
    """The members and the ranking, `i32[n]` each, of `selection.truncate`."""
    words = [jnp.stack([key.high, key.low])]  # what derives the key is then one kernel, not one for each of its words
    if place is not None:
        words.append(place[1][None])
    members, ranking = _call(None if place is None else int(place[0]))(
        words, jnp.asarray(pool, jnp.int32)[None], values
    )
    return members, ranking[: values.shape[0]]


@cache
def _call(first: int | None) -> Callable:
    """The kernel, traced once for all programs that have values of one shape."""
    kernel = partial(_program, first)

    def call(words: list[Array], pool: Array, values: Array) -> list[Array]:
        n = values.shape[0]
        return pl.pallas_call(
            kernel,
            out_shape=[jax.ShapeDtypeStruct((size,), jnp.int32) for size in (n, _padded(n))],
            name="truncate",
            **options(_WARPS),
        )(words, pool, values)

    return jax.jit(call)


def _padded(n: int) -> int:
    return pl.next_power_of_2(max(n, _AT_ONCE))


def _program(first: int | None, words: Any, pool: Any, values: Any, members: Any, ranking: Any) -> None:
    n = values.shape[0]
    padded, index = _padded(n), lax.iota(jnp.int32, _padded(n))
    key = noise.Key(words[0][0], words[0][1])
    if first is not None:
        key = noise.fold_in(key, first, words[1][0])
    is_one = index < n
    mine, tie = load(values.at[index], is_one)[:, None], noise.bits(key, padded, start=n)[:, None]

    def counted(turn: Any, rank: Array) -> Array:
        first = turn * _AT_ONCE
        other = first + lax.iota(jnp.int32, _AT_ONCE)
        value = load(values.at[pl.ds(first, _AT_ONCE)], other < n)[None]
        earlier = noise.bits(key, _AT_ONCE, (first + n).astype(jnp.uint32))[None] < tie
        ahead = (other < n)[None] & jnp.where(value == mine, earlier, value < mine)
        return rank + jnp.sum(ahead.astype(jnp.int32), axis=1)

    rank = lax.fori_loop(0, padded // _AT_ONCE, counted, jnp.zeros_like(index))
    store(ranking.at[jnp.where(is_one, rank, index)], index)
    barrier()  # what other threads have written is read
    drawn = jnp.where(index == 0, 0, noise.integer(noise.bits(key, padded), pool[0]))
    store(members.at[index], load(ranking.at[drawn], is_one), is_one)
