"""Whether runs of one seed end in the same bits, whatever process they run in and wherever they were cut in two.

    python scripts/same_bits.py --processes 20 --jobs 8

Half of the processes run through, the others are saved at some generation and go on in a second process; chunks are of
several lengths. Processes run beside each other on purpose: a busy device is what makes a compiler choose differently.

    python scripts/same_bits.py --timed    the same with algorithms that the compiler chooses by timing them
    python scripts/same_bits.py --speed    what a generation takes either way
"""

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gesmr
from gesmr.optimize import exact
from gesmr.problems import functions, images

GENERATIONS = 300
CHUNKS = (0, 1, 7, 16, 1000)  # generations; 0: of any length, by the clock


def network():
    """A pytree: 64-128-128-1 with tanh, on 4,096 rows."""
    sizes = (64, 128, 128, 1)
    keys = jax.random.split(jax.random.key(1), 2 + len(sizes))
    inputs = jax.random.normal(keys[0], (4096, sizes[0]))
    outputs = jnp.sin(inputs @ jax.random.normal(keys[1], (sizes[0],)) / 8)
    shapes = zip(keys[2:], sizes, sizes[1:], strict=False)
    start = [{"w": jax.random.normal(key, (n, m)) / n**0.5, "b": jnp.zeros(m)} for key, n, m in shapes]

    def loss(layers, inputs, outputs):
        x = inputs
        for i, layer in enumerate(layers):
            x = x @ layer["w"] + layer["b"]
            x = jnp.tanh(x) if i < len(layers) - 1 else x
        return jnp.mean((x[:, 0] - outputs) ** 2)

    return loss, start, {"args": (inputs, outputs), "init_std": 0.01}


def rastrigin():
    """200-D, rotated."""
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 200)))
    problem = functions.get("rastrigin", 200, rotation=jnp.asarray(rotation, jnp.float32))
    return problem, jnp.full(200, 2.0), {"vectorized": True}


def mnist():
    """The paper's network on 500 images."""
    problem = images.get("mnist", images=500)
    return problem, jnp.asarray(problem.init(0, 1)[0]), {"vectorized": True, "init_std": 0.03}


PROBLEMS: dict[str, Any] = {function.__name__: function for function in (network, rastrigin, mnist)}


def run(name: str, generations: int, chunk: int, checkpoint: str) -> str:
    """A digest of all that a run found."""
    fun, x0, options = PROBLEMS[name]()
    kept = {"checkpoint": gesmr.Checkpoint(checkpoint, every=10**9), "resume": True} if checkpoint else {}
    result = gesmr.minimize(fun, x0, rng=5, maxiter=generations, jit=True, chunk=chunk or None, **options, **kept)
    digest = hashlib.sha256()
    for array in jax.tree.leaves((result.x, result.population, result.history.elite, result.mutation_rates)):
        digest.update(np.asarray(array).tobytes())
    return digest.hexdigest()[:12]


def in_processes(name: str, cut: int | None, chunk: int, timed: bool) -> str:
    """The same digest, from one process or from two."""
    with tempfile.TemporaryDirectory() as directory:
        path, said = "" if cut is None else str(Path(directory, "run.npz")), ""
        for generations in (GENERATIONS,) if cut is None else (cut, GENERATIONS):
            command = [sys.executable, __file__, "--one", name, str(generations), str(chunk), path]
            done = subprocess.run(command + ["--timed"] * timed, capture_output=True, text=True, check=False)
            if done.returncode:
                return done.stderr.strip().splitlines()[-1]
            said = done.stdout.split()[-1]
    return said


def compare(name: str, processes: int, jobs: int, timed: bool) -> str:
    generator = random.Random(0)
    cuts = [None if i % 2 else generator.randrange(1, GENERATIONS) for i in range(processes)]
    chunks = [CHUNKS[i // 2 % len(CHUNKS)] for i in range(processes)]
    with ThreadPoolExecutor(jobs) as pool:
        found = Counter(pool.map(in_processes, [name] * processes, cuts, chunks, [timed] * processes))
    through = sum(cut is None for cut in cuts)
    said = "the same bits" if len(found) == 1 else f"{len(found)} endings"
    return f"{name}: {through} runs in one process, {processes - through} in two: {said} {dict(found)}"


def speed(name: str, timed: bool) -> str:
    """Of two thousand generations, the fastest of three after a first."""
    fun, x0, options = PROBLEMS[name]()
    seconds = []
    for rng in range(4):
        begin = time.perf_counter()
        gesmr.minimize(fun, x0, rng=rng, maxiter=2000, chunk=1000, jit=True, **options)
        seconds.append(time.perf_counter() - begin)
    return f"{name}, {'timed' if timed else 'exact'}: {min(seconds[1:]) / 2000 * 1e6:.0f} µs per generation"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--timed", action="store_true", help="let the compiler choose algorithms by timing them")
    parser.add_argument("--speed", action="store_true", help="what a generation takes, with --timed or without")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.timed:
        exact.jit = jax.jit
    if given.one:
        name, generations, chunk, path = given.one
        print(run(name, int(generations), int(chunk), path))
        return
    for name in given.problems:
        speeds = given.speed and speed(name, given.timed)
        print(speeds or compare(name, given.processes, given.jobs, given.timed), flush=True)


if __name__ == "__main__":
    main()
