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

    def genes(self, population: Array, words: Array, number: Array) -> Array:
        """Genes `[n, d]` of some of them, `number i32[n]`, out of a population `[N+1, d]`, by words `u32[n, d]`."""
        n, odd = words.shape[0], words.shape[0] % 2  # an even number of rows: for an odd one XLA makes slow code
        place = noise.integer(jnp.concatenate([words[:odd], words]), self.count)
        members = self.members if self.members.shape[0] == 1 else self.members[number]
        members = jnp.broadcast_to(members, (n, members.shape[1]))
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
