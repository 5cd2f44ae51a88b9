"""Tables and figure of what `coco.py` found, from results/coco/summary.csv.gz: nothing is run.

python benchmarks/coco_page.py --write docs/benchmarks.md
"""

import argparse
import csv
import gzip
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import has_marks, marks, replace_table
from matplotlib.figure import Figure

from gesmr.lab.show import figures

RESULTS, SUMMARY, MADE = Path(__file__).parents[1] / "results" / "coco", "summary.csv.gz", "made.json"
TARGETS = 10.0 ** np.linspace(2, -8, 51)
SOLVED = 1e-8
OURS, OTHERS = ("gesmr", "gesmr, paper"), ("CMA-ES", "DE", "evosax", "random")
SHOWN = (*OURS, *OTHERS)
SETTINGS = {
    "gesmr": "default (`popsize=101, truncation=0.2`)",
    "popsize 51": "`popsize=51`",
    "popsize 21": "`popsize=21`",
    "truncation 0.05": "`truncation=0.05`",
    "gesmr, paper": 'the paper\'s, `controller="GESMR"`',
    "clipped": '`bounds=Bounds(-5, 5, "clip")`',
    "restarts": "`patience=30, restarts=1000`",
    "restarts 21": "`popsize=21, patience=100, restarts=1000`",
}
REQUIRED_WINS = 22
GROUPS = {
    "separable": range(1, 6),
    "moderate conditioning": range(6, 10),
    "high conditioning": range(10, 15),
    "multimodal, global structure": range(15, 20),
    "multimodal, weak structure": range(20, 25),
}
NAMES = (
    "Sphere", "Ellipsoid", "Rastrigin", "Büche–Rastrigin", "Linear slope", "Attractive sector", "Step ellipsoid",
    "Rosenbrock", "Rosenbrock, rotated", "Ellipsoid, rotated", "Discus", "Bent cigar", "Sharp ridge",
    "Different powers", "Rastrigin, rotated", "Weierstrass", "Schaffer F7", "Schaffer F7, ill-conditioned",
    "Griewank–Rosenbrock", "Schwefel", "Gallagher 101", "Gallagher 21", "Katsuura", "Lunacek bi-Rastrigin",
)  # fmt: skip
LINES = {
    "gesmr": ("#d55e00", "-", 1.8),
    "gesmr, paper": ("#d55e00", "--", 1.2),
    "CMA-ES": ("#0072b2", "-", 1.2),
    "DE": ("#009e73", "-", 1.2),
    "evosax": ("#e69f00", "-.", 1.2),
    "random": ("#8a8a8a", ":", 1.2),
}


class Run(NamedTuple):
    optimizer: str
    function: int
    dim: int
    instance: int
    evaluations: int
    seconds: float  # of a processor
    gap: float  # best value − optimum
    hits: tuple[int, ...]  # evaluations until each of the TARGETS that was reached


