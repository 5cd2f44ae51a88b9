"""Final values as far as single precision tells them apart."""

import numpy as np

# Below this a function's values are rounding in single precision, and may be zero: terms cancel as the paper prints
# them, or genes are spaced so near an optimum that is not the origin.
_FLOORS = {"ackley": 1e-5, "griewank": 1e-6, "rastrigin": 1e-3, "rosenbrock": 1e-10, "sphere": 1e-10}
_FLOOR = 1e-10  # of functions that are not listed
_SMALLEST = 1e-37  # Sphere at the origin, where genes themselves may be as small as they like


def resolved(function: str, values: np.ndarray, shifted: bool = False) -> np.ndarray:
    """Values no lower than what the function resolves."""
    return np.maximum(values, _SMALLEST if function == "sphere" and not shifted else _FLOORS.get(function, _FLOOR))


def log10(function: str, values: np.ndarray, shifted: bool = False) -> np.ndarray:
    """Logarithms of what is resolved."""
    return np.log10(resolved(function, values, shifted))
