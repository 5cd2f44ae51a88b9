"""Statistics, tables, agreement with printed tables and claims, on numbers whose answers are known."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats as scipy_stats

from gesmr.lab.errors import LabError
from gesmr.lab.run.lanes import METHODS, ORACLES
from gesmr.lab.show import stats
from gesmr.lab.show.claims import Verdict, shortfall
from gesmr.lab.show.claims import as_text as claims_as_text
from gesmr.lab.studies.functions.agreement import (
    Cell,
    agreement,
    half_a_printed_unit,
    printed_tables,
    read_printed,
    which_table,
)
from gesmr.lab.studies.functions.claims import claims
from gesmr.lab.studies.functions.results import Row
from gesmr.lab.studies.functions.tables import as_csv, as_latex, as_markdown, as_text, number, statistics_csv, tables
from helpers import PRINTED
from helpers.studies import made_up_results

ROWS = [Row(f, d, s) for f in ("ackley", "griewank", "rastrigin", "rosenbrock", "sphere", "linear")
        for d in (2, 30, 100) for s in (1.0, 10.0)]  # fmt: skip


def spread(centres, seeds=12, noise=0.1, seed=0):
    """`f[len(centres), seeds]` about the centres."""
    return np.asarray(centres, float)[..., None] + np.random.default_rng(seed).normal(
        0, noise, (*np.shape(centres), seeds)
    )


def test_comparisons_are_scipys_one_by_one():
    rng = np.random.default_rng(1)
    x, y = rng.normal(0, 1, 15), rng.normal(0.5, 2, (3, 15))
    compared = stats.compare(x, y)
    for i in range(3):
        assert compared.welch[i] == pytest.approx(scipy_stats.ttest_ind(x, y[i], equal_var=False)[1])
        assert compared.paired[i] == pytest.approx(scipy_stats.ttest_rel(x, y[i]).pvalue)
        assert compared.wilcoxon[i] == pytest.approx(scipy_stats.wilcoxon(x, y[i])[1])
        u = scipy_stats.mannwhitneyu(x, y[i])
        assert compared.mann_whitney[i] == pytest.approx(u.pvalue)
        assert compared.probability_lower[i] == pytest.approx(1 - u.statistic / (15 * 15))
        pooled = np.sqrt((x.var(ddof=1) + y[i].var(ddof=1)) / 2)
        assert compared.cohen_d[i] == pytest.approx((x.mean() - y[i].mean()) / pooled)


def test_samples_without_variance():
    zeros, ones, varied = np.zeros(5), np.ones(5), np.arange(5.0)
    same, apart, shifted = (stats.compare(a, b) for a, b in ((zeros, zeros), (zeros, ones), (varied, varied + 1)))
    assert (same.welch, same.paired, same.wilcoxon, same.mann_whitney) == (1, 1, 1, 1)
    assert (same.cohen_d, same.probability_lower) == (0, 0.5)
    assert (apart.welch, apart.paired, apart.probability_lower) == (0, 0, 1)
    assert apart.cohen_d == -np.inf
    assert shifted.paired == 0
    assert 0 < shifted.welch < 1


def test_missing_values_have_no_p_value():
    x = np.array([1.0, 2.0, np.nan])
    assert np.isnan(stats.compare(x, np.ones(3)).welch)
    assert np.isnan(stats.compare(np.ones(1), np.zeros(1)).welch)


def test_holm_worked_by_hand():
    np.testing.assert_allclose(stats.holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(stats.holm(np.array([0.6, np.nan, 0.5])), [1.0, np.nan, 1.0])
    np.testing.assert_allclose(stats.holm(np.array([[0.02], [0.02]])), [[0.04], [0.04]])


@pytest.fixture
def results():
    """Three rows of Sphere. GESMR wins the first clearly, ties with SAMR in the second, and has no run in the third."""
    centres = np.array([[float(m + 2) for m in range(len(METHODS))]] * 3)
    gesmr, samr = METHODS.index("GESMR"), METHODS.index("SAMR")
    centres[:, gesmr] = 1.0
    centres[1, samr] = 1.0
    values = spread(centres)
    values[:, :2] = -5.0  # the oracles, which do not compete
    values[2, gesmr] = np.nan
    return made_up_results(values)


def test_best_and_asterisk_leave_the_oracles_out(results):
    table = tables(results)[0]
    assert set(table.ranked) == set(METHODS) - set(ORACLES)
    assert table.best[0] == "GESMR"
    assert table.best[1] in ("GESMR", "SAMR")
    assert table.best[2] == "FMR"  # the lowest centre among those that ran
    assert table.significant == (True, False, True)
    assert set(table.tests[0]) == set(table.ranked) - {"GESMR"}
    assert table.tests[0]["SAMR"]["welch_p_holm"] >= table.tests[0]["SAMR"]["welch_p"]
    assert table.tests[0]["SAMR"]["probability_lower"] == 1


def test_resampled_means_and_their_interval():
    """Normal samples: the middle 95% of resampled means is about ±1.96 standard errors. NaN are left out."""
    values = np.random.default_rng(3).normal(5, 2, (2, 400))
    values[1, ::2] = np.nan
    means = stats.resampled_means(values)
    assert means.shape == (2, 1000)
    for row, spread_of_means in zip(values, means, strict=True):
        kept = row[np.isfinite(row)]
        half = 1.96 * kept.std() / np.sqrt(len(kept))
        np.testing.assert_allclose(stats.interval(spread_of_means), [kept.mean() - half, kept.mean() + half], atol=0.06)


def test_a_ratio_of_medians_and_its_interval():
    rng = np.random.default_rng(4)
    ratio = stats.ratio_of_medians(3 * np.exp(rng.normal(0, 0.1, 200)), np.exp(rng.normal(0, 0.1, 200)))
    assert ratio.low < 3 < ratio.high
    assert 2.8 < ratio.low < ratio.value < ratio.high < 3.2
    same = stats.ratio_of_medians(np.full(5, 2.0), np.full(5, 4.0))
    assert (same.value, same.low, same.high) == (0.5, 0.5, 0.5)


def test_shortfall():
    assert shortfall(seeds=(5, 40), generations=(60, 1000)) == "5 of 40 seeds, 60 of 1,000 generations"
    assert shortfall(seeds=(80, 40), generations=(1000, 1000)) == ""


def test_a_test_uses_the_seeds_both_have(results):
    results.final[0, METHODS.index("FMR"), :4] = np.nan
    table = tables(results)[0]
    kept = results.final[0][:, 4:]
    expected = scipy_stats.ttest_ind(kept[METHODS.index("GESMR")], kept[METHODS.index("SAMR")], equal_var=False)[1]
    assert table.tests[0]["SAMR"]["welch_p"] == pytest.approx(expected)
    assert table.mean[0, METHODS.index("FMR")] == pytest.approx(kept[METHODS.index("FMR")].mean())


def test_csv_has_the_printed_columns_and_standard_errors(results):
    with PRINTED.open() as file:
        printed = next(csv.reader(file))
    lines = list(csv.DictReader(io.StringIO(as_csv(tables(results)[0]))))
    assert list(lines[0]) == [*printed, *(f"{method}_se" for method in METHODS)]
    values = results.final[0, METHODS.index("SAMR")]
    assert float(lines[0]["SAMR"]) == pytest.approx(values.mean(), rel=1e-5)
    assert float(lines[0]["SAMR_se"]) == pytest.approx(values.std(ddof=1) / np.sqrt(12), rel=1e-5)
    assert (lines[0]["best"], lines[0]["significant"], lines[0]["std"]) == ("GESMR", "1", "1")
    assert (lines[2]["GESMR"], lines[2]["GESMR_se"]) == ("", "")


def test_markdown_and_latex_mark_the_best(results):
    table = tables(results)[0]
    rows = as_markdown(table).splitlines()
    assert rows[0].startswith("| Function | d | std | OFMR† | LAMR-100† |")
    assert "| **1.0**\\* |" in rows[2]
    assert rows[4].count("–") == 1
    latex = as_latex(table)
    assert r"\textbf{1.0}*" in latex
    assert "$-$5.0" in latex
    assert latex.count(r"\\") == 4
    assert latex.count("&") == 4 * (2 + len(METHODS))


def test_the_terminal_shows_every_number_in_bold_or_not(results):
    said = io.StringIO()
    console = Console(width=150, force_terminal=True, color_system="standard", file=said)
    console.print(as_text(tables(results)[0]))
    text = said.getvalue()
    assert "\x1b[1m1.0*\x1b[0m" in text.replace(" ", "")
    assert all(method in text for method in METHODS)


def test_statistics_list_every_comparison(results):
    lines = list(csv.DictReader(io.StringIO(statistics_csv(tables(results)[:1]))))
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
    same, other = (tables(made_up_results(values, list(ROWS)))[0] for values in (exact, off))
    assert all(cell.agrees for cell in agreement(same, printed))
    assert not any(cell.agrees for cell in agreement(other, printed))
    assert len(agreement(same, printed)) == len(ROWS) * 11  # Linear and UCB count too


def test_lamr_compared_with_itself_is_not_counted():
    """40 rows × 10 methods of Table 3; LAMR-100's own column says nothing."""
    (file,) = PRINTED.parent.glob("table3*.csv")
    printed = read_printed(file)
    rows = list(printed.best)
    made = made_up_results(np.zeros((len(rows), len(METHODS), 2)), rows)
    third, used = tables(made, also_used=True)[2:]
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