def summarise(out: Path, tasks: Iterable[Any]) -> None:
    """results/coco: one line for each run of the tasks, and with what they were made, of which `coco.py` takes note."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    order = [*SHOWN, *(name for name in SETTINGS if name not in SHOWN)]
    with (
        gzip.GzipFile(RESULTS / SUMMARY, "wb", mtime=0) as packed,  # the same bytes for the same runs
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Run._fields)
        for task in sorted(tasks, key=lambda task: (task.dim, order.index(task.optimizer), task.function)):
            for run in json.loads(task.path(out).read_text())["runs"]:
                evaluations, gaps = zip(*run["points"], strict=True)
                reached = np.searchsorted(-np.array(gaps), -TARGETS)  # the first improvement as good as the target
                hits = " ".join(str(evaluations[i]) for i in reached if i < len(gaps))
                gap = f"{max(gaps[-1], 0):.4g}"
                writer.writerow((task.optimizer, task.function, task.dim, run["instance"], run["evaluations"],
                                 f"{run['seconds']:.3f}", gap, hits))  # fmt: skip
    (RESULTS / MADE).write_text((out / MADE).read_text("utf-8"), "utf-8")


def read(path: Path = RESULTS / SUMMARY) -> list[Run]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [
            Run(row["optimizer"], int(row["function"]), int(row["dim"]), int(row["instance"]), int(row["evaluations"]),
                float(row["seconds"]), float(row["gap"]), tuple(map(int, row["hits"].split())))
            for row in csv.DictReader(file)
        ]  # fmt: skip


def reached(runs: Iterable[Run]) -> float:
    """The share of runs and targets that were reached."""
    counts = [len(run.hits) for run in runs]
    return sum(counts) / (len(counts) * len(TARGETS)) if counts else math.nan


def medians(runs: Iterable[Any], dim: int) -> dict[str, dict[int, float]]:
    """For each optimiser and function, the median over instances of the final error; what is solved is equal."""
    found: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        if run.dim == dim:
            found.setdefault((run.optimizer, run.function), []).append(max(run.gap, SOLVED))
    table: dict[str, dict[int, float]] = {}
    for (optimizer, function), gaps in found.items():
        table.setdefault(optimizer, {})[function] = float(np.median(gaps))
    return table


def wins(first: dict[int, float], second: dict[int, float]) -> list[int]:
    """The functions on which the first is better."""
    return [function for function in first if function in second and first[function] < second[function]]


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    align = [":--"] * left + ["--:"] * (len(headings) - left)
    return [f"| {' | '.join(cells)} |" for cells in (headings, align, *rows)]


def bold_best(values: Sequence[float], show: Callable[[float], str], best: Callable = min) -> list[str]:
    top = best(value for value in values if not math.isnan(value))
    return [f"**{show(value)}**" if value == top else show(value) for value in values]


def shares(runs: Sequence[Run]) -> list[str]:
    rows = []
    for dim in sorted({run.dim for run in runs}):
        for group, functions in {**GROUPS, "all": range(1, 25)}.items():
            these = [run for run in runs if run.dim == dim and run.function in functions]
            values = [round(reached(run for run in these if run.optimizer == name), 2) for name in SHOWN]
            rows.append([str(dim), group, *bold_best(values, lambda value: f"{value:.2f}", max)])
    return table(["d", "functions", *SHOWN], rows, 2)


def errors(runs: Sequence[Run], dim: int) -> list[str]:
    found, rows = medians(runs, dim), []
    for function, name in enumerate(NAMES, 1):
        values = [found.get(optimizer, {}).get(function, math.nan) for optimizer in SHOWN]
        rows.append(
            [f"{function} {name}", *bold_best(values, lambda value: "solved" if value <= SOLVED else f"{value:.1e}")]
        )
    return table(["", *SHOWN], rows)


def beaten(runs: Sequence[Run]) -> list[str]:
    """On how many functions each of ours has the lower median, beside each of the others."""
    rows = []
    for dim in sorted({run.dim for run in runs}):
        found = medians(runs, dim)
        for ours in OURS:
            cells = []
            for other in OTHERS:
                better, worse = (
                    len(wins(*pair)) for pair in ((found[ours], found[other]), (found[other], found[ours]))
                )
                cells.append(f"{better} : {worse}")
            rows.append([str(dim), ours, *cells])
    return table(["d", "", *OTHERS], rows, 2)


def verdict(runs: Sequence[Run]) -> tuple[str, bool]:
    found = medians(runs, 20)
    won = len(wins(found["gesmr"], found["random"]))
    met = won >= REQUIRED_WINS
    mark = "✓" if met else "✗ missed"
    return (
        f"In 20-D gesmr is better than random search on {won} of 24 functions (required: {REQUIRED_WINS}) {mark}.",
        met,
    )


def beside_cma_es(runs: Sequence[Run]) -> str:
    found = medians(runs, 20)
    names = (f"{NAMES[function - 1]} ({function})" for function in wins(found["gesmr"], found["CMA-ES"]))
    lost = len(wins(found["CMA-ES"], found["gesmr"]))
    return f"In 20-D CMA-ES is better than gesmr on {lost} of 24; gesmr is better on {', '.join(names) or 'none'}."


def best_of_all(runs: Sequence[Run]) -> list[str]:
    """How many functions each optimiser is the best on; those solved by several count for each."""
    rows = []
    for dim in sorted({run.dim for run in runs}):
        found, best = medians(runs, dim), Counter()
        for function in range(1, 25):
            values = {name: found[name][function] for name in SHOWN if function in found.get(name, {})}
            best.update(name for name, value in values.items() if value == min(values.values()))
        rows.append([str(dim), *(str(best[name]) for name in SHOWN)])
    return table(["d", *SHOWN], rows)


def times(runs: Sequence[Run]) -> list[str]:
    """Processor time of a run in units of random search's, per evaluation; the median over runs."""
    rows = []
    for dim in sorted({run.dim for run in runs}):
        each = {}
        for name in SHOWN:
            these = [run for run in runs if (run.dim, run.optimizer) == (dim, name)]
            each[name] = float(np.median([run.seconds / run.evaluations for run in these]))
        ratios = (each[name] / each["random"] for name in SHOWN[:-1])
        rows.append([str(dim), *(f"{ratio:.1f}" for ratio in ratios), f"{1e6 * each['random']:.0f} µs"])
    return table(["d", *SHOWN], rows)


