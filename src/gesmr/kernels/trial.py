"""Every kernel in small, to find out whether they can be compiled here."""

import jax
import jax.numpy as jnp
import numpy as np

from .. import noise
from ..recombination import Mates
from ..sums import Summed, Sums
from . import choosing, making

_MEMBERS, _GENES = 5, 48


def compile_all() -> None:
    """Raises whatever the compiler does."""
    jax.jit(_all).lower(jnp.zeros((_MEMBERS, _GENES)), noise.key(0)).compile()


def _all(population: jax.Array, key: noise.Key) -> tuple[jax.Array, ...]:
    members, ranking = choosing.truncated(key, population[:, 0], jnp.int32(2), (np.uint32(1), jnp.int32(0)))
    members, _ = choosing.truncated(key, population[members, 0], jnp.int32(2), None)
    squares = Summed(lambda gene: (gene.x * gene.x, gene.nearest(gene.x)), lambda squares, _, dim: squares)
    steps = Summed(lambda gene: (gene.following - gene.x,), lambda steps, dim: steps, neighbours=True)
    sums = Sums((squares, steps), ranking[0] % 2, population[0], population[1])
    mates = Mates(2, ranking[None], jnp.int32(2))
    made, values = making.children(key, jnp.int32(0), population, members, population[:, 1], None, mates, sums)
    return made, values  # type: ignore[return-value]
