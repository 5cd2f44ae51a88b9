"""Truncation selection with one elite, the only selection in the project: of solutions (Eq. 3) and of rates (Eq. 6)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from . import kernels, noise

# Up to here comparing every pair is faster than XLA's sort, which calls a comparator for each comparison.
_COMPARE_PAIRS_UP_TO = 512
_KERNEL_UP_TO = 256  # on a GPU one program does all of it


def pool_size(truncation: Any, n: int) -> Array:
    """⌊truncation·n + ½⌋, at least 1: how many of the best become parents."""
    return jnp.clip(jnp.floor(jnp.asarray(truncation) * n + 0.5).astype(jnp.int32), 1, n)


class Selected(NamedTuple):
    """What came of a selection among n."""

    members: Array  # i32[n]  slot 0 the best, the others drawn uniformly from the pool
    ranking: Array  # i32[n]  all of them, the best first
    pool: Array  # i32[]  how many of the best could be drawn


def truncate(
    key: noise.Key,
    values: Array,
    pool: Array,
    before: Array | None = None,
    place: tuple[int | np.uint32, Array] | None = None,
) -> Selected:
    """Members by their `values f[n]`: slot 0 the lowest, the others drawn uniformly from the lowest `pool`.

    Equal values are ordered at random, so that no slot is favoured. `values` must not hold NaN. Takes words
    0 … 2n − 1 of `key`, or of the key of a `place` below it, which a kernel derives itself. Where there are numbers
    that count `before` the values, `f[n]`, these decide first.
    """

    def plain() -> Selected:
        return _truncated(key if place is None else noise.fold_in(key, *place), values, pool, before)

    is_small = values.shape[0] <= _KERNEL_UP_TO and values.dtype == jnp.float32
    if before is not None or not is_small or not kernels.wanted():
        return plain()
    from .kernels import choosing  # noqa: PLC0415  it takes time to import, and few need it

    return kernels.either(lambda: Selected(*choosing.truncated(key, values, pool, place), pool), plain)


def _truncated(key: noise.Key, values: Array, pool: Array, before: Array | None) -> Selected:
    n = values.shape[0]
    best_first = order(values, noise.bits(key, n, start=n), before)
    ranks = jnp.where(lax.iota(jnp.int32, n) == 0, 0, noise.integer(noise.bits(key, n), pool))
    return Selected(best_first[ranks], best_first, pool)


def lowest(key: noise.Key, values: Array) -> Array:
    """The index `i32[]` of the lowest of `values f[n]`, any of them with equal chance if there are several."""
    tie = noise.bits(key, values.shape[0])
    return jnp.argmin(jnp.where(values == jnp.min(values), tie >> 1, jnp.uint32(0xFFFFFFFF)))


def order(values: Array, tie: Array, before: Array | None = None) -> Array:
    """Indices `i32[n]` of `values` from lowest to highest, equal ones in the order of `tie` (all distinct)."""
    n = values.shape[0]
    index = lax.iota(jnp.int32, n)
    keys = (values,) if before is None else (before, values)
    if n > _COMPARE_PAIRS_UP_TO:
        return lax.sort((*keys, tie, index), num_keys=len(keys) + 1)[-1]
    if n > 16:
        tie = _place(tie, index)  # writes it to memory: fused, XLA would draw the words anew for every pair
    ahead = tie < tie[:, None]
    for one in reversed(keys):
        ahead = jnp.where(one == one[:, None], ahead, one < one[:, None])
    return _place(index, jnp.sum(ahead, axis=1, dtype=jnp.int32))


def _place(items: Array, at: Array) -> Array:
    """The array with `items[i]` at position `at[i]`, a permutation."""
    empty = jnp.zeros_like(items)
    return empty.at[at].set(items, mode="promise_in_bounds", unique_indices=True)
