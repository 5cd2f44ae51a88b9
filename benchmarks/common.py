"""What the benchmarks share: a line of a table with what is required of it, timing in turn, and writing the table."""

import argparse
import datetime
import math
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import jax

import gesmr


class Line(NamedTuple):
    what: str
    gesmr: str
    other: str
    measured: float
    median: float | None = None
    at_least: float = -math.inf
    at_most: float = math.inf
    remark: str = ""

    @property
    def met(self) -> bool:
        return self.at_least <= self.measured <= self.at_most

    def __str__(self) -> str:
        required, mark = "", "✓" if self.met else "✗ missed"
        if self.at_least > -math.inf:
            required = f"≥ {self.at_least}"
        elif self.at_most < math.inf:
            required = f"≤ {self.at_most}{self.remark}"
        else:
            mark = ""
        median = "" if self.median is None else f"{self.median:.2f}"
        cells = (self.what, self.gesmr, self.other, f"{self.measured:.2f}", median, required, mark)
        return f"| {' | '.join(cells)} |"


def interleaved(first: Callable[[], float], second: Callable[[], float], repeats: int) -> tuple[float, float, float]:
    """The best of each in turn, and the median of first / second."""
    pairs = [(first(), second()) for _ in range(repeats)]
    best_first, best_second = (min(times) for times in zip(*pairs, strict=True))
    return best_first, best_second, statistics.median(a / b for a, b in pairs)


def on_gpu() -> bool:
    return jax.default_backend() == "gpu"


def conditions(packages: Sequence[str], how_often: str) -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    cpus = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = cpus[0] if cpus else platform.processor() or platform.machine()
    machine = jax.devices()[0].device_kind if on_gpu() else f"{cpu}, {os.cpu_count()} cores"
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    software = f"gesmr {gesmr.__version__}, {versions}, Python {platform.python_version()}"
    return f"{software}; {machine}; {datetime.date.today()}; {how_often}."


def printed(
    columns: Sequence[str], lines: Iterable[Line], closing: str, show: Callable[[Line], str] = str
) -> tuple[str, bool]:
    """A table, printed while its lines come, and whether all that is required is met."""
    table, all_met = [f"| {' | '.join(columns)} |", f"|:--|{'--:|' * (len(columns) - 2)}:--|"], True
    print(*table, sep="\n", flush=True)
    for line in lines:
        all_met &= line.met
        table.append(show(line))
        print(table[-1], flush=True)
    print("", closing, sep="\n")
    return "\n".join([*table, "", closing]), all_met


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def has_marks(path: Path, name: str) -> bool:
    """Whether the file has a place for the table."""
    text = path.read_text("utf-8") if path.is_file() else ""
    return 0 <= text.find(marks(name)[0]) < text.find(marks(name)[1])


def print_or_write(about: str | None, mark: str, page: Callable[[], str]) -> int:
    """The whole of a script that makes one table: it prints it, and with --write puts it in its place in a file."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the table in it")
    args = parser.parse_args()
    if args.write and not has_marks(args.write, mark):
        parser.error(f"--write needs a file with {' and '.join(marks(mark))}, got {args.write}")
    made = page()
    print(made)
    if args.write:
        replace_table(args.write, mark, made)
    return 0


def replace_table(path: Path, name: str, table: str) -> None:
    start, end = marks(name)
    before, _, rest = path.read_text("utf-8").partition(start)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{start}\n{table}\n{end}{after}", "utf-8")
