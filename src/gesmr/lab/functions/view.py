"""What the command line shows of the study of test functions."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from ...problems.functions import FORMULAS
from ..claims import Claim
from ..errors import LabError
from ..output import csv_text, json_text, machines, say
from ..report import functions as report
from ..report.base import Chapter
from ..store import Store, write_text
from ..views import Options
from . import figures
from .agreement import Cell, agreement, read_printed, which_table
from .claims import claims
from .results import Results, Row, load
from .tables import FunctionTable, as_csv, as_latex, as_markdown, as_text, number, statistics_csv, tables


class FunctionsView:
    def tables(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Print Tables 1–3; write each as CSV, Markdown and LaTeX, and the statistics of every comparison."""
        made = tables(load(store, shifted=options.shifted))
        for table in made:
            console.print(as_text(table))
            for suffix, text in (("csv", as_csv(table)), ("md", as_markdown(table)), ("tex", as_latex(table))):
                write_text(to / f"{table.name}.{suffix}", text)
        write_text(to / "statistics.csv", statistics_csv(made))
        say(console, f"written to {to}: {', '.join(table.name for table in made)} (csv, md, tex), statistics.csv")

    def compare(
        self, store: Store, options: Options, against: Path, table: int | None, to: Path, console: Console
    ) -> None:
        """Print how far a table agrees with a printed one; write every cell as CSV."""
        name = f"table{table}" if table else which_table(against)
        printed = read_printed(against)
        ours = {made.name: made for made in tables(load(store, shifted=options.shifted))}
        if name not in ours:
            raise LabError(f"there are no runs for {name}")
        cells = agreement(ours[name], printed)
        if not cells:
            raise LabError(f"{against} has no row and method in common with the runs in {store.directory}")
        console.print(_agreement_table(ours[name], cells))
        for cell in cells:
            if cell.counted and not cell.agrees:
                say(console, f"differs: {cell.row.label}, {cell.method}: ours {number(cell.ours)} "
                     f"± {cell.standard_error:.2g}, printed {number(cell.printed)}")  # fmt: skip
        same = [
            row for row, best in zip(ours[name].rows, ours[name].best, strict=True) if printed.best.get(row) == best
        ]
        counted = [cell for cell in cells if cell.counted]
        agreeing = sum(cell.agrees for cell in counted)
        console.print(
            f"{ours[name].title}: [bold]{agreeing} of {len(counted)}[/bold] cells agree with the printed ones; "
            f"the best method is the printed one in {len(same)} of {len(ours[name].rows)} rows.",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
        file = to / f"agreement_{name}.csv"
        write_text(file, _agreement_csv(cells))
        say(console, f"written to {file}")

    def claims(self, store: Store) -> list[Claim]:
        return claims(load(store))

    def figures(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Write curves of the chosen rows (`function,d,std`) and the overview of ranks as PDF, SVG and PNG."""
        paths = figures.write(load(store, shifted=options.shifted), to, [_row(text) for text in options.rows] or None)
        say(console, f"written to {to}: {', '.join(sorted({path.stem for path in paths}))} (pdf, svg, png)")

    def chapter(self, directory: Path) -> Chapter:
        return report.chapter(directory)

    def export(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Write the summaries that are worth keeping: tables with standard errors, statistics, claims, provenance."""
        results = load(store, shifted=options.shifted)
        made = tables(results)
        for table in made:
            write_text(to / f"{table.name}.csv", as_csv(table))
        write_text(to / "statistics.csv", statistics_csv(made))
        write_text(to / "claims.json", json_text([asdict(claim) for claim in claims(results)]))
        write_text(to / "provenance.json", json_text(_provenance(results, store, options.shifted)))
        say(console, f"written to {to}: {', '.join(table.name for table in made)}, statistics, claims, provenance")


def _agreement_table(table: FunctionTable, cells: list[Cell]) -> Table:
    text = Table(title=f"{table.title}: agreement by method", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    groups = {
        "with a minimum": [c for c in cells if FORMULAS[c.row.function].optimum is not None],
        "Linear": [c for c in cells if FORMULAS[c.row.function].optimum is None],
    }
    text.add_column("Method")
    for heading, group in groups.items():
        if group:
            text.add_column(f"rows {heading}", justify="right")
    for method in table.methods:
        counts = []
        for group in filter(None, groups.values()):
            mine = Counter(cell.agrees for cell in group if cell.method == method)
            counts.append(f"{mine[True]} of {mine.total()}")
        text.add_row(method if not method.startswith("UCB") else f"{method} (not counted)", *counts)
    return text


def _agreement_csv(cells: list[Cell]) -> str:
    header = ["function", "dim", "std", "method", "ours", "se", "seeds", "printed", "allowed", "agrees", "counted"]
    rows = []
    for c in cells:
        numbers = [f"{x:.6g}" for x in (c.ours, c.standard_error)]
        verdict = [f"{c.printed:g}", f"{c.allowed:.4g}", int(c.agrees), int(c.counted)]
        rows.append([*c.row[:2], f"{c.row.std:g}", c.method, *numbers, c.seeds, *verdict])
    return csv_text(header, rows)


def _provenance(results: Results, store: Store, shifted: bool) -> dict[str, Any]:
    return {
        "study": "functions, "
        + ("optima moved to draws of the initial distribution" if shifted else "as in the paper"),
        "rows": len(results.rows),
        "methods": list(results.methods),
        "seeds": len(results.seeds),
        "runs": int(np.isfinite(results.final).sum()),
        "machines": machines(results.provenance),
        "seconds_per_generation": {
            str(dim): {"fixed rate": times[0], "GESMR": times[1]}
            for dim, times in ((d, t.min(axis=0).round(9).tolist()) for d, t in sorted(results.seconds.items()))
        },
        "sessions": store.sessions(),
    }


def _row(text: str) -> Row:
    """`ackley,100,10` as a row."""
    try:
        function, dim, std = text.split(",")
        return Row(function.strip().lower(), int(dim), float(std))
    except ValueError as error:
        raise LabError(f"--row must be like ackley,100,10 (function, d, std), got {text!r}") from error
