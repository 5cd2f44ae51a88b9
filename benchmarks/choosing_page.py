"""Which optimiser for which problem, and what recombination gains: tables of the pages, from results/; nothing is run.

python benchmarks/choosing_page.py --write docs/choosing.md docs/recombination.md
"""

import argparse
import csv
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from coco_beyond_page import CONFIRMATION, LARGE, is_between
from coco_budgets_page import gaps
from coco_page import GROUPS, bold_best, table
from coco_summary import directory, read
from coco_versus_page import CONSTRAINED, MIXINT, beside, feasible
from common import has_marks, marks, replace_table

from gesmr.controllers import PAPER_NAMES
from gesmr.lab.run.lanes import ORACLES
from gesmr.lab.studies.beyond.budget import evaluations_of
from gesmr.lab.studies.beyond.methods import DEFAULT, DEFAULT_X, X
from gesmr.lab.studies.beyond.runs import OTHERS
from gesmr.lab.studies.functions.runs import GENERATIONS

BEYOND, CHOICE = "beyond", "beyond-choice"
FAR = "beyond-1000"  # more seeds of some methods in 1,000 dimensions, which stand for those of BEYOND
MORE = "beyond-more"  # what was run later: other dimensions and functions
TURNED = "beyond-turned"  # and turned functions of 1,000 variables
NETS = "beyond-networks"  # and images and control, with other algorithms
KINDS = {
    "smooth": ("sphere",),
    "a narrow valley": ("rosenbrock",),
    "ill-conditioned": ("ellipsoid", "cigar", "discus"),
    "rugged": ("ackley", "griewank", "rastrigin"),
}
OURS = (X, DEFAULT_X, DEFAULT, "GESMR")
IMAGES_GENES = 2_140  # of the network for images
NOT_RUN, NOT_THERE = "–", "Not run yet."
Means = Mapping[str, float]  # by method, the geometric mean of what is to be low


class Final(NamedTuple):
    """A row of the study `beyond` and a method: what is in results/beyond/beyond_final.csv."""

    function: str
    dim: int
    turned: bool
    std: float
    main: bool
    method: str
    median: float
    seeds: int
    results: str = BEYOND  # where they are


Rows = dict[tuple[str, int, bool, float], dict[str, Final]]  # by function, dimension, turned, std; then by method


def finals() -> list[Final]:
    """Of every method on every row those with the most seeds."""
    found: dict[tuple, Final] = {}
    for each in (each for name in (BEYOND, FAR, MORE, TURNED) for each in _finals_of(name)):
        of = each.function, each.dim, each.turned, each.std, each.method
        found[of] = max(found.get(of, each), each, key=lambda each: each.seeds)
    return list(found.values())


def _finals_of(name: str) -> list[Final]:
    return [_final(line)._replace(results=name) for line in _lines(name, "beyond_final.csv")]


def _final(line: dict[str, str]) -> Final:
    return Final(
        line["function"], int(line["dim"]), line["turned"] == "1", float(line["std"]), line["main"] == "1",
        line["method"], float(line["median"]), int(line["seeds"]),
    )  # fmt: skip


def _lines(name: str, file: str) -> list[dict[str, str]]:
    path = directory(name) / file
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def algorithm(method: str) -> str:
    """Without the size of its population."""
    return re.sub(r", (own N|automatic|popsize \d+)$", "", method)


def at_the_better_size(means: Means) -> dict[str, float]:
    """By algorithm; of two sizes of population the one that ends lower."""
    found: dict[str, float] = {}
    for method, mean in means.items():
        found[algorithm(method)] = min(mean, found.get(algorithm(method), math.inf))
    return found


class Place(NamedTuple):
    """A line of the map: a kind of problem, and how high everyone ended."""

    kind: str
    dim: str
    evaluations: str
    means: Means
    source: str

    @property
    def times(self) -> dict[str, float]:
        """How many times as high as the best everyone ended, the best first."""
        means = at_the_better_size(self.means)
        return {name: means[name] / min(means.values()) for name in sorted(means, key=lambda name: means[name])}

    @property
    def best(self) -> list[str]:
        """More than one if they are equal, as where several are as low as can be told."""
        return [name for name, ratio in self.times.items() if ratio == 1]

    def cells(self) -> list[str]:
        ratio = self.times
        others = [name for name in ratio if name not in self.best]
        beside = f"{others[0]}, {times(ratio[others[0]])}" if others else NOT_RUN
        ours = [times(ratio[name]) if name in ratio else NOT_RUN for name in OURS]
        return [self.kind, self.dim, self.evaluations, f"**{', '.join(self.best)}**", beside, *ours, self.source]


