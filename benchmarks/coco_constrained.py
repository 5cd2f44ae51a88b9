"""COCO's `bbob-constrained`, 10-D: gesmr beside scipy's differential evolution, from starts anywhere in the box.

python benchmarks/coco_constrained.py --write docs/benchmarks.md     # minutes, and the page
"""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # these are read when jax and numpy are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from coco_problems import Constrained
from coco_versus import bounds, drawn, main
from coco_versus_page import CONSTRAINED
from scipy.optimize import NonlinearConstraint, differential_evolution

import gesmr


def constraints(problem: Constrained) -> NonlinearConstraint:
    return NonlinearConstraint(problem.constraint, -np.inf, 0.0)


def by_minimize(problem: Constrained, seed: int) -> None:
    x0 = drawn(problem, np.random.default_rng(seed))
    gesmr.minimize(
        problem, x0, bounds=bounds(problem), constraints=constraints(problem), maxfun=problem.budget, rng=seed
    )


def by_differential_evolution(problem: Constrained, seed: int) -> None:
    rng = np.random.default_rng(seed)
    while True:  # it ends when its population has converged: then begin anew
        differential_evolution(problem, bounds(problem), constraints=constraints(problem), rng=rng)


OPTIMIZERS = {"gesmr": by_minimize, "DE": by_differential_evolution}

if __name__ == "__main__":
    sys.exit(main(__doc__, CONSTRAINED, Constrained, OPTIMIZERS))
