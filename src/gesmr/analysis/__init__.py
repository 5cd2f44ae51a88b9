"""What mutation does to an objective: changes of value, their mean and extremes over mutation rates, their density.

For any JAX function `f[N, d] → f[N]`: a problem of `gesmr.problems`, a network's loss, a function of one's own.
"""

from .curves import Curves, best_rates, objective_curves
from .density import Bins, Density, bins_for
from .samples import check_objective, delta_samples

__all__ = [
    "Bins",
    "Curves",
    "Density",
    "best_rates",
    "bins_for",
    "check_objective",
    "delta_samples",
    "objective_curves",
]
