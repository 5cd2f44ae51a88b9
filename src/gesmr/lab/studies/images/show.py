"""What the study `images` shows: curves of loss, rate and held-out accuracy, who is ahead, and what starts change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from scipy.stats import kendalltau, rankdata, ttest_ind

from ....problems.networks import INITIALISATIONS, PIXELS, STD, UNIFORM, UNIT
from ...errors import LabError
from ...run.lanes import METHODS, ORACLES, STEP
from ...run.store import StoredJob
from ...show import stats
from ...show.claims import Claim, Verdict, shortfall
from ...show.figures import PAGE_WIDTH, draw, legend, log_y, over_seeds, settled
from ...show.simple import SimpleTable, StudyView
from ..functions.runs import kept_generations
from .runs import AUTHORS, GENERATIONS, OURS, PAPER_IMAGES, REVISION, SEEDS, SETS

RANKED = tuple(method for method in METHODS if method not in ORACLES)
_BUT_15MR = tuple(method for method in RANKED if method not in ("GESMR", "15MR"))
_SETTINGS = {AUTHORS: "in the authors' setting", OURS: "in our setting"}
_NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}
_STARTS = dict(zip(INITIALISATIONS, (("#d55e00", "o"), ("#0072b2", "s"), ("#009e73", "^")), strict=True))


class Row(NamedTuple):
    """What methods are compared on."""

    dataset: str
    images: int
    init: str
    generations: int
    pixels: str = UNIT

    @property
    def setting(self) -> tuple[str, str]:
        return self.init, self.pixels

    @property
    def label(self) -> str:
        how = [_SETTINGS[AUTHORS]] if self.setting == AUTHORS else [how for how in self.setting if how not in OURS]
        return ", ".join((_NAMES.get(self.dataset, self.dataset), f"{self.images:,} images", *how))


@dataclass(frozen=True)
class Runs:
    """Of a method, on the seeds that all methods of the row have."""

    final: np.ndarray  # f[S]  training loss at the end
    elite: np.ndarray  # f[S, P]  training loss at the generations that are kept
    log_rate: np.ndarray  # f[S, P]
    test_loss: np.ndarray  # f[S, K]  of the best network after every step
    test_accuracy: np.ndarray  # f[S, K]


Results = Mapping[Row, Mapping[str, Runs]]


def load(groups: Sequence[StoredJob]) -> Results:
    found: dict[Row, dict[str, dict[int, list[np.ndarray]]]] = {}
    names = Runs.__dataclass_fields__
    for group in groups:
        for i, spec in enumerate(group.specs):
            if spec["kind"] == "images" and spec["revision"] == REVISION and spec["dataset"] in SETS:
                row = Row(**{name: spec[name] for name in Row._fields if name in spec})
                runs = found.setdefault(row, {}).setdefault(spec["method"], {})
                runs[spec["seed"]] = [group.arrays[name][i] for name in names]
    results = {}
    for row in sorted(found, key=_order):
        seeds = sorted(set.intersection(*map(set, found[row].values())))
        if seeds:
            results[row] = {
                method: Runs(*(np.stack(values) for values in zip(*(by_seed[s] for s in seeds), strict=True)))
                for method in METHODS
                if (by_seed := found[row].get(method))
            }
    if not results:
        raise LabError("no set has runs of the same seeds for every method; run the study again")
    return results


def _order(row: Row) -> tuple:
    place = list(INITIALISATIONS).index(row.init), -row.images, SETS.index(row.dataset), -row.generations
    return row.setting != AUTHORS, row.pixels != UNIT, *place


def decide(results: Results) -> list[Claim]:
    rows = {setting: _decisive(results, setting) for setting in _SETTINGS}
    there = [chosen for chosen in rows.values() if chosen]
    holds, short, found = None, "", "the runs this needs are not all there"
    if there:
        holds = _holds(results, there[0])
        short = shortfall(images=(min(row.images for row in there[0]), PAPER_IMAGES))
        missing = [f"{_SETTINGS[how].capitalize()}, not all runs are there" for how in _SETTINGS if not rows[how]]
        found = ". ".join([_said(results, chosen) for chosen in there] + missing)
    return [
        Claim(
            11,
            "On MNIST and Fashion-MNIST GESMR is ahead of all methods but 15MR, and 15MR is ahead of GESMR",
            "on both sets, by mean training loss at the end, (a) GESMR is below every other method that is no oracle, "
            "15MR left out, and (b) 15MR is below GESMR; in the authors' setting (standardised pixels, first weights "
            "N(0, 0.1²)) if all these runs are there, else in ours; on the most training images for which all "
            f"these methods have {GENERATIONS:,} generations and at least {SEEDS} seeds",
            found,
            Verdict.of(holds),
            short,
        )
    ]


def _decisive(results: Results, setting: tuple[str, str]) -> list[Row]:
    """The rows that decide the claim for each set: of those that have all it needs, the one with the most images."""
    usable = [
        row
        for row, runs in results.items()
        if (row.setting, row.generations) == (setting, GENERATIONS)
        and set(RANKED) <= set(runs)
        and len(runs["GESMR"].final) >= SEEDS
    ]
    of_sets = [[row for row in usable if row.dataset == name] for name in SETS]
    return [max(rows, key=lambda row: row.images) for rows in of_sets] if all(of_sets) else []


def _halves(runs: Mapping[str, Runs]) -> tuple[bool, bool]:
    """Whether GESMR is ahead of all but 15MR, and 15MR ahead of GESMR; equal is not ahead."""
    placed = _placed(runs)
    behind = [not placed[method] <= placed["GESMR"] for method in _BUT_15MR]  # NaN is behind
    return bool(np.isfinite(placed["GESMR"])) and all(behind), placed["15MR"] < placed["GESMR"]


def _holds(results: Results, rows: Sequence[Row]) -> bool:
    return all(all(_halves(results[row])) for row in rows)


def _said(results: Results, rows: Sequence[Row]) -> str:
    """What was found in a setting, set by set."""
    sets = "; ".join(_numbers(row, results[row]) for row in rows)
    return f"{_SETTINGS[rows[0].setting].capitalize()}, it {Verdict.of(_holds(results, rows))}: {sets}"


def _numbers(row: Row, runs: Mapping[str, Runs]) -> str:
    """The halves; mean losses; how far GESMR is from the next method and from 15MR; what it cannot be told from."""
    placed, mine = _placed(runs), runs["GESMR"].final
    halves = ", ".join(f"({name}) {'yes' if half else 'no'}" for name, half in zip("ab", _halves(runs), strict=True))
    means = ", ".join(f"{method} {loss:.3f}" for method, loss in placed.items())
    following = next(method for method in placed if method in _BUT_15MR)
    differences = ", ".join(f"GESMR − {m} {_difference(mine, runs[m].final)}" for m in (following, "15MR"))
    alike = [m for m in placed if m != "GESMR" and not stats.welch(mine, runs[m].final) < stats.LEVEL]
    name = f"{_NAMES[row.dataset]}, {row.images:,} images"
    return f"{name}: {halves}; {means}; {differences}; no significant difference from {', '.join(alike) or 'none'}"


def _difference(x: np.ndarray, y: np.ndarray) -> str:
    """Of two means, with Welch's 95% interval."""
    test: Any = ttest_ind(x, y, equal_var=False)
    low, high = test.confidence_interval()
    return f"{x.mean() - y.mean():+.3f} ({low:+.3f} to {high:+.3f})"


