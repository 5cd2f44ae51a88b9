"""What the study `beyond` shows: medians and counts by hand, its claims, the choice, figures of what there is."""

from collections.abc import Mapping

import numpy as np
import pytest

import gesmr
from gesmr.lab.run.store import Store
from gesmr.lab.show.claims import Verdict, as_text
from gesmr.lab.show.figures import style
from gesmr.lab.show.view import Options
from gesmr.lab.studies import view_of
from gesmr.lab.studies.beyond.budget import kept_generations
from gesmr.lab.studies.beyond.figures import LOOKS
from gesmr.lab.studies.beyond.methods import CHOSEN, CHOSEN_DEFAULT, DEFAULT, DEFAULT_X, X
from gesmr.lab.studies.beyond.networks import BeyondControl, BeyondImages
from gesmr.lab.studies.beyond.results import MAIN, Count, Results, Runs, choice
from gesmr.lab.studies.beyond.runs import BeyondRun, Row
from gesmr.lab.studies.beyond.show import VIEW
from helpers.references import mann_whitney

GENERATIONS = 20
PAPER = dict.fromkeys(gesmr.PAPER_NAMES, 10.0)
OUTSIDE = Row("cigar", 30, 1.0, False)


def runs_of(row: Row, median: float, seeds=21, ga=True) -> Runs:
    """Final values with this median, from a tenth of it to ten times."""
    final = median * np.geomspace(0.1, 10, seeds)
    history = final[:, None] * np.geomspace(100, 1, len(kept_generations(GENERATIONS)))
    return Runs(row.function, tuple(range(seeds)), final, history, -history if ga else None)


def results_with(values: Mapping[str, float], rows=MAIN, changed: Mapping[Row, Mapping[str, float]] | None = None):
    """Results with a median for every method; in some rows another one."""
    found = {}
    for row in rows:
        medians = {**values, **(changed or {}).get(row, {})}
        found[row] = {m: runs_of(row, median, ga=m not in ("DE", "CMA-ES")) for m, median in medians.items()}
    return Results(found, dict.fromkeys(rows, GENERATIONS))


def table(results, name):
    (found,) = (table for table in VIEW.make_tables(results) if table.name == name)
    return found


def claim(number, results):
    (found,) = (claim for claim in VIEW.decide(results) if claim.number == number)
    return found


def line(made, first):
    (found,) = (dict(zip(made.headings, row, strict=True)) for row in made.shown if row[0] == first)
    return found


def test_the_main_rows():
    assert len(set(MAIN)) == 50
    assert sum(row.rotated for row in MAIN) == 20
    assert {row.dim for row in MAIN} == {30, 100, 1000}


def test_values_are_no_lower_than_is_resolved():
    runs = Runs("ackley", (0, 1, 2), np.array([0.0, 1e-7, np.nan]), np.zeros((3, 1)))
    np.testing.assert_array_equal(runs.resolved, [1e-5, 1e-5, np.inf])
    assert runs.median == 1e-5


def test_the_best_of_a_row_is_set_apart_and_oracles_never_are():
    row = Row("sphere", 30, 1.0, False)
    made = table(results_with({X: 2.0, "GESMR": 3.0, "LAMR-100": 1.0, "DE": 4.0}, [row, OUTSIDE]), "beyond_rows")
    assert made.headings[5:] == ["seeds", X, "GESMR", "LAMR-100†", "DE", "p (GESMR)"]
    first, second = made.rows
    assert [cell.bold for cell in first[6:10]] == [True, False, False, False]
    assert (first[4], second[4]) == ("", "more")
    assert first[6].value == pytest.approx(2.0)


def test_p_values_are_corrected_for_all_rows():
    rows = MAIN[:3]
    results = results_with({X: 1.0, "GESMR": 1.2}, rows, {rows[0]: {"GESMR": 100.0}})
    alone = [mann_whitney(results.rows[row][X].final, results.rows[row]["GESMR"].final) for row in rows]
    found = results.p_values(X, "GESMR")
    assert found[rows[0]] == pytest.approx(3 * alone[0])
    assert found[rows[1]] == pytest.approx(min(2 * alone[1], 1))


