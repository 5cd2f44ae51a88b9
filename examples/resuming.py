"""A run that is killed, and resumed from its checkpoint to exactly the end that it would have had.

    python examples/resuming.py

It starts a search in another process, kills that process in the middle, as a cluster's scheduler or a power cut would,
and makes the same call again. Prints the values of both beside those of a run that nobody killed.
"""

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

import gesmr


def rugged(x):
    """Griewank's function of ten variables, moved, which takes its time."""
    time.sleep(0.0005)
    z = x - 7.0
    return float(1 + np.sum(z**2) / 4000 - np.prod(np.cos(z / np.sqrt(np.arange(1, 11)))))


def search(maxiter: int, checkpoint: Path | None = None, report=None):
    """The call that is made twice: with `resume=True` it continues if there is a checkpoint, and starts if not."""
    return gesmr.minimize(
        rugged,
        np.zeros(10),
        init_std=5.0,
        maxiter=maxiter,
        checkpoint=checkpoint and gesmr.Checkpoint(checkpoint, every=5),  # generations; or seconds=60
        resume=checkpoint is not None,
        callback=report,
        rng=0,
    )


def searching(maxiter: int, checkpoint: Path, pipe):
    search(maxiter, checkpoint, lambda so_far: pipe.send(so_far.nit))


def killed(maxiter: int, checkpoint: Path) -> int:
    """The last generation that the search told of before it was killed."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=searching, args=(maxiter, checkpoint, there))
    process.start()
    while (generation := here.recv()) < maxiter // 2:
        pass
    process.kill()  # SIGKILL: nothing is tidied up
    process.join()
    return generation


def main(quick: bool):
    maxiter = 24 if quick else 120
    with tempfile.TemporaryDirectory() as directory:
        checkpoint = Path(directory) / "run.npz"
        generation = killed(maxiter, checkpoint)
        seen = []
        resumed = search(maxiter, checkpoint, lambda so_far: seen.append(so_far.nit))
    undisturbed = search(maxiter)

    print("generation       killed and resumed              undisturbed")
    for at in range(maxiter // 6, maxiter + 1, maxiter // 6):
        print(f"{at:>10} {resumed.history.elite[at - 1]:>24.16g} {undisturbed.history.elite[at - 1]:>24.16g}")
    print(f"killed after generation {generation}, went on after generation {seen[0] - 1}")
    same = np.array_equal(resumed.population, undisturbed.population)
    print(f"the last populations are {'the same, bit for bit' if same else 'NOT the same'}")


if __name__ == "__main__":  # the other process imports this file
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    main(**vars(parser.parse_args()))