def _placed(runs: Mapping[str, Runs]) -> dict[str, float]:
    """Mean losses at the end of the methods that are no oracles, the lowest first; NaN last."""
    means = {method: float(runs[method].final.mean()) for method in RANKED if method in runs}
    return dict(sorted(means.items(), key=lambda item: (np.isnan(item[1]), item[1])))


def make_tables(results: Results) -> list[SimpleTable]:
    return [_final_table(results), *(table for table in [_starts_table(results)] if table.rows)]


def _final_table(results: Results) -> SimpleTable:
    lines = []
    for row, runs in results.items():
        places = list(_placed(runs))
        for method, run in runs.items():
            seeds = len(run.final)
            p = stats.welch(run.final, runs["GESMR"].final) if "GESMR" in runs and method != "GESMR" else np.nan
            error = float(stats.standard_error(run.final))
            lines.append(
                (
                    _NAMES[row.dataset],
                    row.images,
                    row.pixels,
                    row.init,
                    row.generations,
                    f"{method}†" if method in ORACLES else method,
                    seeds,
                    places.index(method) + 1 if method in places else None,
                    float(run.final.mean()),
                    _or_none(error),
                    float(run.test_loss[:, -1].mean()),
                    100 * float(run.test_accuracy[:, -1].mean()),
                    float(np.exp(run.log_rate[:, -1].astype(np.float64).mean())),
                    _or_none(float(p)),
                )
            )
    columns = ("Set", "images", "pixels", "start", "T", "method", "seeds", "place", "training loss", "± s.e.",
               "test loss", "test accuracy %", "rate at the end", "p (GESMR)")  # fmt: skip
    note = (
        "Cross-entropy of the best network at the end, on the run's training images and on all test images, means over "
        "seeds. Place: by mean training loss, without oracles (†). Rate: geometric mean over seeds. p: Welch's test of "
        f"training losses against GESMR's. {'; '.join(f'{name}: {text}' for name, text in PIXELS.items())}; with the "
        f"start {AUTHORS[0]} the latter is the authors' setting, who had 5,000 images."
    )
    return SimpleTable("images_final", "Losses, accuracies and places", columns, tuple(lines), note)


