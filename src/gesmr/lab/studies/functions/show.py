"""What the command line shows of the study of test functions."""

from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from ...errors import LabError
from ...run.reading import Reading
from ...run.store import Store, write_text
from ...show.claims import Claim, as_json
from ...show.figures import save_small
from ...show.output import csv_text, json_text, machines, say
from ...show.report.base import Chapter
from ...show.views import Options
from . import chapter as report
from . import figures
from .agreement import Cell, Printed, agreement, counts, printed_tables
from .claims import claims
from .results import Results, Row, Variant, load
from .tables import FunctionTable, as_csv, as_latex, as_markdown, as_text, number, statistics_csv, tables


class FunctionsView:
    options: tuple[str, ...] = ("shifted", "as_text", "seeds", "rows")

    def tables(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Print Tables 1–3; write each as CSV, Markdown and LaTeX, and the statistics of every comparison."""
        made = tables(_load(store, options))
        for table in made:
            console.print(as_text(table))
            for suffix, text in (("csv", as_csv(table)), ("md", as_markdown(table)), ("tex", as_latex(table))):
                write_text(to / f"{table.name}.{suffix}", text)
        write_text(to / "statistics.csv", statistics_csv(made))
        say(console, f"written to {to}: {', '.join(table.name for table in made)} (csv, md, tex), statistics.csv")

    def compare(
        self, store: Store, options: Options, against: Path, table: int | None, to: Path, console: Console
    ) -> None:
        """Print how far the tables agree with printed ones; write every cell as CSV, and where the runs come from."""
        printed, results = printed_tables(against, table), _load(store, options)
        ours = {made.name: made for made in tables(results, also_used=True)}
        if missing := printed.keys() - ours.keys():
            raise LabError(f"there are no runs for {', '.join(sorted(missing))}")
        written = []
        for name, made in ours.items():
            if (of := name.partition("_")[0]) in printed:
                cells = agreement(made, printed[of])
                if not cells:
                    raise LabError(f"{against} has no row and method in common with the runs in {store.directory}")
                _say_agreement(made, cells, printed[of], console)
                written.append(f"agreement_{name}.csv")
                write_text(to / written[-1], _agreement_csv(cells))
        write_text(to / "provenance.json", json_text(_provenance(results, store)))
        say(console, f"written to {to}: {', '.join(written)}, provenance.json")

    def claims(self, store: Store, options: Options) -> list[Claim]:
        return claims(_load(store, options))

    def figures(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Write curves of the chosen rows (`function,d,std`) and the overview of ranks as PDF, SVG and PNG."""
        paths = figures.write(_load(store, options), to, [_row(text) for text in options.rows] or None)
        say(console, f"written to {to}: {', '.join(sorted({path.stem for path in paths}))} (pdf, svg, png)")

    def chapter(self, directory: Path) -> Chapter:
        return report.chapter(directory)

    def export(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Write what is worth keeping: tables with standard errors, statistics, claims, figures, provenance."""
        results = _load(store, options)
        made = tables(results)
        for table in made:
            write_text(to / f"{table.name}.csv", as_csv(table))
        write_text(to / "statistics.csv", statistics_csv(made))
        write_text(to / "claims.json", as_json(claims(results)))
        write_text(to / "provenance.json", json_text(_provenance(results, store)))
        save_small(figures.curves(results, [_row(text) for text in options.rows] or None), to / "curves.png")
        save_small(figures.overview(results), to / "overview.png")
        names = ", ".join(table.name for table in made)
        say(console, f"written to {to}: {names}, statistics, claims, curves, overview, provenance")


def _load(store: Store, options: Options) -> Results:
    reading = Reading.TEXT if options.as_text else Reading.PRINT
    return load(store, Variant(options.shifted, reading), options.seeds)


def _say_agreement(table: FunctionTable, cells: list[Cell], printed: Printed, console: Console) -> None:
    """By method and dimension, cell by cell where they differ, and in all."""
    console.print(_agreement_table(table, cells))
    for cell in cells:
        if not cell.agrees:
            say(console, f"differs: {cell.row.label}, {cell.method}: ours {number(cell.ours)} "
                 f"± {cell.standard_error:.2g}, printed {number(cell.printed)}")  # fmt: skip
    same = sum(printed.best.get(row) == best for row, best in zip(table.rows, table.best, strict=True))
    left_out = [method for method in table.methods if table.compares_with_itself(method)]
    said = f" ({', '.join(left_out)} compared with itself is not counted)" if left_out else ""
    console.print(
        f"{table.title}: [bold]{counts(cells)}[/bold] cells agree with the printed ones{said}; "
        f"the best method is the printed one in {same} of {len(table.rows)} rows.",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _agreement_table(table: FunctionTable, cells: list[Cell]) -> Table:
    text = Table(title=f"{table.title}: cells that agree", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    text.add_column("Method")
    dims = sorted({cell.row.dim for cell in cells})
    for heading in (*(f"d = {dim}" for dim in dims), "all"):
        text.add_column(heading, justify="right")
    for method in (*table.methods, "all"):
        mine = [cell for cell in cells if method in (cell.method, "all")]
        if mine:
            text.add_row(method, *(counts([c for c in mine if c.row.dim == dim]) for dim in dims), counts(mine))
    return text


def _agreement_csv(cells: list[Cell]) -> str:
    header = ["function", "dim", "std", "method", "ours", "se", "seeds", "printed", "allowed", "agrees"]
    rows = []
    for c in cells:
        numbers = [f"{x:.6g}" for x in (c.ours, c.standard_error)]
        verdict = [f"{c.printed:g}", f"{c.allowed:.4g}", int(c.agrees)]
        rows.append([*c.row[:2], f"{c.row.std:g}", c.method, *numbers, c.seeds, *verdict])
    return csv_text(header, rows)


def _provenance(results: Results, store: Store) -> dict[str, Any]:
    return {
        "study": f"functions: {results.variant.label}",
        "rows": len(results.rows),
        "methods": list(results.methods),
        "seeds": [results.seeds[0], results.seeds[-1]],
        "runs": int(np.isfinite(results.final).sum()),
        "machines": machines(results.provenance),
        "seconds_per_generation": {
            str(dim): {"fixed rate": times[0], "GESMR": times[1]}
            for dim, times in ((d, np.median(t, axis=0).round(9).tolist()) for d, t in sorted(results.seconds.items()))
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