def times(ratio: float) -> str:
    return f"{float(f'{ratio:.2g}'):g}" if ratio < 1000 else f"{ratio:.0e}".replace("e+0", "e")


def _geometric_mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def by_kind(found: Sequence[Final]) -> list[Place]:
    """Of the study `beyond`: those that have every row of a kind which GESMR-X has, where others than GAs have them."""
    places = []
    for kind, functions in KINDS.items():
        for dim, turned in sorted({(each.dim, each.turned) for each in found if each.function in functions}):
            by_method: dict[str, dict[tuple[str, float], float]] = {}
            here = [each for each in found if each.function in functions and (each.dim, each.turned) == (dim, turned)]
            for each in here:
                by_method.setdefault(each.method, {})[each.function, each.std] = each.median
            rows = by_method.get(X, {}).keys()
            means = {
                method: _geometric_mean(medians[row] for row in rows)
                for method, medians in by_method.items()
                if rows and medians.keys() >= rows and method not in ORACLES
            }
            if any(algorithm(method) in OTHERS for method in means):
                places.append(
                    Place(
                        kind,
                        f"{dim}{', turned' * turned}",
                        f"{evaluations_of(GENERATIONS[dim]):,}",
                        means,
                        _link(next((each.results for each in here if each.method == X), BEYOND), "beyond"),
                    )
                )
    return places


def _link(name: str, text: str) -> str:
    return f"[{text}](../results/{name})"


def of_coco() -> list[Place]:
    """Of `bbob` and `bbob-largescale`: the even functions, on which nothing was chosen, at two sizes at most."""
    there = [name for name in (CONFIRMATION, LARGE) if directory(name).is_dir()]
    runs = (run for name in there for run in read(name))
    found, places = gaps(run for run in runs if run.function % 2 == 0 and not is_between(run.optimizer)), []
    for kind, functions in GROUPS.items():
        for dim, budget in sorted({(dim, budget) for _, dim, budget in found}):
            means = {
                name: _geometric_mean(float(np.median(each[function])) for function in functions if function in each)
                for (name, d, b), each in found.items()
                if (d, b) == (dim, budget) and any(function in each for function in functions)
            }
            if means:
                source = _link(CONFIRMATION, "bbob") if dim <= 40 else _link(LARGE, "bbob-largescale")
                places.append(Place(f"bbob: {kind}", str(dim), f"{budget}·d", means, source))
    return places


def of_mixed() -> list[Place]:
    """Of `bbob-mixint`, all functions."""
    found = gaps(read(MIXINT.name))
    return [
        Place(
            "mixed: eight of ten variables are integers", str(dim), f"{budget}·d",
            {DEFAULT if name == "gesmr" else name: _geometric_mean(float(np.median(of)) for of in each.values())
             for (name, d, b), each in found.items() if (d, b) == (dim, budget)},
            _link(MIXINT.name, "bbob-mixint"),
        )
        for dim, budget in sorted({(dim, budget) for _, dim, budget in found})
    ]  # fmt: skip


def of_constrained() -> list[str]:
    """Of `bbob-constrained`: what is feasible counts before what is low."""
    runs = read(CONSTRAINED.name)
    (better, worse), problems = beside(runs, "DE"), sum(run.optimizer == "gesmr" for run in runs)
    ours, theirs = (f"{feasible(runs, name)} of {problems}" for name in ("gesmr", "DE"))
    said = f"DE, feasible on {theirs}, lower on {worse} functions"
    mine = f"feasible on {ours}, lower on {better}"
    dims = ", ".join(map(str, sorted({run.dim for run in runs})))
    source = _link(CONSTRAINED.name, "bbob-constrained")
    return [
        "constrained",
        dims,
        f"{CONSTRAINED.budget}·d",
        f"**{DEFAULT}**",
        said,
        NOT_RUN,
        NOT_RUN,
        mine,
        NOT_RUN,
        source,
    ]


