"""What the study `sensitivity` shows: what GESMR's hyperparameters change, and which setting to recommend."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from scipy.stats import rankdata

from ...errors import LabError
from ...run.masked import PAPER, Setting
from ...run.store import StoredJob, runs_of
from ...show import stats
from ...show.collect import by_seed, on_shared_seeds
from ...show.figures import PAGE_WIDTH, colour_of, label, legend_below, log_ticks, settled, title
from ...show.output import finite, listed, span
from ...show.resolution import log10
from ...show.table import Table
from ...show.view import View
from ..functions.results import RUGGED, SMOOTH
from .runs import FUNCTIONS, GROUPS, META_RATES, RATE_TRUNCATIONS, SETTINGS, TRUNCATIONS, SensitivityRun

KINDS = {"smooth": SMOOTH, "rugged": RUGGED}
_SYMBOLS = ("η_x", "η_σ", "τ", "K")
_SWEEPS = {
    "truncation": (r"$\eta_x$", TRUNCATIONS),
    "rate_truncation": (r"$\eta_\sigma$", RATE_TRUNCATIONS),
    "meta_rate": (r"$\tau$", META_RATES),
    "groups": ("$K$", GROUPS),
}
_PAPER_LINE: dict[str, Any] = {"color": "#777777", "linewidth": 0.8}


class Row(NamedTuple):
    function: str
    dim: int
    std: float
    shifted: bool


@dataclass(frozen=True)
class Results:
    """Rows in which every setting has run, on the seeds that all of these share."""

    rows: tuple[Row, ...]
    relative: np.ndarray  # f[R, M]  mean over seeds of log10(final value / that of the paper's setting), of `SETTINGS`
    seeds: tuple[int, int]  # the fewest and the most in a row

    def select(self, functions: Sequence[str], shifted: bool | None = None) -> np.ndarray:
        """Which rows are of these functions, and with the optimum moved (or not), `bool[R]`."""
        return np.array([r.function in functions and shifted in (None, r.shifted) for r in self.rows])


def load(jobs: Sequence[StoredJob]) -> Results:
    runs = by_seed(runs_of(jobs, SensitivityRun), Row, lambda run: run.setting)
    rows, relative, counts = [], [], []
    for row in sorted(runs, key=lambda row: (FUNCTIONS.index(row.function), *row[1:])):
        seeds, found = on_shared_seeds(runs[row], SETTINGS)
        if len(found) == len(SETTINGS):
            final = np.stack([found[setting]["final"] for setting in SETTINGS])
            log_final = log10(row.function, final, row.shifted)
            rows.append(row)
            relative.append((log_final - log_final[SETTINGS.index(PAPER)]).mean(axis=1))
            counts.append(len(seeds))
    if not rows:
        raise LabError("no function has runs for every setting; run the study again")
    return Results(tuple(rows), np.array(relative), (min(counts), max(counts)))


class Advice(NamedTuple):
    """A setting, and how it compares with the paper's."""

    setting: Setting
    rank: float  # mean over rows of its rank among all settings, from 1
    paper_rank: float  # that of the paper's setting
    relative: np.ndarray  # f[R]  log10 of its final value over the paper's, in each row
    p: float  # of Wilcoxon's signed ranks over rows, two-sided: whether it can be told from the paper's


def advise(results: Results, rows: np.ndarray) -> Advice:
    """The setting with the lowest mean rank among the paper's and those that are significantly better than it.

    By rank, because orders of magnitude on one function would outvote all others.
    """
    relative, paper = results.relative[rows].T, SETTINGS.index(PAPER)
    ranks = rankdata(relative, axis=0).mean(axis=1)
    for i in np.argsort(ranks):
        p = float(stats.compare(relative[i], np.zeros_like(relative[i])).wilcoxon)
        if i == paper or (p < stats.LEVEL and np.median(relative[i]) < 0):
            return Advice(SETTINGS[int(i)], float(ranks[i]), float(ranks[paper]), relative[i], p)
    raise AssertionError("the paper's setting is one of them")


def make_tables(results: Results) -> list[Table]:
    return [_advice_table(results), _best_table(results), _lines_table(results)]


