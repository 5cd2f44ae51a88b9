"""Tables of what coco_mixint.py and coco_constrained.py found, from results/: nothing is run."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from coco_page import NAMES, bold_best, medians, table, wins
from coco_summary import Run, read, software
from common import replace_table

DIM, SOLVED = 10, 1e-8


class Versus(NamedTuple):
    name: str  # of results and of the mark in the page
    suite: str
    functions: range
    instances: tuple[int, ...]
    budget: int  # evaluations per variable


MIXINT = Versus("coco-mixint", "bbob-mixint", range(1, 25), (*range(1, 11), *range(21, 31)), 500)
CHOICE = Versus("coco-mixint-choice", "bbob-mixint", range(1, 25), tuple(range(11, 21)), 500)
CONSTRAINED = Versus("coco-constrained", "bbob-constrained", range(1, 55), (1, 2, 3, 4, 5), 1000)
REQUIRED_WINS = 14  # on mixed integers, beside DE
PARTS = {"1–5": range(1, 6), "6–10": range(6, 11), "21–25": range(21, 26), "26–30": range(26, 31)}
OBJECTIVES = (
    "Sphere", "Ellipsoid", "Linear slope", "Ellipsoid, rotated", "Discus", "Bent cigar", "Different powers",
    "Rastrigin", "Rastrigin, rotated",
)  # fmt: skip
CONSTRAINTS = (1, 3, 9, 16, 24, 54)  # of the functions in 10-D, six with each objective


def beside(runs: Sequence[Run], other: str) -> tuple[int, int]:
    """On how many functions gesmr has the lower and the higher median gap."""
    found = medians(runs, DIM)
    return len(wins(found["gesmr"], found[other])), len(wins(found[other], found["gesmr"]))


def feasible(runs: Sequence[Run], optimizer: str) -> int:
    """Problems, functions in their instances, of which it found something feasible."""
    return sum(run.optimizer == optimizer and np.isfinite(run.gap) for run in runs)


def _shown(gap: float) -> str:
    return "solved" if gap <= SOLVED else f"{gap:.1e}"


def mixint_verdict(runs: Sequence[Run]) -> tuple[str, bool]:
    each = {name: beside([run for run in runs if run.instance in part], "DE")[0] for name, part in PARTS.items()}
    met = all(won >= REQUIRED_WINS for won in each.values())
    where = ", ".join(f"{won} (instances {name})" for name, won in each.items())
    mark = "✓" if met else "✗ missed"
    return (
        f"gesmr is better than differential evolution on so many of 24: {where}; required: {REQUIRED_WINS} {mark}.",
        met,
    )


def mixint_page(runs: Sequence[Run]) -> str:
    names, rows = list(dict.fromkeys(run.optimizer for run in runs)), []
    for name, part in PARTS.items():
        pairs = (beside([run for run in runs if run.instance in part], other) for other in names[1:])
        rows.append([name, *(f"{better} : {worse}" for better, worse in pairs)])
    found, each = medians(runs, DIM), []
    for function, title in enumerate(NAMES, 1):
        each.append([f"{function} {title}", *bold_best([found[name][function] for name in names], _shown)])
    lines = [
        mixint_verdict(runs)[0], "",
        "Functions on which gesmr has the lower : higher median of best value − optimum.", "",
        *table(["instances", *names[1:]], rows), "",
        "The median over all twenty instances; below 10⁻⁸ it is solved.", "", *table(["", *names], each), "",
        software(MIXINT.name),
    ]  # fmt: skip
    return "\n".join(lines)


def constrained_verdict(runs: Sequence[Run]) -> tuple[str, bool]:
    ours, theirs = feasible(runs, "gesmr"), feasible(runs, "DE")
    met = ours >= theirs
    problems = len({(run.function, run.instance) for run in runs})
    mark = "✓" if met else "✗ missed"
    return (
        f"Something feasible is found on {ours} of {problems} problems by gesmr and on {theirs} by differential "
        f"evolution; required: as many {mark}.",
        met,
    )


def constrained_page(runs: Sequence[Run]) -> str:
    def row(title: str, these: Sequence[Run]) -> list[str]:
        problems, (better, worse) = len({(run.function, run.instance) for run in these}), beside(these, "DE")
        return [title, *(f"{feasible(these, name)} of {problems}" for name in ("gesmr", "DE")), f"{better} : {worse}"]

    count = len(CONSTRAINTS)
    by_objective = [
        row(title, [run for run in runs if (run.function - 1) // count == at]) for at, title in enumerate(OBJECTIVES)
    ]
    by_number = [
        row(f"{number}", [run for run in runs if (run.function - 1) % count == at])
        for at, number in enumerate(CONSTRAINTS)
    ]
    headings = ["feasible: gesmr", "DE", "functions on which gesmr is better : worse"]
    lines = [
        constrained_verdict(runs)[0], "", *table(["objective", *headings], by_objective), "",
        *table(["constraints", *headings], [*by_number, row("all", runs)]), "",
        software(CONSTRAINED.name),
    ]  # fmt: skip
    return "\n".join(lines)


def choice_page(runs: Sequence[Run]) -> str:
    """Settings of gesmr beside differential evolution."""
    found, rows = medians(runs, DIM), []
    for name in [name for name in dict.fromkeys(run.optimizer for run in runs) if name != "DE"]:
        mean = np.mean([np.log10(max(run.gap, SOLVED)) for run in runs if run.optimizer == name])
        against = (found["DE"], found["gesmr"])
        pairs = (f"{len(wins(found[name], other))} : {len(wins(other, found[name]))}" for other in against)
        rows.append([name, *pairs, f"{mean:.2f}"])
    headings = ["", "better : worse than DE", "than the default", "mean log₁₀ gap"]
    return "\n".join([*table(headings, rows), "", software(CHOICE.name)])


PAGES = {
    MIXINT: (mixint_page, mixint_verdict),
    CONSTRAINED: (constrained_page, constrained_verdict),
    CHOICE: (choice_page, lambda runs: ("nothing is required of it", True)),
}


def write(path: Path, versus: Versus) -> int:
    """The tables; 1 if what is required is missed."""
    page, verdict = PAGES[versus]
    runs = read(versus.name)
    replace_table(path, versus.name, page(runs))
    line, met = verdict(runs)
    print(line)
    return 0 if met else 1
