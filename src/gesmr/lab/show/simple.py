"""A view for studies whose results are a few tables and figures: they say what these are, this shows them."""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import LabError
from ..run.store import Store, StoredJob, write_text
from .claims import Claim, as_json
from .figures import save, save_small, style
from .output import csv_text, json_text, machines, say
from .report.base import Chapter, Outcome, Section
from .views import Options

R = TypeVar("R")


@dataclass(frozen=True)
class SimpleTable:
    """A table of plain cells: text, whole numbers, and numbers that are shown with four significant digits."""

    name: str  # of its files
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold no text."""
        return [all(not isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]

    def text(self) -> Table:
        """For the terminal."""
        table = Table(
            title=escape(self.title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
        )
        table.caption, table.caption_justify = escape(self.note), "left"
        for column, numeric in zip(self.columns, self.numeric, strict=True):
            table.add_column(escape(column), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
        for row in self.rows:
            table.add_row(*(escape(show(cell)) for cell in row))
        return table

    def csv(self) -> str:
        return csv_text(self.columns, [["" if cell is None else cell for cell in row] for row in self.rows])

    def markdown(self) -> str:
        lines = [
            self.columns,
            ["--:" if numeric else ":--" for numeric in self.numeric],
            *(tuple(map(show, row)) for row in self.rows),
        ]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def show(cell: Any) -> str:
    """A cell as people read it."""
    return "–" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True)
class StudyView(Generic[R]):
    """What a study shows, given how to read its results `R` from the groups of a store.

    `figures` maps a file's name to a caption and a figure. `claims` may be empty.
    """

    name: str
    title: str
    text: str  # what the reader of the report should look for
    load: Callable[[Sequence[StoredJob]], R]
    summary: Callable[[R], str]  # what was run, in a line
    make_tables: Callable[[R], Sequence[SimpleTable]]
    make_figures: Callable[[R], Mapping[str, tuple[str, Figure]]]
    decide: Callable[[R], Sequence[Claim]] = lambda results: ()
    options: tuple[str, ...] = ()

    def tables(self, store: Store, options: Options, to: Path, console: Console) -> None:
        made = self.make_tables(self.results(store))
        if not made:
            raise LabError(f"the study {self.name} has figures but no table")
        for table in made:
            console.print(table.text())
            write_text(to / f"{table.name}.csv", table.csv())
            write_text(to / f"{table.name}.md", table.markdown())
        say(console, f"written to {to}: {', '.join(table.name for table in made)} (csv, md)")

    def figures(self, store: Store, options: Options, to: Path, console: Console) -> None:
        with style():
            made = self.make_figures(self.results(store))
        for name, (_, figure) in made.items():
            save(figure, to / name)
        say(console, f"written to {to}: {', '.join(made)} (pdf, svg, png)")

    def claims(self, store: Store, options: Options) -> list[Claim]:
        return list(self.decide(self.results(store)))

    def export(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Tables, claims, figures in few colours, provenance, and a page that shows them."""
        groups = list(store.jobs())
        results = self.results(store)
        tables, claims = self.make_tables(results), self.decide(results)
        with style():
            figures = self.make_figures(results)
        provenance = {
            "study": self.title,
            "runs": sum(len(group.specs) for group in groups),
            "machines": machines(group.provenance for group in groups),
            "sessions": store.sessions(),
        }
        for table in tables:
            write_text(to / f"{table.name}.csv", table.csv())
        for name, (_, figure) in figures.items():
            save_small(figure, to / f"{name}.png")
        write_text(to / "claims.json", as_json(claims))
        write_text(to / "provenance.json", json_text(provenance))
        captions = {name: caption for name, (caption, _) in figures.items()}
        page = _page(self, self.summary(results), claims, tables, captions, provenance)
        write_text(to / "README.md", page)
        say(console, f"written to {to}: README.md, tables, figures, claims, provenance")

    def chapter(self, directory: Path) -> Chapter:
        store = Store(directory)
        groups = list(store.jobs())
        results = self.results(store)
        with style():
            figures = self.make_figures(results)
        images = [{"caption": caption, "source": _data_uri(figure)} for caption, figure in figures.values()]
        tables = [
            {
                "title": t.title,
                "columns": [
                    (column, "number" if numeric else "") for column, numeric in zip(t.columns, t.numeric, strict=True)
                ],
                "rows": [list(map(show, row)) for row in t.rows],
                "note": t.note,
            }
            for t in self.make_tables(results)
        ]
        context = {"text": self.text, "images": images, "tables": tables}
        return Chapter(
            title=self.title,
            summary=self.summary(results),
            outcomes=[Outcome("", claim) for claim in self.decide(results)],
            caution="",
            sections=[Section(self.name, self.title, "show/report/simple.html.j2", context)],
            provenance=[group.provenance for group in groups],
            runs=sum(len(group.specs) for group in groups),
            commands=[f"gesmr study run {self.name} --out {directory.parent}"],
        )

    def results(self, store: Store) -> R:
        """What the study found, or an error that says what to run."""
        groups = list(store.jobs())
        if not groups:
            raise LabError(f"{store.directory} holds no results; `gesmr study run {self.name}` makes some")
        return self.load(groups)


def _page(
    view: StudyView,
    summary: str,
    claims: Sequence[Claim],
    tables: Sequence[SimpleTable],
    captions: Mapping[str, str],
    provenance: Mapping[str, Any],
) -> str:
    """A study's results in Markdown."""
    parts = [f"# {view.title}", view.text, f"{summary}. {_where(provenance)}"]
    for claim in claims:
        parts.append(f"**Claim {claim.number}: {claim.verdict}.** {claim.claim}. Found: {claim.found}.")
        parts.append(f"The rule: {claim.rule}.")
        if claim.short:
            parts.append(f"Decided on less than the paper's runs: {claim.short}.")
    parts += [f"![{name}]({name}.png)\n\n{caption}" for name, caption in captions.items()]
    parts += [f"## {table.title}\n\n{table.markdown()}\n{table.note}".rstrip() for table in tables]
    return "\n\n".join(parts) + "\n"


def _where(provenance: Mapping[str, Any]) -> str:
    """On what machines, and how long it took."""
    devices = dict.fromkeys(f"{m['device']} (JAX {m['jax']})" for m in provenance["machines"])
    seconds = sum(s["wall_seconds"] for s in provenance["sessions"])
    return f"{provenance['runs']:,} runs on {', '.join(devices)}, {seconds:,.0f} s with compilation."


def _data_uri(figure: Figure) -> str:
    data = io.BytesIO()
    with style():
        figure.savefig(data, format="png", dpi=160, metadata={"Software": None})
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
