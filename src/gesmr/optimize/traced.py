"""JAX functions as compiled programs call them: traced anew for every run, and equal if they compute the same."""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import eval_jaxpr
from jax.extend.core import jaxpr_as_fun

from .._pytree import pytree, static
from ..storage import wide
from .jaxprs import UnknownError, identity
from .layout import precision
from .options import Objective, Setup

Jitted = type(jax.jit(lambda x: x))


class Code:
    """What a JAX objective computes for populations of some sizes.

    Two are equal if they compute the same: they share what has been compiled, whatever functions they came from and
    whatever data these read. One that cannot be compared, because it calls back into Python, is equal to itself alone.
    """

    def __init__(self, jaxprs: dict[int, Any]):
        self.jaxprs = jaxprs
        try:
            self._identity: Hashable = tuple(identity(jaxpr) for jaxpr in jaxprs.values())
            self.is_known = True
        except UnknownError:
            self._identity, self.is_known = object(), False
        self._hash = hash(self._identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Code) and self._hash == other._hash and self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash


@pytree
class TracedObjective:
    """An objective as compiled programs call it, of rows `f[n, d]`, to be minimised, for those n that it is for."""

    data: dict[int, tuple]  # by n: arrays that the code closes over, then arrays and floats of args
    code: Code = static()
    keyed: bool = static()  # whether it takes a random key

    def __call__(self, rows: Array, key: Array | None = None) -> tuple[Array, Array | None]:
        """Values `f[n]` and, if there are constraints, violations `f[n]`."""
        n = rows.shape[0]
        found = jaxpr_as_fun(self.code.jaxprs[n])(*self.data[n], wide(rows), *(() if key is None else (key,)))
        return found[0], found[1] if len(found) > 1 else None


