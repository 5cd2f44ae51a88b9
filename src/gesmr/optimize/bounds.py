"""What a user wrote as bounds: checked, one of each side per variable, and what they mean for rates."""

import dataclasses
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from .. import _checks
from ..bounds import Bounds, check_unordered
from ..controllers import Clip, Controller
from .layout import Layout, check_whole_numbers

_LEAPS = 0.25  # of all discrete variables of a child, on average, whatever its rate: docs/spaces.md
FARTHEST = 16  # no mutation carries a gene as many ranges away: noise is at most 6.67 from zero


def resolve(bounds: Any, layout: Layout, unit: Any = 1.0, integral: np.ndarray | None = None) -> Bounds | None:
    """What a user wrote as `bounds`, with one low, high and unit per variable; None if there is nothing to say.

    Accepted: a `Bounds` or a `scipy.optimize.Bounds`, one pair for all variables, a pair for each, a pair of pytrees
    like x0, or a pytree like x0 with a pair for each leaf; None in a pair is an open side. Bounds that the population's
    precision cannot hold are rounded inwards; they are returned in that of arithmetic. Where variables are `integral
    bool[d]`, every integer has a cell around it of the same width.
    """
    dim, flatten, dtype, wide = layout.dim, layout.flatten, layout.dtype, layout.wide
    if bounds is None:
        if np.ndim(unit) == 0 and (integral is None or not integral.any()):
            return None
        bounds = Bounds()
    unordered, leaps = (bounds.unordered, bounds.leaps) if isinstance(bounds, Bounds) else (None, None)
    handling = bounds.handling if isinstance(bounds, Bounds) else "reflect"
    if isinstance(bounds, Bounds):
        sides = bounds.low, bounds.high
        unit = _unit(bounds.unit, unit, dim, flatten)
    elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        sides = bounds.lb, bounds.ub
    else:
        sides = _pairs(bounds, layout)
    low, high = (_side(name, side, dim, flatten) for name, side in zip(("low", "high"), sides, strict=True))
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError("bounds must not be NaN; None or an infinity stands for an open side")
    if (low > high).any():
        at = int(np.argmax(low > high))
        raise ValueError(f"bounds must have low ≤ high, got low={low[at]} and high={high[at]} for variable {at}")
    if (low == np.inf).any() or (high == -np.inf).any():
        raise ValueError("bounds must leave something: low must be below inf and high above -inf")
    if integral is not None:
        low, high = _cells(low, high, integral, layout)
        leaps = leaps_of(integral) if leaps is None else leaps
    low_inside, high_inside = (side.astype(wide, copy=False) for side in _inward(low, high, dtype))
    _check_sizes(low, high, np.dtype(wide))
    unit = np.broadcast_to(np.asarray(unit, wide), (dim,))
    if leaps is not None:
        leaps = _side("leaps", leaps, dim, flatten).astype(wide)
        _checks.real("leaps of bounds", leaps, 0.0, 1.0, open_low=False)
    if unordered is not None:
        unordered = _unordered(unordered, low, high)
    return Bounds(low_inside, high_inside, handling, unit, leaps, unordered)


def leaps_of(discrete: np.ndarray) -> np.ndarray | None:
    """The chance of each variable to change whatever its rate, `f64[d]`, if some are `discrete bool[d]`."""
    return np.where(discrete, _LEAPS / max(discrete.sum(), 1), 0.0) if discrete.any() else None


def _cells(low: np.ndarray, high: np.ndarray, integral: np.ndarray, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of which the integral ones leave half a unit on both sides of the integers between them, and no more."""
    first, last = np.ceil(low), np.floor(high)
    if (nothing := integral & (first > last)).any():
        at = int(np.argmax(nothing))
        raise ValueError(
            f"bounds must leave something: there is no integer between low={low[at]} and high={high[at]} of variable "
            f"{at}, which integrality says is one"
        )
    check_whole_numbers("integers", layout, integral, first, last)
    kind = np.dtype(layout.wide).type
    inner = (
        np.nextafter((first - 0.5).astype(kind), kind(np.inf)),
        np.nextafter((last + 0.5).astype(kind), kind(-np.inf)),
    )
    low, high = (
        np.where(integral & np.isfinite(s), i.astype(float), s) for s, i in zip((low, high), inner, strict=True)
    )
    return low, high


def _unordered(given: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which variables number options, `bool[d]`; they must have a range."""
    flags = check_unordered(given)
    if flags.shape not in ((), low.shape):
        raise ValueError(
            f"unordered of bounds must be one truth value or {low.size} of them, got {_checks.show(given)}"
        )
    flags = np.broadcast_to(flags, low.shape)
    if (flags & ~np.isfinite(high - low)).any():
        raise ValueError("bounds must be finite on both sides where unordered says that a variable numbers options")
    return flags


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


def _pairs(bounds: Any, layout: Layout) -> tuple[Any, Any]:
    dim = layout.dim
    accepted = (
        f"a pair (low, high), {dim} pairs, one per variable, a gesmr.Bounds or a scipy.optimize.Bounds"
        + ("" if layout.is_vector else ", or pytrees like x0")
    )  # fmt: skip
    if not layout.is_vector and (trees := _trees(bounds, layout)) is not None:
        return trees
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


def _trees(bounds: Any, layout: Layout) -> tuple[Any, Any] | None:
    """The sides as rows, if `bounds` are a pair of pytrees like x0, or one like x0 with a pair for each leaf."""
    if isinstance(bounds, tuple | list) and len(bounds) == 2:
        structures = [jax.tree.structure(side) for side in bounds]
        if layout.treedef in structures:
            return bounds[0], bounds[1]
    try:
        pairs = layout.treedef.flatten_up_to(bounds)
        low, high = zip(*pairs, strict=True)
    except (TypeError, ValueError):
        return None
    return _leaves(low, -np.inf, layout), _leaves(high, np.inf, layout)


def _leaves(sides: tuple, far: float, layout: Layout) -> np.ndarray:
    """One side of each leaf of x0 as a row `f64[d]`; None is `far`."""
    given = [far if side is None else side for side in sides]
    try:
        leaves = zip(given, layout.shapes, strict=True)
        return np.concatenate([np.ravel(np.broadcast_to(np.asarray(side, float), shape)) for side, shape in leaves])
    except (TypeError, ValueError) as error:
        shown = _checks.show(sides)
        raise ValueError(
            f"bounds must have numbers, or shapes like the leaves of x0 they are for, got {shown}"
        ) from error


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
