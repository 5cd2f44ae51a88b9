"""Fits the polynomials of `gesmr._elementary` anew and compares them with those there.

python scripts/fit_polynomials.py

Exits with 1 if the coefficients in the module are worse than a fresh fit.
"""

import sys
from typing import NamedTuple

import numpy as np

from gesmr import _elementary

_NODES, _ROUNDS = 6000, 200


class Fit(NamedTuple):
    """`target` ≈ Σ cₖ·bₖ, where bₖ = xᵏ⁺¹ or, for an odd function, x²ᵏ⁺¹; errors count `weight` times."""

    name: str
    shipped: tuple[float, ...]
    low: float
    high: float
    odd: bool

    def target(self, x: np.ndarray) -> np.ndarray:
        return np.sin(np.pi * x) if self.odd else np.log1p(x)

    def weight(self, x: np.ndarray) -> np.ndarray:
        """Absolute for the sine; relative to x, and so to the value near 0, for the logarithm."""
        return np.ones_like(x) if self.odd else 1 / np.maximum(np.abs(x), 1e-3)

    def basis(self, x: np.ndarray) -> np.ndarray:
        return np.stack([x ** (2 * k + 1 if self.odd else k + 1) for k in range(len(self.shipped))], axis=1)

    def errors(self, coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.abs(self.basis(x) @ coefficients - self.target(x)) * self.weight(x)


FITS = (
    Fit("log(1 + x) / x", _elementary._LOG1P, np.sqrt(0.5) - 1, np.sqrt(2) - 1, odd=False),
    Fit("sin(πx) / x in x²", _elementary._SINPI, -0.5, 0.5, odd=True),
)


def minimax(fit: Fit) -> np.ndarray:
    """Lawson's algorithm: least squares on Chebyshev nodes, the nodes of large error weighing more every round."""
    angles = np.pi * (np.arange(_NODES) + 0.5) / _NODES
    x = (fit.low + fit.high) / 2 + (fit.high - fit.low) / 2 * np.cos(angles)
    basis, target, weight = fit.basis(x), fit.target(x), fit.weight(x)
    emphasis = np.ones(_NODES)
    coefficients = np.zeros(len(fit.shipped))
    for _ in range(_ROUNDS):
        scale = emphasis * weight
        coefficients = np.linalg.lstsq(basis * scale[:, None], target * scale, rcond=None)[0]
        error = fit.errors(coefficients, x)
        emphasis *= np.sqrt(error / error.max() + 1e-4)
        emphasis /= emphasis.max()
    return coefficients


def main() -> int:
    as_good = True
    for fit in FITS:
        coefficients, shipped = minimax(fit), np.array(fit.shipped)
        x = np.linspace(fit.low, fit.high, 1_000_001)
        error, shipped_error = fit.errors(coefficients, x).max(), fit.errors(shipped, x).max()
        ok = bool(shipped_error <= 1.01 * error)
        as_good = as_good and ok
        print(f"{fit.name} on [{fit.low:.6f}, {fit.high:.6f}], {len(shipped)} coefficients")
        for coefficient in coefficients:
            print(f"    {float(coefficient)!r},")
        print(f"  largest error: fitted {error:.3g}, in the module {shipped_error:.3g}")
        print(f"  largest |difference| of a coefficient: {np.abs(coefficients - shipped).max():.3g}")
        print(f"  {'ok' if ok else 'WORSE: the module does not hold this fit'}")
    return 0 if as_good else 1


if __name__ == "__main__":
    sys.exit(main())
