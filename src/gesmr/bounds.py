"""Bounds on variables: hard, at the start and at every mutation."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from . import _checks, noise, storage
from ._pytree import pytree, static

HANDLINGS = ("reflect", "clip", "resample")
_REDRAWS = 16  # after which what is still outside is reflected


@pytree
class Bounds:
    """`low ≤ x ≤ high`, each a number or one per variable; infinite on a side that is open, equal where x is fixed.

    A variable with a finite range is mutated in units of it: a rate of 0.1 is a tenth of high − low, and rates above 1
    act as 1. The others are mutated in units of `unit`, by default 1. `handling` says what happens to a gene that a
    mutation carries outside: "reflect" mirrors it at the bound, "clip" puts it on the bound, "resample" draws it again.

    Variables that are rounded where they are used would get stuck when rates are small. So with a chance of `leaps`,
    one number per variable, they also move by one unit up or down. `unordered`, one truth value per variable, marks
    those that number k options, in a range of −0.5 to k − 0.5. They are not moved but drawn again, from all options,
    with a chance of the rate, but at least `leaps` and at most 1.
    """

    low: Any = float("-inf")
    high: Any = float("inf")
    handling: str = static(default="reflect")
    unit: Any = 1.0
    leaps: Any = None
    unordered: Any = None

    def __post_init__(self):
        _checks.choice("handling", self.handling, HANDLINGS)

    def stored_in(self, dtype: Any) -> "Bounds":
        """These bounds as a population of this dtype has them: bfloat16 rounds them."""
        if not storage.is_narrow(dtype):
            return self
        low, high = (storage.wide(jnp.asarray(side, jnp.bfloat16)) for side in (self.low, self.high))
        return Bounds(low, high, self.handling, self.unit, self.leaps, self.unordered)

    def units(self, dtype: Any) -> tuple[Array, Array]:
        """What each gene is measured in, `f[d]` or `f[]`, and whether that is its range."""
        low, high = (jnp.asarray(side, dtype) for side in (self.low, self.high))
        finite = jnp.isfinite(high - low)
        return jnp.where(finite, high - low, jnp.asarray(self.unit, dtype)), finite

    def steps(self, rates: Array, dtype: Any) -> Array:
        """How far one standard deviation of noise moves each gene: `f[n, d]` from rates `f[n, 1]`."""
        (unit, is_range), rates = self.units(dtype), rates.astype(dtype)
        return jnp.where(is_range, jnp.minimum(rates, 1), rates) * unit

    def leap(self, x: Array, parents: Array, rates: Array, words: Array) -> Array:
        """`x f[n, d]` inside the bounds, with genes that are rounded or that number options changed as their `leaps`
        say, by random `words u32[n, d]`; not where rates `f[n, 1]` are 0."""
        if self.leaps is None and self.unordered is None:
            return x
        low, high = (jnp.asarray(side, x.dtype) for side in (self.low, self.high))
        chance = jnp.where(rates > 0, jnp.asarray(0.0 if self.leaps is None else self.leaps, x.dtype), 0)
        second = noise.uniform(noise.another(words))
        step = jnp.where(second < chance, jnp.where(second < chance / 2, -1, 1), 0).astype(x.dtype)
        there = x + step
        x = jnp.clip(jnp.where((there < low) | (there > high), x - step, there), low, high)
        if self.unordered is None:
            return x
        option = jnp.ceil(low) + jnp.minimum(jnp.floor(second * (high - low)).astype(x.dtype), high - low - 1)
        kept = jnp.where(noise.uniform(words) < jnp.maximum(rates, chance), option, parents)
        return jnp.where(jnp.asarray(self.unordered), kept, x)

    def repair(self, x: Array, redraw: Callable[[Array], Array] | None = None) -> Array:
        """`x f[n, d]` inside the bounds. `redraw` gives other mutants by the number of the attempt, for "resample".

        What is still outside is clipped if that is how bounds are handled, else reflected.
        """
        low, high = (jnp.asarray(side, x.dtype) for side in (self.low, self.high))
        if self.handling == "resample" and redraw is not None:
            x = _resample(redraw, x, low, high)
        if self.handling != "clip":
            x = _reflect(x, low, high)
        largest = np.finfo(x.dtype).max
        return jnp.clip(x, jnp.maximum(low, -largest), jnp.minimum(high, largest))


def check_numbers(bounds: Bounds) -> None:
    """Refuse bounds for rows whose sides, unit and leaps are not numbers; sides may be infinite. Tracers pass."""
    if bounds.unordered is not None:
        check_unordered(bounds.unordered)
    for name in ("low", "high", "unit", "leaps"):
        given = getattr(bounds, name)
        if isinstance(given, Tracer) or (name == "leaps" and given is None):
            continue
        numbers = _checks.array(f"{name} of bounds", given, "a number or one per variable")
        real = numbers.dtype.kind in "iu" or jnp.issubdtype(numbers.dtype, jnp.floating)
        if not real or np.isnan(numbers).any():
            shown = _checks.show(given)
            raise TypeError(f"{name} of bounds must be a number or one per variable, and not NaN, got {shown}")


def check_unordered(given: Any) -> Any:
    """Truth values as they are, if they are such. Tracers pass."""
    if isinstance(given, Tracer):
        return given
    flags = _checks.array("unordered of bounds", given, "True or False, or one of them per variable")
    if flags.dtype != bool:
        raise TypeError(f"unordered of bounds must be True or False, or one per variable, got {_checks.show(given)}")
    return flags


def _reflect(x: Array, low: Array, high: Array) -> Array:
    """`x` mirrored at the bounds as often as needed. What is inside stays as it is, to the bit."""
    span = high - low
    turn = jnp.mod(x - low, 2 * span)
    folded = low + (span - jnp.abs(turn - span))
    mirrored = jnp.where(x < low, low + (low - x), high - (x - high))
    outside = (x < low) | (x > high)
    return jnp.where(outside, jnp.where(jnp.isfinite(span), folded, mirrored), x)


def _resample(redraw: Callable[[Array], Array], x: Array, low: Array, high: Array) -> Array:
    """`x` with genes that are outside drawn again, and again: a truncated normal."""

    def outside(x: Array) -> Array:
        return (x < low) | (x > high)

    def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        attempt, x = carry
        return attempt + 1, jnp.where(outside(x), redraw(attempt), x)

    def unfinished(carry: tuple[Array, Array]) -> Array:
        attempt, x = carry
        return (attempt <= _REDRAWS) & jnp.any(outside(x))

    return lax.while_loop(unfinished, again, (jnp.uint32(1), x))[1]
