"""The study of hyperparameters: lanes with settings of their own are runs alone, and how a setting is recommended."""

import jax
import numpy as np
import pytest
from rich.console import Console
from scipy.stats import rankdata

import gesmr
from gesmr import noise, selection
from gesmr.lab.errors import LabError
from gesmr.lab.run.compilation import Programs
from gesmr.lab.run.function_task import function_lanes
from gesmr.lab.run.masked import PAPER, Setting
from gesmr.lab.run.store import Store, StoredJob
from gesmr.lab.run.sweep import SweepJob
from gesmr.lab.show.view import Options
from gesmr.lab.studies import Selection, as_json, content_hash
from gesmr.lab.studies.sensitivity.runs import FUNCTIONS, SETTINGS, SensitivityRun, SensitivityStudy
from gesmr.lab.studies.sensitivity.show import VIEW, Results, Row, advise, load, make_tables
from gesmr.problems import functions

STUDY = SensitivityStudy()


@pytest.fixture(scope="module")
def programs():
    with Programs(2) as compiled:
        yield compiled


# The study


def test_the_settings_are_a_grid_and_a_line_through_the_papers():
    assert PAPER == (0.5, 0.5, 2.0, 10)
    assert len(set(SETTINGS)) == len(SETTINGS) == 7 * 6 + 5 + 5 + 15
    assert {s.truncation for s in SETTINGS if s[1:] == PAPER[1:]} == {0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0}
    assert {s.rate_truncation for s in SETTINGS if (s.truncation, *s[2:]) == (0.5, 2.0, 10)} == {
        0.1, 0.2, 0.3, 0.5, 0.7, 1.0}  # fmt: skip
    assert {s.meta_rate for s in SETTINGS if (*s[:2], s.groups) == (0.5, 0.5, 10)} == {1.2, 1.5, 2.0, 3.0, 5.0, 10.0}
    assert {s.groups for s in SETTINGS if s[:3] == PAPER[:3]} == {2, 5, 10, 17, 25, 50}
    pools = {int(selection.pool_size(s.rate_truncation, 10)) for s in SETTINGS}
    assert pools == {1, 2, 3, 5, 7, 10}  # no two of the shares select alike


def test_the_profiles():
    quick, paper = (STUDY.specs(Selection(profile)) for profile in ("quick", "paper"))
    assert set(quick) < set(paper)
    assert len(quick) == 67 * 5 * 1 * 2 * 2 * 5
    assert len(paper) == 67 * 5 * 2 * 2 * 2 * 20
    assert {(s.dim, s.generations) for s in paper} == {(30, 300), (100, 1000)}
    assert {(s.shifted, s.std) for s in quick} == {(a, b) for a in (False, True) for b in (1.0, 10.0)}
    assert {s.function for s in quick} == {"ackley", "griewank", "rastrigin", "rosenbrock", "sphere"}
    assert len({content_hash(as_json(s)) for s in quick}) == len(quick)


def test_selections_narrow_it():
    specs = STUDY.specs(Selection(functions=("sphere",), dims=(100,), seeds=1))
    assert {(s.function, s.dim, s.seed) for s in specs} == {("sphere", 100, 0)}
    with pytest.raises(ValueError, match="shifted means nothing to the study sensitivity"):
        STUDY.specs(Selection(shifted=True))
    with pytest.raises(ValueError, match="dims must be one of 30, 100, got 2"):
        STUDY.specs(Selection(dims=(2,)))


def test_a_program_serves_all_functions_and_settings():
    specs = STUDY.specs(Selection("quick"))
    groups = STUDY.jobs(specs, 2**34)
    assert sorted((s for g in groups for s in g.specs), key=hash) == sorted(specs, key=hash)
    advances = {p for g in groups for p in g.programs if p.function.__name__ == "_advance"}
    assert len(advances) == 2  # one for parts of a function's runs, one for what is left of them


