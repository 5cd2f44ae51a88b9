"""The expected minimum of q independent normals, which Theorem 1 is about: by quadrature and by simulation."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .. import _checks, noise

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(256)
_DRAWS_AT_ONCE = 2**20


def expected_minimum(q: int, sigma: float = 1.0) -> float:
    """E[min of q iid N(0, σ²)] = σ · E[min of q iid N(0, 1)], to ten digits and more for q up to 10⁶.

    By symmetry it is −E[max], and E[max] = ∫₀^∞ (1 − Φ^q − (1 − Φ)^q) dx. The integrand is smooth and falls off as a
    normal tail beyond √(2 ln q); the powers are taken of logarithms.
    """
    q = _checks.integer("q", q, 2)
    _checks.real("sigma", sigma, 0.0)
    end = math.sqrt(2 * math.log(q)) + 9
    x = (_NODES + 1) * end / 2
    above = np.array([math.erfc(value / math.sqrt(2)) / 2 for value in x])  # 1 − Φ
    integrand = -np.expm1(q * np.log1p(-above)) - np.exp(q * np.log(above))
    return -float(sigma * end / 2 * np.dot(_WEIGHTS, integrand))


@partial(jax.jit, static_argnums=(1, 2))
def simulated_minima(key: noise.Key, q: int, samples: int, sigma: Any = 1.0) -> Array:
    """`f32[samples]`: each the minimum of q draws of N(0, σ²)."""
    q, samples = _checks.integer("q", q, 2), _checks.integer("samples", samples, 2)

    def minimum(sample: Array) -> Array:
        return jnp.min(jnp.float32(sigma) * noise.normal(noise.bits(noise.fold_in(key, sample), q)))

    return lax.map(minimum, jnp.arange(samples), batch_size=min(samples, max(1, _DRAWS_AT_ONCE // q)))


class Estimate(NamedTuple):
    value: float
    error: float  # standard


def estimate(samples: Any) -> Estimate:
    """The mean of independent samples `f[n]`, in double precision."""
    samples = np.asarray(samples, np.float64)
    return Estimate(float(samples.mean()), float(samples.std(ddof=1) / math.sqrt(len(samples))))
