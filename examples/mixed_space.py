"""Tune a model over a mixed space: a real number on a log scale, an integer and two choices.

    python examples/mixed_space.py

The model is ridge regression on random features, in NumPy; what is minimised is its error on held-out data. Prints the
ten best configurations that were tried.
"""

import argparse

import numpy as np

import gesmr

SPACE = gesmr.Space(
    ridge=gesmr.Float(1e-8, 10, log=True),
    features=gesmr.Int(4, 256, log=True),
    scale=gesmr.Float(0.1, 10, log=True),
    activation=gesmr.Choice("cos", "tanh", "relu"),
    intercept=gesmr.Choice(True, False),
)
ACTIVATIONS = {"cos": np.cos, "tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}


def data(rng, n):
    x = rng.uniform(-3, 3, (n, 2))
    return x, np.sin(2 * x[:, 0]) * x[:, 1] + 1 + rng.normal(0, 0.1, n)


TRAIN, HELD_OUT = data(np.random.default_rng(0), 300), data(np.random.default_rng(1), 300)


def error(config):
    """Root mean square error on the held-out data."""
    rng = np.random.default_rng(2)  # the same features at every call: the function is not noisy
    weights = rng.normal(0, config["scale"], (2, config["features"]))
    shifts = rng.uniform(0, 2 * np.pi, config["features"])

    def hidden(x):
        h = ACTIVATIONS[config["activation"]](x @ weights + shifts)
        return np.c_[h, np.ones(len(x))] if config["intercept"] else h

    h, (_, y) = hidden(TRAIN[0]), TRAIN
    solution = np.linalg.solve(h.T @ h + config["ridge"] * np.eye(h.shape[1]), h.T @ y)
    return float(np.sqrt(np.mean((hidden(HELD_OUT[0]) @ solution - HELD_OUT[1]) ** 2)))


def main(quick: bool):
    tried = []

    def recorded(config):
        tried.append((error(config), config))
        return tried[-1][0]

    result = gesmr.minimize(recorded, SPACE, maxfun=60 if quick else 600, rng=0)
    print(f"{'error':>8}  {'ridge':>8} {'features':>8} {'scale':>6} activation intercept")
    for value, c in sorted(tried, key=lambda pair: pair[0])[:10]:
        numbers = f"{value:8.4f}  {c['ridge']:8.1e} {c['features']:8} {c['scale']:6.2f}"
        print(f"{numbers} {c['activation']:10} {c['intercept']}")
    print(f"best of {result.nfev}: error {result.fun:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    main(**vars(parser.parse_args()))
