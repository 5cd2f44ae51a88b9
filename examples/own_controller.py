"""A controller of one's own: how the mutation rate is chosen, in a few lines, beside those of the library.

    python examples/own_controller.py --out pictures

This one draws every child's rate around a centre, and moves the centre towards the rates of the children that improved
most on their parents. Prints a comparison on a rugged function, and writes own_controller.png: value, rates, diversity.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp

import gesmr
from gesmr import noise


@gesmr.pytree
class Centre:
    """Rates around a centre that follows the best. The state is the logarithms of the centre and of the rates."""

    start: float = 1.0  # the first centre
    spread: float = 1.0  # of the logarithms around it
    best: float = 0.1  # the share of children that it follows
    pace: float = 0.3  # of the way there, in a generation

    def init(self, key, num_children, num_genes):
        centre = jnp.log(jnp.asarray(self.start))
        return centre, self._around(key, centre, num_children)

    def rates(self, state, parents):
        return jnp.exp(state[1])

    def update(self, key, state, feedback):
        centre, logs = state
        threshold = jnp.quantile(feedback.changes, self.best)
        chosen = (feedback.changes <= threshold) & feedback.counts
        towards = jnp.sum(jnp.where(chosen, logs, 0)) / jnp.maximum(chosen.sum(), 1)
        centre = jnp.where(chosen.any(), centre + self.pace * (towards - centre), centre)
        return centre, self._around(key, centre, len(logs))

    def log_rates(self, state):
        return state[1]

    def clip(self, state, low, high):  # for gesmr.Clip and for bounds
        return jax.tree.map(lambda logs: jnp.clip(logs, low, high), state)

    def _around(self, key, centre, n):
        return centre + self.spread * noise.normal(noise.bits(key, n))


def ackley(x):
    z = x - 3.0
    mean = jnp.mean(jnp.cos(2 * jnp.pi * z))
    return 20 + jnp.e - 20 * jnp.exp(-0.2 * jnp.sqrt(jnp.mean(z**2))) - jnp.exp(mean)


def main(out: Path, quick: bool):
    methods = {"a centre": Centre(), "GESMR": "GESMR", "SAMR": "SAMR", "fixed at 0.1": gesmr.Fixed(0.1)}
    seeds, maxiter = (3, 60) if quick else (10, 500)
    runs = {
        name: [gesmr.minimize(ackley, jnp.zeros(30), controller=one, maxiter=maxiter, rng=i) for i in range(seeds)]
        for name, one in methods.items()
    }
    print(f"{'method':>12} {'median value':>13} {'best':>9} {'worst':>9} {'last rate':>10}")
    for name, results in runs.items():
        values = jnp.array([result.fun for result in results])
        rate = jnp.exp(jnp.median(jnp.array([result.history.log_rate[-1] for result in results])))
        print(f"{name:>12} {jnp.median(values):>13.4g} {values.min():>9.4g} {values.max():>9.4g} {rate:>10.2g}")
    out.mkdir(parents=True, exist_ok=True)
    gesmr.plot(runs, path=out / "own_controller.png")
    print("wrote", out / "own_controller.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(), help="directory of the picture")
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    main(**vars(parser.parse_args()))
