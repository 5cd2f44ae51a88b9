"""How far the members of a population are from each other."""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from . import storage
from .bounds import Bounds
from .devices import Shards

_ALL, _SOME = 128, 64  # up to so many variables all are looked at, of more so many: enough to see it, and cheap


def diversity(population: Array, bounds: Bounds | None, shards: Shards | None = None) -> Array:
    """The root mean square distance of members `f[N+1, d]` from their mean, per variable and in units of it: its range
    if it has one. `f[]`, from all variables or 64 of many. Within a program of many devices, each holds some genes.
    """
    sample = _Sample(population.shape[1], shards)
    members = sample(storage.wide(storage.packed(population)))
    if bounds is not None:
        unit = jnp.broadcast_to(bounds.units(members.dtype)[0], population.shape[1:])
        unit = sample(unit[None])[0]
        members = members / jnp.where(unit > 0, unit, 1)
    return jnp.sqrt(jnp.mean((members - jnp.mean(members, axis=0)) ** 2))


class _Sample:
    """Some columns of an array, the same on however many devices it is."""

    def __init__(self, columns: int, shards: Shards | None):
        self._shards, self._columns = shards, columns
        total = columns if shards is None else shards.num_genes
        self._genes = np.arange(total) if total <= _ALL else np.linspace(0, total - 1, _SOME).astype(np.int32)

    def __call__(self, x: Array) -> Array:
        if self._shards is None:
            return x if len(self._genes) == self._columns else x[:, self._genes]
        at = self._genes - self._shards.genes.first.astype(jnp.int32)
        here = (at >= 0) & (at < self._columns)
        mine = jnp.where(here, x[:, jnp.clip(at, 0, self._columns - 1)], 0)
        return lax.psum(mine, self._shards.axis)  # each is on one device alone
