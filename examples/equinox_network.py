"""Evolve an Equinox network whose units are on or off: gradients are zero everywhere, and evolution does not need them.

    python examples/equinox_network.py

The network is split into its arrays, which are evolved, and the rest. It is to follow a wave by steps alone. Draws
both, and prints the error.
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import gesmr

X = jnp.linspace(-1, 1, 128)[:, None]
WAVE = jnp.sin(5 * X) * jnp.exp(-X)


def step(x):
    return jnp.where(x > 0, 1.0, 0.0)


def drawing(fitted, rows: int = 17, columns: int = 64) -> str:
    """The wave as dots, the network as blocks; a cell that both pass through is a block."""
    cells = np.full((rows, columns), " ")
    low, high = float(WAVE.min()), float(WAVE.max())
    for values, sign in ((WAVE, "·"), (fitted, "█")):
        heights = np.interp(np.linspace(0, 127, columns), np.arange(128), np.asarray(values)[:, 0])
        where = np.clip(np.round((high - heights) / (high - low) * (rows - 1)), 0, rows - 1).astype(int)
        cells[where, np.arange(columns)] = sign
    return "\n".join("".join(row).rstrip() for row in cells)


def main(quick: bool):
    network = eqx.nn.MLP(1, 1, width_size=48, depth=1, activation=step, key=jax.random.key(0))
    params, rest = eqx.partition(network, eqx.is_inexact_array)

    def error(params):
        """The mean square of the distance to the wave."""
        return jnp.mean((jax.vmap(eqx.combine(params, rest))(X) - WAVE) ** 2)

    gradients = jax.tree.leaves(jax.grad(error)(params))
    result = gesmr.minimize(error, params, init_std=0.3, maxiter=150 if quick else 3000, rng=0)
    trained = eqx.combine(result.x, rest)  # an Equinox module like the one before
    print(drawing(jax.vmap(trained)(X)))
    zero = sum(int(jnp.sum(leaf == 0)) for leaf in gradients[:2])
    print(f"gradients that are zero: {zero} of {sum(leaf.size for leaf in gradients[:2])} of the units' parameters")
    print(f"mean square error: {error(params):.4f} before, {result.fun:.4f} after {result.nit} generations")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    main(**vars(parser.parse_args()))