def _starts_table(results: Results) -> SimpleTable:
    """Places of the methods for each initialisation, where several have run."""
    lines = []
    for row, runs in results.items():
        usual = results.get(row._replace(init=UNIFORM))
        if usual is None or not any(row._replace(init=how) in results for how in INITIALISATIONS if how != UNIFORM):
            continue
        places = {method: place + 1 for place, method in enumerate(_placed(runs))}
        shared = [method for method in places if method in usual]
        test: Any = kendalltau([_placed(runs)[m] for m in shared], [_placed(usual)[m] for m in shared])
        agreement = None if row.init == UNIFORM else _or_none(float(test.statistic))
        lines.append((_NAMES[row.dataset], row.images, row.init, *(places.get(m) for m in RANKED), agreement))
    lines.sort(key=lambda line: (line[0] != "MNIST", -line[1]))
    columns = ("Set", "images", "start", *RANKED, "τ with uniform")
    described = "; ".join(f"{name}: {text}" for name, text in INITIALISATIONS.items())
    note = (
        "Places by mean training loss at the end, without oracles. Kendall's τ compares the order of the methods with "
        f"that of the uniform start: 1 is the same order, 0 none. {described.replace('std²', f'{STD:g}²')}."
    )
    return SimpleTable("images_starts", "What the initialisation changes", columns, tuple(lines), note)


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    figures = {}
    others = [row for row in results if row.setting != AUTHORS]
    usual = [row for row in others if row.setting == OURS] or others
    shown = {
        f"images_curves_{images}": [row for row in usual if row.images == images]
        for images in dict.fromkeys(row.images for row in usual)
    }
    shown["images_curves_authors"] = [row for row in results if row.setting == AUTHORS]
    for name, rows in shown.items():
        if rows:
            sizes = ", ".join(dict.fromkeys(f"{row.images:,}" for row in rows))
            how = " in the authors' setting" if rows[0].setting == AUTHORS else ""
            figures[name] = (
                f"Training loss, mutation rate and held-out accuracy over generations, {sizes} training images{how}: "
                "means over seeds (of the rate's logarithm), bands of one standard error.",
                _curves({row: results[row] for row in rows}),
            )
    compared = {row: runs for row, runs in results.items() if _starts_of(results, row) > 1}
    if compared:
        figures["images_starts"] = (
            "Training loss at the end for each initialisation: means over seeds, with one standard error.",
            _starts(compared),
        )
    return figures


def _starts_of(results: Results, row: Row) -> int:
    """How many initialisations there are of what else is the same."""
    return sum(row._replace(init=how) in results for how in INITIALISATIONS)