def settings(runs: Sequence[Run]) -> list[str]:
    """Settings of ours where all of them ran: targets reached, and functions better and worse than by default."""
    dims = sorted({run.dim for run in runs if run.optimizer not in SHOWN})
    rows = []
    for name, label in SETTINGS.items():
        cells = []
        for dim in dims:
            found = medians(runs, dim)
            better, worse = wins(found[name], found["gesmr"]), wins(found["gesmr"], found[name])
            share = reached(run for run in runs if (run.dim, run.optimizer) == (dim, name))
            cells += [f"{share:.3f}", "" if name == "gesmr" else f"{len(better)} : {len(worse)}"]
        rows.append([label, *cells])
    return table(["", *(heading for dim in dims for heading in (f"{dim}-D", "better : worse"))], rows)


def figure(runs: Sequence[Run]) -> Figure:
    """The share of runs and targets reached, over evaluations per variable."""
    dims = sorted({run.dim for run in runs})
    with figures.style():
        drawn = Figure(figsize=(7.0, 4.4), layout="constrained")
        axes = np.ravel(drawn.subplots(2, math.ceil(len(dims) / 2), sharex=True, sharey=True, squeeze=False))
        for axis, dim in zip(axes, dims, strict=False):
            for name, (colour, dashes, width) in LINES.items():
                these = [run for run in runs if (run.dim, run.optimizer) == (dim, name)]
                hits = np.sort([hit / dim for run in these for hit in run.hits])
                share = np.arange(len(hits) + 1) / max(len(these) * len(TARGETS), 1)
                x, y = np.concatenate([[1e-3], hits, [1000]]), np.append(share, share[-1])
                axis.step(x, y, where="post", color=colour, linestyle=dashes, linewidth=width, label=name)
            axis.set(xscale="log", xlim=(10, 1000), ylim=(0, 1))
            figures.title(axis, f"{dim}-D")
        for axis in axes[len(dims) :]:
            axis.set_visible(False)
        for axis in axes[math.ceil(len(dims) / 2) :]:
            axis.set_xlabel("Evaluations / d")
        drawn.supylabel("Share of functions, instances and targets reached", fontsize=8)
        figures.legend_below(drawn, axes[0].get_legend_handles_labels()[0])
    return drawn


def page(runs: Sequence[Run]) -> str:
    made = json.loads((RESULTS / MADE).read_text(encoding="utf-8"))
    packages = ("gesmr", "coco-experiment", "cma", "scipy", "evosax", "jax", "numpy")
    software = ", ".join(f"{name} {made[name]}" for name in packages if name in made)
    most = max(run.evaluations // run.dim for run in runs)
    instances = len({run.instance for run in runs})
    lines = [
        verdict(runs)[0], beside_cma_es(runs), "",
        "### How many targets are reached", "",
        f"The share of 51 targets 10² … 10⁻⁸ above the optimum that were reached within {most}·d evaluations, over "
        f"{instances} instances of each function.", "", *shares(runs), "",
        "![Share of targets reached over evaluations](../results/coco/ecdf.png)", "",
        "### 20-D, function by function", "",
        "The median over instances of best value − optimum; below 10⁻⁸ it is solved.", "", *errors(runs, 20), "",
        "### Who is better", "",
        "Functions with the lower median error, ours : theirs; the rest are equal.", "",
        *beaten(runs), "",
        "Functions on which each has the lowest median of all; several if they are equal.", "", *best_of_all(runs), "",
        "### Other settings", "",
        "Share of targets reached, and functions with a lower : higher median error than by default.", "",
        *settings(runs), "",
        "### Time", "",
        "Processor time per evaluation, COCO's included, beside random search's, which is nearly all COCO's.", "",
        *times(runs), "",
        f"{software}, Python {made['python']}; {made['device']}; {made['date']}.",
    ]  # fmt: skip
    return "\n".join(lines)


def write(path: Path) -> int:
    """The figure and the page; 1 if what is required is missed."""
    runs = read()
    figures.save_small(figure(runs), RESULTS / "ecdf.png")
    replace_table(path, "coco", page(runs))
    line, met = verdict(runs)
    print(line)
    return 0 if met else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, required=True, metavar="FILE", help="replace the tables in it")
    args = parser.parse_args()
    if not has_marks(args.write, "coco"):
        parser.error(f"--write needs a file with {' and '.join(marks('coco'))}, got {args.write}")
    sys.exit(write(args.write))
