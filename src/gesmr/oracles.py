"""Oracles: searches over whole runs that show what a well-chosen rate would have done. They look ahead."""

import dataclasses
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from . import _checks, noise, selection
from ._pytree import pytree, static
from .controllers import Fixed
from .controllers.base import log_spaced
from .evolution import History, Objective, check_run, evolve
from .ga import GA, State

# Places below a run's key, apart from those a GA draws from: trial i of a search at generation t is at
# (first place − i, t). The two oracles search independently of each other.
_OFMR_TRIALS, _LAMR_TRIALS, _TIES = np.array([2**31, 2**30, 2**31 + 1], np.uint32)


_MOST = 2**20  # rates of a grid


class _RateSearch:
    """A search over fixed rates, log-spaced: one trial per rate, then the rate whose trial ended best."""

    grid: int
    low: Any
    high: Any
    ties: str
    _first_place: ClassVar[np.uint32]

    def __post_init__(self):
        _checks.integer("grid", self.grid, 1, most=_MOST)
        _checks.rate_range(self.low, self.high)
        _checks.choice("ties", self.ties, ("random", "first"))

    def trials(self, state: State) -> State:
        """`state` once for each rate, as states of `Fixed`, each with noise of its own: a leading axis of `grid`."""
        keys = noise.fold_in(state.key, self._first_place - jnp.arange(self.grid, dtype=jnp.uint32), state.generation)
        branch = jax.vmap(lambda key, log_rate: with_rate(state, log_rate)._replace(key=key))
        return branch(keys, log_spaced(self.low, self.high, self.grid))

    def choose(self, state: State, values: Array) -> State:
        """`state` with the rate whose trial ended with the lowest of `values f[grid]`; its noise stays its own."""
        if self.ties == "first":
            best = jnp.argmin(values)
        else:
            best = selection.lowest(noise.fold_in(state.key, _TIES, state.generation), values)
        return with_rate(state, log_spaced(self.low, self.high, self.grid)[best])

    def _search_then_run(self, ga: GA, objective: Objective, state: State, generations: int) -> tuple[State, History]:
        fixed_rate = dataclasses.replace(ga, controller=Fixed())

        def final_value(trial: State) -> Array:
            return evolve(fixed_rate, objective, trial, generations)[0].best_fitness

        values = jax.vmap(final_value)(self.trials(state))
        return evolve(fixed_rate, objective, self.choose(state, values), generations)


@pytree
class OFMR(_RateSearch):
    """The optimal fixed mutation rate: a whole run for each rate of a grid, then one more with the best.

    Only that last run is returned. It starts from the given state, with that state's noise; the trials have other
    noise. If trials end with equal values, one is taken at random, or with `ties="first"` that of the smallest rate.
    """

    _first_place: ClassVar = _OFMR_TRIALS
    grid: int = static(default=10)
    low: Any = 1e-3
    high: Any = 1.0
    ties: str = static(default="random")

    def evolve(self, ga: GA, objective: Objective, state: State, generations: int) -> tuple[State, History]:
        """As `gesmr.evolve`, with `ga`'s selection and bounds; its controller is not used."""
        check_run(ga, objective, state, generations)
        return self._search_then_run(ga, objective, state, int(generations))


@pytree
class LAMR(_RateSearch):
    """LAMR-G: before every `window` (G) generations, look that far ahead with each rate of a grid, and take the best.

    A look-ahead is a fixed-rate run from the current population, with noise of its own. If the last window is shorter,
    it looks ahead no further than that. `ties` as in `OFMR`.
    """

    _first_place: ClassVar = _LAMR_TRIALS
    window: int = static(default=100)
    grid: int = static(default=10)
    low: Any = 1e-3
    high: Any = 1.0
    ties: str = static(default="random")

    def __post_init__(self):
        super().__post_init__()
        _checks.integer("window", self.window, 1)

    def evolve(self, ga: GA, objective: Objective, state: State, generations: int) -> tuple[State, History]:
        """As `gesmr.evolve`, with `ga`'s selection; its controller is not used. Whole windows can be run piecewise."""
        check_run(ga, objective, state, generations)
        look_and_run = partial(self._search_then_run, ga, objective)
        windows, left = divmod(int(generations), self.window)
        state = with_rate(state, jnp.zeros(()))
        state, history = lax.scan(lambda s, _: look_and_run(s, self.window), state, None, length=windows)
        history = jax.tree.map(jnp.ravel, history)
        if left:
            state, last = look_and_run(state, left)
            history = jax.tree.map(lambda *parts: jnp.concatenate(parts), history, last)
        return state, history


def with_rate(state: State, log_rate: Any) -> State:
    """`state` as a state of `Fixed`, whose own state is its log rate."""
    return state._replace(controller=jnp.asarray(log_rate, float))
