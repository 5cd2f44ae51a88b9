"""Bounds on variables: hard, at the start and at every mutation."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from . import _checks, storage
from ._pytree import pytree, static
from .controllers import Clip, Controller

HANDLINGS = ("reflect", "clip", "resample")
FARTHEST = 16  # no mutation carries a gene as many ranges away: noise is at most 6.67 from zero
_REDRAWS = 16  # after which what is still outside is reflected


@pytree
class Bounds:
    """`low ≤ x ≤ high`, each a number or one per variable; infinite on a side that is open, equal where x is fixed.

    A variable with a finite range is mutated in units of it: a rate of 0.1 is a tenth of high − low, and no rate acts
    beyond 1. The others are mutated in units of `unit`, by default 1. What a mutation carries outside comes back by
    `handling`: "reflect" mirrors it at the bound, "clip" puts it there, "resample" draws that gene again.
    """

    low: Any = float("-inf")
    high: Any = float("inf")
    handling: str = static(default="reflect")
    unit: Any = 1.0

    def __post_init__(self):
        _checks.choice("handling", self.handling, HANDLINGS)

    def stored_in(self, dtype: Any) -> "Bounds":
        """These bounds as a population of this dtype has them: bfloat16 rounds them."""
        if not storage.is_narrow(dtype):
            return self
        low, high = (storage.wide(jnp.asarray(side, jnp.bfloat16)) for side in (self.low, self.high))
        return Bounds(low, high, self.handling, self.unit)

    def steps(self, rates: Array, dtype: Any) -> Array:
        """How far one standard deviation of noise moves each gene: `f[n, d]` from rates `f[n, 1]`."""
        low, high = (jnp.asarray(side, dtype) for side in (self.low, self.high))
        span, rates = high - low, rates.astype(dtype)
        finite = jnp.isfinite(span)
        unit = jnp.where(finite, span, jnp.asarray(self.unit, dtype))
        return jnp.where(finite, jnp.minimum(rates, 1), rates) * unit

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
    """Refuse bounds for rows whose sides and unit are not numbers; sides may be infinite. Tracers pass."""
    for name in ("low", "high", "unit"):
        given = getattr(bounds, name)
        if isinstance(given, Tracer):
            continue
        numbers = _checks.array(f"{name} of bounds", given, "a number or one per variable")
        real = numbers.dtype.kind in "iu" or jnp.issubdtype(numbers.dtype, jnp.floating)
        if not real or np.isnan(numbers).any():
            shown = _checks.show(given)
            raise TypeError(f"{name} of bounds must be a number or one per variable, and not NaN, got {shown}")


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


def resolve(bounds: Any, dim: int, flatten: Any, dtype: Any, unit: Any = 1.0, wide: Any = None) -> Bounds | None:
    """What a user wrote as `bounds`, with one low, high and unit per variable; None if nothing is bounded.

    Accepted: a `Bounds` or a `scipy.optimize.Bounds`, one pair for all variables, or a pair for each; None in a pair is
    an open side. `flatten` turns a pytree like x0 into a vector. Bounds that `dtype` cannot hold are rounded inwards;
    they are returned in `wide`, the precision of arithmetic if it is another.
    """
    wide = dtype if wide is None else wide
    if bounds is None:
        if np.ndim(unit) == 0:
            return None
        bounds = Bounds()
    handling = bounds.handling if isinstance(bounds, Bounds) else "reflect"
    if isinstance(bounds, Bounds):
        sides = bounds.low, bounds.high
        unit = _unit(bounds.unit, unit, dim, flatten)
    elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        sides = bounds.lb, bounds.ub
    else:
        sides = _pairs(bounds, dim)
    low, high = (_side(name, side, dim, flatten) for name, side in zip(("low", "high"), sides, strict=True))
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError("bounds must not be NaN; None or an infinity stands for an open side")
    if (low > high).any():
        at = int(np.argmax(low > high))
        raise ValueError(f"bounds must have low ≤ high, got low={low[at]} and high={high[at]} for variable {at}")
    if (low == np.inf).any() or (high == -np.inf).any():
        raise ValueError("bounds must leave something: low must be below inf and high above -inf")
    low_inside, high_inside = (side.astype(wide, copy=False) for side in _inward(low, high, dtype))
    _check_sizes(low, high, np.dtype(wide))
    return Bounds(low_inside, high_inside, handling, np.broadcast_to(np.asarray(unit, wide), (dim,)))


def _check_sizes(low: np.ndarray, high: np.ndarray, dtype: np.dtype) -> None:
    """Refuse what arithmetic in `dtype` cannot keep inside: mutations would overflow, numbers near zero become it."""
    numbers = np.finfo(dtype)
    with np.errstate(over="ignore"):
        span = high - low
    wide = np.isfinite(low) & np.isfinite(high) & (span > float(numbers.max) / FARTHEST)
    tiny = [(side != 0) & (np.abs(side) < float(numbers.tiny)) for side in (low, high)]
    if wide.any():
        at, most = int(np.argmax(wide)), float(numbers.max) / FARTHEST
        raise ValueError(
            f"bounds must have a range high − low of at most {most:.3g} in {dtype}, or an open side (None), got "
            f"low={low[at]} and high={high[at]} for variable {at}"
        )
    if np.any(tiny):
        at = int(np.argmax(tiny[0] | tiny[1]))
        raise ValueError(
            f"bounds must be 0 or at least {float(numbers.tiny):.3g} in size in {dtype}, got low={low[at]} and "
            f"high={high[at]} for variable {at}; let fun scale it"
        )


def _unit(given: Any, default: Any, dim: int, flatten: Any) -> Any:
    """What mutations of variables without a range are measured in: what the bounds say, if they say anything."""
    if isinstance(given, int | float) and given == 1.0:
        return default
    unit = _side("unit", given, dim, flatten)
    _checks.real("unit", unit, 0.0)
    return unit


def _pairs(bounds: Any, dim: int) -> tuple[Any, Any]:
    accepted = f"a pair (low, high), {dim} pairs, one per variable, a gesmr.Bounds or a scipy.optimize.Bounds"
    try:
        given = [tuple(pair) if np.ndim(pair) else pair for pair in bounds]
    except (TypeError, ValueError) as error:
        raise TypeError(f"bounds must be {accepted}, got {_checks.show(bounds)}") from error
    if len(given) == 2 and not any(isinstance(pair, tuple) for pair in given):
        given = [tuple(given)] * dim
    if len(given) != dim or any(not isinstance(pair, tuple) or len(pair) != 2 for pair in given):
        raise ValueError(f"bounds must be {accepted}, got {len(given)} entries")
    low = [-np.inf if pair[0] is None else pair[0] for pair in given]
    high = [np.inf if pair[1] is None else pair[1] for pair in given]
    return low, high


def _side(name: str, side: Any, dim: int, flatten: Any) -> np.ndarray:
    """One side of the bounds as `f64[d]`."""
    try:
        array = np.asarray(side)
        if array.dtype == object or array.shape not in ((), (1,), (dim,)):
            array = np.asarray(flatten(side))
        if array.dtype.kind not in "iuf":
            raise TypeError
        return np.broadcast_to(array.astype(np.float64), (dim,)).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bounds must have a {name} that is a number, {dim} numbers or shaped like x0, got {_checks.show(side)}"
        ) from error


def _inward(low: np.ndarray, high: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """The bounds in `dtype`, never wider than given; for a variable that is fixed, the nearest number."""
    with np.errstate(over="ignore"):
        inner_low, inner_high, nearest = low.astype(dtype), high.astype(dtype), low.astype(dtype)
        inner_low = np.where(inner_low < low, np.nextafter(inner_low, np.asarray(np.inf, dtype)), inner_low)
        inner_high = np.where(inner_high > high, np.nextafter(inner_high, np.asarray(-np.inf, dtype)), inner_high)
    nothing = inner_low > inner_high
    if (lost := nothing & (low < high)).any():
        at = int(np.argmax(lost))
        raise ValueError(
            f"bounds must leave something: there is no {np.dtype(dtype)} between low={low[at]} and high={high[at]} of "
            f'variable {at}; dtype="float64" is finer'
        )
    return np.where(nothing, nearest, inner_low), np.where(nothing, nearest, inner_high)


def is_bounded_everywhere(bounds: Bounds | None) -> bool:
    return bounds is not None and bool(np.isfinite(np.asarray(bounds.high) - np.asarray(bounds.low)).all())


def within(controller: Controller, most: float = 1.0) -> Controller:
    """`controller` with its start rates spread up to `most` at the highest, and no rate ever above it.

    Under reflection all rates above the range act alike, and nothing selects between them.
    """
    if isinstance(controller, Clip):
        inner = within(controller.controller, most)
        inner = inner.controller if isinstance(inner, Clip) else inner
        return Clip(inner, _least(controller.low, most), _least(controller.high, most))
    if not hasattr(controller, "clip"):
        raise TypeError(f"controller must have a method clip to be used with bounds, got {_checks.show(controller)}")
    fields = {field.name for field in dataclasses.fields(controller)} if dataclasses.is_dataclass(controller) else set()
    spread = {name: _least(getattr(controller, name), most) for name in ("low", "high") if name in fields}
    return Clip(dataclasses.replace(controller, **spread) if spread else controller, high=most)  # type: ignore[type-var]


def _least(value: Any, most: float) -> Any:
    return value if isinstance(value, Tracer) else np.minimum(value, most) if np.ndim(value) else min(value, most)
