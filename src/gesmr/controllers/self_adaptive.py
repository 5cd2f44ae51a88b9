"""SAMR: every solution carries its own rate."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from .. import _checks, noise
from .._pytree import pytree, static
from .base import Feedback, HoldsLogRates, Recombines, log_spaced, mutate


@pytree
class SAMR(HoldsLogRates, Recombines):
    """Self-adaptation. The state is one log rate per member, `f[N+1]`, that of the elite in slot 0.

    A child is made with its parent's rate and inherits a mutated copy of it, so a rate survives only
    through the solutions it rides on.
    """

    meta_rate: Any = 2.0  # τ
    low: Any = 1e-3
    high: Any = 1e3
    recombine: float = static(default=0.0)
    mates: int | None = static(default=None)

    def __post_init__(self):
        self.check_recombination()
        _checks.real("meta_rate", self.meta_rate, 1.0, open_low=False)
        _checks.rate_range(self.low, self.high)

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Array:
        # Dealt at random: a first population that happens to be sorted must not pair good solutions with small rates.
        deal = jnp.argsort(noise.bits(key, num_children + 1))
        return log_spaced(self.low, self.high, num_children + 1)[deal]

    def rates(self, state: Array, parents: Array) -> Array:
        return jnp.exp(state[parents])

    def update(self, key: noise.Key, state: Array, feedback: Feedback) -> Array:
        words = noise.bits(key, feedback.parents.shape[0])
        inherited = mutate(words, state[feedback.parents], self.meta_rate)
        return jnp.concatenate([state[feedback.elite][None], inherited])