class JaxFunction:
    """A user's JAX function, traced anew for every run: it sees what the globals and objects it reads are by then.

    Arrays and floats are data: other values need no other program. Everything else in `args` is part of the program,
    and so are floats that the function wants to be numbers (`if a > 1`).
    """

    def __init__(self, objective: Objective, setup: Setup):
        fun = objective.fun
        self._fun = getattr(fun, "__wrapped__", fun) if isinstance(fun, Jitted) else fun
        self._leaves, self._structure = jax.tree.flatten(objective.args)
        self._layout, self._repeats, self._sign = setup.layout, setup.repeats, setup.sign
        self._vectorized, self.keyed = objective.vectorized, objective.keyed
        self._constraints = objective.constraints
        self.path = "jax, vectorized" if objective.vectorized else "jax"  # how it is evaluated, for the result
        self._traces: dict[int, tuple[Any, tuple]] = {}  # by n: a jaxpr, and its data
        self._is_data = [_is_data(leaf) for leaf in self._leaves]
        self._copies: dict[tuple, tuple[np.ndarray, Array]] = {}  # of arrays of NumPy, by their place in memory
        self._check(setup.popsize)
        if not objective.keyed and (setup.repeats > 1 or setup.reevaluate != "none"):
            raise TypeError(
                "repeats and reevaluate are for noisy functions; a compiled one is noisy only if keyed=True gives it a "
                "random key (or call it in Python, with jit=False)"
            )

    def close(self) -> None:
        """Nothing was started for it."""

    def _check(self, n: int) -> None:
        """ValueError if JAX cannot trace it for n candidates or it does not return one value for each."""
        one = "a value for each of its rows: float[n] for float[n, d]" if self._vectorized else "one real number"
        try:
            values = self._trace(n)[0].out_avals[0]
        except Exception as error:
            why = str(error).partition("\n")[0]
            message = f"fun must be a JAX function that returns {one}, got {type(error).__name__}: {why}"
            raise ValueError(message) from error
        if values.shape != (n,) or not jnp.issubdtype(values.dtype, jnp.floating):
            raise ValueError(f"fun must return {one}, got shape {values.shape} for {n} candidates")

    def traced(self, sizes: Iterable[int]) -> TracedObjective:
        """It, for populations of these sizes."""
        traces = {n: self._trace(n) for n in sorted(set(sizes))}
        data = {n: data for n, (_, data) in traces.items()}
        return TracedObjective(data, Code({n: code for n, (code, _) in traces.items()}), self.keyed)

    def _trace(self, n: int) -> tuple[Any, tuple]:
        if n in self._traces:
            return self._traces[n]
        floats = [isinstance(leaf, float | np.floating) for leaf in self._leaves]
        try:
            traced = self._trace_with_data(n)
        except Exception:
            if not any(floats) or self._traces:
                raise
            self._is_data = [is_data and not is_float for is_data, is_float in zip(self._is_data, floats, strict=True)]
            traced = self._trace_with_data(n)
        self._traces[n] = traced
        return traced

    def _trace_with_data(self, n: int) -> tuple[Any, tuple]:
        given = [leaf for leaf, is_data in zip(self._leaves, self._is_data, strict=True) if is_data]
        with precision(self._layout.dtype):
            found = jax.make_jaxpr(self._values)(given, *self._others(n))
            # Once more, with what it closes over as arguments: code that holds no data
            code = jax.make_jaxpr(partial(eval_jaxpr, found.jaxpr))(found.consts, *given, *self._others(n))
            return code, tuple(map(self._kept, (*found.consts, *given)))

    def _kept(self, data: Any) -> Any:
        """What a program is given for `data`: for an array of NumPy one copy, however often and from wherever it is
        read, which stays as it is when that is changed."""
        if isinstance(data, jax.Array | float | np.generic):
            return data
        array = np.asarray(data)
        place = array.ctypes.data, array.strides, array.shape, array.dtype
        if place not in self._copies:
            self._copies[place] = array, jnp.array(array)
        return self._copies[place][1]

    def _others(self, n: int) -> tuple:
        """What the code takes beside its data, as shapes: rows, and a key if it is random."""
        rows = jax.ShapeDtypeStruct((n, self._layout.dim), self._layout.wide)
        return (rows, jax.eval_shape(lambda: jax.random.key(0))) if self.keyed else (rows,)

    def _values(self, given: list, rows: Array, key: Array | None = None) -> tuple[Array, ...]:
        values = self._means(given, rows, key)
        if not self._constraints:
            return (values,)
        violations = jax.vmap(self._constraints.traced)(self._layout.stacked(rows))
        return values, violations.astype(rows.dtype)

    def _means(self, given: list, rows: Array, key: Array | None) -> Array:
        if self._repeats == 1 or key is None:
            return self._once(given, rows, key)
        total, _ = jax.lax.scan(
            lambda total, key: (total + self._once(given, rows, key), None),
            jnp.zeros(rows.shape[0], rows.dtype),
            jax.random.split(key, self._repeats),
        )
        return total / self._repeats

    def _once(self, given: list, rows: Array, key: Array | None) -> Array:
        data = iter(given)
        leaves = [next(data) if is_data else leaf for leaf, is_data in zip(self._leaves, self._is_data, strict=True)]
        args = (*jax.tree.unflatten(self._structure, leaves), *(() if key is None else (key,)))

        def one(x: Any) -> Array:
            return jnp.reshape(self._fun(x, *args), ())

        xs = self._layout.stacked(rows)
        values = self._fun(xs, *args) if self._vectorized else jax.vmap(one)(xs)
        return self._sign * values.astype(rows.dtype)


def _is_data(leaf: Any) -> bool:
    """Whether it can be an argument of a compiled program. Long doubles cannot, though JAX traces them."""
    if isinstance(leaf, np.ndarray | np.floating) and leaf.dtype.kind == "f" and leaf.dtype.itemsize > 8:
        return False
    return isinstance(leaf, jax.Array | np.ndarray | float | np.floating)
