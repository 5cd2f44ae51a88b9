"""What a mutation-rate controller is: four questions about a rate, and what it hears back."""

import math
from typing import Any, NamedTuple, Protocol, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _checks, noise

S = TypeVar("S")


class Feedback(NamedTuple):
    """What a controller is told of a generation. Non-finite fitness arrives as `inf`."""

    elite: Array  # i32[]  which old member became slot 0 (0 the old slot 0, i the old child i)
    parents: Array  # i32[N]  which old member each child was made from
    rates: Array  # f[N]  the rate each child was made with
    parent_fitness: Array  # f[N]
    child_fitness: Array  # f[N]

    @property
    def counts(self) -> Array:
        """`bool[N]`: whether a child's change can be judged, that is, both values are finite."""
        return jnp.isfinite(self.parent_fitness) & jnp.isfinite(self.child_fitness)

    @property
    def changes(self) -> Array:
        """Δ, `f[N]`: f(child) − f(parent), and `inf`, the worst there is, where that cannot be judged."""
        change = self.child_fitness - self.parent_fitness
        return jnp.where(self.counts, change, jnp.inf)


class Controller(Protocol[S]):
    """Chooses the rate of every child. Sees rates and values, never solutions, the objective or the GA.

    A controller is a frozen pytree: its floats can be swept by `vmap`, its integers shape the program.
    `S`, its state, is any pytree of arrays with shapes that do not change. A controller whose last children recombine
    says so (`Recombines`); one that does not say has none.
    """

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> S:
        """The state before the first generation."""
        ...

    def rates(self, state: S, parents: Array) -> Array:
        """The rate `f[N]` of each child, given its parent `i32[N]`. Involves no randomness."""
        ...

    def update(self, key: noise.Key, state: S, feedback: Feedback) -> S:
        """The state after a generation."""
        ...

    def log_rates(self, state: S) -> Array:
        """Natural logarithms of the rates in use, `f[any]`, for the record."""
        ...

    def clip(self, state: S, low: Array, high: Array) -> S:
        """The state with the logarithms of its rates kept in [low, high], for `Clip`."""
        ...


def check_controller(controller: Any) -> None:
    """Refuse what is no controller: a name, a class, or an object without a controller's methods."""
    methods = ("init", "rates", "update", "log_rates")
    if isinstance(controller, str | type) or not all(hasattr(controller, method) for method in methods):
        raise TypeError(
            "controller must be a controller object such as GESMR() or gesmr.controller('GESMR'), got "
            f"{_checks.show(controller)}"
        )


class HoldsLogRates:
    """Base of controllers whose whole state is an array of log rates."""

    def log_rates(self, state: Array) -> Array:
        return jnp.atleast_1d(state)

    def clip(self, state: Array, low: Array, high: Array) -> Array:
        return jnp.clip(state, low, high)


class Recombines:
    """Base of controllers some of whose children take every gene from a parent of its own: the last ones.

    Its fields, which shape the program: `recombine`, the share of the children, and `mates`, how many parents such a
    child has; None: any of those that could have been its parent.
    """

    recombine: float
    mates: int | None

    def recombining(self, num_children: int) -> int:
        """How many of the last children recombine."""
        return share(self.recombine, num_children)

    def check_recombination(self) -> None:
        if (
            isinstance(self.recombine, bool)
            or not isinstance(self.recombine, int | float)
            or not 0 <= self.recombine <= 1
        ):
            given = _checks.described(self.recombine)
            raise ValueError(f"recombine must be one number of at least 0 and at most 1, got {given}")
        if self.mates is not None:
            _checks.integer("mates", self.mates, 2, most=_checks.MOST)


def recombining(controller: Any, num_children: int) -> int:
    """How many of the last children recombine under a controller: none, if it does not say."""
    ask = getattr(controller, "recombining", None)
    return 0 if ask is None else ask(num_children)


def share(part: float, n: int) -> int:
    """⌊part·n + ½⌋, but none of them only if the part is 0."""
    return min(n, max(math.floor(part * n + 0.5), part > 0))


def log_spaced(low: Any, high: Any, n: int) -> Array:
    """Logarithms of `n` rates from `low` to `high`, evenly spaced; a single one sits in the middle."""
    position = np.linspace(0.0, 1.0, n) if n > 1 else np.array([0.5])
    log_low, log_high = jnp.log(jnp.asarray(low, float)), jnp.log(jnp.asarray(high, float))
    return log_low + (log_high - log_low) * position.astype(log_low.dtype)


def mutate(words: Array, log_rates: Array, meta_rate: Any) -> Array:
    """σ·τ^U(−1, 1) in logarithms, with random `words u32[n]`, kept where σ is finite and positive."""
    step = 2 * noise.uniform(words) - 1
    return representable(log_rates + jnp.log(jnp.asarray(meta_rate, float)) * step)


def representable(log_rates: Array) -> Array:
    """Log rates kept where their exponential is an ordinary positive number of the same dtype."""
    limits = np.finfo(log_rates.dtype)
    return jnp.clip(log_rates, np.ceil(np.log(limits.tiny)), np.floor(np.log(limits.max)))
