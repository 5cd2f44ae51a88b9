"""A table, as every study shows it: for the terminal, and as CSV, Markdown and LaTeX."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import box, table
from rich.markup import escape
from rich.text import Text

from .output import csv_text


@dataclass(frozen=True)
class Cell:
    """A cell that people see in another form than files, or that is set apart."""

    value: Any  # a number has six digits in CSV; NaN is empty there
    shown: str
    bold: bool = False
    starred: bool = False
    error: float | None = None  # the standard error, which has a column of its own in CSV

    def marked(self, bold: str, star: str) -> str:
        """What people see, with its marks."""
        return (bold.format(self.shown) if self.bold else self.shown) + star * self.starred


@dataclass(frozen=True)
class Column:
    name: str  # in CSV
    heading: str  # for people; a single letter is a variable


@dataclass(frozen=True)
class Table:
    """Cells are text, whole numbers, numbers that are shown with four significant digits, None, or a `Cell`.

    Where cells have errors, CSV names the bold column of a row, says whether it is starred, and ends with the errors.
    """

    name: str  # of its files
    title: str
    columns: tuple[str | Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""
    sections: bool = False  # whether rows that begin alike stand together on a terminal

    @property
    def headings(self) -> list[str]:
        return [column.heading if isinstance(column, Column) else column for column in self.columns]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold no text."""
        return [not any(isinstance(row[i].value, str) for row in self._cells) for i in range(len(self.columns))]

    @property
    def shown(self) -> list[list[str]]:
        """The cells as people see them, without marks."""
        return [[cell.shown for cell in row] for row in self._cells]

    @property
    def _cells(self) -> list[list[Cell]]:
        return [[cell if isinstance(cell, Cell) else Cell(cell, _show(cell)) for cell in row] for row in self.rows]

    def text(self) -> table.Table:
        """For the terminal."""
        text = table.Table(title=escape(self.title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        text.collapse_padding = True
        text.caption, text.caption_justify = escape(self.note), "left"
        for heading, numeric in zip(self.headings, self.numeric, strict=True):
            justify = "right" if numeric else "left"
            text.add_column(escape(heading), justify=justify, no_wrap=numeric or self.sections, overflow="fold")
        begins = [row[0] for row in self.shown]
        for i, row in enumerate(self._cells):
            cells = [Text(cell.marked("{}", "*"), style="bold" if cell.bold else "") for cell in row]
            if self.sections and begins[i] in begins[max(i - 1, 0) : i]:
                cells[0] = Text()
            text.add_row(*cells, end_section=self.sections and begins[i] not in begins[i + 1 : i + 2])
        return text

    def csv(self) -> str:
        names = [column.name if isinstance(column, Column) else column for column in self.columns]
        with_error = [i for i in range(len(names)) if any(row[i].error is not None for row in self._cells)]
        lines = [[_plain(cell) for cell in row] for row in self.rows]
        if not with_error:
            return csv_text(names, lines)
        ends = []
        for row in self._cells:
            best = next((i for i in with_error if row[i].bold), None)
            ends.append(["", 0] if best is None else [names[best], int(row[best].starred)])
            ends[-1] += [_plain(Cell(row[i].error, "")) for i in with_error]
        header = [*names, "best", "significant", *(f"{names[i]}_se" for i in with_error)]
        return csv_text(header, [[*line, *end] for line, end in zip(lines, ends, strict=True)])

    def markdown(self) -> str:
        lines = [
            self.headings,
            ["--:" if numeric else ":--" for numeric in self.numeric],
            *([cell.marked("**{}**", "\\*") for cell in row] for row in self._cells),
        ]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def latex(self) -> str:
        """A `tabular` for the booktabs package."""
        headings = [f"${h}$" if len(h) == 1 else h.replace("†", r"$^\dagger$") for h in self.headings]
        cells = ([cell.marked(r"\textbf{{{}}}", "*") for cell in row] for row in self._cells)
        rows = [[text.replace("-", "$-$").replace("–", "--") for text in row] for row in cells]
        align = "".join("r" if numeric else "l" for numeric in self.numeric)
        lines = [f"% {self.title}", rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
        lines += [_ampersands(headings), r"\midrule", *map(_ampersands, rows)]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _show(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(cell: Any) -> Any:
    """As CSV has it."""
    if not isinstance(cell, Cell):
        return "" if cell is None else cell
    if not isinstance(cell.value, float):
        return cell.value
    return "" if math.isnan(cell.value) else f"{cell.value:.6g}"


def _ampersands(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
