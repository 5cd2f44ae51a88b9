"""What a population of N × d costs in memory: measured in small, and the table of what that means in large.

    python benchmarks/memory.py --write docs/performance.md docs/devices.md

Every line is the peak resident memory of a process of its own that runs `gesmr.minimize`, beyond that of a small run in
the same process, in populations: N + 1 members of d numbers, of 4 bytes each or of 2. On a CPU that looks like several
devices it is the memory of all of them together.
"""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

os.environ["JAX_PLATFORMS"] = "cpu"  # read when jax is imported

from common import Line, conditions, has_marks, marks, replace_table

MEASURED, LARGE = "memory", "what it costs"
MEMBERS = 1001
SIZES = ("float32", 4), ("bfloat16", 2)

PEAK = """
import resource, sys
import jax
devices = int(sys.argv[1])
jax.config.update("jax_num_cpu_devices", max(devices, 1))
import jax.numpy as jnp, numpy as np, gesmr

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

called, dtype, batch, dim, members = sys.argv[2] == "called", sys.argv[3], *map(int, sys.argv[4:])
fun = (lambda x: float(np.sum(x * x))) if called else (lambda x: jnp.sum(x * x))
for d, n in ((16, 33), (dim, members)):
    before = peak()
    gesmr.minimize(fun, np.ones(d, np.float32), popsize=n, maxiter=2, batch_size=batch or None, rng=0, dtype=dtype,
                   devices=devices or None)
print((peak() - before) / (jnp.dtype(dtype).itemsize * d * n))
"""


class Way(NamedTuple):
    """A way to run."""

    devices: int  # 0: not said
    how: str  # compiled or called
    dtype: str
    batch_size: int  # 0: all children at once

    @property
    def is_frugal(self) -> bool:
        """Two populations and a batch are all it may need."""
        return self.how == "compiled" and self.batch_size > 0

    @property
    def words(self) -> str:
        batch = f", batch_size={self.batch_size}" if self.batch_size else ""
        devices = f", devices={self.devices}" if self.devices else ""
        return f"{self.how}, {self.dtype}{batch}{devices}"


WAYS = (
    *(Way(0, "compiled", dtype, batch) for dtype, _ in SIZES for batch in (0, 16)),
    *(Way(devices, "compiled", dtype, 2) for devices in (2, 8) for dtype, _ in SIZES),
    *(Way(0, "called", dtype, 0) for dtype, _ in SIZES),
)


def measure(dim: int) -> Iterator[tuple[Way, Line]]:
    for way in WAYS:
        options = (way.devices, way.how, way.dtype, way.batch_size, dim, MEMBERS)
        populations = float(subprocess.check_output([sys.executable, "-c", PEAK, *map(str, options)]))
        what = f"Peak memory in populations of {MEMBERS} × {dim:,}: {way.words}"
        yield way, Line(what, f"{populations:.2f}", "", populations, at_most=2.5 if way.is_frugal else math.inf)


def table(populations: dict[tuple[str, int], float]) -> list[str]:
    """Bytes on each device for N × d, by what was measured with `batch_size`."""
    columns = [(dtype, size, devices) for dtype, size in SIZES for devices in (1, 8)]
    head = " | ".join(f"{dtype}, {devices} device{'s' if devices > 1 else ''}" for dtype, _, devices in columns)
    lines = [f"| N × d | numbers | {head} |", f"|:--|--:|{'--:|' * len(columns)}"]
    for members in (100, 1_000, 10_000):
        for dim in (10**3, 10**6, 10**7, 10**8, 10**9):
            cells = [
                human(populations[dtype, devices] * size * members * dim / devices) for dtype, size, devices in columns
            ]
            lines.append(f"| {members:,} × {power(dim)} | {members * dim:.0e} | {' | '.join(cells)} |")
    return lines


def human(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


def power(number: int) -> str:
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(len(str(number)) - 1))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run, with few genes")
    parser.add_argument("--write", type=Path, nargs=2, metavar="FILE", help="replace the measurements, and the table")
    args = parser.parse_args()
    for file, name in zip(args.write or (), (MEASURED, LARGE), strict=False):
        if args.quick or not has_marks(file, name):
            parser.error(f"--write needs a full run and a file with {' and '.join(marks(name))}, got {file}")
    return args


def main() -> int:
    args = arguments()
    dim = 10_000 if args.quick else 200_000
    lines = ["| | gesmr | other | measured | median | required | |", "|:--|--:|--:|--:|--:|--:|:--|"]
    print(*lines, sep="\n", flush=True)
    populations, all_met = {}, True
    for way, line in measure(dim):
        lines.append(str(line))
        print(line, flush=True)
        all_met &= line.met
        if way.is_frugal:
            populations[way.dtype, way.devices or 1] = line.measured
    where = conditions(("jax", "jaxlib"), "one run of each")
    lines += ["", where]
    large = [*table(populations), "", where]
    print("", where, "", *large, sep="\n")
    if args.write:
        replace_table(args.write[0], MEASURED, "\n".join(lines))
        replace_table(args.write[1], LARGE, "\n".join(large))
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
