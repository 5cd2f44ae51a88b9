"""Tables in a terminal: they fit, and nothing of them is lost."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gesmr.lab.run.lanes import METHODS
from gesmr.lab.show.claims import Claim, Verdict, as_text
from gesmr.lab.show.table import Table
from gesmr.lab.studies.functions.tables import make_tables
from helpers.studies import ROWS, around, made_up_results

RESULTS = Path(__file__).parents[3] / "results"


def printed(renderable, width):
    out = io.StringIO()
    Console(width=width, file=out).print(renderable)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 150])
def test_tables_1_to_3_fit_with_every_row_name_and_number(width):
    values = around(10 ** np.random.default_rng(0).uniform(-1, 9, (len(ROWS), len(METHODS))))
    for table in make_tables(made_up_results(values, ROWS)):
        text = printed(table.text(width), width)
        lines = text.splitlines()
        assert max(map(len, lines)) <= width
        blocks = text.count(table.title.partition(":")[0])
        assert blocks == 1 if width == 150 else blocks > 1
        assert [line.split().count("std") for line in lines].count(1) == blocks  # every block says which row it is
        rows = [
            line.split() for line in lines if line.strip() and isinstance(_number(line.split()[-1].rstrip("*")), float)
        ]
        assert len(rows) == blocks * len(table.rows)
        for number, cells in enumerate(table.shown):
            mine = rows[number :: len(table.rows)]
            of_blocks = [row[row[0] == cells[0] :] for row in mine]
            assert all(row[:2] == cells[1:3] for row in of_blocks)
            assert [cell.rstrip("*") for row in of_blocks for cell in row[2:]] == cells[3:]


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*/*.csv")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_committed_table_fits_80_columns(path):
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = [row for row in csv.reader(file) if row]
    cells = tuple(tuple(map(_number, row)) for row in rows[:40])
    table = Table(path.stem, path.stem, tuple(header), cells, "A note.")
    text = printed(table.text(80), 80)
    assert max(map(len, text.splitlines())) <= 80
    words = set(text.split())
    assert {shown for row, line in zip(cells, table.shown, strict=True) for value, shown in zip(row, line, strict=True)
            if isinstance(value, float)} <= words  # fmt: skip
    assert {name for name in header if name and " " not in name} <= words


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def test_json_has_numbers_in_full_and_no_nan():
    values = around(np.ones((2, len(METHODS))))
    values[0, 0] = np.nan
    (table, *_) = make_tables(made_up_results(values, ROWS[:2]))
    plain = json.loads(json.dumps(table.plain(), allow_nan=False))
    row = plain["rows"][0]
    assert (row["function"], row["dim"], row["std"]) == ("ackley", 2, 1.0)
    assert row[METHODS[0]] is None
    assert row["GESMR"] == pytest.approx(values[0, list(METHODS).index("GESMR")].mean(), rel=1e-12)
    assert row["best"] in METHODS
    assert set(row["standard_errors"]) <= set(METHODS)


@pytest.mark.parametrize("width", [80, 150])
def test_claims_fit_and_say_all(width):
    claim = Claim(
        7, "a claim " * 30, "a rule of [brackets] " * 20, "what was found " * 25, Verdict.FAILS, "5 of 40 seeds"
    )
    text = printed(as_text([claim], width), width)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    assert words.count("claim") >= 30
    assert words.count("[brackets]") == 20
    assert words.count("found") >= 25
    assert "does not hold" in text
