"""Oracles: searches over whole runs that show what a well-chosen rate would have done. They look ahead."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from . import _checks, noise, selection
from ._pytree import pytree, static
from .controllers import Fixed
from .controllers.base import log_spaced
from .evolve import History, Objective, evolve
from .ga import GA, State

# Places below a run's key for the search, apart from those a GA draws from: (_TRIALS − i, window) for trial i.
_TRIALS, _TIES = np.uint32(2**31), np.uint32(2**31 + 1)


@pytree
class OFMR:
    """The optimal fixed mutation rate: a whole run for each rate of a grid, then one more with the best.

    Only that last run is returned. It starts from the given state, with that state's noise; the trials have
    other noise.
    """

    grid: int = static(default=10)
    low: Any = 1e-3
    high: Any = 1.0

    def __post_init__(self):
        _check_grid(self)

    def evolve(self, ga: GA, objective: Objective, state: State, generations: int) -> tuple[State, History]:
        """As `gesmr.evolve`, with `ga`'s selection; its controller is not used."""
        return _search_then_run(self, ga, objective, state, generations, jnp.uint32(0))


@pytree
class LAMR:
    """LAMR-G: before every `window` (G) generations, look that far ahead with each rate of a grid, and take the best.

    A look-ahead is a fixed-rate run from the current population, with noise of its own. A last window that is
    shorter looks that much less ahead.
    """

    window: int = static(default=100)
    grid: int = static(default=10)
    low: Any = 1e-3
    high: Any = 1.0

    def __post_init__(self):
        _checks.integer("window", self.window, 1)
        _check_grid(self)

    def evolve(self, ga: GA, objective: Objective, state: State, generations: int) -> tuple[State, History]:
        """As `gesmr.evolve`, with `ga`'s selection; its controller is not used."""
        generations = _checks.integer("generations", generations, 0)
        state = _with_rate(state, jnp.zeros(()))

        def look_and_run(state: State, window: Array, length: int) -> tuple[State, History]:
            return _search_then_run(self, ga, objective, state, length, window)

        windows, left = divmod(generations, self.window)
        state, history = lax.scan(
            lambda s, w: look_and_run(s, w, self.window), state, jnp.arange(windows, dtype=jnp.uint32)
        )
        history = jax.tree.map(jnp.ravel, history)
        if left:
            state, last = look_and_run(state, jnp.uint32(windows), left)
            history = jax.tree.map(lambda *parts: jnp.concatenate(parts), history, last)
        return state, history


def _search_then_run(
    oracle: OFMR | LAMR, ga: GA, objective: Objective, state: State, generations: int, window: Array
) -> tuple[State, History]:
    """One grid search from `state`, then a run from it with the rate whose trial ended best."""
    log_rates = log_spaced(oracle.low, oracle.high, oracle.grid)
    fixed_rate = GA(Fixed(), ga.num_children, ga.truncation)

    def trial(log_rate: Array, key: noise.Key) -> Array:
        branch = _with_rate(state, log_rate)._replace(key=key)
        return evolve(fixed_rate, objective, branch, generations)[0].best_fitness

    keys = noise.fold_in(state.key, _TRIALS - jnp.arange(oracle.grid, dtype=jnp.uint32), window)
    values = jax.vmap(trial)(log_rates, keys)
    best = selection.lowest(noise.fold_in(state.key, _TIES, window), values)
    return evolve(fixed_rate, objective, _with_rate(state, log_rates[best]), generations)


def _with_rate(state: State, log_rate: Array) -> State:
    """`state` as a state of `Fixed`, whose own state is its log rate."""
    return state._replace(controller=jnp.asarray(log_rate, float))


def _check_grid(oracle: OFMR | LAMR) -> None:
    _checks.integer("grid", oracle.grid, 1)
    _checks.rate_range(oracle.low, oracle.high)