def of_images() -> list[Place]:
    """Networks on images: those where others than GAs have been run too, by the loss in training."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for line in _of_networks("beyond_images.csv"):
        place = line["Set"], line["images"], line["T"]
        found.setdefault(place, {})[line["method"]] = float(line["training loss"])
    return [
        Place(
            f"networks: {name}, {images} images", str(IMAGES_GENES), f"{evaluations_of(int(generations)):,}", means,
            _link(NETS, "beyond"),
        )
        for (name, images, generations), means in found.items()
        if any(algorithm(method) in OTHERS for method in means)
    ]  # fmt: skip


class Mean(NamedTuple):
    """A mean return, and its standard error."""

    value: float
    error: float

    def like(self, other: "Mean") -> bool:
        """Whether they are within two standard errors of their difference."""
        return abs(self.value - other.value) <= 2 * math.hypot(self.error, other.error)


def of_control() -> list[list[str]]:
    """Policies: returns on episodes on which they did not evolve; higher is better, so that no ratio says how far."""
    found: dict[tuple[str, str], dict[str, Mean]] = {}
    for line in _of_networks("beyond_control.csv"):
        place = found.setdefault((line["Task"], line["T"]), {})
        name, mean = algorithm(line["method"]), Mean(float(line["held-out return"]), float(line["± s.e. of it"]))
        place[name] = max(mean, place.get(name, mean))
    rows = []
    for (task, generations), returns in found.items():
        if X in returns and any(name in OTHERS for name in returns):
            first, *others = sorted(returns, key=lambda name: -returns[name].value)
            like = sum(returns[first].like(returns[name]) for name in others)
            ours = [f"{returns[name].value:.3g}" if name in returns else NOT_RUN for name in OURS]
            beside = f"{like} of {len(others)} others within two standard errors"
            evaluations = f"{evaluations_of(int(generations)):,}"
            best = f"{first}, {returns[first].value:.3g}"
            rows.append([f"control: {task}, return", NOT_RUN, evaluations, best, beside, *ours, _link(NETS, "beyond")])
    return rows


def _of_networks(file: str) -> list[dict[str, str]]:
    """Lines of the study `beyond`: of the same task and method those that were run later."""
    found: dict[tuple, dict[str, str]] = {}
    for line in [*_lines(NETS, file), *_lines(BEYOND, file)]:
        found.setdefault(tuple(line.get(name) for name in ("Set", "images", "Task", "T", "method")), line)
    return list(found.values())


HEADINGS = ("problem", "d", "evaluations", "best", "next, times the best", *OURS, "source")


def places() -> list[Place]:
    return [*by_kind(finals()), *of_images(), *of_coco(), *of_mixed()]


def the_map() -> str:
    return "\n".join(table(HEADINGS, [*(place.cells() for place in places()), *of_control(), of_constrained()], 5))


def winners(found: Sequence[Place]) -> list[str]:
    """For every kind of problem: in how many places each is the best, and how far from it those of this project are."""
    rows = []
    for kind in dict.fromkeys(place.kind for place in found):
        these = [place for place in found if place.kind == kind]
        best = Counter(name for place in these for name in place.best).most_common()
        ours = [[place.times[name] for place in these if name in place.times] for name in OURS]
        rows.append([kind, str(len(these)), ", ".join(f"{name} {count}" for name, count in best), *map(_spread, ours)])
    return table(("problem", "places", "best in so many of them", *OURS), rows, 3)


def _spread(ratios: Sequence[float]) -> str:
    """The median, and from where to where."""
    if not ratios:
        return NOT_RUN
    return f"{times(float(np.median(ratios)))} ({times(min(ratios))} to {times(max(ratios))})"


def of_study(name: str, file: str) -> str:
    """A table of a study, its numbers with three digits."""
    return _shown(_lines(name, file))


def _shown(lines: Sequence[dict[str, str]]) -> str:
    if not lines:
        return NOT_THERE
    return "\n".join(table(list(lines[0]), [[three_digits(cell) for cell in line.values()] for line in lines]))


def three_digits(cell: str) -> str:
    return f"{float(cell):.3g}" if re.fullmatch(r"-?\d+\.\d+(e[-+]\d+)?|\d+e[-+]\d+", cell) else cell


def claims() -> str:
    path = directory(BEYOND) / "claims.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    rows = [[str(c["number"]), c["claim"], c["rule"], c["found"], f"**{c['verdict']}**"] for c in found]
    return "\n".join(table(("#", "we say", "rule", "found", ""), rows, 5)) if rows else NOT_THERE


def _by_row(found: Iterable[Final]) -> Rows:
    rows: Rows = {}
    for each in found:
        rows.setdefault((each.function, each.dim, each.turned, each.std), {})[each.method] = each
    return rows


def _main_rows() -> Rows:
    """The fifty rows of the claims."""
    return _by_row(each for each in finals() if each.main)


def lower_in() -> str:
    """In how many of the rows the median of GESMR-X is the lower one, and on how many seeds that rests."""
    rows = list(_main_rows().values())
    against = {"all of the paper's but oracles": [*PAPER_NAMES]} | {name: [name] for name in [*PAPER_NAMES, "LAMR-100"]}
    lines = []
    for said, methods in against.items():
        lower = [all(row[X].median < row[method].median for method in methods) for row in rows]
        far = [won for won, row in zip(lower, rows, strict=True) if row[X].dim == 1000]
        seeds = min(row[method].seeds for row in rows for method in (X, *methods))
        lines.append([said, f"{sum(lower)} of {len(lower)}", f"{sum(far)} of {len(far)}", str(seeds)])
    return (
        "\n".join(table([f"{X} lower than", "all rows", "d = 1000", "seeds, at least"], lines)) if rows else NOT_THERE
    )


OTHER_ALGORITHMS = [name for other in OTHERS for name in (other, f"{other}, own N")]  # of equal ones the first is named


def row_by_row(rows: Rows, columns: Mapping[str, Sequence[str]]) -> str:
    """The lowest median of the methods of each column, which is named if it is one of several; the lowest in bold."""
    lines = []
    for (function, dim, turned, std), found in rows.items():
        medians = {method: each.median for method, each in found.items()}
        best = [
            min((m for m in group if m in medians), key=lambda m: medians[m], default=None)
            for group in columns.values()
        ]
        values = [math.nan if method is None else medians[method] for method in best]
        oracle = [name.endswith("†") for name in columns]
        cells = bold_best(
            [math.nan if out else value for out, value in zip(oracle, values, strict=True)], "{:.2g}".format
        )
        named = [
            NOT_RUN if method is None else f"{value:.2g}" if out else f"{cell} ({method})" if len(group) > 1 else cell
            for method, value, out, cell, group in zip(best, values, oracle, cells, columns.values(), strict=True)
        ]
        lines.append([function.capitalize(), f"{dim}{', turned' * turned}", f"{std:g}", *named])
    return "\n".join(table(["", "d", "std", *columns], lines)) if lines else NOT_THERE


PAPERS_OTHERS = [m for m in PAPER_NAMES if m != "GESMR"]
MAIN_COLUMNS = {
    X: [X], "GESMR": ["GESMR"], "best of the paper's others": PAPERS_OTHERS, "LAMR-100†": ["LAMR-100"],
    "best other algorithm": OTHER_ALGORITHMS,
}  # fmt: skip
MORE_COLUMNS = {
    X: [X], DEFAULT_X: [DEFAULT_X], DEFAULT: [DEFAULT], "GESMR": ["GESMR"],
    "best of the paper's others": PAPERS_OTHERS, "best other algorithm": OTHER_ALGORITHMS,
}  # fmt: skip


def _later_rows() -> Rows:
    return _by_row(each for name in (MORE, TURNED) for each in _finals_of(name) if not each.main)


PAGES: dict[str, Callable[[], str]] = {
    "choosing-map": the_map,
    "choosing-winners": lambda: "\n".join(winners(places())),
    "beyond-claims": claims,
    "beyond-lower": lower_in,
    "beyond-rows": lambda: row_by_row(_main_rows(), MAIN_COLUMNS),
    "beyond-more": lambda: row_by_row(_later_rows(), MORE_COLUMNS),
    "beyond-choice": partial(of_study, CHOICE, "beyond_choice.csv"),
    "beyond-counts": partial(of_study, BEYOND, "beyond_counts.csv"),
    "beyond-counts-default": partial(of_study, BEYOND, f"beyond_counts_{DEFAULT_X}.csv"),
    "beyond-images": lambda: _shown(_of_networks("beyond_images.csv")),
    "beyond-control": lambda: _shown(_of_networks("beyond_control.csv")),
}


def write(paths: Iterable[Path]) -> None:
    for path in paths:
        for name, made in PAGES.items():
            if has_marks(path, name):
                replace_table(path, name, made())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, nargs="+", required=True, metavar="FILE", help="replace the tables in it")
    args = parser.parse_args()
    for path in args.write:
        if not any(has_marks(path, name) for name in PAGES):
            parser.error(f"--write needs files with {' or '.join(marks(name)[0] for name in PAGES)}, got {path}")
    sys.exit(write(args.write))
