"""GESMR against CMA-ES: tables of three comparisons and of a generation's cost, curves, and claims 13 and 16."""

from collections import Counter

import numpy as np

from ...show import stats
from ...show.output import finite
from ...show.table import Table
from ...show.view import View
from .claims import PAPER_GENERATIONS, RULES
from .figures import figures
from .pycma import POPULATION, memory_needed
from .results import Results, load
from .runs import COMPARISONS, METHODS, SHORT, CmaesStudy

_TITLES = {
    "paper": f"The paper's comparison: GESMR whole, CMA-ES {SHORT} generations",
    "time": "Equal running time: CMA-ES as long as GESMR took",
    "evaluations": "Equal evaluations: CMA-ES as many generations as GESMR",
}
_NOTES = {
    "paper": f"GESMR has spent up to {PAPER_GENERATIONS // SHORT} times the evaluations of CMA-ES here.",
    "time": "Seconds are of this machine, and of compiled code against Python: this compares implementations more than "
    "methods. The functions cost next to nothing; with costlier ones this turns into equal evaluations.",
    "evaluations": "The fair comparison: after t generations GESMR has spent 101 + 100 t evaluations, CMA-ES 101 t. "
    "Where pycma stopped by itself, its best value is kept although it has spent fewer.",
}


def _summary(results: Results) -> str:
    rows = results.duels
    runs = len(METHODS) * sum(len(duels.values) for duels in rows.values())
    functions = len({row.function for row in rows})
    lengths = " or ".join(str(n) for n in sorted({row.cmaes_generations for row in rows}, reverse=True))
    return (
        f"{runs} runs of {', '.join(METHODS)} on {functions} functions, centred and shifted; CMA-ES {lengths or 'no'} "
        f"generations of {POPULATION}; a generation's cost in {len({dim for _, dim in results.costs})} dimensions"
    )


def tables(results: Results) -> list[Table]:
    made = [_comparison(results, name) for name in COMPARISONS] + [_runs(results)] if results.duels else []
    return [*made, _costs(results)] if results.costs else made


def _comparison(results: Results, name: str) -> Table:
    rows, ahead = [], Counter()
    place = COMPARISONS.index(name)
    for row, duels in results.duels.items():
        values, reached = duels.values[:, place], duels.reached[:, place].mean(axis=0)
        means, errors = stats.mean(values.T), stats.standard_error(values.T)
        for other in (1, 2):
            tests = stats.compare(*_logs(values[:, [0, other]]).T)
            first = _ahead(tests, METHODS[other])
            ahead[first] += 1
            rows.append((
                row.function, row.optimum, row.std, row.sigma0, len(values),
                f"{reached[0]:.4g}", float(means[0]), finite(errors[0]),
                METHODS[other], f"{reached[other]:.4g}", finite(means[other]), finite(errors[other]),
                finite(means[0] / means[other]), finite(tests.welch), finite(tests.mann_whitney), first,
            ))  # fmt: skip
    counts = ", ".join(f"{method} in {ahead[method]}" for method in (*METHODS, "neither") if ahead[method])
    note = (
        f"{_NOTES[name]} Mean and standard error over seeds. Welch's test is of the logarithms, as values differ by "
        f"orders of magnitude. Ahead: the lower, if its p < {stats.LEVEL} ({counts} of {len(rows)}). Mann–Whitney's p "
        "cannot be below 0.1 with three seeds each, nor below 0.33 with two."
    )
    columns = ("Function", "Optimum", "Std", "σ₀", "Seeds", "GESMR after", "GESMR", "s.e.", "Against", "it after",
               "its value", "its s.e.", "GESMR / it", "p Welch", "p rank sum", "Ahead")  # fmt: skip
    return Table(f"cmaes-{name}", _TITLES[name], columns, tuple(rows), note)


def _logs(values: np.ndarray) -> np.ndarray:
    """Of values that may have been rounded to zero, or to just below it."""
    return np.log(np.maximum(values, np.finfo(np.float64).tiny))


def _ahead(tests: stats.Comparison, other: str) -> str:
    if not tests.welch < stats.LEVEL:
        return "neither"
    return "GESMR" if tests.cohen_d < 0 else other


def _runs(results: Results) -> Table:
    """How far every method went, how long it took and why it stopped."""
    rows = []
    for row, duels in results.duels.items():
        for m, method in enumerate(METHODS):
            generations = np.nanmax(duels.generation[:, m], axis=1)
            seconds = np.nanmax(duels.seconds[:, m], axis=1)
            reasons = Counter(str(reason) for reason in duels.stopped[:, m] if reason)
            why = ", ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items())) or "–"
            rows.append((
                row.function, row.optimum, row.std, row.sigma0, method, f"{generations.mean():.4g}",
                float(seconds.mean()), float(1e3 * (seconds / generations).mean()),
                float(np.nanmin(duels.best[:, m], axis=1).mean()), why,
            ))  # fmt: skip
    columns = ("Function", "Optimum", "Std", "σ₀", "Method", "Generations", "Seconds", "ms a generation",
               "Best at the end", "pycma stopped by (seeds)")  # fmt: skip
    note = "Means over seeds, compilation apart; NumPy with one thread, which is what suits pycma at this size."
    return Table("cmaes-runs", "How far the runs went", columns, tuple(rows), note)


def _costs(results: Results) -> Table:
    rows = [(method, dim, *_cost_cells(results, method, dim)) for method in METHODS for dim in results.dims]
    columns = ("Method", "Dimension", "ms a generation", "MiB")
    note = (
        "On Sphere, a generation of 100 (GESMR) or 101 evaluations, the fastest of several turns. Memory: what the "
        "compiled program holds (GESMR, float32), what NumPy and LAPACK hold at the peak (pycma, float64)."
    )
    return Table("cmaes-cost", "Time and memory of a generation", columns, tuple(rows), note)


def _cost_cells(results: Results, method: str, dim: int) -> tuple[float | str | None, float | str | None]:
    measured = results.measured(method).get(dim)
    if measured is not None:
        return 1e3 * measured.seconds, measured.bytes / 2**20
    return ("not run", f"needs {memory_needed(dim) / 2**30:.1f} GiB") if method == "CMA-ES" else (None, None)


TEXT = (
    "The paper gives CMA-ES 50 generations against GESMR's 1,000, because a generation of CMA-ES takes longer. Beside "
    "that stand equal running time, which mostly compares compiled code with Python, and equal evaluations, which "
    "compares the methods; look at that first. The paper's authors started CMA-ES with σ₀ = 0.1, a tenth of the first "
    "population's spread; with σ₀ = std it starts as wide as GESMR. Separable CMA-ES keeps d variances in place of a "
    "matrix. GESMR computes in float32, CMA-ES in float64."
)

VIEW = View(
    name=CmaesStudy.name,
    title="GESMR against CMA-ES",
    text=TEXT,
    load=load,
    summary=_summary,
    make_tables=tables,
    make_figures=figures,
    rules=RULES,
)
