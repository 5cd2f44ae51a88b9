"""Whether runs of one seed end in the same bits, whatever process they run in and wherever they were cut in two.

    python scripts/same_bits.py --processes 20 --jobs 6

Every process of a problem is another: half of them run through, the others are saved at some generation and go on in a
second process. Processes run beside each other on purpose: a busy device is what makes a compiler choose differently.
"""

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import gesmr
from gesmr.problems import functions, images

GENERATIONS = 300


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


PROBLEMS = {function.__name__: function for function in (network, rastrigin, mnist)}


def run(name: str, generations: int, checkpoint: str | None) -> str:
    """A digest of all that a run found."""
    fun, x0, options = PROBLEMS[name]()
    kept = {} if checkpoint is None else {"checkpoint": gesmr.Checkpoint(checkpoint, every=10**9), "resume": True}
    result = gesmr.minimize(fun, x0, rng=5, maxiter=generations, jit=True, **options, **kept)
    digest = hashlib.sha256()
    for array in jax.tree.leaves((result.x, result.population, result.history.elite, result.mutation_rates)):
        digest.update(np.asarray(array).tobytes())
    return digest.hexdigest()[:12]


def in_processes(name: str, cut: int | None) -> str:
    """The same digest, from one process or from two."""
    with tempfile.TemporaryDirectory() as directory:
        path = "" if cut is None else str(Path(directory, "run.npz"))
        for generations in (GENERATIONS,) if cut is None else (cut, GENERATIONS):
            command = [sys.executable, __file__, "--one", name, str(generations), path]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return done.stderr.strip().splitlines()[-1]
    return done.stdout.split()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--one", nargs=3, metavar=("PROBLEM", "GENERATIONS", "CHECKPOINT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        name, generations, path = given.one
        print(run(name, int(generations), path or None))
        return
    random.seed(0)
    for name in given.problems:
        cuts = [None if i % 2 else random.randrange(1, GENERATIONS) for i in range(given.processes)]
        with ThreadPoolExecutor(given.jobs) as pool:
            found = Counter(pool.map(lambda cut, name=name: in_processes(name, cut), cuts))
        through, halves = sum(cut is None for cut in cuts), sum(cut is not None for cut in cuts)
        said = "the same bits" if len(found) == 1 else f"{len(found)} endings"
        print(f"{name}: {through} runs in one process, {halves} in two: {said} {dict(found)}", flush=True)


if __name__ == "__main__":
    main()
