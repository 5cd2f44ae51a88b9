"""Minimise a function of your own, and see how the search went.

    python examples/own_function.py --out pictures

prints the best point and writes own_function.png: the best value, the mutation rates and the diversity of the run.
"""

import argparse
from pathlib import Path

import numpy as np

import gesmr

OPTIMUM = np.linspace(-2, 2, 10)


def rugged(x):
    """Rastrigin's function of ten variables, with its lowest point at OPTIMUM."""
    z = x - OPTIMUM
    return np.sum(z**2 + 10 * (1 - np.cos(2 * np.pi * z)))


def main(out: Path, quick: bool):
    x0 = np.full(10, 4.0)
    result = gesmr.minimize(rugged, x0, bounds=(-5, 5), maxfun=2_000 if quick else 20_000, rng=0)

    print(f"{'variable':>8} {'found':>8} {'optimum':>8}")
    for i, (found, optimum) in enumerate(zip(result.x, OPTIMUM, strict=True)):
        print(f"{i:>8} {found:>8.3f} {optimum:>8.3f}")
    print(f"value {result.fun:.4g} after {result.nfev} evaluations; it began at {rugged(x0):.4g}")
    out.mkdir(parents=True, exist_ok=True)
    result.plot(path=out / "own_function.png")
    print("wrote", out / "own_function.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(), help="directory of the picture")
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    main(**vars(parser.parse_args()))
