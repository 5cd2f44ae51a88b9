"""The rule for the population size, and the tables of what `coco_budgets.py` found: nothing is run.

python benchmarks/coco_budgets_page.py --write docs/budgets.md
"""

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from coco_page import SOLVED, bold_best, table
from coco_summary import Run, read, software
from common import has_marks, marks, replace_table
from scipy.stats import rankdata

NAME = "coco-budgets"
BUDGETS = (50, 200, 1000)  # evaluations per variable
DIMS = (2, 3, 5, 10, 20, 40)
SIZES = (6, 9, 13, 21, 31, 51, 101, 201)
TWO_GROUPS = (9, 13, 21)  # sizes that were also tried with two groups of rates
Gaps = dict[int, np.ndarray]  # by function, of all instances
Found = dict[tuple[str, int, int], Gaps]  # by optimiser, dimension and budget


def popsize(maxfun: int) -> int:
    """The rule: half the root of the budget. Chosen on the odd functions, with at least four groups of rates."""
    return min(max(round(maxfun**0.5 / 2), 9), 101, maxfun)


def gaps(runs: Iterable[Run]) -> Found:
    found: dict[tuple[str, int, int], dict[int, list[float]]] = {}
    for run in runs:
        each = found.setdefault((run.optimizer, run.dim, run.budget), {})
        each.setdefault(run.function, []).append(max(run.gap, SOLVED))
    return {key: {function: np.array(of) for function, of in each.items()} for key, each in found.items()}


def ranks(found: Found, dim: int, budget: int) -> dict[str, float]:
    """The mean over functions and instances of the rank of every size, and of the rule, among all that were run."""
    names = [*(f"popsize {size}" for size in SIZES), "rule"]
    each = {name: found[name, dim, budget] for name in names if (name, dim, budget) in found}
    rows = {name: np.concatenate([of[function] for function in sorted(of)]) for name, of in each.items()}
    return dict(zip(rows, rankdata([*rows.values()], axis=0).mean(1).tolist(), strict=True))


def by_size(found: Found) -> list[str]:
    rows = []
    for dim in DIMS:
        for budget in BUDGETS:
            rank = ranks(found, dim, budget)
            sizes = [
                rank.get(f"popsize {size}", math.nan) if size <= budget * dim else math.nan for size in SIZES
            ]  # one that is larger than the budget cannot be had
            cells = bold_best(sizes, lambda value: "" if math.isnan(value) else f"{value:.1f}")
            rows.append([str(dim), f"{budget}·d", *cells, str(popsize(budget * dim)), f"{rank['rule']:.1f}"])
    return table(["d", "budget", *map(str, SIZES), "the rule's size", "its rank"], rows, 2)


def by_budget(found: Found) -> list[str]:
    """The same, the mean over dimensions, of the sizes that ran in all of them."""
    names, rows = [*(f"popsize {size}" for size in SIZES[1:]), "rule"], []
    for budget in BUDGETS:
        cells = [ranks(found, dim, budget) for dim in DIMS]
        means = [float(np.mean([cell[name] for cell in cells])) for name in names]
        rows.append([f"{budget}·d", *bold_best(means, lambda value: f"{value:.2f}")])
    return table(["budget", *map(str, SIZES[1:]), "the rule"], rows)


def compared(first: Gaps, second: Gaps) -> tuple[int, int, float]:
    """Functions with the lower and with the higher median, and how much lower the gap is in the geometric mean."""
    pairs = [(np.median(first[function]), np.median(second[function])) for function in first]
    lower, higher = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
    logs = [np.mean(np.log10(second[function]) - np.log10(first[function])) for function in first]
    return lower, higher, float(np.mean(logs))


def _cells(lower: int, higher: int, log: float) -> list[str]:
    return [f"{lower} : {higher}", f"{10**log:.2g}"] if math.isfinite(log) else ["", ""]


def _rows(found: Found, pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Of every dimension and budget, the first of each pair beside the second; and of all together."""
    rows, whole = [], [[] for _ in pairs]
    for dim in DIMS:
        for budget in BUDGETS:
            row = [str(dim), f"{budget}·d"]
            for (first, second), each in zip(pairs, whole, strict=True):
                outcome = compared(found[first, dim, budget], found[second, dim, budget])
                row += _cells(*outcome)
                if math.isfinite(outcome[2]):
                    each.append(outcome)
            rows.append(row)
    last = ["all", ""]
    for each in whole:
        lower, higher, logs = zip(*each, strict=True)
        last += _cells(sum(lower), sum(higher), float(np.mean(logs)))
    return [*rows, last]


def beside_others(found: Found) -> list[str]:
    headings = ["d", "budget", "101", "gap smaller by", "DE", "gap smaller by"]
    return table(headings, _rows(found, [("rule", "popsize 101"), ("rule", "DE")]), 2)


def beside_two_groups(found: Found) -> list[str]:
    sizes = [f"popsize {size}" for size in TWO_GROUPS]
    headings = ["d", "budget", *(cell for size in TWO_GROUPS for cell in (f"popsize={size}", "gap smaller by"))]
    return table(headings, _rows(found, [(size, f"{size}, 2 groups") for size in sizes]), 2)


def verdict(found: Found) -> str:
    """Whether the even functions confirm what was chosen on the odd ones."""
    cells = [ranks(found, dim, budget) for dim in DIMS for budget in BUDGETS]
    mean = {name: np.mean([cell.get(name, math.nan) for cell in cells]) for name in cells[0]}
    rule, fixed = mean.pop("rule"), {name: value for name, value in mean.items() if not math.isnan(value)}
    best = min(fixed, key=lambda name: fixed[name])
    today, others = mean["popsize 101"], sum(value < rule for value in fixed.values())
    ahead = "better than that of every fixed size" if not others else f"worse than that of {others} fixed sizes"
    return (
        f"On the even functions, over all dimensions and budgets, the rule has a mean rank of {rule:.2f} of 9, {ahead} "
        f"(the best is {best.removeprefix('popsize ')} with {fixed[best]:.2f}; 101 has {today:.2f})."
    )


def page(runs: Sequence[Run]) -> str:
    odd, even = (gaps(run for run in runs if run.function % 2 == left) for left in (1, 0))
    lines = [
        verdict(even), "", *by_budget(even), "",
        "### The odd functions, on which it was chosen", "",
        "Mean rank, 1 to 9, of best value − optimum among all sizes and the rule; the best size in bold. A size larger "
        "than the budget has none.", "", *by_size(odd), "",
        "### The even functions, which confirm it or not", "", *by_size(even), "",
        "### Beside 101 members, and beside scipy's differential evolution", "",
        "Even functions on which the rule has the lower : higher median gap, and by which factor its gap is smaller in "
        "the geometric mean.", "", *beside_others(even), "",
        "### Four groups of rates, not two", "",
        "Even functions on which four groups have the lower : higher median gap than two.", "",
        *beside_two_groups(even), "",
        software(NAME),
    ]  # fmt: skip
    return "\n".join(lines)


def write(path: Path) -> None:
    runs = read(NAME)
    replace_table(path, NAME, page(runs))
    print(verdict(gaps(run for run in runs if run.function % 2 == 0)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, required=True, metavar="FILE", help="replace the tables in it")
    args = parser.parse_args()
    if not has_marks(args.write, NAME):
        parser.error(f"--write needs a file with {' and '.join(marks(NAME))}, got {args.write}")
    sys.exit(write(args.write))
