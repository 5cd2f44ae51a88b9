"""A table, as every study shows it: for the terminal, and as CSV, Markdown and LaTeX."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import box, table
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from .output import csv_text

_GAP = 2  # columns of a terminal between those of a table
_LEAST = 12  # to which text is folded


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
        cells = self._cells
        return [not any(isinstance(row[i].value, str) for row in cells) for i in range(len(self.columns))]

    @property
    def shown(self) -> list[list[str]]:
        """The cells as people see them, without marks."""
        return [[cell.shown for cell in row] for row in self._cells]

    @property
    def _cells(self) -> list[list[Cell]]:
        return [[cell if isinstance(cell, Cell) else Cell(cell, _show(cell)) for cell in row] for row in self.rows]

    def text(self, width: int) -> Group:
        """For a terminal of so many columns: where they are too few, some columns at a time, with the names of rows."""
        cells = self._drawn
        widths = [max(map(cell_len, (name, *(row[i].plain for row in cells)))) for i, name in enumerate(self.headings)]
        names = self._naming(widths, 2 / 3 * width)
        others = [i for i in range(len(widths)) if i not in names]
        # A column of text may be folded if it, with the row names, would not fit otherwise
        room = width - sum(widths[i] + _GAP for i in names)
        blocks = _blocks(others, [min(w, max(room, _LEAST)) for w in widths], room)
        shown: list[RenderableType] = []
        for place, block in enumerate(blocks, 1):
            part = f" ({place} of {len(blocks)})" if len(blocks) > 1 else ""
            title = Text(self.title + part, style="table.title")
            shown += [title, Text(), self._block(sorted([*names, *block]), cells), Text()]
        return Group(*shown, *([Text(f"{self.note}\n", style="table.caption")] if self.note else []))

    @property
    def _drawn(self) -> list[list[Text]]:
        return [
            [Text(cell.marked("{}", "*"), style="bold" if cell.bold else "") for cell in row] for row in self._cells
        ]

    def _naming(self, widths: Sequence[int], room: float) -> list[int]:
        """The columns that name a row, so that it can be found in every block: few that tell rows apart, of those that
        can be no result if that is possible, and no more than there is room for."""
        shown, cells, everything = self.shown, self._cells, range(len(self.columns))
        sure = [i for i in everything if not any(_is_result(row[i].value) for row in cells)]

        def apart(columns: Sequence[int]) -> int:
            return len({tuple(row[i] for i in columns) for row in shown})

        chosen = [0]
        for among in (sure, everything):
            chosen = [0]
            for i in among:
                more = [*chosen, i]
                if apart(more) > apart(chosen) and sum(widths[j] + _GAP for j in more) <= room:
                    chosen = more
            if apart(chosen) == len(shown):
                break
        return chosen

    def _block(self, chosen: Sequence[int], cells: Sequence[Sequence[Text]]) -> table.Table:
        text = table.Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
        headings, numeric = self.headings, self.numeric
        for i in chosen:
            justify = "right" if numeric[i] else "left"
            no_wrap = numeric[i] or self.sections
            text.add_column(escape(headings[i]), justify=justify, no_wrap=no_wrap, overflow="fold")
        begins = [row[0] for row in self.shown]
        for i, row in enumerate(cells):
            again = self.sections and begins[i] in begins[max(i - 1, 0) : i]
            text.add_row(
                *(Text() if again and column == 0 else row[column] for column in chosen),
                end_section=self.sections and begins[i] not in begins[i + 1 : i + 2],
            )
        return text

    def plain(self) -> dict[str, Any]:
        """For JSON: rows by the columns' names in CSV, numbers in full."""
        names, rows = self._names, []
        for row in self._cells:
            found: dict[str, Any] = {name: _finite(cell.value) for name, cell in zip(names, row, strict=True)}
            errors = {name: cell.error for name, cell in zip(names, row, strict=True) if cell.error is not None}
            if errors:
                best = next((i for i, cell in enumerate(row) if cell.bold), None)
                found["best"] = None if best is None else names[best]
                found["significant"] = best is not None and row[best].starred
                found["standard_errors"] = {name: _finite(error) for name, error in errors.items()}
            rows.append(found)
        return {"name": self.name, "title": self.title, "columns": names, "rows": rows, "note": self.note}

    @property
    def _names(self) -> list[str]:
        return [column.name if isinstance(column, Column) else column for column in self.columns]

    def csv(self) -> str:
        names = self._names
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


def _blocks(columns: Sequence[int], widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns in as few blocks as fit into the room, and as even as can be."""

    def filled(most: int) -> list[list[int]]:
        made: list[list[int]] = [[]]
        for column in columns:
            if made[-1] and (len(made[-1]) == most or sum(widths[i] + _GAP for i in (*made[-1], column)) > room + _GAP):
                made.append([])
            made[-1].append(column)
        return made

    fewest = len(filled(len(columns)))
    return next(made for most in range(1, len(columns) + 1) if len(made := filled(most)) == fewest)


def _is_result(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not value.is_integer())


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
