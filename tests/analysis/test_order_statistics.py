"""The expected minimum of normals: known values, its density, and samples of it."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from gesmr import noise
from gesmr.analysis.order_statistics import estimate, expected_minimum, simulated_minima

# Harter (1961), Expected values of normal order statistics, and the closed forms up to 3
KNOWN = {2: 1 / math.sqrt(math.pi), 3: 1.5 / math.sqrt(math.pi), 5: 1.1629644736, 10: 1.5387527308, 100: 2.50759}


@pytest.mark.parametrize(("q", "known"), KNOWN.items())
def test_expected_minimum_has_the_known_values(q, known):
    assert -expected_minimum(q) == pytest.approx(known, abs=1e-10 if q < 100 else 5e-6)


@pytest.mark.parametrize("q", [2, 4, 30, 1000, 10_000])
def test_expected_minimum_is_the_integral_of_its_density(q):
    def density(y):  # the theorem's own form
        return y * q * np.exp((q - 1) * stats.norm.logsf(y)) * stats.norm.pdf(y)

    centre = stats.norm.isf(1 / q)
    found, _ = integrate.quad(density, -12, 9, points=[-centre - 1, -centre, -centre + 1], epsabs=1e-12, limit=400)
    assert expected_minimum(q) == pytest.approx(found, abs=1e-9)


def test_expected_minimum_scales_with_sigma():
    for sigma in (1e-6, 0.3, 1e5):
        assert expected_minimum(10, sigma) == pytest.approx(sigma * expected_minimum(10), rel=1e-14)


def test_expected_minimum_falls_with_q():
    values = [expected_minimum(q) for q in (2, 3, 10, 10**3, 10**5, 10**6)]
    assert (np.diff(values) < 0).all()
    assert values[0] < 0


@pytest.mark.parametrize(("q", "sigma"), [(2, 1.0), (10, 0.01), (1000, 100.0)])
def test_simulated_minima_have_the_expected_mean_and_error(q, sigma):
    """Within 4 standard errors: a wrong alarm in 1 of 16,000."""
    value, error = estimate(simulated_minima(noise.key(3), q, 20_000, sigma))
    assert value == pytest.approx(expected_minimum(q, sigma), abs=4 * error)
    second = 2 * integrate.quad(lambda y: -y * (1 - stats.norm.sf(y) ** q), -12, 0)[0]  # E[Y²], from y < 0 and y > 0
    second += 2 * integrate.quad(lambda y: y * stats.norm.sf(y) ** q, 0, 9)[0]
    spread = math.sqrt(second - expected_minimum(q) ** 2)
    assert error == pytest.approx(sigma * spread / math.sqrt(20_000), rel=0.05)


def test_a_sample_does_not_depend_on_how_many_there_are():
    few, many = (np.asarray(simulated_minima(noise.key(1), 2**17, n)) for n in (3, 20))
    np.testing.assert_allclose(few, many[:3], atol=1e-5)


def test_what_has_no_minimum_of_several_is_refused():
    for q in (1, 0, -3):
        with pytest.raises(ValueError, match=f"q must be an integer of at least 2, got {q}"):
            expected_minimum(q)
    with pytest.raises(TypeError, match="q must be an integer"):
        expected_minimum(2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sigma must be a finite number above 0"):
        expected_minimum(2, 0.0)
    with pytest.raises(ValueError, match="q must be an integer of at least 2"):
        simulated_minima(noise.key(0), 1, 10)
    with pytest.raises(ValueError, match="samples must be an integer of at least 2"):
        simulated_minima(noise.key(0), 2, 1)
