"""FMR and 1CMR: one rate, for ever."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from .. import _checks, noise
from .._pytree import pytree, static
from .base import Feedback, HoldsLogRates, Recombines


@pytree
class Fixed(HoldsLogRates, Recombines):
    """The same mutation rate for every child of every generation.

    `rate` defaults to the paper's FMR; `None` stands for 1/d, its 1CMR.
    """

    rate: Any = 0.01
    recombine: float = static(default=0.0)
    mates: int | None = static(default=None)

    def __post_init__(self):
        self.check_recombination()
        if self.rate is not None:
            _checks.real("rate", self.rate, 0.0)

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Array:
        return jnp.log(jnp.asarray(1 / num_genes if self.rate is None else self.rate, float))

    def rates(self, state: Array, parents: Array) -> Array:
        return jnp.broadcast_to(jnp.exp(state), parents.shape)

    def update(self, key: noise.Key, state: Array, feedback: Feedback) -> Array:
        return state
