"""The paper's six test functions (Appendix B.1) and three ill-conditioned ones, optionally shifted and rotated."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from .. import _checks, noise
from .._elementary import sinpi
from .._pytree import pytree, static
from ..sums import Gene, Summed, Sums, added


class Formula(NamedTuple):
    value: Callable[[Array], Array]  # f[..., d] → f[...]
    optimum: float | None  # every coordinate of the minimiser; None if there is none
    summed: Summed | None = None  # the same as sums over genes


def _squares_and_ripples(gene: Gene) -> tuple[Array, Array]:
    return gene.x * gene.x, _one_minus_cos_turns(gene.x, gene.nearest)


def _ackley(squares: Array, ripples: Array, dim: int) -> Array:
    distance = jnp.sqrt(squares / dim)
    # 20 − 20e^(−r/5) and e − e^cos as expm1: exact near the optimum, where the plain form cancels to noise
    return -20 * jnp.expm1(-0.2 * distance) - np.e * jnp.expm1(-ripples / dim)


def griewank(x: Array) -> Array:
    # 1 − Π cos from the 1 − cos alone, because 1 − (1 − a)(1 − b) = a + b − ab: nothing cancels near the optimum
    below_one = _one_minus_cos_turns(x * _turns_per_unit(x))
    product_below_one = lax.reduce(below_one, np.zeros((), x.dtype), lambda a, b: a + b - a * b, (x.ndim - 1,))
    return added(x * x) / 4000 + product_below_one


def _turns_per_unit(x: Array) -> np.ndarray:
    return (1 / (2 * np.pi * np.sqrt(np.arange(1, x.shape[-1] + 1)))).astype(x.dtype)


def _squares_and_factors(gene: Gene) -> tuple[Array, Array, Array]:
    """Of Griewank's product the logarithms of the factors' sizes, and which are negative."""
    below_one = _one_minus_cos_turns(gene.x / (np.float32(2 * np.pi) * jnp.sqrt(gene.number)), gene.nearest)
    size = jnp.log1p(-jnp.minimum(below_one, 2 - below_one))
    return gene.x * gene.x, size, (below_one > 1).astype(gene.x.dtype)


def _griewank(squares: Array, size: Array, negative: Array, dim: int) -> Array:
    return squares / 4000 + jnp.where(negative % 2 == 0, -jnp.expm1(size), 1 + jnp.exp(size))


def _rastrigin_terms(gene: Gene) -> tuple[Array]:
    return (gene.x * gene.x + 10 * _one_minus_cos_turns(gene.x, gene.nearest),)


def _rosenbrock_terms(gene: Gene) -> tuple[Array]:
    here, following = gene.x, gene.following
    return (100 * (following - here * here) ** 2 + (here - 1) ** 2,)


def _linear_terms(gene: Gene) -> tuple[Array]:
    return (gene.x if gene.weight is None else gene.x * gene.weight,)


def _sum(total: Array, dim: int) -> Array:
    return total


ACKLEY = Summed(_squares_and_ripples, _ackley)
GRIEWANK = Summed(_squares_and_factors, _griewank)
RASTRIGIN = Summed(_rastrigin_terms, _sum)
ROSENBROCK = Summed(_rosenbrock_terms, _sum, neighbours=True)
SPHERE = Summed(lambda gene: (gene.x * gene.x,), _sum)
LINEAR = Summed(_linear_terms, _sum)


def ellipsoid(x: Array) -> Array:
    """Axes whose weights grow evenly, by their logarithms, from 1 to 10⁶."""
    return added(x * x * np.logspace(0, 6, x.shape[-1]).astype(x.dtype))


def cigar(x: Array) -> Array:
    """One long axis among short ones."""
    return x[..., 0] ** 2 + 1e6 * added(x[..., 1:] ** 2)


def discus(x: Array) -> Array:
    """One short axis among long ones."""
    return 1e6 * x[..., 0] ** 2 + added(x[..., 1:] ** 2)


def _one_minus_cos_turns(x: Array, nearest: Callable = jnp.round) -> Array:
    """1 − cos(2πx) = 2 sin²(πx), from the nearest whole turn: no cancellation at the optimum, and any size of x."""
    return 2 * sinpi(x - nearest(x)) ** 2


def _of(summed: Summed, optimum: float | None) -> Formula:
    return Formula(summed.value, optimum, summed)


FORMULAS: dict[str, Formula] = {
    "ackley": _of(ACKLEY, 0.0),
    "griewank": Formula(griewank, 0.0, GRIEWANK),
    "rastrigin": _of(RASTRIGIN, 0.0),
    "rosenbrock": _of(ROSENBROCK, 1.0),
    "sphere": _of(SPHERE, 0.0),
    "linear": _of(LINEAR, None),
    "ellipsoid": Formula(ellipsoid, 0.0),
    "cigar": Formula(cigar, 0.0),
    "discus": Formula(discus, 0.0),
}


def _squares_and_cosines(gene: Gene) -> tuple[Array, Array]:
    return gene.x * gene.x, _cos_turns(gene.x, gene.nearest)


def _ackley_as_printed(squares: Array, cosines: Array, dim: int) -> Array:
    distance = jnp.sqrt(squares / dim)
    return -20 * jnp.exp(-0.2 * distance) - jnp.exp(cosines / dim) + 20 + np.e


def griewank_as_printed(x: Array) -> Array:
    return added(x * x) / 4000 - jnp.prod(_cos_turns(x * _turns_per_unit(x)), axis=-1) + 1


def _griewank_as_printed(squares: Array, size: Array, negative: Array, dim: int) -> Array:
    return squares / 4000 - jnp.where(negative % 2 == 0, 1, -1) * jnp.exp(size) + 1


def _rastrigin_terms_as_printed(gene: Gene) -> tuple[Array]:
    return (gene.x * gene.x - 10 * _cos_turns(gene.x, gene.nearest),)


def _cos_turns(x: Array, nearest: Callable = jnp.round) -> Array:
    return 1 - _one_minus_cos_turns(x, nearest)


# The same functions, term by term as the paper prints them. Near the optimum their terms cancel: in single precision
# they have a floor of rounding, where rates stop shrinking. The 2-D rows of the paper's Table 3 show that floor.
AS_PRINTED: dict[str, Formula] = FORMULAS | {
    "ackley": _of(Summed(_squares_and_cosines, _ackley_as_printed), 0.0),
    "griewank": Formula(griewank_as_printed, 0.0, Summed(_squares_and_factors, _griewank_as_printed)),
    "rastrigin": _of(Summed(_rastrigin_terms_as_printed, lambda total, dim: 10 * dim + total), 0.0),
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
            return LINEAR.value(population, self.coefficients)
        return FORMULAS[self.name].value(population)

    @property
    def sums(self) -> Sums | None:
        """The function as sums over genes, if it can be written so."""
        summed = FORMULAS[self.name].summed
        if summed is None or self.rotation is not None:
            return None
        return Sums((summed,), None, self.shift, self.coefficients)

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
