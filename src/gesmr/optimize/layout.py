"""The edge between a user's solutions, vectors, pytrees or dictionaries of a space, and the rows of a population."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _checks
from ..spaces import Space

_SCALARS = (int, float, np.integer, np.floating)


@dataclass(frozen=True)
class Layout:
    """What a solution looks like. Hashable, so that compiled programs can be named by it.

    A vector (a number, a list of numbers, an array of at most one axis) is handed out as a vector; anything else as the
    pytree it came as, its leaves in their own shapes and dtypes; a solution of a `Space` as a dictionary.
    """

    dtype: str  # of the population; everything else, solutions and values, is in `wide`
    treedef: Any = None  # None: a vector
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    jax_leaves: tuple[bool, ...] = ()  # which leaves came as jax arrays, and go back as such
    integral: tuple[bool, ...] = ()  # which variables are rounded where they are used; none if empty
    space: Space | None = None  # which has no leaves

    @property
    def wide(self) -> str:
        """The precision of arithmetic: that of the population, but for bfloat16, which is for storage alone."""
        return "float32" if self.dtype == "bfloat16" else self.dtype

    @property
    def is_vector(self) -> bool:
        return self.treedef is None and self.space is None

    @property
    def is_discrete(self) -> bool:
        """Whether some variables are integers or choices."""
        space = self.space
        return any(self.integral) or (space is not None and bool((space.integral | space.unordered).any()))

    @cached_property
    def dim(self) -> int:
        return sum(self._sizes) if self.space is None else self.space.dim

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(int(np.prod(shape)) for shape in self.shapes)

    def flatten(self, x: Any) -> np.ndarray:
        """A solution as a row `f[d]`. The values are not checked but for those of a space, the structure is."""
        if self.space is not None:
            return self.row(self.space.encode(x))
        if self.is_vector:
            row = np.atleast_1d(np.asarray(x))
            if row.shape != (self.dim,) or row.dtype.kind not in "iuf":
                raise ValueError(f"a solution must be a vector of {self.dim} numbers, got {_describe(x)}")
            return self.row(row)
        leaves, treedef = _flattened("a solution", x)
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        if treedef != self.treedef or shapes != self.shapes:
            raise ValueError(f"a solution must be a pytree like x0, {self.treedef}, got {_describe(x)}")
        return np.concatenate([self.row(np.ravel(np.asarray(leaf))) for leaf in leaves])

    def row(self, x: np.ndarray) -> np.ndarray:
        """Numbers as the population can hold them."""
        return cast(x, self.dtype).astype(self.wide, copy=False)

    def solution(self, row: np.ndarray) -> Any:
        """What a user gets for a row `f[d]`."""
        if self.space is not None:
            return self.space.decode(row)
        row = self.used(row)
        if self.is_vector:
            return row
        leaves = zip(self._leaves(row, copy=False), self.jax_leaves, strict=True)
        return jax.tree.unflatten(self.treedef, [jnp.asarray(leaf) if on_jax else leaf for leaf, on_jax in leaves])

    def solutions(self, rows: np.ndarray) -> Any:
        """What a user gets for rows `f[n, d]`: the rows themselves, read-only, or a list of pytrees."""
        if self.space is not None:
            return self.space.decode_all(rows)
        if not self.is_vector:
            return [self.solution(row) for row in rows]
        rows = self.used(rows)
        rows.flags.writeable = False
        return rows

    def stacked(self, rows: Any) -> Any:
        """Rows `f[n, d]` as one solution whose leaves have a leading axis of n. May be traced."""
        if self.space is not None:
            return self.space.stacked(rows, jnp if isinstance(rows, jax.Array) else np)
        rows = self.used(rows)
        return rows if self.is_vector else jax.tree.unflatten(self.treedef, self._leaves(rows))

    def used(self, rows: Any) -> Any:
        """Rows `f[..., d]` with integers where variables are such. May be traced."""
        if not self.integral:
            return rows
        xp = jnp if isinstance(rows, jax.Array) else np
        return xp.where(np.array(self.integral), xp.round(rows), rows)

    def _leaves(self, rows: Any, **casting: Any) -> list[Any]:
        """Rows `f[..., d]` cut into the leaves of solutions, with the rows' leading axes; cast as `astype` does."""
        parts = zip(np.cumsum(self._sizes), self._sizes, self.shapes, self.dtypes, strict=True)
        return [
            rows[..., end - size : end].reshape((*rows.shape[:-1], *shape)).astype(dtype, **casting)
            for end, size, shape, dtype in parts
        ]


def of(x0: Any, dtype: Any = None, *, compiled: bool = False) -> tuple[Layout, np.ndarray]:
    """The layout of `x0`, and `x0` as a row.

    Without a `dtype` the population has that of x0, double precision for integers and lists; if the objective is
    `compiled`, what JAX makes of that, which is single precision unless jax_enable_x64 is set.
    Of a `Space` there is no x0: the row is the middle of its genes.
    """
    if dtype is not None:
        dtype = _check_dtype(dtype)
    if isinstance(x0, Space):
        layout = Layout(dtype or _default(np.dtype("float64"), compiled), space=x0)
        check_whole_numbers("integers of a Space", layout, x0.integral | x0.unordered, x0.low, x0.high)
        return layout, layout.row((x0.low + x0.high) / 2)
    vector = _as_vector(x0)
    if vector is not None:
        chosen = dtype or _default(vector.dtype if vector.dtype.kind == "f" else np.dtype("float64"), compiled)
        layout = Layout(chosen, shapes=(vector.shape,))
        row = layout.row(vector)
    else:
        leaves, treedef = _flattened("x0", x0)
        dtypes = [_leaf_dtype(leaf, x0) for leaf in leaves]
        if not leaves:
            raise ValueError(f"x0 must hold at least one number, got {_checks.show(x0)}")
        chosen = dtype or _default(max(dtypes, key=lambda dtype: dtype.itemsize), compiled)
        on_jax = tuple(isinstance(leaf, jax.Array) for leaf in leaves)
        layout = Layout(chosen, treedef, tuple(np.shape(leaf) for leaf in leaves), tuple(map(str, dtypes)), on_jax)
        row = np.concatenate([layout.row(np.ravel(np.asarray(leaf))) for leaf in leaves])
    if layout.dim == 0:
        raise ValueError("x0 must hold at least one number, got an empty one")
    if not np.isfinite(row).all():
        bad = int((~np.isfinite(row)).sum())
        raise ValueError(f"x0 must be finite in {chosen}, got NaN or infinity in {bad} places")
    return layout, row


