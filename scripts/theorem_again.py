"""Whether E[Δ] is flat at one point of the study `theorem` with other noise too: deviations in standard errors.

python scripts/theorem_again.py ackley 30 300        # function, d, generation
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from gesmr import _compilation, noise
from gesmr.lab.studies.theorem import runs

OTHERS = range(1000, 1012)  # seeds of the noise


def main() -> int:
    function, dim, generation = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    number = np.int32(runs.FUNCTIONS.index(function))
    spec = runs.Point(function, dim, generation, samples=2**16, per_decade=8)
    run = jax.jit(partial(runs.elites, dim, max(runs.GENERATIONS))).lower(jax.ShapeDtypeStruct((), jnp.int32))
    point = np.asarray(run.compile(_compilation.OPTIONS)(number)[generation], np.float64)
    with jax.enable_x64(True):
        measure = jax.jit(partial(runs.measure, spec.q, spec.samples, 1))
        for name, key in {"the study's": runs._key(spec), **{seed: noise.key(seed) for seed in OTHERS}}.items():
            near, sigma, found = measure(number, point, key)
            second = sigma[0] * near.trace / 2 / near.gradient
            print(f"{name}: {float((found.mean[0] - second) / found.mean_error[0]):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