def _advice_table(results: Results) -> Table:
    names = {kind: f"{kind} ({', '.join(f.capitalize() for f in KINDS[kind])})" for kind in KINDS}
    chosen = {names[kind]: results.select(KINDS[kind]) for kind in KINDS} | {"all": results.select(FUNCTIONS)}
    rows, advices = [], {}
    for name, mask in chosen.items():
        if mask.any():
            advice = advices[name] = advise(results, mask)
            better = f"{int((advice.relative < 0).sum())} of {mask.sum()}"
            rows.append(
                (
                    name,
                    *advice.setting,
                    advice.rank,
                    advice.paper_rank,
                    float(advice.relative.mean()),
                    finite(stats.standard_error(advice.relative)),
                    better,
                    float(advice.relative.max()),
                    None if advice.setting == PAPER else advice.p,
                )
            )
    columns = ("Functions", "η_x", "η_σ", "τ", "K", "mean rank", "the paper's", "mean log10 ratio", "± s.e.",
               "better in", "worst row", "p")  # fmt: skip
    advice = "; ".join(f"{name}: {_describe(a.setting)}" for name, a in advices.items())
    note = (
        f"Recommended, of {len(SETTINGS)} settings, is the one with the lowest mean rank of its final value over "
        "functions, dimensions, spreads and both places of the optimum, among the paper's setting and those that are "
        f"better by a Wilcoxon test over these rows (p < {stats.LEVEL:g}, not corrected for their number). Ratios are "
        f"of its final value to that of the paper's setting ({_describe(PAPER)}), negative where it is better. "
        f"Recommended: {advice}."
    )
    return Table("sensitivity_advice", "Which setting to use", columns, tuple(rows), note)


def _best_table(results: Results) -> Table:
    rows = []
    for function, dim, shifted in dict.fromkeys((r.function, r.dim, r.shifted) for r in results.rows):
        mask = results.select([function], shifted) & np.array([r.dim == dim for r in results.rows])
        mean = results.relative[mask].mean(axis=0)
        best = int(np.argmin(mean))
        place = "moved" if shifted else "centred"
        rows.append((function.capitalize(), dim, place, *SETTINGS[best], float(max(-mean[best], 0.0))))
    columns = ("Function", "d", "optimum", "best η_x", "best η_σ", "best τ", "best K", "the paper's loss")
    note = (
        "The setting with the lowest mean over spreads and seeds of log10 of the final value, and by how much the "
        "paper's setting is above it: 1 is a factor of ten. The best of many is a little flattered by chance."
    )
    return Table("sensitivity_best", "The best setting for each function", columns, tuple(rows), note)


def _lines_table(results: Results) -> Table:
    kinds = _present(results)
    masks = [*(results.select(KINDS[kind]) for kind in kinds), results.select(FUNCTIONS)]
    rows = []
    for name, (field, (_, values)) in zip(_SYMBOLS, _SWEEPS.items(), strict=True):
        for value in values:
            relative = results.relative[:, SETTINGS.index(PAPER._replace(**{field: value}))]
            rows.append((name, value, *(float(relative[mask].mean()) for mask in masks), float(relative.max())))
    columns = ("", "value", *(f"{kind} functions" for kind in kinds), "all", "worst row")
    note = "Mean of log10 of the final value over that of the paper's setting, the others as in the paper."
    return Table("sensitivity_lines", "One hyperparameter at a time", columns, tuple(rows), note)


def _describe(setting: Setting) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in zip(_SYMBOLS, setting, strict=True))


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    return {
        "sensitivity_grid": (
            "log10 of the final value relative to that of the paper's setting (dotted frame), mean over functions, "
            "dimensions, spreads, optimum places and seeds; τ = 2, K = 10. Blue is better, red worse, on one scale for "
            "all panels; solid frame: the best.",
            _grid(results),
        ),
        "sensitivity_lines": (
            "One hyperparameter at a time, the others as in the paper (η_x = 0.5, η_σ = 0.5, τ = 2, K = 10; vertical "
            "line): log10 of the final value relative to that of the paper's setting. Solid: optimum where the paper "
            "has it; dashed: moved.",
            _lines(results),
        ),
    }


def _present(results: Results) -> list[str]:
    return [kind for kind in KINDS if results.select(KINDS[kind]).any()]