def check_whole_numbers(what: str, layout: Layout, integral: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Refuse integers `bool[d]` that the population's precision cannot tell from their neighbours by a quarter."""
    if layout.dtype == "bfloat16" and integral.any():
        raise ValueError(f'dtype="bfloat16" is too coarse for {what}: give float32 or float64')
    largest = np.where(integral, np.maximum(np.abs(low), np.abs(high)), 0)
    coarse = np.isfinite(largest) & (largest * float(jnp.finfo(layout.dtype).eps) > 0.25)
    if coarse.any():
        shown = f"{largest[coarse][0]:.0f}"
        raise ValueError(f'{what} as large as {shown} do not fit in {layout.dtype}; dtype="float64" holds more')


def _flattened(name: str, x: Any) -> tuple[list, Any]:
    """Leaves and structure of a pytree."""
    try:
        with _not_about_generators():
            return jax.tree.flatten(x)
    except (TypeError, ValueError, RecursionError, SystemError) as error:  # the last is JAX's if it is too deep
        raise TypeError(f"{name} must be a pytree of arrays, got {_checks.show(x)}") from error


@contextmanager
def _not_about_generators() -> Iterator[None]:
    """A block without JAX's warnings about them: they are refused anyway."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Python iterable type", DeprecationWarning)
        yield


def cast(array: np.ndarray, dtype: Any) -> np.ndarray:
    """`array` in `dtype`; what that cannot hold becomes infinite."""
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def real_values(name: str, values: Any, n: int, dtype: str) -> np.ndarray:
    """`values` as `f[n]`; what is not finite, or beyond `dtype`, is left or becomes infinite."""
    array = _checks.array(name, values, f"{n} real numbers")
    if jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.kind != "f":
        array = array.astype(np.float32)  # bfloat16 and the like
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be {n} real numbers, got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one value per candidate, got {array.shape}")
    return cast(array, dtype)


def _as_vector(x0: Any) -> np.ndarray | None:
    """`x0` as `f[d]`, or None if it is a pytree."""
    if isinstance(x0, list | tuple) and x0 and all(isinstance(x, _SCALARS) for x in x0):
        x0 = np.asarray(x0, np.result_type(*x0)) if any(isinstance(x, np.generic) for x in x0) else np.asarray(x0)
    if isinstance(x0, bool | str | bytes | complex) or x0 is None:
        raise TypeError(f"x0 must be a vector of numbers or a pytree of arrays, got {_checks.described(x0)}")
    if not isinstance(x0, np.ndarray | jax.Array | np.generic | int | float) or np.ndim(x0) > 1:
        return None
    array = np.atleast_1d(_checks.array("x0", x0, "a vector of numbers or a pytree of arrays"))
    if array.dtype.kind not in "iuf" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"x0 must be real numbers, got dtype {array.dtype}")
    return array if array.dtype.kind == "f" else array.astype("float64" if array.dtype.kind in "iu" else "float32")


def _leaf_dtype(leaf: Any, x0: Any) -> np.dtype:
    dtype = np.asarray(leaf).dtype if isinstance(leaf, float) else getattr(leaf, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating) or isinstance(leaf, jax.ShapeDtypeStruct):
        kind = type(leaf).__name__ if dtype is None or isinstance(leaf, jax.ShapeDtypeStruct) else str(dtype)
        with _not_about_generators():
            named = jax.tree_util.tree_leaves_with_path(x0)
        where = [jax.tree_util.keystr(path) for path, value in named if value is leaf]
        raise TypeError(
            f"x0 must have leaves that are floating-point arrays, got {kind} at {where[0] if where else '?'}; split "
            "parameters from the rest first (equinox.partition, flax.nnx.split)"
        )
    return np.dtype(dtype)


def _default(dtype: np.dtype, compiled: bool) -> str:
    """Single or double precision, whichever is nearer."""
    if compiled and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        return "float32"
    return "float64" if dtype.itemsize >= 8 else "float32"


def _check_dtype(dtype: Any) -> str:
    found = _checks.dtype_of(dtype)
    if found is None or found.name not in ("float32", "float64", "bfloat16"):
        raise ValueError(f"dtype must be float32, float64 or bfloat16, got {_checks.show(dtype)}")
    return found.name


def _describe(x: Any) -> str:
    if isinstance(x, np.ndarray | jax.Array):
        return f"shape {x.shape} and dtype {x.dtype}"
    return f"a {type(x).__name__}"


def precision(dtype: str) -> Any:
    """A context in which JAX can compute in `dtype`, whatever its configuration elsewhere."""
    return jax.enable_x64(True) if dtype == "float64" else nullcontext()
