"""Evolve a network written in Flax NNX by what is really wanted of it: few mistakes.

    python examples/flax_nnx.py

The share of points that a classifier gets wrong has no gradient: it is piecewise constant. Evolution needs none. The
parameters of an NNX module are a pytree, and so they can be `x0`; the search and the network are compiled together.
Draws two spirals of points, the region that the network gives to one of them, and its mistakes.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import gesmr

TURN = jnp.linspace(0.5, 2.75, 100) * jnp.pi
ONE = (TURN / TURN[-1])[:, None] * jnp.stack([jnp.cos(TURN), jnp.sin(TURN)], axis=1)
POINTS = jnp.concatenate([ONE, -ONE])  # the other spiral is the first, turned by half a turn
LABELS = jnp.repeat(jnp.array([True, False]), len(ONE))


class Classifier(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(2, 12, rngs=rngs)
        self.mixed = nnx.Linear(12, 12, rngs=rngs)
        self.out = nnx.Linear(12, 1, rngs=rngs)

    def __call__(self, x):
        return self.out(nnx.tanh(self.mixed(nnx.tanh(self.hidden(x)))))[..., 0]


def drawing(classify, rows: int = 19, columns: int = 57) -> str:
    """The plane from −1.1 to 1.1: points as # and o, the region given to # dotted, and X for points it gets wrong."""
    x, y = jnp.meshgrid(jnp.linspace(-1.1, 1.1, columns), jnp.linspace(1.1, -1.1, rows))
    cells = np.where(classify(jnp.stack([x, y], axis=-1)) > 0, "·", " ")
    right = (classify(POINTS) > 0) == LABELS
    signs = np.where(right, np.where(LABELS, "#", "o"), "X")
    for (px, py), sign in sorted(zip(POINTS.tolist(), signs, strict=True), key=lambda point: point[1] == "X"):
        cells[round((1.1 - py) / 2.2 * (rows - 1)), round((px + 1.1) / 2.2 * (columns - 1))] = sign
    return "\n".join(f"│{''.join(row)}│" for row in cells)


def main(quick: bool):
    graph, params = nnx.split(Classifier(nnx.Rngs(0)), nnx.Param)

    def mistakes(params):
        """The share of points on the wrong side."""
        return jnp.mean((nnx.merge(graph, params)(POINTS) > 0) != LABELS)

    result = gesmr.minimize(mistakes, params, init_std=0.5, maxiter=100 if quick else 2000, target=0.0, rng=0)
    print(drawing(nnx.merge(graph, result.x)))
    numbers = sum(leaf.size for leaf in jax.tree.leaves(params))
    print(f"{numbers} parameters, {result.nit} generations")
    print(f"wrong: {mistakes(params):.1%} of {len(POINTS)} points before, {result.fun:.1%} after")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    main(**vars(parser.parse_args()))
