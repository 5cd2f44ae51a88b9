"""Errors that name the argument, what was given and what is accepted."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

T = TypeVar("T")

MOST = 2**31 - 1  # members, genes and generations are counted in 32 bits
_LONGEST = 300  # characters of a value in a message


def integer(name: str, value: Any, low: int, high: int | None = None, *, most: int | None = None) -> int:
    """`value` as an int, if it is one (NumPy's and JAX's count, booleans do not) within [low, high].

    `most` is a second upper limit, which the message names only where it is exceeded: few will ever meet it.
    """
    accepted = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, jax.Array) and value.ndim == 0 and not isinstance(value, Tracer) and not is_key(value):
        value = np.asarray(value)[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be {accepted}, got {described(value)}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} must be {accepted}, got {show(int(value))}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, got {show(int(value))}")
    return int(value)


def is_key(value: Any) -> bool:
    """Whether `value` is one or several of `jax.random`'s keys, which are not numbers."""
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def array(name: str, value: Any, accepted: str) -> np.ndarray:
    """`value` as a NumPy array; TypeError if NumPy cannot make one of it."""
    if is_key(value):
        raise TypeError(f"{name} must be {accepted}, got {described(value)}")
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be {accepted}, got {described(value)}") from error


def real(name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_low: bool = True) -> None:
    """Refuse `value` unless it is a finite real number, or an array of them, above `low` and at most `high`.

    Arrays are hyperparameters about to be swept by `vmap`. Tracers pass: their values are not known yet.
    """
    if isinstance(value, Tracer):
        return
    above = "" if low == -np.inf else f" {'above' if open_low else 'of at least'} {low:g}"
    below = "" if high == np.inf else f"{' and' if above else ''} at most {high:g}"
    accepted = f"a finite number{above}{below}"
    given = array(name, value, accepted)
    if given.dtype.kind not in "iuf" and not str(given.dtype).startswith(("bfloat", "float")):
        raise TypeError(f"{name} must be {accepted}, got {described(value)}")
    if given.size == 0:
        raise ValueError(f"{name} must be {accepted}, got an empty array")
    numbers = given.astype(np.float64)
    inside = np.isfinite(numbers) & ((numbers > low) if open_low else (numbers >= low)) & (numbers <= high)
    if not inside.all():
        wrong = value if numbers.ndim == 0 else numbers[~inside].flat[0]
        raise ValueError(f"{name} must be {accepted}, got {wrong}")


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
    if isinstance(low, Tracer) or isinstance(high, Tracer):
        return
    try:
        wrong = np.any(np.asarray(low) > np.asarray(high))
    except ValueError as error:
        raise ValueError(f"low and high must fit, got shapes {np.shape(low)} and {np.shape(high)}") from error
    if wrong:
        raise ValueError(f"low must be at most high, got low={low} and high={high}")


def flag(name: str, value: Any) -> bool:
    """`value` as a bool, if it is True or False (NumPy's count, 0 and 1 do not)."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {described(value)}")
    return bool(value)


def choice(name: str, value: T, accepted: Sequence[T]) -> T:
    """`value`, if it is one of those texts or numbers."""
    if not isinstance(value, str | int | float | np.integer | None) or value not in accepted:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}, got {show(value)}")
    return value


def function(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {show(value)}")


def file(name: str, value: Any) -> Path:
    """`value` as a path, if it can be that of a file."""
    try:
        path = Path(value)
        os.fsencode(path)
        if not path.name or "\0" in path.name:
            raise ValueError("no file has this name")
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must be the name of a file, got {show(value)}") from error
    return path


def solutions(name: str, value: Any, num_genes: int) -> None:
    """Refuse `value` unless it is an array of real numbers `f[..., num_genes]`. It may be traced."""
    if not isinstance(value, jax.Array | np.ndarray):
        raise TypeError(f"{name} must be an array of {num_genes} genes on its last axis, got {type(value).__name__}")
    if value.shape[-1:] != (num_genes,):
        raise ValueError(f"{name} must have {num_genes} genes, got shape {value.shape}")
    if not jnp.issubdtype(value.dtype, jnp.floating) and not jnp.issubdtype(value.dtype, jnp.integer):
        raise TypeError(f"{name} must be real numbers, got dtype {value.dtype}")


def dtype_of(value: Any) -> np.dtype | None:
    """The dtype that `value` is, or is a name or the scalar type of."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's, of names that are not accepted anyway
            return np.dtype(value) if isinstance(value, str | type | np.dtype) else None
    except (TypeError, ValueError):
        return None


def on_jax(value: Any) -> jax.Array:
    """Real numbers as a JAX array: floats of more than 64 bits or in another byte order are converted first."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        value = np.asarray(value).astype(
            np.float64 if value.dtype.itemsize > 8 else value.dtype.newbyteorder("="), copy=False
        )
    return jnp.asarray(value)


def shape(name: str, value: Any, accepted: str) -> tuple[int, ...]:
    """The shape of `value`, if it has one. It may be traced."""
    return value.shape if isinstance(value, jax.Array) else array(name, value, accepted).shape


def floating(name: str, value: Any) -> np.dtype:
    """`value` as a dtype of floating-point numbers."""
    found = dtype_of(value)
    if found is None or not jnp.issubdtype(found, jnp.floating):
        raise TypeError(f"{name} must be a floating-point dtype, got {show(value)}")
    return found


def show(value: Any) -> str:
    """`value` as text for a message, shortened if it is long, even if its own `repr` raises."""
    if isinstance(value, int) and value.bit_length() > 1024:  # Python refuses to write the longest
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return shortened(text)


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def described(value: Any) -> str:
    """`value` and its type as text for a message."""
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return f"{show(value)} ({type(value).__name__})"
