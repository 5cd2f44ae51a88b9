"""COCO's `bbob-mixint`, 10-D: gesmr beside scipy's differential evolution, pycma and random search.

    python benchmarks/coco_mixint.py --write docs/benchmarks.md     # minutes, and the page

Eight of the ten variables are integers, with 2 to 16 values.
"""

import os
import sys
import warnings
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # these are read when jax and numpy are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cma
import numpy as np
from coco_problems import Recorder
from coco_versus import bounds, drawn, main
from coco_versus_page import DIM, MIXINT
from scipy.optimize import differential_evolution

import gesmr


def by_minimize(problem: Recorder, seed: int, **options: Any) -> None:
    x0, integrality = drawn(problem, np.random.default_rng(seed)), np.arange(DIM) < problem.integers
    options = {"bounds": bounds(problem), "integrality": integrality, **options}
    gesmr.minimize(problem, x0, maxfun=problem.budget, rng=seed, **options)


def by_differential_evolution(problem: Recorder, seed: int) -> None:
    rng, integrality = np.random.default_rng(seed), np.arange(DIM) < problem.integers
    while True:  # it ends when its population has converged: then begin anew
        differential_evolution(problem, bounds(problem), integrality=integrality, rng=rng)


def by_cma_es(problem: Recorder, seed: int) -> None:
    """Integers have half a unit more on either side, so that the outermost are as likely as the others."""
    warnings.filterwarnings("ignore", module="cma")
    rng, count = np.random.default_rng(seed), problem.integers
    more = np.where(np.arange(DIM) < count, 0.5, 0.0)
    low, high = problem.low - more, problem.high + more

    def rounded(x: np.ndarray) -> float:
        whole = np.clip(np.round(x[:count]), problem.low[:count], problem.high[:count])
        return problem(np.concatenate([whole, x[count:]]))

    options = {
        "bounds": [low, high], "CMA_stds": high - low, "integer_variables": list(range(count)),
        "maxfevals": problem.budget, "seed": seed % 2**31 + 1, "verbose": -9, "verb_log": 0,
    }  # fmt: skip
    cma.fmin2(rounded, lambda: low + rng.uniform(0.1, 0.9, DIM) * (high - low), 0.2, options, restarts=9, bipop=True)


def at_random(problem: Recorder, seed: int) -> None:
    rng = np.random.default_rng(seed)
    while True:
        problem(drawn(problem, rng))


OPTIMIZERS = {"gesmr": by_minimize, "DE": by_differential_evolution, "CMA-ES": by_cma_es, "random": at_random}

if __name__ == "__main__":
    sys.exit(main(__doc__, MIXINT, Recorder, OPTIMIZERS))