def paper_like(**changes):
    """Results for which every claim holds, with some methods' values changed."""
    centre = dict(zip(METHODS, (2.0, 1.0, 9.0, 9.0, 6.0, 6.0, 6.0, 5.0, 1.0, 8.0, 7.0), strict=True)) | changes
    rows = np.array([[centre[m] for m in METHODS] for _ in ROWS])
    rugged = [i for i, row in enumerate(ROWS) if row.function in ("ackley", "griewank", "rastrigin")]
    smooth = [i for i, row in enumerate(ROWS) if row.function in ("rosenbrock", "sphere")]
    linear = [i for i, row in enumerate(ROWS) if row.function == "linear"]
    samr = METHODS.index("SAMR")
    rows[smooth, samr] = changes.get("SAMR smooth", 1.0)
    rows[smooth, METHODS.index("GESMR")] -= 0.01
    for place, method in enumerate(("15MR", "GESMR", "SAMR")):
        rows[linear, METHODS.index(method)] = place - 10
    log_rate = np.zeros((len(ROWS), len(METHODS), 1))
    log_rate[rugged, samr] = changes.get("SAMR rate", -3.0)
    grown = changes.get("grown", ("15MR", "SAMR", "GESMR"))
    ends = [20.0 if m in grown else 1.0 for m in METHODS]
    made = made_up_results(spread(rows, noise=0.001), ROWS, log_rate=log_rate, end_log_rate=ends)
    made.rate_error[linear] = np.nan
    made.seconds[100] = np.array([[1.0, changes.get("cost", 1.02)]] * 5)
    made.seconds[100][:, 1] += changes.get("cost noise", 0.0) * np.arange(-2, 3)
    return made


