"""Any controller, with its rates kept in a range."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from .. import _checks, noise
from .._pytree import pytree
from .base import Controller, Feedback, check_controller, recombining


@pytree
class Clip:
    """`controller` with every rate in [low, high].

    What the controller holds is clipped too: rates left to wander outside would all act alike there,
    and nothing would select between them.
    """

    controller: Controller
    low: Any = 0.0
    high: Any = float("inf")

    def __post_init__(self):
        check_controller(self.controller)
        _checks.real("low", self.low, 0.0, open_low=False)
        unbounded = isinstance(self.high, float) and self.high == float("inf")
        if not unbounded:
            _checks.real("high", self.high, 0.0)
            _checks.ordered(self.low, self.high)

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Any:
        return self.clip(self.controller.init(key, num_children, num_genes), *self._range())

    def rates(self, state: Any, parents: Array) -> Array:
        return self.controller.rates(state, parents)

    def update(self, key: noise.Key, state: Any, feedback: Feedback) -> Any:
        return self.clip(self.controller.update(key, state, feedback), *self._range())

    def log_rates(self, state: Any) -> Array:
        return self.controller.log_rates(state)

    def clip(self, state: Any, low: Array, high: Array) -> Any:
        return self.controller.clip(state, low, high)

    @property
    def mates(self) -> int | None:
        return getattr(self.controller, "mates", None)

    def recombining(self, num_children: int) -> int:
        return recombining(self.controller, num_children)

    def _range(self) -> tuple[Array, Array]:
        return jnp.log(jnp.asarray(self.low, float)), jnp.log(jnp.asarray(self.high, float))
