"""The test functions against their definitions, in float64 NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from gesmr.problems import functions

DEFINITIONS = {
    "ackley": lambda x: (
        -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e
    ),
    "griewank": lambda x: np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1, x.size + 1)))) + 1,
    "rastrigin": lambda x: 10 * x.size + np.sum(x**2 - 10 * np.cos(2 * np.pi * x)),
    "rosenbrock": lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (x[:-1] - 1) ** 2),
    "sphere": lambda x: np.sum(x**2),
    "linear": np.sum,
    "ellipsoid": lambda x: np.sum(10.0 ** (6 * np.arange(x.size) / (x.size - 1)) * x**2),
    "cigar": lambda x: x[0] ** 2 + 1e6 * np.sum(x[1:] ** 2),
    "discus": lambda x: 1e6 * x[0] ** 2 + np.sum(x[1:] ** 2),
}


def test_all_are_here():
    assert set(functions.FORMULAS) == set(DEFINITIONS)


@pytest.mark.parametrize("name", ["ellipsoid", "cigar", "discus"])
def test_the_ill_conditioned_are_spheres_in_one_dimension(name):
    """Up to a factor: there is one axis, and nothing to be ill-conditioned."""
    f = functions.get(name, 1)
    assert float(f(jnp.array([2.0]))) == pytest.approx(4 * float(f(jnp.array([1.0]))))


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("dim", [2, 30, 1000])
@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0, 1000.0])
def test_values(name, dim, scale):
    x = np.random.default_rng(dim).normal(scale=scale, size=(5, dim)).astype(np.float32)
    expected = np.array([DEFINITIONS[name](row.astype(np.float64)) for row in x])
    size = np.sum(np.abs(x)) / 5 if name == "linear" else np.abs(expected)
    floor = 1e-5 if name == "griewank" else 1e-6  # a product of a thousand rounded cosines
    assert (np.abs(functions.get(name, dim)(jnp.asarray(x)) - expected) <= 2e-5 * size + floor).all()


def test_linear_with_coefficients():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(functions.LINEAR.value(x, [2, 0, -1]), [-2, 1])
    np.testing.assert_allclose(functions.get("linear", 3, coefficients=[2, 0, -1])(x), [-2, 1])
    np.testing.assert_allclose(functions.get("linear", 3)(x), [3, 12])
    with pytest.raises(ValueError, match=r"coefficients must have shape \(3,\)"):
        functions.get("linear", 3, coefficients=[1, 2])
    with pytest.raises(ValueError, match="coefficients must be None for sphere"):
        functions.get("sphere", 3, coefficients=[1, 2, 3])


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("dim", [2, 30, 1000])
def test_values_in_double_precision(name, dim, x64):
    x = np.random.default_rng(dim).normal(scale=5, size=(5, dim))
    values = functions.get(name, dim)(jnp.asarray(x))
    assert values.dtype == jnp.float64
    np.testing.assert_allclose(values, [DEFINITIONS[name](row) for row in x], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", [n for n in DEFINITIONS if n != "linear"])
@pytest.mark.parametrize("moved", [False, True])
def test_optimum(name, moved):
    rng = np.random.default_rng(0)
    shift = rng.normal(size=5) if moved else None
    rotation = stats.ortho_group.rvs(5, random_state=rng) if moved else None
    f = functions.get(name, 5, shift=shift, rotation=rotation)
    optimum = f.optimum
    assert optimum is not None
    assert float(f(optimum)) == pytest.approx(f.optimal_value, abs=2e-4 if moved else 0.0)
    around = optimum + jnp.asarray(rng.normal(scale=0.05, size=(200, 5)), jnp.float32)
    assert (f(around) > f(optimum)).all()


@pytest.mark.parametrize("name", ["ackley", "griewank", "rastrigin", "sphere"])
def test_no_noise_floor_at_the_optimum(name):
    """Close to the optimum float32 still resolves which point is better, where the plain formulas give zero."""
    f = functions.get(name, 4)
    near, nearer = f(jnp.full(4, 1e-5)), f(jnp.full(4, 5e-6))
    assert float(near) > float(nearer) > 0


@pytest.mark.parametrize("name", functions.FORMULAS)
def test_as_printed_is_the_same_function(name, x64):
    x = jnp.asarray(np.random.default_rng(3).normal(scale=5, size=(20, 7)))
    np.testing.assert_allclose(functions.AS_PRINTED[name].value(x), functions.FORMULAS[name].value(x), rtol=1e-10)
    assert functions.AS_PRINTED[name].optimum == functions.FORMULAS[name].optimum


@pytest.mark.parametrize("name", ["ackley", "griewank", "rastrigin"])
def test_as_printed_has_the_rounding_of_single_precision(name):
    """Multiples of the rounding of the terms that cancel, which are about 1 or more."""
    values = functions.AS_PRINTED[name].value(jnp.linspace(0, 1e-3, 50)[:, None] * jnp.ones(2))
    np.testing.assert_array_equal(values * 2**24, jnp.round(values * 2**24))


def test_linear_has_no_optimum():
    f = functions.get("linear", 3)
    assert f.optimum is None
    assert f.optimal_value == -np.inf


def test_shift_and_rotation():
    """f(R(x − s)), by hand: a quarter turn and a shift of the linear function."""
    f = functions.get("linear", 2, shift=[1.0, 2.0], rotation=[[0.0, -1.0], [1.0, 0.0]])
    assert float(f(jnp.array([4.0, 4.0]))) == pytest.approx(-2.0 + 3.0)


def test_first_populations():
    """N(0, std² I): Kolmogorov–Smirnov over 10⁵ draws, error rate 1e-4; another key, another population."""
    f = functions.get("sphere", 100, std=10.0)
    draws = np.asarray(f.init(0, 1000))
    assert stats.kstest(draws.ravel() / 10, "norm").pvalue > 1e-4
    assert (draws != np.asarray(f.init(1, 1000))).all()
    np.testing.assert_array_equal(draws[:7], f.init(0, 7))
    np.testing.assert_allclose(draws / 10, functions.get("rastrigin", 100).init(0, 1000), rtol=1e-6)


def test_functions_batch_and_compile():
    f = functions.get("ackley", 3)
    x = f.init(0, 24).reshape(2, 3, 4, 3)
    np.testing.assert_allclose(jax.jit(f)(x), jax.vmap(jax.vmap(f))(x), rtol=1e-5)
    assert jax.grad(f)(jnp.ones(3)).shape == (3,)


def test_a_spread_can_be_swept():
    f = jax.vmap(lambda std: functions.get("sphere", 3, std).init(0, 5))(jnp.array([1.0, 10.0]))
    np.testing.assert_allclose(10 * f[0], f[1], rtol=1e-6)
