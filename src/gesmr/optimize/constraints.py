"""What a user wrote as constraints: checked, and how far a solution is from keeping them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _checks

_KINDS = "a scipy NonlinearConstraint, a LinearConstraint, a dictionary with type and fun, or a list of such"
_KEYS = ("type", "fun", "args", "jac", "hess")  # of a dictionary; derivatives are not used


class Constraints:
    """All constraints of a problem. Empty ones are false."""

    def __init__(self, given: Any, *, is_vector: bool, dim: int, eq_tol: Any = 1e-4):
        """`given` is what a user wrote; an equality is kept if it holds within `eq_tol`."""
        _checks.real("eq_tol", eq_tol, 0.0, open_low=False)
        if np.ndim(eq_tol):
            raise TypeError(f"eq_tol must be one number, got an array of shape {np.shape(eq_tol)}")
        self._parts = [_part(name, one, is_vector, dim, float(eq_tol)) for name, one in _named(given)]

    def __len__(self) -> int:
        return len(self._parts)

    def violation(self, x: Any) -> float:
        """The sum over all values of constraints of how far each is outside; 0 if `x` is feasible, inf where a value is
        not finite."""
        return sum((part.violation(x) for part in self._parts), 0.0)

    def use_jax(self, x: Any) -> bool:
        """Whether some of them compute with JAX."""
        return any(isinstance(part.fun(x, *part.args), jax.Array) for part in self._parts)

    def traced(self, x: Any) -> jax.Array:
        """The same for a traced solution, as a scalar."""
        return sum((part.traced(x) for part in self._parts), jnp.asarray(0.0))


@dataclass(frozen=True)
class _Part:
    """lb ≤ fun(x, *args) ≤ ub."""

    name: str
    fun: Callable
    args: tuple
    lb: np.ndarray
    ub: np.ndarray
    slack: np.ndarray  # eq_tol for equalities, else 0

    def violation(self, x: Any) -> float:
        given = self.fun(x, *self.args)
        values = np.atleast_1d(_checks.array(f"what {self.name} returns", given, "real numbers"))
        self._check(values)
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        if not np.isfinite(values).all():
            return np.inf
        with np.errstate(over="ignore"):
            return float(np.maximum(self._beyond(values, np), 0).sum(dtype=np.float64))

    def traced(self, x: Any) -> jax.Array:
        values = jnp.atleast_1d(jnp.asarray(self.fun(x, *self.args)))
        self._check(values)
        if not jnp.issubdtype(values.dtype, jnp.floating):
            values = values.astype(float)
        beyond = jnp.maximum(self._beyond(values, jnp), 0)
        return jnp.where(jnp.isfinite(values), beyond, jnp.inf).sum()

    def _beyond(self, values: Any, xp: Any) -> Any:
        """How far values are outside, negative inside, in their precision."""
        with np.errstate(over="ignore"):
            lb, ub, slack = (side.astype(values.dtype) for side in (self.lb, self.ub, self.slack))
        return xp.maximum(lb - values, values - ub) - slack

    def _check(self, values: Any) -> None:
        if values.dtype.kind not in "iuf" and not jnp.issubdtype(values.dtype, jnp.floating):
            raise TypeError(f"{self.name} must return real numbers, got dtype {values.dtype}")
        shape, sides = values.shape, self.slack.shape
        if len(sides) > len(shape) or any(n not in (1, m) for n, m in zip(sides[::-1], shape[::-1], strict=False)):
            raise ValueError(
                f"{self.name} must have lb and ub that are numbers or shaped like what its function returns, got shape "
                f"{sides} for values of shape {shape}"
            )


@dataclass(frozen=True)
class _Linear:
    """x ↦ A x, in the precision of x."""

    matrix: np.ndarray  # f64[m, d]

    def __call__(self, x: Any) -> Any:
        matrix = self.matrix.astype(x.dtype, copy=False)
        return jnp.matmul(matrix, x, precision="highest") if isinstance(x, jax.Array) else matrix @ x


def _named(given: Any) -> list[tuple[str, Any]]:
    """Constraints one by one, with what they are called in messages."""
    if given is None:
        return []
    if isinstance(given, list | tuple):
        return [(f"constraints[{number}]", one) for number, one in enumerate(given)]
    return [("constraints", given)]


def _part(name: str, given: Any, is_vector: bool, dim: int, eq_tol: float) -> _Part:
    fun, args, lb, ub = _read(name, given, is_vector, dim)
    lb, ub = _side(f"lb of {name}", lb), _side(f"ub of {name}", ub)
    try:
        lb, ub = np.broadcast_arrays(lb, ub)
    except ValueError as error:
        message = f"{name} must have lb and ub of one shape, or a number for either, got {lb.shape} and {ub.shape}"
        raise ValueError(message) from error
    if (wrong := ~((lb <= ub) & (lb < np.inf) & (ub > -np.inf))).any():
        raise ValueError(
            f"{name} must have lb ≤ ub, lb below inf and ub above -inf, got lb={lb[wrong][0]} and ub={ub[wrong][0]}"
        )
    return _Part(name, fun, args, lb, ub, np.where(lb == ub, eq_tol, 0.0))


def _read(name: str, given: Any, is_vector: bool, dim: int) -> tuple[Callable, tuple, Any, Any]:
    """A constraint as fun, args, lb and ub."""
    if isinstance(given, dict):
        return _dictionary(name, given)
    from scipy.optimize import LinearConstraint, NonlinearConstraint  # noqa: PLC0415  half a second if it is none of them

    if isinstance(given, NonlinearConstraint):
        _checks.function(f"fun of {name}", given.fun)
        return given.fun, (), given.lb, given.ub
    if not isinstance(given, LinearConstraint):
        hint = "; bounds are an argument of their own" if hasattr(given, "lb") else ""
        raise TypeError(f"{name} must be {_KINDS}, got {_checks.described(given)}{hint}")
    if not is_vector:
        raise TypeError(f"{name} must not be a LinearConstraint where x0 is not a vector: use a NonlinearConstraint")
    matrix: Any = given.A
    matrix = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != dim or not np.isfinite(matrix).all():
        raise ValueError(
            f"{name} must have a finite matrix A of shape (m, {dim}), a column for each variable, got "
            f"{_checks.described(matrix)}"
        )
    return _Linear(matrix), (), given.lb, given.ub


def _dictionary(name: str, given: dict) -> tuple[Callable, tuple, Any, Any]:
    if unknown := [key for key in given if key not in _KEYS]:
        raise ValueError(f"{name} must have no other keys than {', '.join(_KEYS)}, got {_checks.show(unknown[0])}")
    for key in ("type", "fun"):
        if key not in given:
            raise ValueError(f"{name} must have the key {key!r}, got {_checks.show(list(given))}")
    _checks.function(f"fun of {name}", given["fun"])
    kind = given["type"].lower() if isinstance(given["type"], str) else given["type"]
    _checks.choice(f"type of {name}", kind, ("ineq", "eq"))
    args = given.get("args", ())
    return (
        given["fun"],
        tuple(args) if isinstance(args, list | tuple) else (args,),
        0.0,
        0.0 if kind == "eq" else np.inf,
    )


def _side(name: str, side: Any) -> np.ndarray:
    accepted = "a number or numbers, infinite for an open side"
    array = _checks.array(name, side, accepted)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be {accepted}, got {_checks.described(side)}")
    if np.isnan(array).any():
        raise ValueError(f"{name} must be {accepted}, got NaN")
    return np.atleast_1d(array.astype(np.float64))