def verdicts(results):
    return {claim.number: claim.verdict for claim in claims(results)}


def test_claims_hold_where_they_should():
    assert verdicts(paper_like()) == dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 14, 18), Verdict.HOLDS)


def test_claims_say_how_the_runs_fall_short_of_the_papers():
    decided = {claim.number: claim for claim in claims(paper_like())}
    assert {claim.short for number, claim in decided.items() if number != 14} == {"12 of 40 seeds, 3 of 4 dimensions"}
    assert decided[14].short == "1 of 4 dimensions"
    shown = io.StringIO()
    Console(width=900, file=shown).print(claims_as_text(list(decided.values())))
    said = "(decided on less than the paper's runs: 12 of 40 seeds, 3 of 4 dimensions)"
    assert shown.getvalue().count(said) == 8


def test_half_is_not_most():
    """GESMR best in exactly half of the rows with a minimum, and within 1.5 times LAMR-100 in exactly half."""
    made = paper_like()
    rows = [i for i, row in enumerate(ROWS) if row.function != "linear"]
    half = rows[: len(rows) // 2]
    gesmr = METHODS.index("GESMR")
    made.final[half, gesmr] = 100.0
    found = verdicts(made)
    assert (found[1], found[5], found[6]) == (Verdict.FAILS,) * 3
    made.final[half[0], gesmr] = 0.5  # one more
    found = verdicts(made)
    assert (found[1], found[5], found[6]) == (Verdict.HOLDS,) * 3


def test_an_interval_of_times_on_both_sides_decides_nothing():
    decided = {claim.number: claim for claim in claims(paper_like(**{"cost": 1.1, "cost noise": 0.05}))}
    assert decided[14].verdict is Verdict.UNDECIDED
    assert decided[14].found == "1.100 (1.000–1.200) at d = 100"


def test_counts_have_intervals_over_seeds():
    """In one row the race is close: resampling seeds decides it either way."""
    made = paper_like()
    row = next(i for i, row in enumerate(ROWS) if row.function == "ackley")
    noise = np.random.default_rng(0).normal(size=12)
    made.final[row, METHODS.index("GESMR")] = 1.0 + noise
    made.final[row, METHODS.index("15MR")] = 1.0 + noise.mean() + 0.01
    found = next(claim.found for claim in claims(made) if claim.number == 1)
    assert found.startswith("best in 30 (29–30) and 30 (30–30) of 30 rows")


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"15MR": 0.5}, {1, 4, 18}),
        ({"SAMR smooth": 3.0}, {2}),
        ({"SAMR": 0.99}, {1, 2, 3, 4, 18}),
        ({"SAMR rate": 0.5}, {3}),
        ({"GESMR": 3.0}, {5}),
        ({"GESMR-AVG": 0.5}, {1, 4, 6, 18}),
        ({"grown": ("15MR", "SAMR", "GESMR", "GESMR-AVG")}, {7}),
        ({"grown": ("15MR", "SAMR")}, {7}),
        ({"cost": 1.2}, {14}),
    ],
)
def test_claims_fail_where_they_should(changes, fails):
    found = verdicts(paper_like(**changes))
    assert {number for number, verdict in found.items() if verdict is Verdict.FAILS} == fails


def test_claims_without_the_runs_they_need_are_not_decidable():
    everything = paper_like()
    few = made_up_results(everything.final[:3, 8:9], list(everything.rows[:3]), METHODS[8:9])
    assert set(verdicts(few).values()) == {Verdict.UNDECIDED}
