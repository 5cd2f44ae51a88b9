"""An 8-variable tuning problem with 500 evaluations: gesmr by its rule for small budgets, with 101, and scipy's DE.

python benchmarks/tuning.py --write docs/budgets.md     # half a minute
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import numpy as np
from coco_page import table
from common import print_or_write
from scipy.optimize import differential_evolution

import gesmr

BUDGET, SEEDS, MARK = 500, range(51), "tuning"
BOUNDS = [
    (-5.0, 0.0),  # log₁₀ of the learning rate
    (0.0, 0.99),  # momentum
    (-7.0, -1.0),  # log₁₀ of the weight decay
    (0.0, 0.7),  # dropout
    (16.0, 1024.0),  # width
    (1.0, 10.0),  # depth
    (16.0, 512.0),  # batch size
    (0.0, 0.5),  # share of the training that warms up
]
LOW, HIGH = np.array(BOUNDS).T
CHANCE = 2.3  # what a network that learns nothing has


def loss(x: np.ndarray) -> float:
    """What training a network might give: a formula of our own, 0.3 at best.

    Learning rate, momentum and batch size act together, and deeper networks bear less of it, or more with a warm-up:
    too much and nothing is learnt at all. Decay and dropout stand in for each other, and large networks need more.
    """
    rate, momentum, decay, dropout, width, depth, batch, warm = x
    step = rate - np.log10(1 - momentum) - 0.5 * np.log10(batch / 64)
    too_fast = step - (-1.0 - 0.1 * depth + 0.8 * warm)
    if too_fast > 1:
        return CHANCE
    size = np.log2(width) + 3 * np.log2(depth)
    regular = (decay + 7) / 3 + 3 * dropout
    found = 0.3 + 0.15 * too_fast**2 + 0.01 * (size - 13) ** 2 + 0.1 * (regular - 0.15 * size) ** 2
    found += 0.3 * (dropout - 0.2) ** 2 + 0.05 * abs(warm - 0.1) + 0.02 * np.log2(batch / 128) ** 2
    return float(min(found + 0.1 * (momentum - 0.9) ** 2, CHANCE))


class Spent(Exception):
    """No evaluations are left."""


class Counted:
    def __init__(self):
        self.calls, self.best = 0, np.inf

    def __call__(self, x: np.ndarray) -> float:
        if self.calls == BUDGET:
            raise Spent
        self.calls += 1
        value = loss(x)
        self.best = min(self.best, value)
        return value


def by_minimize(fun: Counted, seed: int, **options: Any) -> None:
    x0 = np.random.default_rng(seed).uniform(LOW, HIGH)
    gesmr.minimize(fun, x0, bounds=BOUNDS, maxfun=BUDGET, rng=seed, **options)


def by_differential_evolution(fun: Counted, seed: int) -> None:
    while True:  # it ends when its population has converged: then begin anew
        differential_evolution(fun, BOUNDS, rng=seed)


def at_random(fun: Counted, seed: int) -> None:
    for x in np.random.default_rng(seed).uniform(LOW, HIGH, (BUDGET, len(LOW))):
        fun(x)


METHODS: dict[str, Callable[[Counted, int], None]] = {
    "gesmr": by_minimize,
    "gesmr, `popsize=101`": lambda fun, seed: by_minimize(fun, seed, popsize=101),
    "scipy's differential evolution": by_differential_evolution,
    "random": at_random,
}


def found(method: Callable[[Counted, int], None]) -> np.ndarray:
    """Best − lowest possible loss of every seed."""
    gaps = []
    for seed in SEEDS:
        fun = Counted()
        with suppress(Spent):
            method(fun, seed)
        gaps.append(fun.best - 0.3)
    return np.array(gaps)


def page() -> str:
    gaps, rows = {name: found(method) for name, method in METHODS.items()}, []
    first = gaps["gesmr"]
    for name, each in gaps.items():
        low, middle, high = np.quantile(each, [0.25, 0.5, 0.75])
        beside = "" if each is first else f"{np.sum(first < each)} : {np.sum(first > each)}"
        rows.append([name, f"{middle:.4f}", f"{low:.4f} – {high:.4f}", beside])
    software = ", ".join(f"{name} {version(name)}" for name in ("scipy", "jax"))
    lines = table(["", "median", "quartiles", "seeds on which gesmr is better : worse"], rows)
    return "\n".join([*lines, "", f"{len(SEEDS)} seeds; gesmr {gesmr.__version__}, {software}."])


if __name__ == "__main__":
    sys.exit(print_or_write(__doc__, MARK, page))
