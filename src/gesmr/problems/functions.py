"""The paper's six test functions (Appendix B.1) and three ill-conditioned ones, optionally shifted and rotated."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from .. import _checks, noise
from .._elementary import sinpi
from .._pytree import pytree, static


class Formula(NamedTuple):
    value: Callable[[Array], Array]  # f[..., d] → f[...]
    optimum: float | None  # every coordinate of the minimiser; None if there is none


def ackley(x: Array) -> Array:
    distance = jnp.sqrt(_sum(x * x) / x.shape[-1])
    ripple = _sum(_one_minus_cos_turns(x)) / x.shape[-1]
    # 20 − 20e^(−r/5) and e − e^cos as expm1: exact near the optimum, where the plain form cancels to noise
    return -20 * jnp.expm1(-0.2 * distance) - np.e * jnp.expm1(-ripple)


def griewank(x: Array) -> Array:
    turns_per_unit = (1 / (2 * np.pi * np.sqrt(np.arange(1, x.shape[-1] + 1)))).astype(x.dtype)
    # 1 − Π cos from the 1 − cos alone, because 1 − (1 − a)(1 − b) = a + b − ab: nothing cancels near the optimum
    below_one = _one_minus_cos_turns(x * turns_per_unit)
    product_below_one = lax.reduce(below_one, np.zeros((), x.dtype), lambda a, b: a + b - a * b, (x.ndim - 1,))
    return _sum(x * x) / 4000 + product_below_one


def rastrigin(x: Array) -> Array:
    return _sum(x * x + 10 * _one_minus_cos_turns(x))


def rosenbrock(x: Array) -> Array:
    here, following = x[..., :-1], x[..., 1:]
    return _sum(100 * (following - here * here) ** 2 + (here - 1) ** 2)


def sphere(x: Array) -> Array:
    return _sum(x * x)


def ellipsoid(x: Array) -> Array:
    """Axes whose weights grow evenly, by their logarithms, from 1 to 10⁶."""
    return _sum(x * x * np.logspace(0, 6, x.shape[-1]).astype(x.dtype))


def cigar(x: Array) -> Array:
    """One long axis among short ones."""
    return x[..., 0] ** 2 + 1e6 * _sum(x[..., 1:] ** 2)


def discus(x: Array) -> Array:
    """One short axis among long ones."""
    return 1e6 * x[..., 0] ** 2 + _sum(x[..., 1:] ** 2)


def linear(x: Array, coefficients: Any = None) -> Array:
    return _sum(x if coefficients is None else x * jnp.asarray(coefficients, x.dtype))


def _sum(terms: Array) -> Array:
    """The sum over the last axis. On a CPU as a product with ones: XLA vectorises it, a fused sum only in part."""

    def product(terms: Array) -> Array:
        return jnp.matmul(terms, jnp.ones(terms.shape[-1], terms.dtype), precision="highest")

    return lax.platform_dependent(terms, cpu=product, default=partial(jnp.sum, axis=-1))


def _one_minus_cos_turns(x: Array) -> Array:
    """1 − cos(2πx) = 2 sin²(πx), from the nearest whole turn: no cancellation at the optimum, and any size of x."""
    return 2 * sinpi(x - jnp.round(x)) ** 2


FORMULAS: dict[str, Formula] = {
    "ackley": Formula(ackley, 0.0),
    "griewank": Formula(griewank, 0.0),
    "rastrigin": Formula(rastrigin, 0.0),
    "rosenbrock": Formula(rosenbrock, 1.0),
    "sphere": Formula(sphere, 0.0),
    "linear": Formula(linear, None),
    "ellipsoid": Formula(ellipsoid, 0.0),
    "cigar": Formula(cigar, 0.0),
    "discus": Formula(discus, 0.0),
}


def ackley_as_printed(x: Array) -> Array:
    distance = jnp.sqrt(_sum(x * x) / x.shape[-1])
    return -20 * jnp.exp(-0.2 * distance) - jnp.exp(_sum(_cos_turns(x)) / x.shape[-1]) + 20 + np.e


def griewank_as_printed(x: Array) -> Array:
    turns_per_unit = (1 / (2 * np.pi * np.sqrt(np.arange(1, x.shape[-1] + 1)))).astype(x.dtype)
    return _sum(x * x) / 4000 - jnp.prod(_cos_turns(x * turns_per_unit), axis=-1) + 1


def rastrigin_as_printed(x: Array) -> Array:
    return 10 * x.shape[-1] + _sum(x * x - 10 * _cos_turns(x))


def _cos_turns(x: Array) -> Array:
    return 1 - _one_minus_cos_turns(x)


# The same functions, term by term as the paper prints them. Near the optimum their terms cancel: in single precision
# they have a floor of rounding, where rates stop shrinking. The 2-D rows of the paper's Table 3 show that floor.
AS_PRINTED: dict[str, Formula] = FORMULAS | {
    "ackley": Formula(ackley_as_printed, 0.0),
    "griewank": Formula(griewank_as_printed, 0.0),
    "rastrigin": Formula(rastrigin_as_printed, 0.0),
}


@pytree
class Function:
    """f(R(x − shift)) for one of `FORMULAS`; the first population is N(0, std² I)."""

    name: str = static()
    num_genes: int = static()
    std: Any = 1.0
    shift: Any = None  # f[d]
    rotation: Any = None  # f[d, d], orthogonal
    coefficients: Any = None  # f[d], of Linear

    def __call__(self, population: Array, key: noise.Key | None = None) -> Array:
        """Values `f[...]` of solutions `f[..., d]`. Deterministic: `key` is ignored."""
        _checks.solutions("population", population, self.num_genes)
        population = _checks.on_jax(population)
        if self.shift is not None:
            population = population - jnp.asarray(self.shift, population.dtype)
        if self.rotation is not None:
            rotation = jnp.asarray(self.rotation, population.dtype)
            population = jnp.matmul(population, rotation.T, precision="highest")
        if self.coefficients is not None:
            return linear(population, self.coefficients)
        return FORMULAS[self.name].value(population)

    def init(self, key: Any, n: int, dtype: Any = None) -> Array:
        """`n` draws of the initial distribution, `f[n, d]`."""
        n = _checks.integer("n", n, 1, most=_checks.MOST)
        rows = noise.fold_in(noise.key(key), jnp.arange(n), noise.BEFORE_THE_FIRST_GENERATION)
        dtype = float if dtype is None else _checks.floating("dtype", dtype)
        draws = noise.normal(noise.bits(rows, self.num_genes)).astype(dtype)
        return draws * jnp.asarray(self.std, draws.dtype)

    @property
    def optimum(self) -> Array | None:
        """The minimiser `f[d]`, or None if the function has none."""
        coordinate = FORMULAS[self.name].optimum
        if coordinate is None:
            return None
        x = jnp.full(self.num_genes, coordinate)
        x = x if self.rotation is None else jnp.matmul(x, jnp.asarray(self.rotation), precision="highest")
        return x if self.shift is None else x + jnp.asarray(self.shift)

    @property
    def optimal_value(self) -> float:
        return -np.inf if FORMULAS[self.name].optimum is None else 0.0


def get(
    name: str, dim: int, std: Any = 1.0, shift: Any = None, rotation: Any = None, coefficients: Any = None
) -> Function:
    """The test function `name`, one of `FORMULAS`, in `dim` dimensions; shifted and rotated if asked.

    Linear is Σ cᵢxᵢ if given `coefficients` c.
    """
    _checks.choice("name", name, tuple(FORMULAS))
    dim = _checks.integer("dim", dim, 1, most=_checks.MOST)
    if name == "rosenbrock" and dim < 2:
        raise ValueError(f"dim must be at least 2 for rosenbrock, got {dim}")
    _checks.real("std", std, 0.0)
    if coefficients is not None and name != "linear":
        raise ValueError(
            f"coefficients must be None for {name}: only linear has them, got {_checks.show(coefficients)}"
        )
    shapes = {"shift": (shift, (dim,)), "rotation": (rotation, (dim, dim)), "coefficients": (coefficients, (dim,))}
    for label, (array, shape) in shapes.items():
        if array is not None:
            _checks.real(label, array)
            if np.shape(array) != shape:
                raise ValueError(f"{label} must have shape {shape}, got {np.shape(array)}")
    if rotation is not None and not isinstance(rotation, Tracer):
        turned = np.asarray(rotation, np.float64)
        if not np.allclose(turned @ turned.T, np.eye(dim), atol=1e-4):
            raise ValueError("rotation must be an orthogonal matrix, got one whose rows are not orthonormal")
    return Function(name, dim, std, shift, rotation, coefficients)