def _grid(results: Results) -> Figure:
    kinds = _present(results)
    figure = Figure(figsize=(PAGE_WIDTH * (0.1 + len(kinds) / 2), 3.7), layout=ConstrainedLayoutEngine(wspace=0.04))
    panels = figure.subplots(1, len(kinds), squeeze=False)
    label(panels, r"Truncation of solutions $\eta_x$", r"Truncation of rates $\eta_\sigma$")
    means = {kind: results.relative[results.select(KINDS[kind])].mean(axis=0) for kind in kinds}
    grids = {
        kind: np.array([[mean[SETTINGS.index(Setting(x, s))] for x in TRUNCATIONS] for s in RATE_TRUNCATIONS])
        for kind, mean in means.items()
    }
    # One scale for all. The worst settings would take all its colours: it ends where the best one's mirror image is
    most = max(0.1, *(float(-grid.min()) for grid in grids.values()))
    shown = None
    for axes, (kind, grid) in zip(panels[0], grids.items(), strict=True):
        shown = axes.imshow(grid, cmap="RdBu_r", norm=Normalize(-most, most), origin="lower", aspect="auto")
        for (i, j), value in np.ndenumerate(grid):
            dark = abs(value) > 0.6 * most
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
        best = np.unravel_index(np.argmin(grid), grid.shape)
        _frame(axes, int(best[1]), int(best[0]), "-")
        _frame(axes, TRUNCATIONS.index(PAPER.truncation), RATE_TRUNCATIONS.index(PAPER.rate_truncation), ":")
        axes.set_xticks(range(len(TRUNCATIONS)), [f"{x:g}" for x in TRUNCATIONS])
        axes.set_yticks(range(len(RATE_TRUNCATIONS)), [f"{s:g}" for s in RATE_TRUNCATIONS])
        axes.grid(False)
        title(axes, f"{kind.capitalize()} functions")
    if shown is not None:
        what = r"$\log_{10}$ ratio of final values to the paper's setting"
        figure.colorbar(shown, ax=panels, label=what, extend="max", pad=0.01, aspect=30)
    line = partial(Line2D, [], [], color="black", linewidth=1.6)
    handles = line(linestyle=":", label="The paper's setting"), line(linestyle="-", label="The best of the panel")
    legend_below(figure, handles)
    return settled(figure)


def _frame(axes: Axes, column: int, row: int, dashes: str) -> None:
    corner = column - 0.46, row - 0.46
    axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, linewidth=1.6, linestyle=dashes, edgecolor="black"))


def _lines(results: Results) -> Figure:
    kinds = _present(results)
    figure = Figure(figsize=(PAGE_WIDTH, 2.3 * len(kinds) + 0.5), layout=ConstrainedLayoutEngine())
    panels = figure.subplots(len(kinds), len(_SWEEPS), squeeze=False, sharey="row", sharex="col")
    for kind, line in zip(kinds, panels, strict=True):
        for axes, (field, (symbol, values)) in zip(line, _SWEEPS.items(), strict=True):
            columns = [SETTINGS.index(PAPER._replace(**{field: value})) for value in values]
            axes.axhline(0.0, zorder=2, **_PAPER_LINE)
            axes.axvline(getattr(PAPER, field), zorder=2, **_PAPER_LINE)
            for function in KINDS[kind]:
                for shifted, dashes in ((False, "-"), (True, "--")):
                    chosen = results.select([function], shifted)
                    if chosen.any():
                        mean = results.relative[chosen][:, columns].mean(axis=0)
                        axes.plot(values, mean, dashes, marker="o", markersize=2.6, linewidth=1.1,
                                  color=colour_of(function), zorder=3)  # fmt: skip
            log_ticks(axes, "x", values, lambda value: f"{value:g}".removeprefix("0"))
            axes.tick_params(axis="x", labelsize=6.0)
            if kind == kinds[-1]:
                axes.set_xlabel(symbol)
        title(line[0], f"{kind.capitalize()} functions")
    label(panels, y=r"$\log_{10}$ ratio to the paper's")
    shown = [f for f in FUNCTIONS if results.select([f]).any()]
    handles = [Line2D([], [], color=colour_of(f), marker="o", markersize=2.6, label=f.capitalize()) for f in shown]
    handles.append(Line2D([], [], color="#444444", linestyle="--", label="Optimum moved"))
    handles.append(Line2D([], [], label="The paper's setting", **_PAPER_LINE))
    legend_below(figure, handles, 4)
    return settled(figure)


def summary(results: Results) -> str:
    functions = len({row.function for row in results.rows})
    dims = listed((row.dim for row in results.rows), "{}-D")
    return f"{len(SETTINGS)} settings of GESMR (N = 100), {functions} functions in {dims}, {span(results.seeds)} seeds"


VIEW = View(
    name="sensitivity",
    title="Hyperparameters of GESMR",
    text=(
        "Four numbers have to be chosen: the share of solutions that become parents (η_x), the share of rates that "
        "survive (η_σ), how far rates are mutated (τ) and how many there are (K). How much do they matter, and are the "
        "paper's a good choice?"
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
)
