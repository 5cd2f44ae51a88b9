"""The optimisers that `coco.py` compares: each takes an objective, a number of variables, a budget and a seed.

All search [−5, 5]ᵈ. The objective counts, and raises `coco_problems.Spent` when its budget is used or its target
reached, so that none of them can have more than the others. What they are set to is said in docs/benchmarks.md.
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import cma
import jax
import jax.numpy as jnp
import numpy as np
from coco_problems import COPYING
from evosax.algorithms import GESMR_GA  # pyright: ignore[reportMissingImports]
from scipy.optimize import differential_evolution

import gesmr

LOW, HIGH = -5.0, 5.0
Objective = Callable[[np.ndarray], float]
Optimizer = Callable[[Objective, int, int, int], Any]


def by_minimize(objective: Objective, dim: int, budget: int, seed: int, **options: Any) -> Any:
    """Every child copies one parent, as by default before there was recombination; x0, of which there must be one, is
    drawn from the box like the other members.

    The size of the population is the one it has without a budget: coco_budgets.py is about what it should be with one,
    coco_beyond.py about recombination.
    """
    x0 = np.random.default_rng(seed).uniform(LOW, HIGH, dim)
    options = {"bounds": (LOW, HIGH), "popsize": 101, **({} if "controller" in options else COPYING), **options}
    return gesmr.minimize(objective, x0, maxfun=budget, rng=seed, **options)


def bipop_cma_es(objective: Objective, dim: int, budget: int, seed: int, **options: Any) -> None:
    rng = np.random.default_rng(seed)
    given = {"bounds": [LOW, HIGH], "maxfevals": budget, "seed": seed % 2**31 + 1, "verbose": -9, "verb_log": 0}
    cma.fmin2(objective, lambda: rng.uniform(-4, 4, dim), 2.0, given | options, restarts=9, bipop=True)


def scipy_differential_evolution(objective: Objective, dim: int, _budget: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    while True:  # it ends when its population has converged: then begin anew
        differential_evolution(objective, [(LOW, HIGH)] * dim, rng=rng)


def evosax_gesmr(objective: Objective, dim: int, _budget: int, seed: int, members: int = 101, groups: int = 10) -> None:
    """It knows no bounds: candidates are clipped to them, for the objective and for itself."""
    population = np.random.default_rng(seed).uniform(LOW, HIGH, (members, dim))
    with jax.enable_x64(True):
        strategy = evosax_strategy(GESMR_GA, dim, members, num_groups=groups)
        key = jax.random.key(seed)
        values = np.array([objective(x) for x in population])
        state = strategy.begun(key, population, values)
        while True:
            key, population, state = strategy.ask(key, state)
            values = np.array([objective(x) for x in np.asarray(population)])
            key, state = strategy.tell(key, state, population, values)


class Strategy(NamedTuple):
    """One of evosax's, compiled, its candidates clipped to the bounds."""

    begun: Callable  # of a key and what the strategy begins with: its state
    ask: Callable
    tell: Callable


@functools.cache  # or it would compile anew for every instance
def evosax_strategy(kind: type, dim: int, members: int, std: float | None = None, **arguments: Any) -> Strategy:
    strategy = kind(population_size=members, solution=jnp.zeros(dim), **arguments)
    params = strategy.default_params
    params = params if std is None else params.replace(std_init=std)

    def begun(key: Any, *start: Any) -> Any:
        return strategy.init(key, *start, params)

    def ask(key: Any, state: Any) -> Any:
        key, now = jax.random.split(key)
        population, state = strategy.ask(now, state, params)
        return key, jnp.clip(population, LOW, HIGH), state

    def tell(key: Any, state: Any, population: Any, values: Any) -> Any:
        key, now = jax.random.split(key)
        return key, strategy.tell(now, population, values, state, params)[0]

    return Strategy(begun, jax.jit(ask), jax.jit(tell))


def random_search(objective: Objective, dim: int, budget: int, seed: int) -> None:
    for x in np.random.default_rng(seed).uniform(LOW, HIGH, (budget, dim)):
        objective(x)


OPTIMIZERS: dict[str, Optimizer] = {
    "gesmr": by_minimize,
    "gesmr, paper": partial(by_minimize, controller="GESMR"),
    "CMA-ES": bipop_cma_es,
    "DE": scipy_differential_evolution,
    "evosax": evosax_gesmr,
    "random": random_search,
}
VARIANTS: dict[str, Optimizer] = {
    **{f"popsize {n}": partial(by_minimize, popsize=n) for n in (21, 51)},
    "truncation 0.05": partial(by_minimize, controller=gesmr.GESMR(truncation=0.1), truncation=0.05),
    "clipped": partial(by_minimize, bounds=gesmr.Bounds(LOW, HIGH, "clip")),
    "restarts": partial(by_minimize, patience=30, restarts=1000),
    "restarts 21": partial(by_minimize, popsize=21, patience=100, restarts=1000),
}  # fmt: skip
"""Other settings of gesmr."""
