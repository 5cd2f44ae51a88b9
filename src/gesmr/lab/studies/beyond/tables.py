"""Tables of the study `beyond`: medians by row, counts of rows, other algorithms, and what GESMR-X was chosen from."""

from collections.abc import Mapping, Sequence

import numpy as np

from ....controllers import PAPER_NAMES
from ....problems.control import TASKS
from ...run.lanes import ORACLES
from ...show.output import csv_text, finite, span
from ...show.stats import LEVEL, standard_error
from ...show.table import Cell, Table
from .methods import CHOSEN, CHOSEN_DEFAULT, DEFAULT_X, Variant, X
from .results import GROUPS, MAIN, Choice, Count, Results, choice, own
from .runs import OTHERS, Row

_FINAL = (
    "Medians over seeds of the best value after as many evaluations for all methods, no lower than what single "
    "precision resolves. More: outside the 50 main rows."
)


def make_tables(results: Results) -> list[Table]:
    """Those that the store has something for."""
    made = []
    if results.shared(X):
        made += [_rows_table(results), _counts_table(results, X)]
        if results.shared(X, DEFAULT_X):
            made.append(_counts_table(results, DEFAULT_X))
        if any(column in OTHERS for column in results.columns):
            made.append(_peers_table(results))
    if results.images:
        made.append(_images_table(results))
    if results.control:
        made.append(_control_table(results))
    if (found := choice(results)) is not None:
        made.append(_choice_table(found))
    return made


def _place(row: Row) -> tuple[str, int, str, Cell, str]:
    std = Cell(row.std, f"{row.std:g}")
    return row.function.capitalize(), row.dim, "turned" if row.rotated else "", std, "" if row in MAIN else "more"


_PLACE = ("Function", "d", "Turned", "std", "Rows")


def _rows_table(results: Results) -> Table:
    columns = [c for c in results.columns if Variant.named(c) is None and c not in map(own, OTHERS)]
    p_values = results.p_values(X, "GESMR")
    rows = [
        (*_place(row), span(len(there[c].seeds) for c in columns if c in there), *_medians(results, row, columns),
         finite(p_values.get(row, np.nan)))
        for row, there in results.rows.items()
    ]  # fmt: skip
    headings = [f"{column}†" if column in ORACLES else column for column in columns]
    note = (
        f"{_FINAL} Populations of 100. Bold: the lowest but for the oracles (†). p: Mann and Whitney's test of "
        f"{X} against GESMR, corrected by Holm's method for the {len(p_values)} rows that have both."
    )
    names = (*_PLACE, "seeds", *headings, "p (GESMR)")
    return Table("beyond_rows", "Final values by row", names, tuple(rows), note)


def _medians(results: Results, row: Row, columns: Sequence[str]) -> list[Cell]:
    """The row's median in each column, the lowest set apart."""
    there = results.rows[row]
    medians = {column: there[column].median for column in columns if column in there}
    best = min((median for column, median in medians.items() if column not in ORACLES), default=np.nan)
    values = [(medians.get(column, np.nan), column not in ORACLES) for column in columns]
    return [
        Cell(value, "–" if np.isnan(value) else f"{value:.3g}", ranked and value == best) for value, ranked in values
    ]


def _counts_table(results: Results, first: str) -> Table:
    """Of GESMR-X, or of another method that recombines."""

    def counted(told: Mapping[Row, bool]) -> list[str]:
        return [str(Count.of(told, rows)) for rows in GROUPS.values()]

    lines = [
        ("GESMR", *_counts(results, first, "GESMR"), _times(results, first, "GESMR")),
        ("GESMR, significantly", *counted(significantly_lower(results, first, "GESMR")), None),
        ("GESMR, significantly higher", *counted(significantly_lower(results, "GESMR", first)), None),
        ("all of the paper's but oracles", *counted(results.lower(first, *PAPER_NAMES)), None),
    ]
    for column in results.columns:
        if column not in (first, "GESMR") and Variant.named(column) is None:
            name = f"{column}†" if column in ORACLES else column
            lines.append((name, *_counts(results, first, column), _times(results, first, column)))
    lines = [line for line in lines if any(cell != str(Count(0, 0, 0)) for cell in line[1:-1])]
    note = (
        f"Main rows in which the median of {first} is the lower one, of those that have both: five functions, two "
        "spreads, d = 30 and 100 as they are and turned, d = 1000. Equal: as far as single precision tells. "
        "Significant: p < 0.05 after Holm's correction. It was chosen on Ackley and Rosenbrock, with other seeds. "
        f"Times: the other's median over that of {first}, in the median row. † An oracle."
    )
    name = "beyond_counts" if first == X else f"beyond_counts_{first}"
    columns = (f"{first} lower than", *GROUPS, "times")
    return Table(name, f"In how many rows {first} is lower", columns, tuple(lines), note)


def _counts(results: Results, first: str, other: str) -> list[str]:
    """In each group of rows, with the number of ties."""
    lower, equal = results.lower(first, other), results.equal(first, other)
    counts = [(Count.of(lower, rows), Count.of(equal, rows).so) for rows in GROUPS.values()]
    return [f"{count}, {ties} equal" if ties else str(count) for count, ties in counts]


