"""UCB/R: the rate as a multi-armed bandit (after Fialho et al., 2008)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from .. import _checks, noise
from .._pytree import pytree, static
from .base import Feedback, log_spaced

_MOST = 2**20  # arms, and rewards of each that are kept


class Plays(NamedTuple):
    log_arms: Array  # f[R]
    plays: Array  # i32[R]  how often each arm was played
    judged: Array  # i32[R]  of those, how often some child could be judged
    mean: Array  # f[R]  mean reward of the judged plays
    recent: Array | None = None  # f[R, window]  rewards of the last judged plays, if only those count


@pytree
class UCB:
    """UCB1 over `arms` rates, one played per generation; its reward is the best improvement, −min Δ.

    After each arm once, that one is played whose mean reward + √(exploration · ln(t + 1) / n) is highest, with t plays
    so far and n of the arm. With a `window` only the last so many rewards of an arm count, for rewards that change.

    A play whose children are all non-finite counts as a play and stays out of the mean; an arm that
    has only such plays ranks below every other.
    """

    arms: int = static(default=10)
    low: Any = 1e-3
    high: Any = 1.0
    window: int | None = static(default=None)
    exploration: Any = 2.0

    def __post_init__(self):
        _checks.integer("arms", self.arms, 1, most=_MOST)
        _checks.rate_range(self.low, self.high)
        if self.window is not None:
            _checks.integer("window", self.window, 1, most=_MOST)
        _checks.real("exploration", self.exploration, 0.0, open_low=False)

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Plays:
        log_arms = log_spaced(self.low, self.high, self.arms)
        none = jnp.zeros(self.arms, jnp.int32)
        recent = None if self.window is None else jnp.zeros((self.arms, self.window), log_arms.dtype)
        return Plays(log_arms, none, none, jnp.zeros_like(log_arms), recent)

    def rates(self, state: Plays, parents: Array) -> Array:
        return jnp.broadcast_to(jnp.exp(state.log_arms[self.arm(state)]), parents.shape)

    def log_rates(self, state: Plays) -> Array:
        return state.log_arms[self.arm(state)][None]

    def clip(self, state: Plays, low: Array, high: Array) -> Plays:
        return state._replace(log_arms=jnp.clip(state.log_arms, low, high))

    def arm(self, state: Plays, time: Any = None) -> Array:
        """The arm to play, `i32[]`: each once, then the highest upper bound (the least played, if several).

        `time` is what the logarithm is taken of, t + 1 unless said otherwise.
        """
        time = jnp.sum(state.plays) + 1.0 if time is None else jnp.maximum(time, 1)
        bonus = jnp.sqrt(self.exploration * jnp.log(time) / jnp.maximum(state.plays, 1))
        bound = jnp.where(state.judged > 0, state.mean + bonus, -jnp.inf)
        bound = jnp.where(state.plays > 0, bound, jnp.inf)
        best = bound == jnp.max(bound)
        return jnp.argmin(jnp.where(best, state.plays, jnp.iinfo(jnp.int32).max))

    def update(self, key: noise.Key, state: Plays, feedback: Feedback) -> Plays:
        return self.credit(state, self.arm(state), feedback)

    def credit(self, state: Plays, arm: Array, feedback: Feedback) -> Plays:
        """The state after a play of `arm`, `i32[]`, that ended so."""
        played = jnp.arange(self.arms) == arm
        judged = played & jnp.any(feedback.counts)
        reward = jnp.nan_to_num(-jnp.min(feedback.changes))  # a change beyond the dtype's range is a finite one
        reward = reward.astype(state.mean.dtype)
        count = state.judged + judged
        if state.recent is None or self.window is None:
            recent, mean = None, state.mean + (reward - state.mean) / jnp.maximum(count, 1)
        else:
            oldest = jnp.arange(self.window) == state.judged[:, None] % self.window
            recent = jnp.where(judged[:, None] & oldest, reward, state.recent)
            mean = jnp.sum(recent / jnp.clip(count, 1, self.window)[:, None], axis=1)
        return Plays(state.log_arms, state.plays + played, count, jnp.where(judged, mean, state.mean), recent)
