"""Elementary functions as short float32 polynomials: XLA on a CPU vectorises these, its own only in part.

The coefficients are minimax fits, made by `python scripts/fit_polynomials.py`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

# log(1 + x) / x on [√½ − 1, √2 − 1], relative error 1.7e-7
_LOG1P = (
    0.9999999178569586,
    -0.5000034428219937,
    0.3333560788579184,
    -0.2497156019610672,
    0.19884235951368656,
    -0.17212427552169174,
    0.163381420783158,
    -0.10378706583464939,
)
# sin(πx) / x as a polynomial in x², on [−½, ½], absolute error 3.4e-9
_SINPI = (
    3.1415925800447257,
    -5.167706878926326,
    2.5500313772790055,
    -0.5980451741119202,
    0.07722012893162443,
)


def log(x: Array) -> Array:
    """Natural logarithm of positive, normal `f32`: the exponent apart, and a polynomial around 1."""
    sqrt_half = np.int32(0x3F3504F3)  # the bits of √½, so that the mantissa falls in [√½, √2)
    shifted = lax.bitcast_convert_type(x, jnp.int32) - sqrt_half
    mantissa = lax.bitcast_convert_type((shifted & 0x7FFFFF) + sqrt_half, jnp.float32) - 1
    exponent = (shifted >> 23).astype(jnp.float32)
    return exponent * np.float32(np.log(2)) + mantissa * _polynomial(_LOG1P, mantissa)


def sinpi(x: Array) -> Array:
    """sin(πx) for |x| ≤ ½: the polynomial in float32, the library's sine in other precisions."""
    if x.dtype != jnp.float32:
        return jnp.sin(np.pi * x)
    return x * _polynomial(_SINPI, x * x)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Estrin's scheme: a shorter chain of dependent operations than Horner's, measured faster."""
    terms: list[Any] = [np.float32(c) for c in coefficients]
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [a + b * x for a, b in pairs] + ([terms[-1]] if len(terms) % 2 else [])
        x = x * x
    return terms[0]
