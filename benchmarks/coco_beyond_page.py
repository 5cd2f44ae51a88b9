"""The settings that recombine, and the tables of what `coco_beyond.py` found with them: nothing is run.

python benchmarks/coco_beyond_page.py --write docs/recombination.md docs/choosing.md
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from coco_budgets_page import Found, compared, gaps
from coco_page import GROUPS, NAMES, SOLVED, bold_best, table
from coco_summary import Run, read, software
from common import has_marks, marks, replace_table
from scipy.stats import rankdata

CHOICE, CONFIRMATION, LARGE = "coco-beyond-choice", "coco-beyond", "coco-beyond-large"  # results, and marks of tables
WEAK = "coco-beyond-weak"  # likewise: is gesmr ahead on functions of weak structure, as CONFIRMATION made it seem?
MAP = "coco-beyond-map"  # the mark of a second table of CONFIRMATION
CHOICE_DIMS, LARGE_DIMS = (5, 20), (80, 160, 320)
ALL_BUDGETS = (100, 300, 1000)  # evaluations per variable
BUDGETS = dict.fromkeys(CHOICE_DIMS, ALL_BUDGETS) | dict.fromkeys(LARGE_DIMS, ALL_BUDGETS[:1])  # by dimension
AUTOMATIC = "automatic"
SIZES = {"popsize 101": 101, AUTOMATIC: None}
BETWEEN = (17, 31, 51, 71)  # further sizes, of default-X and default: from which of them on does it gain?
LEAST_CHILDREN = (
    50  # of default-X, elsewhere it is default: from the odd functions, before it was tried on the even ones
)


# Of WEAK, written down before it was run: what seemed so is confirmed in a dimension if `minimize`, as it is by
# default, has the lowest mean gap of all, on instances that no other part has, after at least two of the three budgets
WEAK_KIND = "multimodal, weak structure"
INSTANCES, FRESH_INSTANCES = range(1, 4), range(4, 14)


class Setting(NamedTuple):
    """What is chosen."""

    recombine: float  # the share of the groups that do
    group: int  # children in a group
    parents: float  # η_x
    rates: float  # η_σ
    mates: int | None = None  # from how many parents a child has its genes; None: any
    least: int = 4  # groups, however small the population

    def groups(self, num_children: int) -> int:
        """K."""
        return min(num_children, max(self.least, round(num_children / self.group)))

    def __str__(self) -> str:
        mates = "" if self.mates is None else f", mates {self.mates}"
        least = "" if self.least == 4 else f", at least {self.least}"
        sizes = f"recombine {self.recombine:g}, group {self.group}, parents {self.parents:g}, rates {self.rates:g}"
        return f"{sizes}{mates}{least}"


DEFAULT = Setting(0, 8, 0.2, 0.1)  # of `minimize`, without recombination
CENTRES = (Setting(0.4, 5, 0.5, 0.5), Setting(0.4, 8, 0.2, 0.1))
VALUES = {
    "recombine": (0, 0.2, 0.4, 0.6, 0.8, 1), "group": (5, 8, 10), "parents": (0.2, 0.5), "rates": (0.1, 0.3, 0.5),
    "mates": (None, 2),
}  # fmt: skip


def star(centre: Setting) -> list[Setting]:
    """It, and all that differ from it in one value."""
    return [centre, *(
        centre._replace(**{name: value})
        for name, values in VALUES.items() for value in values if value != getattr(centre, name)
    )]  # fmt: skip


# Between the best of the stars, which have few parents; and eight groups, of which each kind has more than two
SECOND = (
    Setting(0.4, 8, 0.2, 0.3, least=8),
    Setting(0.4, 5, 0.2, 0.3, least=8),
    Setting(0.4, 5, 0.2, 0.1, least=8),
    Setting(0.6, 5, 0.2, 0.3, least=8),
    Setting(0.8, 5, 0.2, 0.3, least=8),
    Setting(0.8, 8, 0.2, 0.3),
    Setting(1, 8, 0.2, 0.3),
    Setting(0.4, 8, 0.1, 0.3, least=8),
    Setting(0.4, 8, 0.3, 0.3, least=8),
)
SETTINGS = {str(setting): setting for setting in (*star(CENTRES[0]), *star(CENTRES[1]), *SECOND)}
CHOSEN = Setting(0.4, 8, 0.3, 0.3, least=8)  # default-X: written down before the even functions were run
TRIED = ("GESMR", *SETTINGS)  # by name: the paper's, then the settings


def sized(name: str, size: str) -> str:
    """An optimiser's name where it has a population of this size."""
    return f"{name}, {size}"


def _ranks(found: Found, names: Sequence[str], dims: Iterable[int]) -> np.ndarray:
    """The mean over dimensions and budgets, functions and instances of the rank of each."""
    each = []
    for dim in dims:
        for budget in BUDGETS[dim]:
            rows = [found[name, dim, budget] for name in names]
            values = [np.concatenate([of[function] for function in sorted(of)]) for of in rows]
            each.append(rankdata(values, axis=0).mean(1))
    return np.mean(each, axis=0)


