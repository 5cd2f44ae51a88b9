"""Tables 1–3: means over seeds, the best method in bold, the paper's asterisk; and the tests it leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....comparing.statistics import holm
from ...run.lanes import ORACLES
from ...run.reading import LAMR_NAME, Reading
from ...show import stats
from ...show.output import csv_text
from ...show.table import Cell, Column, Table
from .results import Results, Row


@dataclass(frozen=True)
class Estimates:
    """What one of the paper's tables is made of. NaN where there is no run."""

    name: str  # "table1" …
    title: str
    rows: tuple[Row, ...]
    methods: tuple[str, ...]
    values: np.ndarray  # f[R, M, S]

    @property
    def ranked(self) -> tuple[str, ...]:
        """The methods that compete: all but the oracles."""
        return tuple(method for method in self.methods if method not in ORACLES)

    @cached_property
    def mean(self) -> np.ndarray:
        """f[R, M]"""
        return stats.mean(self.values)

    @cached_property
    def standard_error(self) -> np.ndarray:
        """f[R, M]"""
        return stats.standard_error(self.values)

    @cached_property
    def median(self) -> np.ndarray:
        """f[R, M]"""
        return stats.median(self.values)

    @cached_property
    def best(self) -> tuple[str | None, ...]:
        """Of each row, the method with the lowest mean that is no oracle; None if there is no run."""
        means = self.mean[:, [self.methods.index(method) for method in self.ranked]]
        return tuple(None if np.isnan(row).all() else self.ranked[int(np.nanargmin(row))] for row in means)

    @cached_property
    def tests(self) -> tuple[dict[str, dict[str, float]], ...]:
        """Of each row, the best method compared with every other that is no oracle, over the seeds they share.

        Holm's correction is for the comparisons of one row. `probability_lower` and `cohen_d` are effect sizes.
        """
        pairs = [self._samples(i) for i in range(len(self.rows))]
        tests: list[dict[str, dict[str, float]]] = [{} for _ in self.rows]
        for shape in {samples.shape for _, samples in pairs if len(samples) > 1}:  # alike rows at once: far fewer calls
            rows = [i for i, (_, samples) in enumerate(pairs) if samples.shape == shape]
            samples = np.stack([pairs[i][1] for i in rows])
            columns = _comparison(samples[:, :1], samples[:, 1:])
            for place, i in enumerate(rows):
                tests[i] = {
                    other: {name: float(column[place, o]) for name, column in columns.items()}
                    for o, other in enumerate(pairs[i][0])
                }
        return tuple(tests)

    @cached_property
    def significant(self) -> tuple[bool, ...]:
        """The paper's asterisk: the best has p < 0.05 in Welch's t-test against every other that is no oracle."""
        return tuple(
            len(tests) > 0 and all(test["welch_p"] < stats.LEVEL for test in tests.values()) for tests in self.tests
        )

    def compares_with_itself(self, method: str) -> bool:
        """Whether the column says nothing: Table 3's of LAMR-100, whose rates the others' are compared with."""
        return self.name.startswith("table3") and method == LAMR_NAME

    def cell(self, row: int, method: str) -> float:
        return float(self.mean[row, self.methods.index(method)])

    def _samples(self, row: int) -> tuple[list[str], np.ndarray]:
        """The methods beside the best, and values `f[1 + others, S]` of the best and of them, for seeds all have."""
        others = [m for m in self.ranked if np.isfinite(self.cell(row, m)) and m != self.best[row]]
        compared = [m for m in (self.best[row], *others) if m is not None]
        samples = self.values[row, [self.methods.index(m) for m in compared]]
        return others, samples[:, np.isfinite(samples).all(axis=0)]


def _comparison(best: np.ndarray, others: np.ndarray) -> dict[str, np.ndarray]:
    """Tests and effect sizes `f[R, others]` of `best f[R, 1, S]` against `others f[R, others, S]`."""
    compared = stats.compare(best, others)
    columns: dict[str, np.ndarray] = {}
    for name in ("welch", "paired", "wilcoxon", "mann_whitney"):
        columns[f"{name}_p"] = p = getattr(compared, name)
        columns[f"{name}_p_holm"] = np.stack([holm(row) for row in p])
    return columns | {"cohen_d": compared.cohen_d, "probability_lower": compared.probability_lower}


TITLES = {
    "table1": "Table 1: final elite value",
    "table2": "Table 2: elite value averaged over generations",
    "table3": "Table 3: mean square distance of the log mutation rate from LAMR-100's",
    "table3_used": "Table 3 by the rates that children were made with",
}


def estimates(results: Results, also_used: bool = False) -> list[Estimates]:
    """Tables 1–3, and the last once more `also` by the rates that children were made with, if that is another one.

    Table 3 has no row without an optimum.
    """
    values_of = {"table1": results.final, "table2": results.mean, "table3": results.rate_error}
    if also_used and results.variant.reading is Reading.PRINT:
        values_of["table3_used"] = results.used_rate_error
    made = []
    for name, values in values_of.items():
        title = TITLES[name]
        kept = [i for i, row in enumerate(results.rows) if not name.startswith("table3") or row.function != "linear"]
        if kept:
            rows = tuple(results.rows[i] for i in kept)
            made.append(Estimates(name, title, rows, results.methods, values[kept]))
    return made


def number(value: float) -> str:
    """As the paper prints it: one decimal below 1e4, two significant digits from there."""
    if np.isnan(value):
        return "–"
    return f"{value:z.1f}" if abs(value) < 1e4 else f"{value:.1e}"


def make_tables(results: Results) -> list[Table]:
    return list(map(as_table, estimates(results)))


def as_table(made: Estimates) -> Table:
    """A mean for every row and method."""
    columns = [Column("function", "Function"), Column("dim", "d"), Column("std", "std")]
    columns += [Column(method, f"{method}†" if method in ORACLES else method) for method in made.methods]
    note = "Bold: best but for the oracles (†); * p < 0.05 against every other (Welch)."
    rows = []
    for i, row in enumerate(made.rows):
        best = [method == made.best[i] for method in made.methods]
        cells = [
            Cell(value, number(value), bold, bold and made.significant[i], error)
            for value, error, bold in zip(made.mean[i].tolist(), made.standard_error[i].tolist(), best, strict=True)
        ]
        rows.append((Cell(row.function, row.function.capitalize()), row.dim, Cell(row.std, f"{row.std:g}"), *cells))
    return Table(made.name, made.title, tuple(columns), tuple(rows), note, sections=True)


def statistics_csv(made: Sequence[Estimates]) -> str:
    """Every comparison of a row's best method with the others, beside the paper's test."""
    lines = []
    for table in made:
        for i, (row, tests) in enumerate(zip(table.rows, table.tests, strict=True)):
            for other, test in tests.items():
                best = table.best[i] or ""
                medians = {
                    f"{who}_median": table.median[i, table.methods.index(method)]
                    for who, method in (("best", best), ("other", other))
                }
                where = {"table": table.name, "function": row.function, "dim": row.dim, "std": f"{row.std:g}"}
                numbers = {name: "" if np.isnan(x) else f"{x:.6g}" for name, x in (medians | test).items()}
                lines.append({**where, "best": best, "other": other, **numbers})
    return csv_text(list(lines[0]), [line.values() for line in lines]) if lines else ""