def _curves(results: Results) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH, 2.2 * len(results) + 0.6), layout=ConstrainedLayoutEngine(wspace=0.04))
    panels = figure.subplots(len(results), 3, squeeze=False)
    for (row, runs), (loss, rate, accuracy) in zip(results.items(), panels, strict=True):
        generation = kept_generations(row.generations)
        step = np.append(np.arange(STEP, row.generations, STEP), row.generations)
        _draw_lines(loss, {m: (generation, over_seeds(run.elite)) for m, run in runs.items()}, "Training loss")
        with np.errstate(over="ignore"):
            rates = {m: (generation, np.exp(over_seeds(run.log_rate))) for m, run in runs.items()}
        _draw_lines(rate, rates, "Mutation rate", log=True)
        scored = {m: (step, 100 * over_seeds(run.test_accuracy)) for m, run in runs.items()}
        _draw_lines(accuracy, scored, "Test accuracy (%)")
        loss.set_title(row.label, loc="left", fontweight="bold")
    for axes in panels[-1]:
        axes.set_xlabel("Generation")
    legend(figure, [method for runs in results.values() for method in runs])
    return settled(figure)


def _draw_lines(axes: Axes, lines: Mapping[str, tuple[np.ndarray, np.ndarray]], label: str, log: bool = False) -> None:
    axes.set_ylabel(label)
    middles = np.concatenate([middle for _, (middle, *_) in lines.values()])
    middles = middles[np.isfinite(middles)]
    if middles.size and log:
        log_y(axes, middles.min(), middles.max())
    for method, (x, line) in lines.items():
        draw(axes, method, x, *line)
    if middles.size and not log:
        margin = 0.05 * max(float(np.ptp(middles)), 1e-3)
        axes.set_ylim(middles.min() - margin, middles.max() + margin)


def _starts(results: Results) -> Figure:
    """A panel for each set and size: methods in the order of their mean rank over initialisations."""
    sizes = list(dict.fromkeys(row._replace(init=UNIFORM) for row in results))
    figure = Figure(figsize=(PAGE_WIDTH, 2.6), layout=ConstrainedLayoutEngine(wspace=0.04))
    panels = figure.subplots(1, len(sizes), squeeze=False)[0]
    for axes, usual in zip(panels, sizes, strict=True):
        rows = {how: results.get(usual._replace(init=how)) for how in INITIALISATIONS}
        present = {how: runs for how, runs in rows.items() if runs}
        methods = [m for m in RANKED if all(m in runs for runs in present.values())]
        means = np.array([[runs[m].final.mean() for m in methods] for runs in present.values()])
        methods = [methods[i] for i in np.argsort(rankdata(means, axis=1).mean(axis=0), kind="stable")]
        for offset, (how, runs) in zip(np.linspace(-0.22, 0.22, len(present)), present.items(), strict=True):
            colour, marker = _STARTS[how]
            finals = np.stack([runs[m].final for m in methods])
            error = np.nan_to_num(stats.standard_error(finals))
            axes.errorbar(np.arange(len(methods)) + offset, finals.mean(axis=1), error, fmt=marker, color=colour,
                          markersize=3.5, linewidth=0.9)  # fmt: skip
        axes.set_xticks(range(len(methods)), methods, rotation=90)
        axes.set_title(usual.label, loc="left", fontweight="bold")
        axes.grid(axis="x", visible=False)
    panels[0].set_ylabel("Training loss")
    shown = dict.fromkeys(row.init for row in results)
    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=3.5, label=how)
        for how, (colour, marker) in _STARTS.items()
        if how in shown
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return settled(figure)


def summary(results: Results) -> str:
    sets = ", ".join(_NAMES[name] for name in SETS if any(row.dataset == name for row in results))
    sizes = ", ".join(f"{n:,}" for n in sorted({row.images for row in results}))
    methods = len({method for runs in results.values() for method in runs})
    counts = {len(run.final) for runs in results.values() for run in runs.values()}
    seeds = "–".join(map(str, dict.fromkeys((min(counts), max(counts)))))
    generations = ", ".join(f"{n:,}" for n in sorted({row.generations for row in results}))
    return f"{sets}; {sizes} training images; {methods} methods, {seeds} seeds, {generations} generations"


VIEW = StudyView(
    name="images",
    title="Networks that classify images",
    text=(
        "A convolutional network of 2,140 weights learns to tell digits and clothes apart by mutation alone. The paper "
        "has GESMR ahead of every method but 15MR, and 15MR ahead of it. It says neither how networks start nor how "
        "pixels are scaled. The authors' program does (standardised pixels, first weights N(0, 0.1²), 5,000 images); "
        "beside it stands our own choice. Does the order of the methods depend on it?"
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
    decide=decide,
)
