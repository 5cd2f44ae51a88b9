"""COCO's `bbob-mixint`, 10-D, other instances: how often integers leap, and how large the population is.

    python benchmarks/coco_mixint_choice.py --write docs/spaces.md     # minutes, and the table

What `gesmr.minimize` does by default was chosen on these instances; `coco_mixint.py` has others.
"""

import os
import sys
from functools import partial

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # these are read when jax and numpy are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from coco_mixint import by_differential_evolution, by_minimize
from coco_problems import Recorder
from coco_versus import main
from coco_versus_page import CHOICE, DIM

import gesmr


def leaping(problem: Recorder, seed: int, share: float) -> None:
    """So many of the integers of a child, on average, step by one whatever its rate."""
    leaps = np.where(np.arange(DIM) < problem.integers, share / problem.integers, 0.0)
    by_minimize(problem, seed, bounds=gesmr.Bounds(problem.low, problem.high, leaps=leaps))


OPTIMIZERS = {
    "DE": by_differential_evolution,
    "gesmr": by_minimize,
    **{f"leaps {share:g}": partial(leaping, share=share) for share in (0, 0.5, 1)},
    **{f"popsize {size}": partial(by_minimize, popsize=size) for size in (35, 43, 61, 71)},
}

if __name__ == "__main__":
    sys.exit(main(__doc__, CHOICE, Recorder, OPTIMIZERS))