def test_lanes_are_runs_of_the_library(programs):
    settings = (Setting(0.05, 1.0), Setting(1.0, 0.1, groups=17), Setting(0.5, 0.5, 10.0))
    specs = tuple(SensitivityRun("ackley", 4, 10.0, True, *s, seed, 20) for seed, s in enumerate(settings))
    worked = []
    group = SweepJob(specs)
    arrays = group.run(programs, worked.append)
    assert sum(worked) == pytest.approx(group.work) == pytest.approx(100 * 4 * 20 * 3)
    shift = function_lanes("ackley", 4, [10.0] * 3, range(3), True).own.shift
    for i, setting in enumerate(settings):
        problem = functions.get("ackley", 4, 10.0, shift[i])
        rates = gesmr.GESMR(setting.groups, meta_rate=setting.meta_rate, truncation=setting.rate_truncation)
        ga = gesmr.GA(rates, 100, setting.truncation)
        key = noise.fold_in(noise.key(2022), i)
        population = problem.init(key, 101)
        _, history = gesmr.evolve(ga, problem, ga.init(key, population, problem(population)), 20)
        assert arrays["final"][i] == pytest.approx(float(history.elite[-1]), rel=1e-3, abs=1e-4)
    assert len(set(arrays["final"])) == 3


def test_the_papers_setting_is_gesmr_of_the_library(programs):
    specs = tuple(SensitivityRun("griewank", 4, std, False, *PAPER, seed, 20) for std in (1.0, 10.0) for seed in (0, 3))
    found = SweepJob(specs).run(programs, lambda work: None)
    ga, value = gesmr.GA(gesmr.controller("GESMR")), functions.AS_PRINTED["griewank"].value

    @jax.jit
    def elite(std, seed):
        key = noise.fold_in(noise.key(2022), seed)
        population = functions.get("griewank", 4, std).init(key, 101)
        return gesmr.evolve(ga, value, ga.init(key, population, value(population)), 20)[1].elite

    expected = np.array([elite(spec.std, spec.seed) for spec in specs], np.float64)
    np.testing.assert_allclose(found["final"], expected[:, -1], rtol=1e-4)
    np.testing.assert_allclose(found["mean_elite"], expected.mean(axis=1), rtol=1e-4)


# What it shows

ROWS = tuple(Row(function, 30, std, shifted) for function in FUNCTIONS for std in (1.0, 10.0) for shifted in (0, 1))
GOOD, BETTER = SETTINGS.index(Setting(0.3, 0.3)), SETTINGS.index(Setting(0.1, 0.1))


def made_up(**columns):
    """Results in which settings are worse than the paper's, each by another amount, but for the columns given."""
    relative = np.tile(1.0 + np.arange(len(SETTINGS)) / 100, (len(ROWS), 1))
    relative[:, SETTINGS.index(PAPER)] = 0.0
    for name, values in columns.items():
        relative[:, int(name[1:])] = values
    return Results(ROWS, relative, (5, 5))


def test_a_setting_is_recommended_if_it_is_better_in_most_rows():
    consistent = np.linspace(-0.9, 0.1, len(ROWS))
    advice = advise(made_up(**{f"c{GOOD}": consistent}), np.ones(len(ROWS), bool))
    assert advice.setting == Setting(0.3, 0.3)
    assert advice.p < 0.01
    np.testing.assert_array_equal(advice.relative, consistent)
    assert advice.rank == pytest.approx(1 + np.mean(consistent > 0))


def test_orders_of_magnitude_in_a_few_rows_do_not_recommend_a_setting():
    relative = np.where(np.arange(len(ROWS)) < 6, -20.0, 0.4 + np.arange(len(ROWS)) / 100)
    assert relative.mean() < -5
    assert advise(made_up(**{f"c{BETTER}": relative}), np.ones(len(ROWS), bool)).setting == PAPER


