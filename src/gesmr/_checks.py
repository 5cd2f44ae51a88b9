"""Errors that name the argument, what was given and what is accepted."""

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.core import Tracer

T = TypeVar("T")


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int, if it is one (NumPy's and JAX's count, booleans do not) within [low, high]."""
    accepted = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, jax.Array) and value.ndim == 0 and not isinstance(value, Tracer):
        value = np.asarray(value)[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be {accepted}, got {_show(value)}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} must be {accepted}, got {value}")
    return int(value)


def real(name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_low: bool = True) -> None:
    """Refuse `value` unless it is a finite real number, or an array of them, above `low` and at most `high`.

    Arrays are hyperparameters about to be swept by `vmap`. Tracers pass: their values are not known yet.
    """
    if isinstance(value, Tracer):
        return
    above = "" if low == -np.inf else f" {'above' if open_low else 'of at least'} {low:g}"
    below = "" if high == np.inf else f"{' and' if above else ''} at most {high:g}"
    accepted = f"a finite number{above}{below}"
    if isinstance(value, bool | str | None) or not hasattr(np.asarray(value), "dtype"):
        raise TypeError(f"{name} must be {accepted}, got {_show(value)}")
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" and not str(array.dtype).startswith(("bfloat", "float")):
        raise TypeError(f"{name} must be {accepted}, got {_show(value)}")
    if array.size == 0:
        raise ValueError(f"{name} must be {accepted}, got an empty array")
    array = array.astype(np.float64)
    inside = np.isfinite(array) & ((array > low) if open_low else (array >= low)) & (array <= high)
    if not inside.all():
        given = value if array.ndim == 0 else array[~inside].flat[0]
        raise ValueError(f"{name} must be {accepted}, got {given}")


def number(name: str, value: Any, low: float = -np.inf, high: float = np.inf) -> float:
    """`value` as a float, if it is a single finite number above `low` and at most `high`."""
    real(name, value, low, high)
    if np.ndim(value):
        raise TypeError(f"{name} must be one number, got an array of shape {np.shape(value)}")
    return float(value)


def rate_range(low: Any, high: Any) -> None:
    """Refuse start rates, arms or grids unless 0 < low ≤ high."""
    real("low", low, 0.0)
    real("high", high, 0.0)
    ordered(low, high)


def ordered(low: Any, high: Any) -> None:
    if not isinstance(low, Tracer) and not isinstance(high, Tracer) and np.any(np.asarray(low) > np.asarray(high)):
        raise ValueError(f"low must be at most high, got low={low} and high={high}")


def flag(name: str, value: Any) -> bool:
    """`value` as a bool, if it is True or False (NumPy's count, 0 and 1 do not)."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {_show(value)}")
    return bool(value)


def choice(name: str, value: T, accepted: Sequence[T]) -> T:
    if value not in accepted:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}, got {value!r}")
    return value


def _show(value: Any) -> str:
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return f"{value!r} ({type(value).__name__})"
