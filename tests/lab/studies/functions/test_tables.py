"""The main study's tables: what is marked, what is written, and agreement with the printed ones."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats as scipy_stats

from gesmr.lab.errors import LabError
from gesmr.lab.run.lanes import METHODS, ORACLES
from gesmr.lab.studies.functions.agreement import (
    Cell,
    agreement,
    half_a_printed_unit,
    printed_tables,
    read_printed,
    which_table,
)
from gesmr.lab.studies.functions.results import Row
from gesmr.lab.studies.functions.tables import as_table, estimates, number, statistics_csv
from helpers import PRINTED
from helpers.studies import ROWS, around, made_up_results


@pytest.fixture
def results():
    """Three rows of Sphere. GESMR wins the first clearly, ties with SAMR in the second, and has no run in the third."""
    centres = np.array([[float(m + 2) for m in range(len(METHODS))]] * 3)
    gesmr, samr = METHODS.index("GESMR"), METHODS.index("SAMR")
    centres[:, gesmr] = 1.0
    centres[1, samr] = 1.0
    values = around(centres)
    values[:, :2] = -5.0  # the oracles, which do not compete
    values[2, gesmr] = np.nan
    return made_up_results(values)


def test_best_and_asterisk_leave_the_oracles_out(results):
    table = estimates(results)[0]
    assert set(table.ranked) == set(METHODS) - set(ORACLES)
    assert table.best[0] == "GESMR"
    assert table.best[1] in ("GESMR", "SAMR")
    assert table.best[2] == "FMR"  # the lowest centre among those that ran
    assert table.significant == (True, False, True)
    assert set(table.tests[0]) == set(table.ranked) - {"GESMR"}
    assert table.tests[0]["SAMR"]["welch_p_holm"] >= table.tests[0]["SAMR"]["welch_p"]
    assert table.tests[0]["SAMR"]["probability_lower"] == 1


def test_a_test_uses_the_seeds_both_have(results):
    results.final[0, METHODS.index("FMR"), :4] = np.nan
    table = estimates(results)[0]
    kept = results.final[0][:, 4:]
    expected = scipy_stats.ttest_ind(kept[METHODS.index("GESMR")], kept[METHODS.index("SAMR")], equal_var=False)[1]
    assert table.tests[0]["SAMR"]["welch_p"] == pytest.approx(expected)
    assert table.mean[0, METHODS.index("FMR")] == pytest.approx(kept[METHODS.index("FMR")].mean())


def test_csv_has_the_printed_columns_and_standard_errors(results):
    with PRINTED.open() as file:
        printed = next(csv.reader(file))
    lines = list(csv.DictReader(io.StringIO(as_table(estimates(results)[0]).csv())))
    assert list(lines[0]) == [*printed, *(f"{method}_se" for method in METHODS)]
    values = results.final[0, METHODS.index("SAMR")]
    assert float(lines[0]["SAMR"]) == pytest.approx(values.mean(), rel=1e-5)
    assert float(lines[0]["SAMR_se"]) == pytest.approx(values.std(ddof=1) / np.sqrt(12), rel=1e-5)
    assert (lines[0]["best"], lines[0]["significant"], lines[0]["std"]) == ("GESMR", "1", "1")
    assert (lines[2]["GESMR"], lines[2]["GESMR_se"]) == ("", "")


def test_markdown_and_latex_mark_the_best(results):
    table = estimates(results)[0]
    rows = as_table(table).markdown().splitlines()
    assert rows[0].startswith("| Function | d | std | OFMR† | LAMR-100† |")
    assert "| **1.0**\\* |" in rows[2]
    assert rows[4].count("–") == 1
    latex = as_table(table).latex()
    assert r"\textbf{1.0}*" in latex
    assert "$-$5.0" in latex
    assert latex.count(r"\\") == 4
    assert latex.count("&") == 4 * (2 + len(METHODS))


def test_the_terminal_shows_every_number_in_bold_or_not(results):
    said = io.StringIO()
    console = Console(width=150, force_terminal=True, color_system="standard", file=said)
    console.print(as_table(estimates(results)[0]).text(150))
    text = said.getvalue()
    assert "\x1b[1m1.0*\x1b[0m" in text.replace(" ", "")
    assert all(method in text for method in METHODS)


def test_statistics_list_every_comparison(results):
    lines = list(csv.DictReader(io.StringIO(statistics_csv(estimates(results)[:1]))))
    assert len(lines) == 8 + 8 + 7
    assert {"welch_p", "paired_p_holm", "wilcoxon_p", "mann_whitney_p", "cohen_d", "best_median"} <= set(lines[0])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "0.0"), (-0.01, "0.0"), (9999.94, "9999.9"), (12345.0, "1.2e+04"), (-2.5e30, "-2.5e+30"), (np.nan, "–")],
)
def test_numbers_are_printed_as_in_the_paper(value, text):
    assert number(value) == text


def test_nine_standard_errors_for_forty_seeds():
    cell = Cell(Row("sphere", 2, 1.0), "GESMR", ours=0.0, standard_error=1.0, seeds=40, printed=9.04)
    assert cell.allowed == pytest.approx(9.05)
    assert cell.agrees
    assert not Cell(cell.row, "GESMR", 0.0, 1.0, 40, 9.06).agrees
    assert Cell(cell.row, "GESMR", 95.1, 0.0, 40, 100.0).agrees  # within five per cent
    assert not Cell(cell.row, "GESMR", 94.9, 0.0, 40, 100.0).agrees
    assert half_a_printed_unit(2.3e6) == pytest.approx(5e4)


def test_agreement_with_the_printed_table_itself():
    """A table that is the printed one agrees everywhere; one that is off by a tenth hardly anywhere."""
    printed = read_printed(PRINTED)
    exact = np.array([[[printed.cells[row, m]] * 2 for m in METHODS] for row in ROWS])
    off = exact + np.where(exact < 0, -1, 1) * (0.1 * np.abs(exact) + 0.06)
    same, other = (estimates(made_up_results(values, list(ROWS)))[0] for values in (exact, off))
    assert all(cell.agrees for cell in agreement(same, printed))
    assert not any(cell.agrees for cell in agreement(other, printed))
    assert len(agreement(same, printed)) == len(ROWS) * 11  # Linear and UCB count too


def test_lamr_compared_with_itself_is_not_counted():
    """40 rows × 10 methods of Table 3; LAMR-100's own column says nothing."""
    (file,) = PRINTED.parent.glob("table3*.csv")
    printed = read_printed(file)
    rows = list(printed.best)
    made = made_up_results(np.zeros((len(rows), len(METHODS), 2)), rows)
    third, used = estimates(made, also_used=True)[2:]
    for table in (third, used):
        cells = agreement(table, printed)
        assert len(cells) == 400
        assert {cell.method for cell in cells} == set(METHODS) - {"LAMR-100"}


def test_a_directory_of_printed_tables(tmp_path):
    assert list(printed_tables(PRINTED.parent)) == ["table1", "table2", "table3"]
    assert list(printed_tables(PRINTED.parent, 2)) == ["table2"]
    assert list(printed_tables(PRINTED)) == ["table1"]
    assert list(printed_tables(PRINTED, 3)) == ["table3"]  # whatever its name says
    with pytest.raises(LabError, match="holds no printed table"):
        printed_tables(tmp_path)


def test_printed_tables_that_are_none(tmp_path):
    with pytest.raises(LabError, match="cannot be read"):
        read_printed(tmp_path / "absent.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(LabError, match="columns function, dim, std"):
        read_printed(tmp_path / "other.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LabError, match="columns function, dim, std"):
        read_printed(tmp_path / "binary.csv")
    assert which_table(Path("my_table2_x.csv")) == "table2"
    with pytest.raises(LabError, match="--table"):
        which_table(Path("mine.csv"))
