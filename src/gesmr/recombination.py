"""Recombination: children that take every gene from a parent of its own."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from . import noise
from .controllers.base import recombining
from .selection import Selected


class Mates(NamedTuple):
    """From whom the last `children` of a generation take their genes: the first `count` of `members`, all alike."""

    children: int
    members: Array  # i32[children, M], or i32[1, M] if all of them have the same
    count: Any  # i32[], at most M

    def genes(self, population: Array, words: Array) -> Array:
        """Their genes `[children, d]` out of a population `[N+1, d]`, by random `words u32[children, d]`."""
        odd = self.children % 2  # an even number of rows is gathered, because XLA makes slow code for an odd one
        place = noise.integer(jnp.concatenate([words[:odd], words]), self.count)
        members = jnp.broadcast_to(self.members, (self.children, self.members.shape[1]))
        members = jnp.concatenate([members[:odd], members])
        member = jnp.take_along_axis(members, place, axis=1, mode="promise_in_bounds")
        return jnp.take_along_axis(population, member, axis=0, mode="promise_in_bounds")[odd:]


def mates_of(controller: Any, selected: Selected) -> Mates | None:
    """The mates of a generation: all that could have become parents.

    If the controller names a number of them, a child has the parent it was assigned and those of the children after
    it, which are drawn independently.
    """
    num_children = selected.members.shape[0] - 1
    children = recombining(controller, num_children)
    if children == 0:
        return None
    if controller.mates is None:
        return Mates(children, selected.ranking[None], selected.pool)
    mates = min(controller.mates, num_children)
    child = jnp.arange(num_children - children, num_children)[:, None]
    return Mates(children, selected.members[1 + (child + jnp.arange(mates)) % num_children], mates)
