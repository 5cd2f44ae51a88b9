"""UCB/R: the rate as a multi-armed bandit (after Fialho et al., 2008)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from .. import _checks, noise
from .._pytree import pytree, static
from .base import Feedback, log_spaced


class Plays(NamedTuple):
    log_arms: Array  # f[R]
    plays: Array  # i32[R]  how often each arm was played
    judged: Array  # i32[R]  of those, how often some child could be judged
    mean: Array  # f[R]  mean reward of the judged plays


@pytree
class UCB:
    """UCB1 over `arms` rates, one played per generation; its reward is the best improvement, −min Δ.

    A play whose children are all non-finite counts as a play and stays out of the mean; an arm that
    has only such plays ranks below every other.
    """

    arms: int = static(default=10)
    low: Any = 1e-3
    high: Any = 1.0

    def __post_init__(self):
        _checks.integer("arms", self.arms, 1)
        _checks.rate_range(self.low, self.high)

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Plays:
        log_arms = log_spaced(self.low, self.high, self.arms)
        none = jnp.zeros(self.arms, jnp.int32)
        return Plays(log_arms, none, none, jnp.zeros_like(log_arms))

    def rates(self, state: Plays, parents: Array) -> Array:
        return jnp.broadcast_to(jnp.exp(state.log_arms[self.arm(state)]), parents.shape)

    def log_rates(self, state: Plays) -> Array:
        return state.log_arms[self.arm(state)][None]

    def clip(self, state: Plays, low: Array, high: Array) -> Plays:
        return state._replace(log_arms=jnp.clip(state.log_arms, low, high))

    def arm(self, state: Plays) -> Array:
        """The arm to play, `i32[]`: each once, then the highest upper bound (the least played, if several)."""
        played = jnp.sum(state.plays)
        bonus = jnp.sqrt(2 * jnp.log(played + 1.0) / jnp.maximum(state.plays, 1))
        bound = jnp.where(state.judged > 0, state.mean + bonus, -jnp.inf)
        bound = jnp.where(state.plays > 0, bound, jnp.inf)
        best = bound == jnp.max(bound)
        return jnp.argmin(jnp.where(best, state.plays, jnp.iinfo(jnp.int32).max))

    def update(self, key: noise.Key, state: Plays, feedback: Feedback) -> Plays:
        played = jnp.arange(self.arms) == self.arm(state)
        judged = played & jnp.any(feedback.counts)
        reward = jnp.nan_to_num(-jnp.min(feedback.changes))  # a change beyond the dtype's range is a finite one
        count = state.judged + judged
        step = (reward - state.mean) / jnp.maximum(count, 1)
        mean = jnp.where(judged, state.mean + step.astype(state.mean.dtype), state.mean)
        return Plays(state.log_arms, state.plays + played, count, mean)
