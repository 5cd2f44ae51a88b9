"""Values of a population: by a compiled JAX function, by a plain Python function, by one of whole populations."""

from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from . import _checks
from ._pytree import pytree, static
from .evolve import as_pytree
from .setup import real_values
from .space import Space, precision
from .storage import wide

Map = Callable[[Callable, Any], Any]  # like the built-in map


class Values(Protocol):
    """What evaluates a population outside the compiled loop. Pools and clusters are other classes of this shape."""

    path: str  # how, for the result
    errors: int  # evaluations that raised and count as the worst
    first_error: str | None

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Values `f64[n]`, as the user's function gives them, of candidates `f[n, d]`; NaN where it raised."""
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
        rows = wide(rows)
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
    rows = jax.ShapeDtypeStruct((3, space.dim), space.wide)
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
        found.append((on_jax, _number(value) if known else None))
        return jnp.zeros(())

    try:
        with precision(dtype):
            jax.eval_shape(call)
    except Exception:  # of the user's, to be met again, or a JAX function that wants numbers: both are called in Python
        return False, None
    return found[0]


class PlainValues:
    """A plain Python function of one solution or, `vectorized`, of many, called here or by a map-like."""

    def __init__(
        self,
        fun: Callable,
        args: tuple,
        space: Space,
        *,
        vectorized: bool = False,
        workers: Any = None,
        batch_size: int | None = None,
        on_error: str = "raise",
        repeats: int = 1,
        known: tuple[np.ndarray, float] | None = None,
        why: str = "",
    ):
        self._map = map_of(workers)
        if vectorized and workers not in (None, 1):
            raise ValueError("workers and vectorized exclude each other: fun gets the whole population at once")
        self._call = _Call(fun, args, space, on_error)
        self._space, self._vectorized, self._batch_size, self._repeats = space, vectorized, batch_size, repeats
        self._known = known  # a row whose value has been computed already
        self.errors, self.first_error = 0, None
        how = "python, vectorized" if vectorized else "python" if workers in (None, 1) else "python, mapped"
        self.path = f"{how} ({why})" if why else how

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        total = np.zeros(len(rows))
        for _ in range(self._repeats):
            total += self._once(rows)
        return total / self._repeats

    def _once(self, rows: np.ndarray) -> np.ndarray:
        values = np.full(len(rows), np.nan)
        missing = np.ones(len(rows), bool)
        if self._known is not None:
            row, value = self._known
            at = np.flatnonzero((rows == row).all(axis=1))[:1]
            values[at], missing[at] = value, False
            self._known = None
        wanted = rows if missing.all() else rows[missing]
        values[missing] = self._in_batches(wanted) if self._vectorized else self._one_by_one(wanted)
        return values

    def _one_by_one(self, rows: np.ndarray) -> np.ndarray:
        outcomes = list(self._map(self._call, rows))
        if len(outcomes) != len(rows):
            raise ValueError(f"workers must return one value per candidate, got {len(outcomes)} for {len(rows)}")
        self._note([error for _, error in outcomes if error is not None])
        return np.array([value for value, _ in outcomes], np.float64)

    def _in_batches(self, rows: np.ndarray) -> np.ndarray:
        size = self._batch_size or max(len(rows), 1)
        parts = [self._call.many(rows[start : start + size]) for start in range(0, len(rows), size)]
        for values, error in parts:
            self._note([error] * len(values) if error is not None else [])
        return np.concatenate([values for values, _ in parts])

    def _note(self, errors: list[str]) -> None:
        self.errors += len(errors)
        self.first_error = self.first_error or (errors[0] if errors else None)


class _Call:
    """One evaluation and what it raised. A class, so that it can be sent to other processes."""

    def __init__(self, fun: Callable, args: tuple, space: Space, on_error: str):
        self.fun, self.args, self.space, self.on_error = fun, args, space, on_error

    def __call__(self, row: np.ndarray) -> tuple[float, str | None]:
        try:
            x = row.copy() if self.space.is_vector else self.space.solution(row)
            return _number(self.fun(x, *self.args)), None
        except Exception as error:
            if self.on_error == "raise":
                raise
            return np.nan, f"{type(error).__name__}: {error}"

    def many(self, rows: np.ndarray) -> tuple[np.ndarray, str | None]:
        try:
            values = self.fun(self.space.stacked(rows.copy()), *self.args)
            return real_values("what fun returns", values, len(rows), "float64"), None
        except Exception as error:
            if self.on_error == "raise":
                raise
            return np.full(len(rows), np.nan), f"{type(error).__name__}: {error}"


def map_of(workers: Any) -> Map:
    """What evaluates many candidates: `workers` is None or 1, an Executor, or a callable like the built-in map."""
    if workers is None or (isinstance(workers, int) and not isinstance(workers, bool) and workers == 1):
        return _one_after_the_other
    if isinstance(workers, Executor):
        return workers.map
    if not callable(workers):
        raise ValueError(
            "workers must be None, 1, a concurrent.futures.Executor or a callable like map "
            f"(multiprocessing.Pool().map for instance), got {workers!r}"
        )
    return workers


def _one_after_the_other(call: Callable, rows: Any) -> list:
    return [call(row) for row in rows]  # not `map`, for which a StopIteration is the end


def check_options(fun: Any, args: Any, on_error: str, batch_size: int | None) -> tuple:
    """`args` as a tuple; complains about what is not as it must be."""
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {fun!r}")
    _checks.choice("on_error", on_error, ("raise", "worst"))
    if batch_size is not None:
        _checks.integer("batch_size", batch_size, 1)
    return args if isinstance(args, tuple) else (args,)


def _number(value: Any) -> float:
    if isinstance(value, float):
        return value
    array = np.asarray(value)
    if array.size != 1 or isinstance(value, bool) or not (array.dtype.kind in "iuf" or _is_float(array.dtype)):
        raise TypeError(f"fun must return one real number, got {_show(value, array)}")
    return float(array.reshape(()))


def _is_float(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.floating)  # bfloat16 and the like


def _show(value: Any, array: np.ndarray) -> str:
    if isinstance(value, np.ndarray | jax.Array):
        return f"an array of shape {array.shape} and dtype {array.dtype}"
    return f"{value!r} ({type(value).__name__})"
