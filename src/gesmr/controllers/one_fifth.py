"""15MR: Rechenberg's one-fifth success rule."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from .. import _checks, noise
from .._pytree import pytree, static
from .base import Feedback, HoldsLogRates, Recombines, representable


@pytree
class OneFifth(HoldsLogRates, Recombines):
    """One rate, multiplied by `factor` when more than `target` of the children beat their parent, else divided."""

    rate: Any = 0.01
    target: Any = 0.2
    factor: Any = 2.0
    recombine: float = static(default=0.0)
    mates: int | None = static(default=None)

    def __post_init__(self):
        self.check_recombination()
        _checks.real("rate", self.rate, 0.0)
        _checks.real("target", self.target, 0.0, 1.0, open_low=False)
        _checks.real("factor", self.factor, 1.0, open_low=False)

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Array:
        return jnp.log(jnp.asarray(self.rate, float))

    def rates(self, state: Array, parents: Array) -> Array:
        return jnp.broadcast_to(jnp.exp(state), parents.shape)

    def update(self, key: noise.Key, state: Array, feedback: Feedback) -> Array:
        share = jnp.mean(feedback.changes < 0)
        step = jnp.log(jnp.asarray(self.factor, float))
        return representable(jnp.where(share > self.target, state + step, state - step))
