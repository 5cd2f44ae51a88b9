"""How programs are compiled.

Left to itself XLA makes vectors of 256 bits, also on processors that have 512, where making children then takes up to
1.9 times as long. Who says otherwise by `XLA_FLAGS` is not overruled.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

_WIDTH = "xla_cpu_prefer_vector_width"
OPTIONS: dict[str, Any] = {} if _WIDTH in os.environ.get("XLA_FLAGS", "") else {_WIDTH: 512}


def jit(function: Callable, **options: Any) -> Callable:
    """`jax.jit` with these options; where it is called by a larger program, that is compiled as its maker says."""
    whole, part = jax.jit(function, compiler_options=OPTIONS, **options), jax.jit(function, **options)

    @wraps(function)
    def compiled(*args: Any) -> Any:
        return (part if _is_traced(args) else whole)(*args)

    return compiled


def _is_traced(args: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in (*jax.tree.leaves(args), jnp.zeros(())))
