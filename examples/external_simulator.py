"""Optimise the inputs of a program: each evaluation starts it in a process of its own, several side by side.

    python examples/external_simulator.py

The program here is a few lines of Python that simulate throwing a ball against the wind; yours may be in any language
and read and write what it likes. This one hangs where the throw is steep: after `timeout` seconds the worker is ended,
the program with it, and the candidate counts as the worst. Prints the best throw, and how many programs hung.
"""

import argparse
import json
import subprocess
import sys

import gesmr

SIMULATOR = """
import json, math, sys, time
throw = json.load(sys.stdin)
if throw["angle"] > 80:
    time.sleep(3600)  # a simulation that does not end
x, y = 0.0, 1.5
vx, vy = (throw["speed"] * f(math.radians(throw["angle"])) for f in (math.cos, math.sin))
while y > 0:  # gravity, drag and a headwind
    drag = 0.01 * math.hypot(vx + 5, vy)
    vx, vy = vx - 0.01 * drag * (vx + 5), vy - 0.01 * (9.81 + drag * vy)
    x, y = x + 0.01 * vx, y + 0.01 * vy
print(json.dumps({"distance": x}))
"""
SPACE = gesmr.Space(angle=gesmr.Float(0, 90), speed=gesmr.Float(5, 30))


def distance(throw):
    """How far the ball flies, by the program, which reads the throw as JSON and answers in JSON."""
    command = [sys.executable, "-I", "-S", "-c", SIMULATOR]
    done = subprocess.run(command, input=json.dumps(throw), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["distance"]


def main(quick: bool, workers: int):
    # A program that hung once hangs again (tries=1), and takes none with it that were sent together (chunk=1)
    pool = gesmr.Pool(workers, timeout=2, tries=1, chunk=1)
    options = {"popsize": 8, "maxiter": 2} if quick else {"popsize": 30, "maxiter": 15}
    result = gesmr.minimize(
        distance, SPACE, direction="maximize", workers=pool, on_error="worst", disp=not quick, rng=1, **options
    )
    print(f"{'angle':>8} {'speed':>8} {'distance':>9}")
    print(f"{result.x['angle']:>7.2f}° {result.x['speed']:>8.2f} {result.fun:>9.2f}")
    print(f"runs of the program: {result.nfev}, of which hung and were ended: {result.errors}")


if __name__ == "__main__":  # workers import this file
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    main(**vars(parser.parse_args()))
