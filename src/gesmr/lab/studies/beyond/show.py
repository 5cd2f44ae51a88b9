"""What the study `beyond` shows: final values of every method on every row."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ...show.output import span
from ...show.table import Table
from ...show.view import View
from .results import Results, load
from .runs import STUDY


def make_tables(results: Results) -> list[Table]:
    rows = tuple(
        (
            row.function.capitalize(),
            row.dim,
            "turned" if row.rotated else "",
            row.std,
            column,
            len(runs.seeds),
            float(10 ** runs.log_final.mean()),
            float(runs.log_final.mean()),
            float(runs.log_final.std()),
        )
        for row, columns in results.items()
        for column, runs in columns.items()
    )
    columns = ("Function", "d", "Turned", "std", "Method", "seeds", "final", "log10", "its s.d.")
    note = "Final: the geometric mean over seeds of the best value, after as many evaluations for all methods."
    return [Table("beyond_final", "Final values", columns, rows, note)]


def make_figures(results: Results) -> Mapping[str, tuple[str, Figure]]:
    return {}


def summary(results: Results) -> str:
    seeds = span(len(runs.seeds) for columns in results.values() for runs in columns.values())
    methods = len({column for columns in results.values() for column in columns})
    return f"{len(results)} rows, {methods} methods, {seeds} seeds"


VIEW = View(
    name=STUDY.name,
    title=STUDY.title,
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
)