def test_counts_by_hand():
    """Lower in all but two main rows: one where it is higher, one where both are as low as can be told."""
    higher, tie = MAIN[0], MAIN[-1]
    changed = {higher: {"GESMR": 0.1}, tie: {X: 1e-30, "GESMR": 1e-30}}
    results = results_with({X: 1.0, "GESMR": 3.0, "DE": 2.0}, [*MAIN, OUTSIDE], changed)
    made = table(results, "beyond_counts")
    assert line(made, "GESMR")["all"] == "48 of 50, 1 equal"
    assert line(made, "GESMR")["d = 30"] == "9 of 10"
    assert line(made, "GESMR")["d = 1000"] == "9 of 10, 1 equal"
    assert line(made, "GESMR")["times"] == "3"
    assert (line(made, "DE")["chosen on"], line(made, "DE")["not chosen on"]) == ("20 of 20", "30 of 30")
    assert str(Count.of({MAIN[1]: True}, MAIN)) == "1 of 1"
    assert "all of the paper's but oracles" not in [row[0] for row in made.shown]  # not one of them was run


def test_claims_hold_by_their_counts():
    values = {**PAPER, X: 1.0, "LAMR-100": 1000.0, "GESMR": 1000.0}
    results = results_with(values)
    assert [claim(number, results).verdict for number in (19, 20, 21, 22)] == [Verdict.HOLDS] * 4
    assert "in 50 of 50 rows, 21 seeds" in claim(19, results).found
    for number, other, allowed in ((19, "GESMR", 2), (20, "SAMR", 4), (21, "LAMR-100", 4), (22, "GESMR", 10)):
        for more, verdict in ((0, Verdict.HOLDS), (1, Verdict.FAILS)):
            changed = {row: {other: 0.5} for row in MAIN[: allowed + more]}
            assert claim(number, results_with(values, changed=changed)).verdict is verdict, (number, more)


def test_what_is_lower_by_chance_is_not_significant():
    results = results_with({**PAPER, X: 1.0, "GESMR": 1.05})
    assert claim(19, results).verdict is Verdict.HOLDS
    assert claim(22, results).verdict is Verdict.FAILS


def test_claims_wait_for_all_rows():
    results = results_with({X: 1.0, "GESMR": 2.0}, MAIN[1:])
    found = claim(19, results)
    assert found.verdict is Verdict.UNDECIDED
    assert found.found.endswith("1 of 50 rows are not there")
    assert claim(21, results).verdict is Verdict.UNDECIDED


def test_the_claims_are_said_to_be_ours():
    decided = VIEW.decide(results_with({X: 1.0, "GESMR": 2.0}))
    assert all("this project's claim" in claim.claim for claim in decided)
    assert "Claims of the paper, and from 19 on of this project" in str(as_text(decided, 80).renderables[0])
    papers = {rule.number for name in ("functions", "groups", "control") for rule in view_of(name).rules}
    assert not papers & {claim.number for claim in decided}


def test_the_choice_by_hand():
    """Ten times as high in one row and a tenth in the other is as high on average, and as good a rank."""
    rows = [Row("ackley", 30, 1.0, False), Row("rosenbrock", 30, 1.0, False)]
    even, worse = str(CHOSEN._replace(share=1.0)), str(CHOSEN._replace(shared=True))
    changed = {rows[0]: {even: 10.0}, rows[1]: {even: 0.1}}
    results = results_with({str(CHOSEN): 1.0, even: 1.0, worse: 3.0, "GESMR": 100.0}, rows, changed)
    found = choice(results)
    assert found is not None
    assert found.tried[even].mean_ratio == pytest.approx(1.0)
    assert found.tried[worse].mean_ratio == pytest.approx(3.0)
    assert (found.tried[str(CHOSEN)].rank, found.tried["GESMR"].rank) == (1.5, 4.0)
    made = table(results, "beyond_choice")
    assert line(made, X)["times the chosen"] == "1"
    assert [row[5] for row in made.shown if row[5] == "shared"] == ["shared"]
    assert line(made, "GESMR")["lower than the chosen"] == "0 of 2"


def test_a_setting_without_all_rows_is_named_and_left_out():
    rows, other = MAIN[:2], str(CHOSEN._replace(share=1.0))
    results = results_with({str(CHOSEN): 1.0, DEFAULT: 2.0}, rows)
    some = Results(
        {**results.rows, rows[0]: {**results.rows[rows[0]], other: runs_of(rows[0], 1.0)}}, results.generations
    )
    found = choice(some)
    assert found is not None
    assert found.missing == [other]
    assert f"Not all runs are there of {other}." in table(some, "beyond_choice").note


def test_without_what_is_shown_nothing_is():
    results = results_with({"GESMR": 1.0}, MAIN[:1])
    assert VIEW.make_tables(results) == []
    assert VIEW.make_figures(results) == {}


