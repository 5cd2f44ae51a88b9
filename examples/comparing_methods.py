"""Which optimiser for a problem of yours? Run several on it, with the same starts and as many evaluations each.

    python examples/comparing_methods.py --out pictures

The problem: two damped vibrations are to be found in a noisy signal, eight numbers in all. Prints a table that says who
is better and how sure that is, draws the signal with the best fit, and writes comparing_methods.png: the way there.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small products, which more threads only make slower

import numpy as np

import gesmr

TIME = np.linspace(0, 6, 240)
TRUTH = np.array([1.0, 0.30, 1.10, 0.5, 0.7, 0.15, 2.30, 2.0])  # size, damping, frequency, phase; twice
LOW, HIGH = np.tile([0.0, 0.0, 0.2, 0.0], 2), np.tile([2.0, 1.0, 4.0, 2 * np.pi], 2)


def signal(x):
    size, damping, frequency, phase = x.reshape(2, 4, 1).swapaxes(0, 1)
    return np.sum(size * np.exp(-damping * TIME) * np.sin(2 * np.pi * frequency * TIME + phase), axis=0)


MEASURED = signal(TRUTH) + np.random.default_rng(0).normal(0, 0.1, len(TIME))


def misfit(x):
    """Root mean square of what the signal does not explain."""
    return float(np.sqrt(np.mean((signal(x) - MEASURED) ** 2)))


def start(rng):
    return rng.uniform(LOW, HIGH)


def drawing(x, rows: int = 13, columns: int = 72) -> str:
    """What was measured as dots, the fit as blocks."""
    cells, at = np.full((rows, columns), " "), np.linspace(0, len(TIME) - 1, columns).astype(int)
    top = np.abs(MEASURED).max()
    for values, sign in ((MEASURED, "·"), (signal(x), "█")):
        heights = np.round((top - values[at]) / (2 * top) * (rows - 1)).astype(int)
        cells[heights.clip(0, rows - 1), np.arange(columns)] = sign
    return "\n".join("".join(row).rstrip() for row in cells)


def main(out: Path, quick: bool):
    methods = ["gesmr", "GESMR", "CMA-ES", "DE", "random"]
    seeds, maxfun = (3, 300) if quick else (10, 4000)
    table = gesmr.compare(misfit, start, methods, seeds, maxfun, bounds=list(zip(LOW, HIGH, strict=True)))
    print(drawing(table.best.x))
    print(f"best of all: {table.best.fun:.4f} by {table.best.method}; the truth has {misfit(TRUTH):.4f}, all noise")
    print(table)
    out.mkdir(parents=True, exist_ok=True)
    table.plot(out / "comparing_methods.png")
    print("wrote", out / "comparing_methods.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(), help="directory of the picture")
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    main(**vars(parser.parse_args()))
