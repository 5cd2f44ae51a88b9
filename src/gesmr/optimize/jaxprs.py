"""When two programs that JAX has traced are the same."""

import dataclasses
import enum
from collections.abc import Hashable, Iterable
from types import FunctionType
from typing import Any

import jax
import numpy as np
from jax.core import AbstractValue
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal  # pyright: ignore[reportPrivateImportUsage]
from jax.sharding import Mesh

_LARGEST = 2**10  # bytes of an array that is compared by its numbers
_VALUES = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.dtype, np.generic, enum.Enum, type)
# Calls with rules for what is not done to them any more: they are neither differentiated nor batched.
_WITH_RULES = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call")


class UnknownError(Exception):
    """Something that cannot be compared: a function that is called back, an array that is too large."""


def identity(value: Any) -> Hashable:
    """What two jaxprs, or parts of such, have in common only if they compute the same. It holds none of their data."""
    if isinstance(value, ClosedJaxpr | Jaxpr):
        return _of_jaxpr(value)
    parts = _parts(value)
    return _of_leaf(value) if parts is None else (type(value), tuple(map(identity, parts)))


def _parts(value: Any) -> Iterable[Any] | None:
    """What a container holds, in an order that it does not depend on; None if it is none."""
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, dict):
        return [part for name in sorted(value, key=str) for part in (name, value[name])]
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.compare]
        return [getattr(value, name) for name in names if name != "debug_info"]
    return None


def _of_leaf(value: Any) -> Hashable:
    if isinstance(value, np.ndarray | jax.Array) or (hasattr(value, "__array__") and hasattr(value, "dtype")):
        return _of_array(value)
    if isinstance(value, _VALUES):
        return type(value), repr(value) if isinstance(value, float | complex | np.generic) else value  # -0.0 == 0.0
    if isinstance(value, FunctionType) and value.__closure__ is None and "<" not in value.__qualname__:
        return value  # of a module: there is one of it
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        compares = type(value).__eq__ is not object.__eq__ and isinstance(value, Hashable)
        if compares or isinstance(value, Mesh | AbstractValue):  # of which JAX makes one for each value
            return value
        if not getattr(value, "__dict__", None) and not getattr(type(value), "__slots__", None):
            return type(value)  # a mark, which says something by being there
    raise UnknownError(f"{type(value).__name__} {value!r}")


def _of_jaxpr(jaxpr: Any) -> Hashable:
    consts = tuple(map(identity, jaxpr.consts)) if isinstance(jaxpr, ClosedJaxpr) else ()
    jaxpr = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    numbers: dict[Any, int] = {}

    def new(variables: Iterable[Any]) -> tuple:
        return tuple((numbers.setdefault(variable, len(numbers)), variable.aval) for variable in variables)

    def used(atoms: Iterable[Any]) -> tuple:
        return tuple((atom.aval, _of_array(atom.val)) if isinstance(atom, Literal) else numbers[atom] for atom in atoms)

    begins = new(jaxpr.constvars), new(jaxpr.invars)
    steps = tuple(
        (equation.primitive, used(equation.invars), _of_params(equation), new(equation.outvars))
        for equation in jaxpr.eqns
    )
    return consts, begins, steps, used(jaxpr.outvars)


def _of_params(equation: Any) -> Hashable:
    params = equation.params
    if equation.primitive.name in _WITH_RULES:
        params = {name: value for name, value in params.items() if isinstance(value, ClosedJaxpr | Jaxpr | int)}
    return identity(params)


def _of_array(array: Any) -> Hashable:
    if jax.numpy.issubdtype(array.dtype, jax.dtypes.extended) or np.asarray(array).nbytes > _LARGEST:
        raise UnknownError(f"an array {array.dtype}{list(array.shape)}")
    array = np.asarray(array)
    return array.dtype, array.shape, array.tobytes()