def _beside(found: Found, first: str, second: str, dims: Iterable[int]) -> list[str]:
    """Functions and budgets with the lower : higher median gap, and how much smaller it is in the geometric mean."""
    each = [
        compared(found[first, dim, budget], found[second, dim, budget]) for dim in dims for budget in BUDGETS[dim]
    ]  # fmt: skip
    lower, higher, logs = zip(*each, strict=True)
    return [f"{sum(lower)} : {sum(higher)}", f"{10 ** np.mean(logs):.2g}"]


def choice(runs: Sequence[Run]) -> list[str]:
    """Every setting's mean rank on the odd functions at both sizes of population, and how it stands beside default."""
    found = gaps(runs)
    columns = [
        _ranks(found, [sized(name, size) for name in TRIED], dims)
        for size in SIZES for dims in ((5,), (20,))
    ]  # fmt: skip
    columns.append(np.mean(columns, axis=0))
    shown = [bold_best(column.round(1).tolist(), lambda value: f"{value:.1f}") for column in columns]
    rows = []
    for place in np.argsort(columns[-1]):
        name, setting = TRIED[place], SETTINGS.get(TRIED[place])
        what = _values(setting) if setting else ["0 (the paper's)", "√N", "0.5", "0.5", ""]
        beside = [_beside(found, sized(name, size), sized(str(DEFAULT), size), CHOICE_DIMS) for size in SIZES]
        rows.append([*what, *(column[place] for column in shown), *chain(*beside)])
    headings = ["share", "K", "η_x", "η_σ", "mates", "101: 5-D", "101: 20-D", "auto: 5-D", "auto: 20-D", "all",
                "101: beside default", "gap smaller by", "auto: beside default", "gap smaller by"]  # fmt: skip
    return table(headings, rows, 5)


def by_size(found: Found, first: str, second: str) -> list[str]:
    """Functions with the lower : higher median gap, at each size of population, dimension and budget."""
    places = [(dim, budget) for dim in CHOICE_DIMS for budget in BUDGETS[dim]]
    rows = []
    for size in (*BETWEEN, 101):
        names = [sized(name, f"popsize {size}") for name in (first, second)]
        each = [compared(*(found[name, *place] for name in names)) for place in places if (names[0], *place) in found]
        if each:
            lower, higher, logs = zip(*each, strict=True)
            cells = [f"{better} : {worse}" for better, worse, _ in each]
            rows.append([f"{size}", *cells, f"{sum(lower)} : {sum(higher)}", f"{10 ** np.mean(logs):.2g}"])
    headings = ["popsize", *(f"{dim}-D, {budget}·d" for dim, budget in places), "all", "gap smaller by"]
    return table(headings, rows, 1)


def _values(setting: Setting) -> list[str]:
    share = f"{setting.recombine:g} (default)" if setting == DEFAULT else f"{setting.recombine:g}"
    mates = "" if not setting.recombine else "any" if setting.mates is None else f"{setting.mates}"
    return [share, f"N/{setting.group}, ≥ {setting.least}", f"{setting.parents:g}", f"{setting.rates:g}", mates]


def _dims(found: Found) -> list[int]:
    """The dimensions that were run."""
    return [dim for dim in BUDGETS if any(place[1] == dim for place in found)]


def against(found: Found, first: str, second: str) -> list[str]:
    """The first beside the second at both sizes, in every dimension and for every budget."""
    rows, dims = [], _dims(found)
    for dim in dims:
        for budget in BUDGETS[dim]:
            row = [str(dim), f"{budget}·d"]
            for size in SIZES:
                pair = [found[sized(name, size), dim, budget] for name in (first, second)]
                lower, higher, log = compared(*pair)
                row += [f"{lower} : {higher}", f"{10**log:.2g}"]
            rows.append(row)
    whole = [cell for size in SIZES for cell in _beside(found, sized(first, size), sized(second, size), dims)]
    return table(["d", "budget", *(cell for size in SIZES for cell in (size, "gap smaller by"))],
                 [*rows, ["all", "", *whole]], 2)  # fmt: skip


def by_function(found: Found, first: str, second: str) -> list[str]:
    """By which factor the median gap of the first is smaller, after the largest budget of each dimension."""
    columns = [(dim, size) for dim in _dims(found) for size in SIZES]
    functions = sorted({function for each in found.values() for function in each})
    rows = []
    for function in functions:
        cells = []
        for dim, size in columns:
            ours, theirs = (
                float(np.median(found[sized(name, size), dim, max(BUDGETS[dim])][function])) for name in (first, second)
            )
            cells.append("both solved" if max(ours, theirs) <= SOLVED else f"{theirs / ours:.2g}")
        rows.append([f"{function} {NAMES[function - 1]}", *cells])
    return table(["", *(f"{dim}-D, {size}" for dim, size in columns)], rows)