def test_the_rank_decides_among_settings_that_are_better():
    columns = {f"c{GOOD}": -0.5 - np.arange(len(ROWS)) / 100, f"c{BETTER}": -1.0 - np.arange(len(ROWS)) / 100}
    results = made_up(**columns)
    advice = advise(results, np.ones(len(ROWS), bool))
    assert advice.setting == Setting(0.1, 0.1)
    assert advice.paper_rank == rankdata(results.relative, axis=1)[:, SETTINGS.index(PAPER)].mean() == 3


def test_few_rows_recommend_nothing():
    results = made_up(**{f"c{GOOD}": -np.ones(len(ROWS))})
    assert advise(results, results.select(["sphere"])).setting == PAPER


def test_the_tables_name_the_best_and_what_the_papers_setting_loses():
    relative = np.where([row.function == "sphere" for row in ROWS], -3.0 - np.arange(len(ROWS)) / 100, 0.5)
    advice, best, lines = make_tables(made_up(**{f"c{GOOD}": relative}))
    assert [row[:3] for row in best.rows] == [
        (f.capitalize(), 30, place) for f in FUNCTIONS for place in ("centred", "moved")
    ]
    sphere = relative[[row.function == "sphere" and not row.shifted for row in ROWS]].mean()
    assert best.rows[-2] == ("Sphere", 30, "centred", 0.3, 0.3, 2.0, 10, pytest.approx(-sphere))
    assert best.rows[0][3:] == (*PAPER, 0.0)
    assert advice.rows[-1][:5] == ("all", *PAPER)
    papers = [row[2:] for row in lines.rows if row[:2] in zip(("η_x", "η_σ", "τ", "K"), PAPER, strict=True)]
    assert papers == [(0.0, 0.0, 0.0, 0.0)] * 4


def stored(specs, final):
    values = np.array([final(spec) for spec in specs])
    return StoredJob(tuple(as_json(s) for s in specs), {}, {"final": values, "mean_elite": values})


def some_value(spec):
    return 10.0 ** (spec.truncation + spec.rate_truncation + 0.1 * spec.meta_rate) * (1 + spec.seed)


def test_values_are_compared_seed_by_seed_with_the_papers():
    specs = STUDY.specs(Selection(functions=("sphere",), seeds=2))
    results = load([stored(specs, some_value)])
    assert results.rows == tuple(Row("sphere", 30, std, moved) for std in (1.0, 10.0) for moved in (False, True))
    expected = [s.truncation + s.rate_truncation + 0.1 * s.meta_rate - 1.2 for s in SETTINGS]
    np.testing.assert_allclose(results.relative, np.tile(expected, (4, 1)), atol=1e-12)
    fewer = [s for s in specs if (s.std, s.shifted, s.meta_rate) != (1.0, True, 5.0)]
    assert Row("sphere", 30, 1.0, True) not in load([stored(fewer, some_value)]).rows
    with pytest.raises(LabError, match="no function has runs for every setting"):
        load([stored(specs[:20], some_value)])


def test_the_view_shows_a_store(tmp_path):
    specs = STUDY.specs(Selection(functions=("sphere", "ackley"), seeds=1))
    store = Store(tmp_path / "sensitivity", create=True)
    store.write(specs, stored(specs, some_value).arrays, {})
    console = Console(quiet=True)
    VIEW.tables(store, Options(), tmp_path / "out", console)
    VIEW.figures(store, Options(), tmp_path / "out", console)
    lines = (tmp_path / "out" / "sensitivity_best.csv").read_text().splitlines()
    assert lines[1].startswith("Ackley,30,centred,0.05,0.1,2.0,10,0.8")
    names = {"sensitivity_grid.png", "sensitivity_lines.png"}
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == names
    chapter = VIEW.chapter(tmp_path / "sensitivity")
    assert chapter.outcomes == []
    assert chapter.summary == "67 settings of GESMR (N = 100), 2 functions in 30-D, 1 seeds"
