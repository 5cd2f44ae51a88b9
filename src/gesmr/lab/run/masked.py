"""GESMR with its hyperparameters as data, K included: one program serves every setting."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ... import _checks, noise, selection
from ..._pytree import pytree
from ...controllers import Feedback
from ...controllers.base import HoldsLogRates, mutate
from ...ga import GA


class Setting(NamedTuple):
    """What GESMR is run with; the defaults are the paper's."""

    truncation: Any = 0.5  # η_x
    rate_truncation: Any = 0.5  # η_σ
    meta_rate: Any = 2.0  # τ
    groups: Any = 10  # K

    def ga(self, num_children: int) -> GA:
        rates = MaskedGESMR(self.groups, meta_rate=self.meta_rate, truncation=self.rate_truncation)
        return GA(rates, num_children, self.truncation)


PAPER = Setting()


@pytree
class MaskedGESMR(HoldsLogRates):
    """GESMR with K as data: arrays have room for N groups, and those from the K-th on are never used.

    It draws what `GESMR(groups=K)` draws, word for word. The state is log rates `f[N]`, of which K count.
    """

    groups: Any  # K, i32[]
    meta_rate: Any = 2.0  # τ
    truncation: Any = 0.5  # η_σ
    low: Any = 1e-3
    high: Any = 1e3

    def __post_init__(self):
        if isinstance(self.groups, int):
            _checks.integer("groups", self.groups, 1)

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Array:
        if isinstance(self.groups, int) and self.groups > num_children:
            raise ValueError(f"groups must be at most num_children ({num_children}), got {self.groups}")
        log_low, log_high = jnp.log(jnp.asarray(self.low, float)), jnp.log(jnp.asarray(self.high, float))
        slot = jnp.arange(num_children, dtype=log_low.dtype)
        position = jnp.where(self.groups == 1, 0.5, slot / jnp.maximum(self.groups - 1, 1))
        return log_low + (log_high - log_low) * jnp.minimum(position, 1.0)

    def rates(self, state: Array, parents: Array) -> Array:
        return jnp.exp(self.log_rates(state))

    def update(self, key: noise.Key, state: Array, feedback: Feedback) -> Array:
        n = state.shape[0]
        slot = jnp.arange(n)
        # Eq. 5: a group that cannot be judged is the worst, one that does not exist comes after it
        worth = jax.ops.segment_min(feedback.changes, self.group_of_child(n), n, indices_are_sorted=True)
        worth = jnp.minimum(worth, jnp.finfo(worth.dtype).max)
        worth = jnp.where(slot < self.groups, worth, jnp.inf)
        # Words 0 … K−1 draw survivors, the next K break ties, the next K mutate
        words = noise.bits(key, 3 * n)
        draw, tie, step = (lax.dynamic_slice_in_dim(words, i * jnp.asarray(self.groups), n) for i in range(3))
        # Eq. 6: the best rate, and K−1 drawn from the best l
        pool = selection.pool_size(self.truncation, self.groups)
        ranks = jnp.where(slot == 0, 0, noise.integer(draw, pool))
        survivors = state[selection.order(worth, tie)[ranks]]
        # Eq. 7: all but the best are mutated
        return jnp.where(slot == 0, survivors, mutate(step, survivors, self.meta_rate))

    def log_rates(self, state: Array) -> Array:
        """Of each child, `f[N]`: the mean is that of the K rates if K divides N."""
        return state[self.group_of_child(state.shape[0])]

    def group_of_child(self, num_children: int) -> Array:
        """Which group each child belongs to, `i32[N]`, as in GESMR."""
        return jnp.arange(num_children) * self.groups // num_children