@pytest.mark.parametrize("rows", [MAIN[:1], [*MAIN[:7], OUTSIDE], [Row("ellipsoid", 100, 1.0, True)]])
def test_figures_of_what_there_is(rows):
    values = {X: 1.0, "GESMR": 2.0, "DE": 3.0, "CMA-ES": 1e-3, str(CHOSEN): 1.0, str(CHOSEN._replace(share=1.0)): 2.0}
    with style():
        made = VIEW.make_figures(results_with(values, rows))
    main = any(row in MAIN for row in rows)
    assert ("beyond_overview" in made, "beyond_overview_more" in made) == (main, not all(row in MAIN for row in rows))
    curves = made["beyond_curves"][1]
    assert sum(axes.get_visible() for axes in curves.axes) == min(len(rows), 6)
    rates = made["beyond_rates"][1]
    assert [text.get_text() for text in rates.legends[0].get_texts()] == [X, "GESMR", "Quartiles"]
    assert len(made["beyond_choice"][1].axes) == 4


def test_a_line_that_falls_to_zero_stays_in_its_panel():
    with style():
        figure = VIEW.make_figures(results_with({X: 1.0, "DE": 0.0}, MAIN[:1]))["beyond_curves"][1]
    (axes,) = figure.axes
    free = [line for line in axes.get_lines() if not line.get_clip_on()]
    assert [line.get_color() for line in free] == [LOOKS[X].colour]
    assert all((np.asarray(line.get_ydata()) >= axes.get_ylim()[0]).all() for line in free)


def test_what_minimize_would_recombine_with_is_counted_too():
    results = results_with({X: 1.0, "GESMR": 2.0, DEFAULT: 4.0, DEFAULT_X: 3.0})
    made = table(results, "beyond_counts_default-X")
    assert (line(made, DEFAULT)["all"], line(made, X)["all"]) == ("50 of 50", "0 of 50")
    assert line(made, "GESMR, significantly higher")["all"] == "0 of 50"
    rows = MAIN[:1]
    chosen = table(results_with({str(CHOSEN): 1.0, str(CHOSEN_DEFAULT): 2.0}, rows), "beyond_choice")
    assert [row[0] for row in chosen.shown] == [X, DEFAULT_X]


def stored(store, spec, seeds, arrays):
    store.write([spec(seed) for seed in range(seeds)], arrays, {})


def test_a_store_is_shown(tmp_path):
    store, row = Store(tmp_path / "beyond", create=True), MAIN[0]
    for method, median in ((X, 1.0), ("GESMR", 2.0)):
        runs = runs_of(row, median, seeds=5)
        arrays = {"final": runs.final, "best": runs.best, "log_rate": runs.log_rate}
        stored(store, lambda seed, m=method: BeyondRun(*row, m, seed, GENERATIONS), 5, arrays)
    results = VIEW.results(store, Options())
    assert results.rows[row][X].median == pytest.approx(1.0)
    assert VIEW.more(results)["beyond_final.csv"].count("\n") == 3
    assert VIEW.summary(results) == "1 rows (1 of the 50 main ones), 2 methods, 5 seeds"


def test_networks_are_shown(tmp_path):
    """With nothing else in the store: the lowest loss and the highest return on other episodes are set apart."""
    store = Store(tmp_path / "beyond", create=True)
    for method, value, popsize in ((X, 1.0, 100), ("GESMR", 2.0, 100), ("SNES", 3.0, 0)):
        values = np.full(3, value)
        images = {"final": values, "test_loss": values + 1, "test_accuracy": values / 10}
        control = {"final": -values, "held_out": 10 * values}
        stored(
            store, lambda s, m=method, n=popsize: BeyondImages("mnist", m, s, 50, "uniform", 7, popsize=n), 3, images
        )
        stored(store, lambda s, m=method, n=popsize: BeyondControl("cartpole", m, s, 9, popsize=n), 3, control)
    results = VIEW.results(store, Options())
    of_images, of_control = VIEW.make_tables(results)
    assert [row[3:6] for row in of_images.shown] == [[X, "3", "1"], ["GESMR", "3", "2"], ["SNES, own N", "3", "3"]]
    assert [row[5].bold for row in of_images.rows] == [True, False, False]
    assert of_images.shown[0][-2:] == ["2", "10"]
    assert [row[6].bold for row in of_control.rows] == [False, False, True]
    assert of_control.shown[2][4:7:2] == ["-3", "30"]
    assert VIEW.summary(results).endswith("1 sets of images, 1 tasks of control")
    assert all(claim.verdict is Verdict.UNDECIDED for claim in VIEW.decide(results))
    assert VIEW.make_figures(results) == {}