def map_of(found: Found, names: Sequence[str]) -> list[str]:
    """For every kind of function, dimension and budget: how many times the gap of the best everyone's is.

    Of the median gaps over instances the geometric mean over functions.
    """
    rows = []
    for kind, functions in GROUPS.items():
        for dim, budgets in BUDGETS.items():
            for budget in budgets:
                means = [_mean_gap(found.get((name, dim, budget), {}), functions) for name in names]
                least = min((mean for mean in means if not math.isnan(mean)), default=math.nan)
                if not math.isnan(least):  # someone was run
                    cells = bold_best([mean / least for mean in means], _times)
                    rows.append([kind, str(dim), f"{budget}·d", *cells])
    return table(["functions", "d", "budget", *names], rows, 3)


def _mean_gap(each: dict[int, np.ndarray], functions: Iterable[int]) -> float:
    logs = [math.log(float(np.median(each[function]))) for function in functions if function in each]
    return math.exp(np.mean(logs)) if logs else math.nan


def _times(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"{ratio:.2g}" if ratio < 1000 else f"{ratio:.0e}"


_SIZES = "With populations of other sizes, functions on which default-X has the lower : higher median gap than default:"


def _page_of_choice() -> str:
    runs = read(CHOICE)
    sizes = by_size(gaps(runs), "default-X", "default")
    return "\n".join([*choice(runs), "", _SIZES, "", *sizes, "", software(CHOICE)])


def _page_of_confirmation() -> str:
    found = gaps(run for run in read(CONFIRMATION) if run.function % 2 == 0)
    lines = [
        "Even functions on which default-X has the lower : higher median gap than the default, and by which factor its "
        "gap is smaller in the geometric mean.", "", *against(found, "default-X", "default"), "",
        "By which factor its median gap is smaller, function by function, after the largest budget.", "",
        *by_function(found, "default-X", "default"), "",
        _SIZES, "", *by_size(found, "default-X", "default"), "",
        software(CONFIRMATION),
    ]  # fmt: skip
    return "\n".join(lines)


def _page_of_map() -> str:
    runs = [run for run in read(CONFIRMATION) if run.function % 2 == 0 and not is_between(run.optimizer)]
    names = list(dict.fromkeys(run.optimizer for run in runs))
    return "\n".join([*map_of(gaps(runs), names), "", software(CONFIRMATION)])


def is_between(optimizer: str) -> bool:
    """Whether its size of population is one that only default-X and default were run with."""
    return optimizer.endswith(tuple(f"popsize {size}" for size in BETWEEN))


def _page_of_weak() -> str:
    runs = read(WEAK)
    found, names, first = gaps(runs), list(dict.fromkeys(run.optimizer for run in runs)), sized("gesmr", AUTOMATIC)
    others = [name for name in names if name != first]
    ahead = "Functions on which gesmr, as it is by default, has the lower : higher median gap than each of the others:"
    return "\n".join([*map_of(found, names), "", ahead, "", *_ahead(found, first, others), "", software(WEAK)])


def _ahead(found: Found, first: str, others: Sequence[str]) -> list[str]:
    rows = []
    for dim in _dims(found):
        for budget in BUDGETS[dim]:
            each = [compared(found[first, dim, budget], found[other, dim, budget]) for other in others]
            rows.append([str(dim), f"{budget}·d", *(f"{lower} : {higher}" for lower, higher, _ in each)])
    return table(["d", "budget", *others], rows, 2)


PAGES: dict[str, Callable[[], str]] = {
    CHOICE: _page_of_choice,
    CONFIRMATION: _page_of_confirmation,
    MAP: _page_of_map,
    WEAK: _page_of_weak,
}
TABLES = {
    CHOICE: (CHOICE,),
    CONFIRMATION: (CONFIRMATION, MAP),
    WEAK: (WEAK,),
    LARGE: (),
}  # of which results; these are in the map alone


def check_writable(parser: argparse.ArgumentParser, paths: Iterable[Path]) -> None:
    for path in paths:
        if not any(has_marks(path, name) for name in PAGES):
            names = " or ".join(marks(name)[0] for name in PAGES)
            parser.error(f"--write needs files with {names} and where its table ends, got {path}")


def write(paths: Iterable[Path], names: Iterable[str] = tuple(PAGES)) -> None:
    """All of the tables that the files have marks for."""
    for path in paths:
        for name in names:
            if has_marks(path, name):
                replace_table(path, name, PAGES[name]())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, nargs="+", required=True, metavar="FILE", help="replace the tables in it")
    args = parser.parse_args()
    check_writable(parser, args.write)
    sys.exit(write(args.write))
