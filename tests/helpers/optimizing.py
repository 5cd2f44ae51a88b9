"""Small calls of `minimize` and small optimisers, on the distance to 1 in each of its ways."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gesmr

D, MEMBERS = 3, 13
SMALL: dict[str, Any] = {"popsize": MEMBERS, "rng": 0}
TREE = {"w": np.ones((2, 2), np.float32), "b": (jnp.zeros(3), np.float32(1.0))}


def by_jax(x):
    return jnp.sum((x - 1) ** 2)


def by_numpy(x) -> float:
    return float(np.sum((x - 1) ** 2))


def many_by_jax(xs):
    return jnp.sum((xs - 1) ** 2, axis=1)


def many_by_numpy(xs) -> np.ndarray:
    return np.sum((np.asarray(xs) - 1) ** 2, axis=1)


def noise_of_its_own(x, key):
    """Noise that is not the same for two candidates, even with the same key."""
    bits = jax.lax.bitcast_convert_type(x[0], jnp.int32)
    return by_jax(x) + jax.random.normal(jax.random.fold_in(key, bits))


def minimize(fun: Any = by_numpy, **options: Any) -> Any:
    """Thirty generations of twelve children, or what is said instead."""
    return gesmr.minimize(fun, np.zeros(D), **{**SMALL, "maxiter": 30, **options})


def optimizer(**options: Any) -> gesmr.Optimizer:
    return gesmr.Optimizer(np.zeros(D), **{**SMALL, **options})


def ask_and_tell(opt: gesmr.Optimizer, generations: int, f: Callable = many_by_numpy) -> list[np.ndarray]:
    """The candidates of each generation, the first population included."""
    asked = []
    for _ in range(generations + 1):
        xs = opt.ask()
        asked.append(np.array(xs))
        opt.tell(xs, f(xs))
    return asked
