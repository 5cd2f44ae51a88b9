"""Values of a population: what gives them, and a JAX function that does, compiled with the search."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from . import _checks
from ._pytree import pytree, static
from .evolve import as_pytree
from .plain import number
from .space import Space, precision


class Values(Protocol):
    """What evaluates a population outside the compiled loop."""

    path: str  # how, for the result
    errors: int  # evaluations that raised and count as the worst
    first_error: str | None

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Values `f64[n]`, as the user's function gives them, of candidates `f[n, d]`; NaN where it raised."""
        ...

    def close(self) -> None:
        """End what it has started."""
        ...


@pytree
class Compiled:
    """A JAX objective as the compiled loop calls it: `f[n, d]` to `f[n]`, to be minimised. Arrays in args are data."""

    fun: Any
    data: tuple  # leaves of args, None where they are not arrays
    code: tuple = static()  # the structure of args, and the leaves that are not arrays
    space: Space = static()
    vectorized: bool = static()
    keyed: bool = static()  # whether fun takes a random key as its last argument
    repeats: int = static()
    sign: int = static()

    def __call__(self, rows: Array, key: Array | None = None) -> Array:
        if self.repeats == 1 or key is None:
            return self._values(rows, key)
        keys = jax.random.split(key, self.repeats)
        total, _ = jax.lax.scan(
            lambda total, key: (total + self._values(rows, key), None), jnp.zeros(rows.shape[0], rows.dtype), keys
        )
        return total / self.repeats

    def _values(self, rows: Array, key: Array | None) -> Array:
        structure, others = self.code
        leaves = [other.value if leaf is None else leaf for leaf, other in zip(self.data, others, strict=True)]
        args = (*jax.tree.unflatten(structure, leaves), *((key,) if self.keyed else ()))

        def one(x: Any) -> Array:
            return jnp.reshape(self.fun(x, *args), ())

        xs = self.space.stacked(rows)
        values = self.fun(xs, *args) if self.vectorized else jax.vmap(one)(xs)
        return self.sign * values.astype(rows.dtype)


class _Constant:
    """A part of the program: two are the same if their types and values are."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and type(self.value) is type(other.value) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> Any:
        return self.value if isinstance(self.value, Hashable) else id(self.value)


def compiled(
    fun: Callable, args: tuple, space: Space, *, vectorized: bool, keyed: bool, repeats: int, sign: int
) -> Compiled:
    """`fun` as a compiled objective, or ValueError if JAX cannot trace it or it does not return one value each."""
    leaves, structure = jax.tree.flatten(args)
    data = tuple(leaf if isinstance(leaf, jax.Array | np.ndarray) else None for leaf in leaves)
    others = tuple(_Constant(leaf if array is None else None) for leaf, array in zip(leaves, data, strict=True))
    objective = Compiled(as_pytree(fun), data, (structure, others), space, vectorized, keyed, repeats, sign)
    rows = jax.ShapeDtypeStruct((3, space.dim), space.dtype)
    one = "a value for each of its rows: float[n] for float[n, d]" if vectorized else "one real number"
    try:
        with precision(space.dtype):
            key = jax.eval_shape(lambda: jax.random.key(0)) if keyed else None
            values = jax.eval_shape(objective._values, rows, key)
    except Exception as error:
        why = str(error).partition("\n")[0]
        raise ValueError(f"fun must be a JAX function that returns {one}, got {type(error).__name__}: {why}") from error
    if values.shape != (3,) or not jnp.issubdtype(values.dtype, jnp.floating):
        raise ValueError(f"fun must return {one}, got shape {values.shape} for 3 candidates")
    return objective


def probe(fun: Callable, args: tuple, x: Any, vectorized: bool, dtype: str) -> tuple[bool, float | None]:
    """Whether `fun` computes with JAX, and its value at the solution `x` if it computed that in Python.

    It is called with concrete numbers while JAX is tracing: what a NumPy or Python function returns is a number then,
    what a JAX function returns is not one yet, and costs nothing.
    """
    found: list[tuple[bool, float | None]] = []

    def call() -> Array:
        value = fun(jax.tree.map(lambda leaf: leaf[None], x) if vectorized else x, *args)
        on_jax = isinstance(value, Tracer)
        known = not on_jax and np.shape(value) == ((1,) if vectorized else ())
        found.append((on_jax, number(value) if known else None))
        return jnp.zeros(())

    try:
        with precision(dtype):
            jax.eval_shape(call)
    except Exception:  # of the user's, to be met again, or a JAX function that wants numbers: both are called in Python
        return False, None
    return found[0]


def check_options(fun: Any, args: Any, on_error: str, batch_size: int | None) -> tuple:
    """`args` as a tuple; complains about what is not as it must be."""
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {fun!r}")
    _checks.choice("on_error", on_error, ("raise", "worst"))
    if batch_size is not None:
        _checks.integer("batch_size", batch_size, 1)
    return args if isinstance(args, tuple) else (args,)
