"""What the optimiser itself costs: ask and tell beside pycma and nevergrad, checkpoints, memory, the first call.

See docs/performance.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"  # read when jax is imported

import cma
import nevergrad  # pyright: ignore[reportMissingImports]
import numpy as np
from common import Line, conditions, has_marks, interleaved, marks, printed, replace_table

import gesmr
from gesmr.optimize import checkpoint
from gesmr.optimize.run import Run

TABLE = "ask and tell"
MEMBERS, DIM = 101, 100
GENERATIONS = 30  # per timed call


def sphere(xs: np.ndarray) -> np.ndarray:
    return np.sum((xs - 1) ** 2, axis=1)


def timed(generation: Callable[[], float]) -> Callable[[], float]:
    """Seconds per generation beside the evaluations, over a stretch of the run."""
    return lambda: sum(generation() for _ in range(GENERATIONS)) / GENERATIONS


def ours() -> Callable[[], float]:
    optimizer = gesmr.Optimizer(np.zeros(DIM), popsize=MEMBERS, rng=0)

    def generation() -> float:
        start = time.perf_counter()
        xs = optimizer.ask()
        asked = time.perf_counter()
        values = sphere(xs)
        evaluated = time.perf_counter()
        optimizer.tell(xs, values)
        return asked - start + time.perf_counter() - evaluated

    for _ in range(5):
        generation()  # compiles
    return timed(generation)


def pycmas() -> Callable[[], float]:
    strategy = cma.CMAEvolutionStrategy(DIM * [0.0], 1.0, {"popsize": MEMBERS, "seed": 1, "verbose": -9})

    def generation() -> float:
        start = time.perf_counter()
        xs = strategy.ask()
        asked = time.perf_counter()
        values = sphere(np.array(xs))
        evaluated = time.perf_counter()
        strategy.tell(xs, values.tolist())
        return asked - start + time.perf_counter() - evaluated

    generation()
    return timed(generation)


def nevergrads(name: str) -> Callable[[], float]:
    optimizer = nevergrad.optimizers.registry[name](parametrization=DIM, budget=10**6, num_workers=MEMBERS)

    def generation() -> float:
        start = time.perf_counter()
        xs = [optimizer.ask() for _ in range(MEMBERS)]
        asked = time.perf_counter()
        values = sphere(np.array([x.value for x in xs]))
        evaluated = time.perf_counter()
        for x, value in zip(xs, values.tolist(), strict=True):
            optimizer.tell(x, value)
        return asked - start + time.perf_counter() - evaluated

    generation()
    return timed(generation)


def beside(name: str, theirs: Callable[[], float], repeats: int, required: float) -> Line:
    their_time, our_time, median = interleaved(theirs, ours(), repeats)
    what = f"Ask and tell, a generation of {MEMBERS} in {DIM} variables: {name} / gesmr"
    return Line(
        what, f"{1e3 * our_time:.2f} ms", f"{1e3 * their_time:.2f} ms", their_time / our_time, median, at_least=required
    )


def alone(repeats: int) -> Line:
    run = ours()
    best = min(run() for _ in range(repeats))
    what = f"Ask and tell, a generation of {MEMBERS} in {DIM} variables, in ms"
    return Line(what, f"{1e3 * best:.2f} ms", "", 1e3 * best, at_most=1.0, remark=" ms")


def checkpoints(seconds: float, every: float) -> Line:
    """The time that writing takes within a run, from inside it: two runs would differ by more than that."""
    spent = []
    save = checkpoint.save

    def measured(run: Run, path: Path) -> None:
        start = time.perf_counter()
        save(run, path)
        spent.append(time.perf_counter() - start)

    setattr(checkpoint, "save", measured)  # noqa: B010
    try:
        with tempfile.TemporaryDirectory() as directory:
            kept = gesmr.Checkpoint(Path(directory) / "run", seconds=every)
            gesmr.minimize(sphere, np.zeros(DIM), vectorized=True, maxtime=seconds, checkpoint=kept, rng=0, jit=False)
    finally:
        setattr(checkpoint, "save", save)  # noqa: B010
    share = 100 * sum(spent) / seconds
    what = f"Checkpoints every {every:g} s in a run of {seconds:g} s, {len(spent)} of them, in % of it"
    return Line(what, f"{1e3 * max(spent):.1f} ms each", "", share, at_most=2.0, remark=" %")


PEAK = """
import resource, sys
import jax.numpy as jnp, numpy as np, gesmr

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

dim, members, batch = map(int, sys.argv[1:])
for d, n in ((10, 11), (dim, members)):
    before = peak()
    gesmr.minimize(lambda x: jnp.sum(x * x), np.ones(d, np.float32), popsize=n, maxiter=2, batch_size=batch, rng=0)
print((peak() - before) / (4 * d * n))
"""


def memory(dim: int, members: int = 1001, batch: int = 16) -> Line:
    """Peak resident memory of a process beyond that of a small run, in populations."""
    command = [sys.executable, "-c", PEAK, str(dim), str(members), str(batch)]
    populations = float(subprocess.check_output(command))
    what = f"Peak memory in populations of {members} × {dim:,} × 4 bytes, batch_size={batch}"
    return Line(what, f"{populations:.2f}", "", populations, at_most=round(2.5 + batch / members, 2))


FIRST_CALL = """
import time
import jax.numpy as jnp, numpy as np, gesmr

start, seen = time.perf_counter(), []
fun = {"jax": lambda x: jnp.sum(x * x), "numpy": lambda x: float(np.sum(x * x))}["KIND"]
gesmr.minimize(fun, np.ones(100), maxiter=2, callback=lambda r: seen.append(time.perf_counter()))
print(seen[1] - start)
"""


def first_call(kind: str, repeats: int) -> Line:
    code = FIRST_CALL.replace("KIND", kind)
    best = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(repeats))
    what = f"A first call, {kind} function: until a generation is done, compilation included, in s"
    return Line(what, f"{best:.2f} s", "", best, at_most={"jax": 1.2, "numpy": 0.8}[kind], remark=" s")


def measure(quick: bool, repeats: int) -> Iterator[Line]:
    yield alone(repeats)
    yield beside("pycma", pycmas(), repeats, 3.0)
    for name in ("NGOpt", "DE"):
        yield beside(f"nevergrad {name}", nevergrads(name), repeats, 3.0)
    yield checkpoints(5.0 if quick else 60.0, 1.0 if quick else 10.0)
    yield memory(10_000 if quick else 1_000_000)
    for kind in ("jax", "numpy"):
        yield first_call(kind, 1 if quick else 3)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--repeats", type=int, help="timed stretches of each optimiser (15; 3 with --quick)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the table in it")
    args = parser.parse_args()
    args.repeats = args.repeats or (3 if args.quick else 15)
    if args.write and (args.quick or not has_marks(args.write, TABLE)):
        parser.error(f"--write needs a full run and a file with {' and '.join(marks(TABLE))}, got {args.write}")
    return args


def main() -> int:
    args = arguments()
    warnings.filterwarnings("ignore", module="nevergrad")
    columns = ("", "gesmr", "other", "measured", "median", "required", "")
    how_often = f"{args.repeats} stretches of {GENERATIONS} generations"
    closing = conditions(("cma", "nevergrad", "jax", "jaxlib"), how_often)
    table, all_met = printed(columns, measure(args.quick, args.repeats), closing)
    if args.write:
        replace_table(args.write, TABLE, table)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
