"""A population stored in bfloat16: half the memory, while all arithmetic stays in single precision.

bfloat16 has 8 significant bits. Rounded to the nearest, a mutation below 1/512 of a gene would vanish, and small rates
would do nothing; rounded at random, up with the probability that makes the mean right, it survives in a share of the
genes. The random bits are a function of the place, as all noise is, so nothing depends on devices or batches.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from . import noise


def is_narrow(dtype: Any) -> bool:
    """Whether a population of this dtype is in bfloat16, packed or not."""
    return dtype in (jnp.bfloat16, jnp.uint16)


def packed(x: Array) -> Array:
    """`x` as a loop carries it: bfloat16 as its bits `u16`, because XLA on a CPU moves it by way of float32 copies."""
    return lax.bitcast_convert_type(x, jnp.uint16) if x.dtype == jnp.bfloat16 else x


def unpacked(x: Array, dtype: Any) -> Array:
    """What was `packed` from `dtype`."""
    return x if x.dtype == dtype else lax.bitcast_convert_type(x, dtype)


def wide(x: Array) -> Array:
    """`x` as arithmetic needs it: single precision for bfloat16, packed or not, anything else as it is."""
    x = packed(x)
    if x.dtype != jnp.uint16:
        return x
    return lax.bitcast_convert_type(x.astype(jnp.uint32) << 16, jnp.float32)


def rounded(x: Array, dtype: Any, keys: noise.Key, start: Any = 0) -> Array:
    """`x f[n, d]` in `dtype`; to bfloat16, packed or not, at random, by the words of `keys [n]` from `start` on.

    What bfloat16 can hold is kept to the bit.
    """
    if not is_narrow(dtype):
        return x.astype(dtype)
    # A float's magnitude grows with its bits: adding up to 2^16 − 1 and cutting 16 bits off rounds up in proportion.
    words = noise.another(noise.bits(keys, x.shape[1], start))
    bits = lax.bitcast_convert_type(x.astype(jnp.float32), jnp.uint32)
    upper = (bits + (words >> 16)) >> 16
    return unpacked(upper.astype(jnp.uint16), dtype)


def on_wide(objective: Callable, dtype: Any) -> Callable:
    """`objective` of single precision, for rows that are stored in `dtype`."""
    return (lambda rows: objective(wide(rows))) if is_narrow(dtype) else objective
