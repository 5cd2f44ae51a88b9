"""Evaluate on a Ray cluster, and get the result of a plain loop, bit for bit.

    python examples/ray_cluster.py                        # on this machine
    python examples/ray_cluster.py --address first:6379   # on a cluster that `ray start` has started

The function waits, in place of a computation that takes its time. Prints how long the loop and Ray took, and what they
found.
"""

import argparse
import time

import numpy as np

import gesmr

TARGET = np.array([0.5, -1.0, 2.0, 0.0])


def slow(x):
    time.sleep(0.02)
    return float(np.sum((x - TARGET) ** 2))


def main(quick: bool, address: str | None, actors: int):
    options = {"rng": 0, "bounds": (-3, 3), "popsize": 21, "maxiter": 3 if quick else 15}
    runs = {}
    start = time.monotonic()
    runs["a loop"] = gesmr.minimize(slow, np.zeros(4), **options), time.monotonic() - start

    with gesmr.Ray(address, actors=actors, timeout=60) as ray:  # an actor that dies or hangs is made up for
        gesmr.minimize(slow, np.zeros(4), workers=ray, **{**options, "maxiter": 1})  # starts Ray and its actors
        start = time.monotonic()
        runs[f"{actors} actors"] = gesmr.minimize(slow, np.zeros(4), workers=ray, **options), time.monotonic() - start

    print(f"{'by':>8} {'seconds':>8} {'evaluations':>12} {'value':>21} solution")
    for name, (result, seconds) in runs.items():
        print(f"{name:>8} {seconds:>8.2f} {result.nfev:>12} {result.fun!r:>21} {np.round(result.x, 2)}")
    (loop, _), (on_ray, _) = runs.values()
    same = np.array_equal(loop.population, on_ray.population)
    print(f"the last populations are {'the same, bit for bit' if same else 'NOT the same'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    parser.add_argument("--address", help="of the cluster; by default this machine's, started if there is none")
    parser.add_argument("--actors", type=int, default=2, help="workers, with a CPU each (2)")
    main(**vars(parser.parse_args()))
