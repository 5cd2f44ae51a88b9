"""Raw words of `gesmr.noise` on standard output, in the orders in which a run meets them, for a battery of tests.

python scripts/noise_battery.py --order genes | dieharder -a -g 200
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gesmr import noise

GENES, SLOTS, GENERATIONS, SEEDS = 100, 101, 1000, 1000  # what is fastest starts again after so many
_GENERATIONS_A_BLOCK, _CHILDREN_A_BLOCK = 100, 10  # about a million words


def genes_fastest(seed: Array, block: Array) -> Array:
    """Gene, then child, then generation: a population as it lies in memory."""
    return noise.bits(_population_keys(seed, block), GENES)


def children_fastest(seed: Array, block: Array) -> Array:
    """Child, then gene, then generation."""
    return jnp.swapaxes(noise.bits(_population_keys(seed, block), GENES), 1, 2)


def generations_fastest(seed: Array, block: Array) -> Array:
    """Generation, then gene, then child."""
    children = block * _CHILDREN_A_BLOCK + jnp.arange(_CHILDREN_A_BLOCK, dtype=jnp.uint32)
    keys = noise.fold_in(_run_key(seed), children[:, None], jnp.arange(GENERATIONS))
    return jnp.swapaxes(noise.bits(keys, GENES), 1, 2)


def seeds_fastest(seed: Array, block: Array) -> Array:
    """Seed, from the one given upwards, then gene, then child."""
    children = block * _CHILDREN_A_BLOCK + jnp.arange(_CHILDREN_A_BLOCK, dtype=jnp.uint32)
    runs = _run_key(seed + jnp.arange(SEEDS, dtype=jnp.uint32))
    return jnp.swapaxes(noise.bits(noise.fold_in(runs, children[:, None]), GENES), 1, 2)


def keys_alone(seed: Array, block: Array) -> Array:
    """The two words of a child's key, then child, then generation."""
    keys = _population_keys(seed, block, 50 * _GENERATIONS_A_BLOCK)
    return jnp.stack(keys, axis=-1)


ORDERS: dict[str, Callable[[Array, Array], Array]] = {
    "genes": genes_fastest,
    "children": children_fastest,
    "generations": generations_fastest,
    "seeds": seeds_fastest,
    "keys": keys_alone,
}


def words(order: str, seed: int) -> Iterator[np.ndarray]:
    """Blocks of `u32` words without end."""
    compiled = jax.jit(lambda seed, block: ORDERS[order](seed, block).ravel())
    make = partial(compiled, np.uint32(seed))
    following = make(np.uint32(0))
    block = 0
    while True:
        current, block = following, block + 1
        following = make(np.uint32(block))  # under way while the current one is written
        yield np.asarray(current)


def _run_key(seed: Array) -> noise.Key:
    """`noise.key` of integer seeds below 2^32, traced or several at once."""
    return noise.fold_in(noise.Key(jnp.uint32(0), jnp.uint32(0)), seed)


def _population_keys(seed: Array, block: Array, generations: int = _GENERATIONS_A_BLOCK) -> noise.Key:
    """The keys of whole generations, `u32[generations, SLOTS]`."""
    generation = block * np.uint32(generations) + jnp.arange(generations, dtype=jnp.uint32)
    return noise.fold_in(_run_key(seed), jnp.arange(SLOTS), generation[:, None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", choices=ORDERS, default="genes", help="which coordinate changes fastest")
    parser.add_argument("--seed", type=int, default=0, help="the run's seed, or the first one, below 2^32 − 1000")
    parser.add_argument("--megabytes", type=float, default=np.inf, help="stop after so many; without end otherwise")
    options = parser.parse_args()
    if not 0 <= options.seed < 2**32 - SEEDS:
        parser.error(f"--seed must be from 0 to {2**32 - SEEDS - 1}, got {options.seed}")
    if sys.stdout.isatty():
        parser.error("standard output is a terminal: redirect it to a file or another program")
    left = options.megabytes * 10**6
    try:
        for block in words(options.order, options.seed):
            part = block if left >= block.nbytes else block[: int(left // block.itemsize)]
            sys.stdout.buffer.write(part.data)
            left -= block.nbytes
            if left <= 0:
                break
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has had enough; Python must not flush again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
