"""Noisy functions of ten variables: what the point that an optimiser recommends is worth without the noise.

python benchmarks/noisy.py --write docs/choosing.md     # a few minutes
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # these are read when jax and numpy are imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cma
import jax
import numpy as np
from coco_optimizers import HIGH, LOW, evosax_strategy
from coco_page import bold_best, table
from common import print_or_write
from evosax.algorithms import CR_FM_NES, SNES  # pyright: ignore[reportMissingImports]
from scipy.optimize import differential_evolution

import gesmr

DIM, BUDGET, SEEDS, MARK = 10, 10_000, range(15), "noisy"
STD = 2.0  # of the strategies' first candidates


def sphere(x: np.ndarray) -> np.ndarray:
    return (x**2).sum(-1)


def rosenbrock(x: np.ndarray) -> np.ndarray:
    x = x + 1
    return (100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (x[..., :-1] - 1) ** 2).sum(-1)


def rastrigin(x: np.ndarray) -> np.ndarray:
    return (x**2 + 10 - 10 * np.cos(2 * np.pi * x)).sum(-1)


FUNCTIONS = {"Sphere": sphere, "Rosenbrock": rosenbrock, "Rastrigin": rastrigin}
NOISES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "f·exp(ε/2)": lambda value, noise: value * np.exp(noise / 2),
    "f + ε": lambda value, noise: value + noise,
}


class Noisy:
    """Values `f[n]` of rows `f[n, d]`, or of one, with noise; the optimum is a draw from the middle of the box."""

    def __init__(self, function: str, noise: str, seed: int):
        self.rng = np.random.default_rng([seed, DIM])
        self.optimum = self.rng.uniform(0.8 * LOW, 0.8 * HIGH, DIM)
        self.function, self.noise = FUNCTIONS[function], NOISES[noise]

    def true(self, x: np.ndarray) -> np.ndarray:
        return self.function(np.clip(x, LOW, HIGH) - self.optimum)

    def __call__(self, x: np.ndarray) -> Any:
        value = self.true(x)
        return self.noise(value, self.rng.standard_normal(np.shape(value)))


def by_minimize(fun: Noisy, seed: int, **options: Any) -> np.ndarray:
    x0 = np.random.default_rng(seed).uniform(LOW, HIGH, DIM)
    options = {"bounds": (LOW, HIGH), "maxfun": BUDGET, "vectorized": True, "jit": False, **options}
    return gesmr.minimize(fun, x0, rng=seed, **options).x


def by_cma(fun: Noisy, seed: int) -> np.ndarray:
    options = {"bounds": [LOW, HIGH], "maxfevals": BUDGET, "seed": seed + 1, "verbose": -9, "verb_log": 0}
    x0 = np.random.default_rng(seed).uniform(LOW, HIGH, DIM)
    _, strategy = cma.fmin2(lambda x: float(fun(np.asarray(x))), x0, STD, options)
    return np.asarray(strategy.result.xfavorite)  # the mean: what pycma recommends under noise


def by_differential_evolution(fun: Noisy, seed: int) -> np.ndarray:
    members = 15 * DIM
    options = {"maxiter": BUDGET // members - 1, "tol": 0, "polish": False, "rng": seed}
    return differential_evolution(lambda x: float(fun(x)), [(LOW, HIGH)] * DIM, **options).x


def by_evosax(fun: Noisy, seed: int, kind: type) -> np.ndarray:
    members = 10  # 4 + 3 ln d
    strategy, key = evosax_strategy(kind, DIM, members, STD), jax.random.key(seed)
    state = strategy.begun(key, np.random.default_rng(seed).uniform(LOW, HIGH, DIM))
    for _ in range(BUDGET // members):
        key, population, state = strategy.ask(key, state)
        key, state = strategy.tell(key, state, population, fun(np.asarray(population, np.float64)))
    return np.asarray(state.mean, np.float64)


METHODS: dict[str, Callable[[Noisy, int], np.ndarray]] = {
    "gesmr": by_minimize,
    'gesmr, `reevaluate="parents"`': partial(by_minimize, reevaluate="parents"),
    "gesmr, `repeats=10`": partial(by_minimize, repeats=10),
    "CMA-ES": by_cma,
    "CR-FM-NES": partial(by_evosax, kind=CR_FM_NES),
    "SNES": partial(by_evosax, kind=SNES),
    "DE": by_differential_evolution,
}


def median(function: str, noise: str, method: str) -> float:
    found = []
    for seed in SEEDS:
        fun = Noisy(function, noise, seed)
        found.append(float(fun.true(METHODS[method](fun, seed))))
    return float(np.median(found))


def page() -> str:
    rows = []
    for noise in NOISES:
        for function in FUNCTIONS:
            values = [median(function, noise, method) for method in METHODS]
            rows.append([f"{function}, {noise}", *bold_best(values, lambda value: f"{value:.2g}")])
            print(rows[-1], flush=True)
    software = ", ".join(f"{name} {version(name)}" for name in ("cma", "evosax", "scipy", "jax"))
    how = f"Medians of {len(SEEDS)} seeds, {BUDGET:,} evaluations, {DIM}-D; ε ~ N(0, 1)."
    return "\n".join([*table(["", *METHODS], rows), "", f"{how} gesmr {gesmr.__version__}, {software}."])


if __name__ == "__main__":
    sys.exit(print_or_write(__doc__, MARK, page))
