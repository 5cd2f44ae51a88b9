"""Changes of an objective's value by mutation: Δ = f(x + σε) − f(x) with ε ~ N(0, I)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _checks, noise
from ..evolution import Objective, as_pytree

DrawPoint = Callable[[noise.Key, int], Array]  # a key and n to points f[n, d]

_MUTANTS = np.uint32(2**32 - 2)  # where mutants have their keys: not where a `draw_point` would look for its own


def delta_samples(objective: Objective, x: Any, rate: float, n: int, key: Any) -> Array:
    """Changes `f[n]` by `n` mutations of one point `x f[d]`, or by one mutation of each of `n` points `x f[n, d]`.

    What is not finite is left as it is. Memory: a few times n · d numbers.
    """
    n = _checks.integer("n", n, 1, most=_checks.MOST)
    _checks.real("x", x)
    _checks.real("rate", rate, 0.0)
    if np.ndim(rate):
        raise ValueError(f"rate must be one number, got an array of shape {np.shape(rate)}")
    if not isinstance(x, jax.Array):
        given = np.asarray(x)
        x = _checks.on_jax(given.astype(np.float64) if given.dtype.kind in "iu" else given)
    x = x.astype(jnp.result_type(float, x))
    if x.ndim not in (1, 2) or x.size == 0 or (x.ndim == 2 and len(x) != n):
        raise ValueError(f"x must be a point [d], or n = {n} points [n, d], got shape {x.shape}")
    check_objective(objective, x.shape[-1], len(jnp.atleast_2d(x)) + n, x.dtype)
    return _delta_samples(as_pytree(objective), x, float(rate) if isinstance(rate, int) else rate, n, noise.key(key))


@partial(jax.jit, static_argnums=3)
def _delta_samples(objective: Objective, x: Array, rate: Array, n: int, key: noise.Key) -> Array:
    steps = noise.normal(noise.bits(noise.fold_in(key, jnp.arange(n), _MUTANTS), x.shape[-1])).astype(x.dtype)
    parents = jnp.atleast_2d(x)
    values = objective(jnp.concatenate([parents, parents + jnp.asarray(rate, x.dtype) * steps]))
    return values[len(parents) :] - values[: len(parents)]


def lane_deltas(objective: Objective, draw_point: DrawPoint, group: int, keys: noise.Key, rates: Array) -> Array:
    """Changes `f[L, 2, q]` by 2q mutations of a point of its own for each key `u32[L]`, at its rate `f[L]`.

    The second q mutations are the first ones turned round (−ε for ε), so that whatever is odd in ε, to first order
    all of Δ, cancels in the mean of the 2q. Each q are independent.
    """
    points = jax.vmap(lambda key: draw_point(key, 1)[0])(keys)
    lanes, dim = points.shape
    by_lane = noise.Key(keys.high[:, None], keys.low[:, None])
    steps = noise.normal(noise.bits(noise.fold_in(by_lane, jnp.arange(group), _MUTANTS), dim)).astype(points.dtype)
    steps = steps * rates.astype(points.dtype)[:, None, None]
    points = points[:, None]
    values = objective(jnp.concatenate([points, points + steps, points - steps], axis=1).reshape(-1, dim))
    values = values.reshape(lanes, 1 + 2 * group)
    return (values[:, 1:] - values[:, :1]).reshape(lanes, 2, group)


def check_objective(objective: Any, dim: int, n: int = 3, dtype: Any = None) -> None:
    """Refuse `objective` unless JAX can trace it for `f[n, dim]` and it then returns `f[n]`. Nothing is computed."""
    if not callable(objective):
        raise TypeError(f"objective must be a function of f[N, d], got {_checks.show(objective)}")
    dim, n = _checks.integer("dim", dim, 1, most=_checks.MOST), _checks.integer("n", n, 1, most=_checks.MOST)
    dtype = jnp.result_type(float) if dtype is None else _checks.floating("dtype", dtype)
    points = jax.ShapeDtypeStruct((n, dim), dtype)
    _check_traced("objective", objective, (points,), (n,), f"[{n}, {dim}]")


def check_draw_point(draw_point: Any) -> tuple[int, Any]:
    """Dimension and dtype of what `draw_point` draws. It is refused unless `draw_point(key, n)` is `f[n, d]`."""
    if not callable(draw_point):
        raise TypeError(f"draw_point must be a function of a key and n, got {_checks.show(draw_point)}")
    word = jax.ShapeDtypeStruct((), jnp.uint32)
    key = noise.Key(word, word)  # type: ignore[arg-type]
    points = _check_traced("draw_point", lambda key: draw_point(key, 1), (key,), (1, None), "a key and n = 1")
    return points.shape[1], points.dtype


def _check_traced(name: str, function: Callable, arguments: tuple, shape: tuple, given: str) -> Any:
    """What `function` returns for `arguments`, as a shape; None in `shape` stands for any length."""
    wanted = f"floats of shape [{', '.join('d' if length is None else str(length) for length in shape)}]"
    try:
        result = jax.eval_shape(function, *arguments)
    except Exception as error:
        why = str(error).partition("\n")[0]
        raise ValueError(
            f"{name} must be a JAX function that returns {wanted} for {given}, got {type(error).__name__}: {why}"
        ) from error
    if not isinstance(result, jax.ShapeDtypeStruct):
        raise ValueError(f"{name} must return {wanted} for {given}, got a {type(result).__name__}")
    fits = len(result.shape) == len(shape) and all(b in (None, a) for a, b in zip(result.shape, shape, strict=True))
    if not fits or not jnp.issubdtype(result.dtype, jnp.floating):
        got = f"{result.dtype} of shape {list(result.shape)}"
        raise ValueError(f"{name} must return {wanted} for {given}, got {got}")
    return result
