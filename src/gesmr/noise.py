"""Randomness as a pure function of where it is used: (seed, generation, child, gene).

A `Key` is two 32-bit words. `fold_in` derives the key of a place (a generation, a child, a purpose) and `bits`
hashes a key and a counter into a word. Nothing is consumed and nothing depends on the batch, the device or the
order of evaluation, so a draw can be repeated, skipped or made elsewhere.

All of it is elementwise 32-bit arithmetic, which XLA fuses with whatever uses it. Quality: docs/noise.md.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from . import _checks
from ._elementary import log, sinpi

# In the place of a generation number, for first populations: the same key may serve those and the run.
BEFORE_THE_FIRST_GENERATION = np.uint32(2**32 - 1)

_GOLDEN = np.uint32(0x9E3779B9)  # 2^32 / golden ratio: odd, and an excellent two-dimensional lattice


class Key(NamedTuple):
    """Two words of any one shape: a scalar key, or an array of keys.

    Two arrays rather than one with an axis of two: slicing that axis apart again at every step is what XLA
    cannot fuse. A controller that wants `jax.random` can use `jax.random.wrap_key_data(jnp.stack(key))`.
    """

    high: Array  # u32[...]
    low: Array  # u32[...]


class Genes(NamedTuple):
    """Which genes of a solution the columns of an array are, where that holds only some of them."""

    first: Any  # u32[]
    total: int  # of a whole solution


def key(seed: Any) -> Key:
    """The key of an integer seed or of a JAX random key; a `Key` is returned as it is."""
    if isinstance(seed, Key):
        return seed
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        seed = _checks.integer("key", seed, 0, 2**64 - 1)
        return fold_in(Key(jnp.uint32(0), jnp.uint32(0)), np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32))
    words = seed
    if isinstance(words, jax.Array) and jnp.issubdtype(words.dtype, jax.dtypes.prng_key):
        words = jax.random.key_data(words)
    is_array = isinstance(words, jax.Array | np.ndarray)
    if not is_array or words.dtype != jnp.uint32 or words.shape not in ((2,), (4,)):
        given = f"shape {words.shape} and dtype {words.dtype}" if is_array else _checks.show(seed)
        raise TypeError(
            f"key must be an integer, a jax.random.key or a gesmr.noise.Key, got {given}"
            + ("; use jax.vmap for several keys" if is_array and words.ndim > 1 else "")
        )
    words = jnp.asarray(words)
    return fold_in(Key(words[0], words[1]), *(words[2:] if words.shape == (4,) else (0,)))


def fold_in(key: Key, first: Any, second: Any = 0) -> Key:
    """The key of the place (first, second) below `key`; words that are arrays give an array of keys.

    Different places below one key have different keys: each word enters one half by an odd multiple, and what
    follows is a permutation of the 2^64 keys (a four-round Feistel network). It takes two words at once because
    XLA repeats a derivation wherever its result is used in a fused loop, and compiles one step quickly, not two.
    """
    _check_key(key)
    high = key.high + _word("first", first) * _GOLDEN
    low = key.low + _word("second", second) * np.uint32(0xBB67AE85)
    low = low ^ _mix(high)
    high = high ^ _mix(low + np.uint32(0x85EBCA6B))
    low = low ^ _mix(high + np.uint32(0xC2B2AE35))
    high = high ^ _mix(low + np.uint32(0x27D4EB2F))
    return Key(high, low)


def bits(key: Key, n: int, start: Any = 0) -> Array:
    """Words `start` … `start + n − 1` of each key, on a last axis: `u32[..., n]`. Those of one key are distinct."""
    _check_key(key)
    shape = (*key.low.shape, _checks.integer("n", n, 0, most=2**32 - 1))
    if isinstance(start, int):
        start = np.uint32(start & 0xFFFFFFFF)
    elif not _is_integer(start) or np.ndim(start):
        raise TypeError(f"start must be an integer, got {_checks.described(start)}")
    counter = lax.broadcasted_iota(jnp.uint32, shape, len(shape) - 1) + start
    return _hash(counter, key.high[..., None], key.low[..., None])


def another(word: Array) -> Array:
    """A second word for the same place, of which the upper bits are good: an odd multiple of the first.

    With radius and angle of `normal` they form a lattice in three dimensions.
    """
    _check_word(word)
    return word * np.uint32(0xADB4A92D)


def uniform(word: Array) -> Array:
    """A word `u32` to the open interval (0, 1), `f32`: the middle of one of 2^23 cells, never an end point."""
    _check_word(word)
    return ((word >> 9).astype(jnp.int32).astype(jnp.float32) + 0.5) * np.float32(2**-23)


def integer(word: Array, upper: Any) -> Array:
    """A word `u32` to 0 … upper − 1, `i32`; `upper` may be traced. The bias is below upper / 2^32."""
    _check_word(word)
    return _multiply_high(word, _word("upper", upper)).astype(jnp.int32)


def normal(word: Array) -> Array:
    """A word `u32` to a standard normal `f32`, always finite and at most 6.67 from zero, by Box–Muller.

    The word's upper 31 bits give the radius; an odd multiple of it gives the angle, so that the pairs form a
    lattice that stays even in the tails. Half a circle is enough: sin has the same distribution on both halves.
    """
    _check_word(word)
    radius = ((word >> 1).astype(jnp.int32).astype(jnp.float32) + 0.5) * np.float32(2**-31)
    half_turns = (word * _GOLDEN).astype(jnp.int32).astype(jnp.float32) * np.float32(2**-32)
    return jnp.sqrt(jnp.maximum(-2 * log(radius), 0)) * sinpi(half_turns)


def _word(name: str, x: Any) -> Array:
    """`x` modulo 2^32; Python integers beyond int32 included."""
    if isinstance(x, int):
        x = np.uint32(x & 0xFFFFFFFF)
    if not _is_integer(x):
        raise TypeError(f"{name} must be given by integers or arrays of them, got {_checks.show(x)}")
    return jnp.asarray(x).astype(jnp.uint32)


def _is_integer(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray | np.generic) and jnp.issubdtype(x.dtype, jnp.integer)


def _check_key(key: Any) -> None:
    if not isinstance(key, Key) or any(getattr(half, "dtype", None) != jnp.uint32 for half in key):
        raise TypeError(f"key must be a gesmr.noise.Key, got {_checks.show(key)}; gesmr.noise.key makes one")


def _check_word(word: Any) -> None:
    if not isinstance(word, jax.Array | np.ndarray | np.generic) or word.dtype != jnp.uint32:
        raise TypeError(f"word must be u32, what gesmr.noise.bits gives, got {_checks.described(word)}")


def _mix(x: Array) -> Array:
    """A 32-bit permutation with near-ideal avalanche (constants: C. Wellons' hash prospector, lowbias32)."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def _hash(counter: Array, before: Array, within: Array) -> Array:
    """Three multiply-xorshift rounds (triple32's constants) with half of the key before and half after the first.

    The half in the middle is what keeps two keys whose first halves are close from giving shifted copies.
    """
    x = counter + before
    x = (x ^ (x >> 17)) * np.uint32(0xED5AD4BB)
    x = (x ^ (x >> 11) ^ within) * np.uint32(0xAC4C1B51)
    x = (x ^ (x >> 15)) * np.uint32(0x31848BAB)
    return x ^ (x >> 14)


def _multiply_high(a: Array, b: Array) -> Array:
    """The upper 32 bits of the 64-bit product, from 16-bit halves."""
    a_high, a_low, b_high, b_low = a >> 16, a & 0xFFFF, b >> 16, b & 0xFFFF
    middle = a_high * b_low + ((a_low * b_low) >> 16)
    other = a_low * b_high + (middle & 0xFFFF)
    return a_high * b_high + (middle >> 16) + (other >> 16)