def significantly_lower(results: Results, first: str, second: str) -> dict[Row, bool]:
    """Whether the first is so, after correction for all rows."""
    p_values, lower = results.p_values(first, second), results.lower(first, second)
    return {row: lower[row] and p < LEVEL for row, p in p_values.items()}


def _times(results: Results, first: str, other: str) -> float | None:
    rows = [row for row in results.shared(first, other) if row in MAIN]
    if not rows:
        return None
    return float(np.median(results.medians(other, rows) / results.medians(first, rows)))


def _peers_table(results: Results) -> Table:
    columns = [c for c in (X, "GESMR", *(c for m in OTHERS for c in (m, own(m)))) if c in results.columns]
    rows = []
    for row, there in results.rows.items():
        others = [len(there[c].seeds) for c in columns if c in there and c not in (X, "GESMR")]
        if others:
            rows.append((*_place(row), span(others), *_medians(results, row, columns)))
    note = f"{_FINAL} Own N: with the population each has by default, elsewhere 100. Seeds: of the other algorithms."
    names = (*_PLACE, "seeds", *columns)
    return Table("beyond_peers", "Other algorithms", names, tuple(rows), note)


def _images_table(results: Results) -> Table:
    lines = []
    for (dataset, images, generations), columns in results.images.items():
        means = {column: float(runs["final"].mean()) for column, runs in columns.items()}
        for column, runs in columns.items():
            loss = means[column]
            lines.append((
                dataset, images, generations, column, len(runs["final"]),
                Cell(loss, f"{loss:.4g}", loss == min(means.values())), finite(standard_error(runs["final"])),
                float(runs["test_loss"].mean()), 100 * float(runs["test_accuracy"].mean()),
            ))  # fmt: skip
    columns = ("Set", "images", "T", "method", "seeds", "training loss", "± s.e.", "test loss", "test accuracy %")
    note = "Means over seeds of the best network at the end: cross-entropy, on the run's images and on all test images."
    return Table("beyond_images", "Networks that classify images", columns, tuple(lines), note)


def _control_table(results: Results) -> Table:
    lines = []
    for (task, generations), columns in results.control.items():
        means = {column: float(runs["held_out"].mean()) for column, runs in columns.items()}
        for column, runs in columns.items():
            unseen = means[column]
            lines.append((
                TASKS[task].environment, generations, column, len(runs["final"]),
                float(runs["final"].mean()), finite(standard_error(runs["final"])),
                Cell(unseen, f"{unseen:.4g}", unseen == max(means.values())), finite(standard_error(runs["held_out"])),
            ))  # fmt: skip
    columns = ("Task", "T", "method", "seeds", "return", "± s.e.", "held-out return", "± s.e. of it")
    note = (
        "Means over seeds of the best policy's return, on the episodes it evolved on and on others; higher is better."
    )
    return Table("beyond_control", "Policies for control", columns, tuple(lines), note)


def _choice_table(found: Choice) -> Table:
    lines = []
    for name, tried in found.tried.items():
        variant = Variant.named(name)
        what = [name, *(None,) * 5] if variant is None else [
            {CHOSEN: X, CHOSEN_DEFAULT: DEFAULT_X}.get(variant, ""), variant.share, variant.groups, variant.truncation,
            variant.rate_truncation, " ".join(["shared"] * variant.shared + ["two parents"] * (variant.mates == 2)),
        ]  # fmt: skip
        better = int((tried.ratio < 1).sum())
        lines.append((*what, tried.rank, tried.mean_ratio, f"{better} of {len(found.rows)}"))
    columns = ("", "share", "K", "η_x", "η_σ", "else", "mean rank", "times the chosen", "lower than the chosen")
    note = (
        f"Ranks of the geometric means over seeds among {len(found.tried)} settings, averaged over "
        f"{len(found.rows)} rows. Times: the geometric mean over rows and seeds of the final value over that of the "
        "chosen. Shared: copies and mixtures have one population of rates. Two parents: else all of the selected."
        + (f" Not all runs are there of {', '.join(found.missing)}." if found.missing else "")
    )
    return Table("beyond_choice", f"What {X} was chosen from", columns, tuple(lines), note)


def every_column(results: Results) -> dict[str, str]:
    """A file with a line for every row and column."""
    header = ["function", "dim", "turned", "std", "main", "method", "seeds", "median", "lower_quartile",
              "upper_quartile", "mean_log10"]  # fmt: skip
    lines = []
    for row, there in results.rows.items():
        for column, runs in there.items():
            quartiles = np.quantile(runs.resolved, (0.25, 0.75), method="lower")
            numbers = [f"{value:.4g}" for value in (runs.median, *quartiles, runs.log_final.mean())]
            where = [row.function, row.dim, int(row.rotated), f"{row.std:g}", int(row in MAIN)]
            lines.append([*where, column, len(runs.seeds), *numbers])
    return {"beyond_final.csv": csv_text(header, lines)}
