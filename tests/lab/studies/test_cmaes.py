"""GESMR against CMA-ES: what is counted, where runs start, when they end, and how claims 13 and 16 are decided."""

import subprocess
import sys
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
from rich.console import Console

from gesmr.lab.errors import LabError
from gesmr.lab.run import runner
from gesmr.lab.run.compilation import Programs
from gesmr.lab.run.store import Store, StoredJob
from gesmr.lab.show.claims import Verdict
from gesmr.lab.show.view import Options
from gesmr.lab.studies import Selection, as_json
from gesmr.lab.studies.cmaes import pycma
from gesmr.lab.studies.cmaes import runs as cmaes
from gesmr.lab.studies.cmaes.claims import ratio_of_means, slopes
from gesmr.lab.studies.cmaes.figures import figures, on_one_grid
from gesmr.lab.studies.cmaes.results import Duels, Measured, Results, Row, load
from gesmr.lab.studies.cmaes.runs import METHODS, SHORT, CmaesStudy, Cost, CostJob, Duel, DuelJob
from gesmr.lab.studies.cmaes.show import VIEW, tables
from gesmr.problems.functions import AS_PRINTED

pytest.importorskip("cma", reason="pip install 'gesmr[cma]'")
STUDY = CmaesStudy()
SMALL = {"cmaes_generations": 120, "gesmr_generations": 200, "dim": 5}


@pytest.fixture(scope="module")
def programs():
    """Compiled programs, shared by the tests of this file."""
    with Programs(2) as compiled:
        yield compiled


def run_group(group, programs):
    ticks = []
    arrays = group.run(programs, ticks.append)
    assert sum(ticks) == group.work
    return arrays


@pytest.fixture(scope="module")
def duels(programs):
    """Two seeds of a small Sphere, centred and shifted."""
    groups = [
        DuelJob(tuple(Duel("sphere", 2.0, shifted, seed, **SMALL) for seed in (0, 1))) for shifted in (False, True)
    ]
    return [(group, run_group(group, programs)) for group in groups]


def test_profiles_hold_what_they_say():
    quick, paper = ([s for s in STUDY.specs(Selection(p)) if isinstance(s, Duel)] for p in STUDY.profiles)
    assert len(quick) == 4 * (3 + 2)
    assert {(s.shifted, s.cmaes_generations, s.sigma0) for s in quick} == {(False, 1000, 1.0), (True, 500, 1.0)}
    assert {s.function for s in quick} == {"ackley", "griewank", "rosenbrock", "sphere"}
    assert len(paper) == 5 * 2 * 2 * 10 + 4 * 10
    assert {(s.std, s.shifted, s.cmaes_generations, s.sigma) for s in paper} == {
        *((std, shifted, 1000, None) for std in (1.0, 10.0) for shifted in (False, True)), (1.0, False, 1000, 0.1)
    }  # fmt: skip
    assert {s.function for s in paper if s.sigma} == {"ackley", "griewank", "rastrigin", "rosenbrock"}
    quick, paper = ({(s.method, s.dim) for s in STUDY.specs(Selection(p)) if isinstance(s, Cost)}
                    for p in STUDY.profiles)  # fmt: skip
    assert quick == {(method, dim) for method in METHODS for dim in (10, 100, 1000, 10_000)} - {("CMA-ES", 10_000)}
    assert paper == {(method, dim) for method in METHODS for dim in (10, 100, 300, 1000, 2000, 5000, 10_000)}
    narrow = [s for s in STUDY.specs(Selection(functions=("sphere",), seeds=1)) if isinstance(s, Duel)]
    assert [(s.function, s.shifted, s.seed) for s in narrow] == [("sphere", False, 0), ("sphere", True, 0)]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(dims=(2,)), "dims means nothing to the study cmaes, which takes --functions, --seeds"),
        (Selection(functions=("linear",)), "functions must be one of 'ackley'"),
        (Selection("huge"), "profile must be one of 'quick', 'paper'"),
        (Selection(seeds=0), "seeds must be an integer from 1"),
    ],
)
def test_what_the_study_does_not_have_is_refused(selection, message):
    with pytest.raises(ValueError, match=message):
        STUDY.specs(selection)


def test_groups_hold_every_specification_once():
    specs = STUDY.specs(Selection("paper"))
    groups = STUDY.jobs(specs[::2], 10**9)
    assert sorted(map(repr, (spec for group in groups for spec in group.specs))) == sorted(map(repr, specs[::2]))
    assert all(group.alone for group in groups)
    assert all(len({replace(s, seed=0) for s in group.specs}) == 1 for group in groups if isinstance(group, DuelJob))


def test_curves_never_rise_and_count_every_evaluation(duels):
    for group, arrays in duels:
        for i, spec in enumerate(group.specs):
            for m, method in enumerate(METHODS):
                there = arrays["generation"][i, m] >= 0
                generation, evaluations, seconds, best = (
                    arrays[name][i, m, there] for name in ("generation", "evaluations", "seconds", "best")
                )
                assert (np.diff(best) <= 0).all()
                assert (np.diff(generation) > 0).all()
                assert (np.diff(seconds) > 0).all()
                expected = 101 + 100 * generation if method == "GESMR" else 101 * generation
                np.testing.assert_array_equal(evaluations, expected)
                assert evaluations[0] == 101
                assert SHORT in generation or method == "GESMR" or arrays["stopped"][i, m]
            assert arrays["generation"][i, 0].max() == spec.gesmr_generations


def test_every_comparison_reads_the_curves_where_it_says(duels):
    for _, arrays in duels:
        last = arrays["generation"].max(axis=2)
        np.testing.assert_array_equal(arrays["reached"][:, 0], np.minimum([200, SHORT, SHORT], last))
        np.testing.assert_array_equal(arrays["reached"][:, 2], np.minimum(120, last))
        for i, m in np.ndindex(last.shape):
            at = list(arrays["generation"][i, m]).index(arrays["reached"][i, 0, m])
            assert arrays["best"][i, m, at] == arrays["values"][i, 0, m]


def test_equal_time_is_gesmrs_time():
    gesmr = pycma.Trace(np.arange(3), 101 + 100 * np.arange(3), np.array([0.0, 0.5, 1.0]), np.array([9.0, 8.0, 7.0]))
    slow = pycma.Trace(np.arange(1, 5), 101 * np.arange(1, 5), np.array([0.4, 0.9, 1.4, 1.9]), np.array([6.0, 5, 4, 3]))
    late = slow._replace(seconds=slow.seconds + 1)
    summary = cmaes._summary([gesmr, slow, late], 3)
    np.testing.assert_array_equal(summary["values"], [[7, 3, 3], [7, 5, np.nan], [7, 4, 4]])
    np.testing.assert_array_equal(summary["reached"], [[2, 4, 4], [2, 2, 0], [2, 3, 3]])


def test_all_converge_on_a_small_sphere(duels):
    for _, arrays in duels:
        assert (arrays["values"][:, 2] < 1e-3).all()
        assert (arrays["best"][:, :, 0] > 0.1).all()


def test_runs_start_at_a_draw_that_the_seed_gives_and_not_at_the_origin(programs):
    starts, shifts = [], []
    for shifted in (False, True):
        for seed in (0, 1, 0):
            group = DuelJob((Duel("sphere", 2.0, shifted, seed, 10, 100, 5),))
            _, start, shift = group._gesmr(programs, group.specs[0])
            starts.append(start)
            shifts.append(shift)
    assert np.abs(starts).min() > 0
    assert not np.allclose(starts[0], starts[1])
    for i in (2, 3, 5):
        np.testing.assert_array_equal(starts[i], starts[0])
    np.testing.assert_array_equal(shifts[:3], np.zeros((3, 5)))
    assert np.abs(shifts[3:]).max(axis=1).min() > 0.1
    assert not np.allclose(shifts[3], shifts[4])


def test_a_step_size_of_its_own_is_cmaes_alone(programs):
    one = Duel("sphere", 2.0, False, 0, 30, 100, 5)
    usual, same, small = (run_group(DuelJob((replace(one, sigma=s),)), programs)["best"][0] for s in (None, 2.0, 0.1))
    np.testing.assert_array_equal(usual[1:], same[1:])
    np.testing.assert_array_equal(usual[0], small[0])
    assert (small[1:, 1] > usual[1:, 1]).all()  # one that starts so narrow has hardly moved


@pytest.mark.parametrize("function", cmaes.FUNCTIONS)
def test_cmaes_is_given_the_function_as_printed_in_double_precision(function):
    rng = np.random.default_rng(0)
    x, shift = rng.normal(size=(7, 6)), rng.normal(size=6)
    values = pycma.objective(function, shift)(x)
    assert values.dtype == np.float64
    single = AS_PRINTED[function].value(jax.numpy.asarray(x - shift, jax.numpy.float32))
    np.testing.assert_allclose(values, single, rtol=1e-4)
    optimum = shift + float(AS_PRINTED[function].optimum)
    assert abs(pycma.objective(function, shift)(optimum[None])[0]) < 1e-12  # moved with the shift


@pytest.mark.parametrize("make", [pycma.full_cmaes, pycma.separable_cmaes])
def test_a_seed_gives_the_same_run_and_leaves_numpys_generator_alone(make):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    runs = [pycma.run_cmaes(partial(make, np.ones(4), 1.0, seed), pycma.objective("ackley", np.zeros(4)), 20)
            for seed in (0, 0, 1)]  # fmt: skip
    np.testing.assert_array_equal(runs[0].best, runs[1].best)
    assert not np.array_equal(runs[0].best, runs[2].best)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_pycma_stops_when_it_says_so_and_its_best_is_kept():
    ticks = []
    trace = pycma.run_cmaes(
        partial(pycma.full_cmaes, np.ones(3), 1.0, 0), pycma.objective("sphere", np.zeros(3)), 500, tick=ticks.append
    )
    assert "tolfun" in trace.stopped
    assert len(trace.best) < 500
    assert sum(ticks) == 500
    summary = cmaes._summary([trace, trace, trace], 500)
    assert summary["values"][2, 1] == trace.best[-1]
    assert summary["stopped"][1] == trace.stopped


def test_time_is_given_until_it_is_up():
    make = partial(pycma.separable_cmaes, np.ones(50), 1.0, 0)
    trace = pycma.run_cmaes(make, pycma.objective("rosenbrock", np.zeros(50)), 1, seconds=0.5)
    assert trace.seconds[-1] >= 0.5
    assert (trace.seconds[:-1] < 0.5).all()


def test_full_cmaes_is_refused_before_it_is_made():
    with pytest.raises(MemoryError, match=r"in 1,000,000 dimensions needs 52,\d+\.\d GiB, more than a quarter of this"):
        pycma.full_cmaes(np.ones(10**6), 1.0, 0)
    pycma.check_memory(100)


def test_a_cost_that_does_not_fit_is_left_out(monkeypatch, programs):
    monkeypatch.setattr(pycma, "_machine_memory", lambda: 2**20)
    group = CostJob((Cost("CMA-ES", 1000, 4, 3),))
    arrays = run_group(group, programs)
    assert np.isnan(arrays["seconds"]).all()
    assert np.isnan(arrays["bytes"]).all()
    results = load([StoredJob((as_json(group.one),), {}, arrays)])
    assert ("CMA-ES", 1000, "not run", "needs 0.1 GiB") in tables(results)[0].rows


@pytest.mark.parametrize("method", METHODS)
def test_costs_are_measured(method, programs):
    arrays = run_group(CostJob((Cost(method, 5, 100, 2),)), programs)
    assert arrays["seconds"].shape == (1, 2)
    assert (arrays["seconds"] > 0).all()
    population = 101 * 5 * (4 if method == "GESMR" else 8)
    assert 2 * population < arrays["bytes"][0] < 100 * population


def test_memory_is_measured_with_a_decomposition():
    """By itself pycma decomposes a matrix of 1,500² in its fourth generation: until then it holds three and a half."""
    dim = 1500
    evaluate = pycma.objective("sphere", np.zeros(dim))
    pycma.run_generations(pycma.separable_cmaes(np.ones(dim), 1.0, 0), evaluate, 1)  # compiles
    with pycma.one_thread():
        peak = pycma.traced_memory(partial(pycma.full_cmaes, np.ones(dim), 1.0, 0), evaluate)
    assert 5 * 8 * dim**2 < peak < 8 * 8 * dim**2


def test_without_pycma_the_study_says_what_to_install():
    script = (
        "import sys; sys.modules['cma'] = None\n"
        "from gesmr.lab.studies import STUDIES, Selection\n"
        "study = STUDIES['cmaes']\n"
        "study.jobs(study.specs(Selection()), 10**9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "NotFoundError: CMA-ES needs the package cma: pip install 'gesmr[cma]'" in done.stderr


def power(time, memory, dims=(100, 1000, 2000, 5000, 10_000)):
    """Costs of a generation that are exact powers of d from 1,000 on."""
    return {dim: Measured(1e-9 * dim**time * np.ones(2), 8.0 * dim**memory) for dim in dims}


def made(ratios, seeds=3, costs=None, **other):
    """Results with GESMR at `ratio` times CMA-ES's 10 in the paper's comparison, ten times as high in the others."""
    found = {}
    for function, ratio in ratios.items():
        values = np.tile([10.0 * ratio, 10.0, 5.0], (seeds, 3, 1))
        values[:, 1:, 0] *= 10
        values *= np.linspace(0.99, 1.01, seeds)[:, None, None]
        curve = np.tile(np.arange(1.0, 6), (seeds, 3, 1))
        row = Row(**{"function": function, "std": 1.0, "shifted": False, "cmaes_generations": 1000,
                     "gesmr_generations": 1000, "dim": 100, "sigma0": 1.0, **other})  # fmt: skip
        reached = np.full((seeds, 3, 3), 50)
        found[row] = Duels(values, reached, np.full((seeds, 3), ""), curve, 101 * curve, curve / 10, 6 - curve)
    costs = {"GESMR": {10: Measured(np.array([1e-5]), 1e4)}, "CMA-ES": {10_000: NONE}} if costs is None else costs
    return Results(found, {(method, dim): one for method, all_dims in costs.items() for dim, one in all_dims.items()})


def both(ours, authors):
    return Results({**ours.duels, **authors.duels}, {})


NONE = Measured(np.array([np.nan]), np.nan)
ALL = dict.fromkeys(cmaes.QUICK_FUNCTIONS, 0.01)
AUTHORS = dict.fromkeys(cmaes.AUTHORS_FUNCTIONS, 0.01)


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (made(ALL), Verdict.HOLDS),
        (made(ALL | {"ackley": 0.099}), Verdict.HOLDS),
        (made(ALL | {"ackley": 0.2}), Verdict.FAILS),
        (made(ALL | {"rastrigin": 0.2}), Verdict.FAILS),
        (made({"ackley": 0.01}), Verdict.UNDECIDED),
        (made(ALL, seeds=1), Verdict.UNDECIDED),
        (made(ALL, shifted=True), Verdict.UNDECIDED),
        (made(ALL, std=10.0), Verdict.UNDECIDED),
        (made(ALL, gesmr_generations=100), Verdict.UNDECIDED),
        (made(ALL, sigma0=0.3), Verdict.UNDECIDED),
        (made(ALL, sigma0=0.1), Verdict.UNDECIDED),  # without Rastrigin
        (made(AUTHORS, sigma0=0.1), Verdict.HOLDS),
        (both(made(ALL), made(AUTHORS | {"rosenbrock": 0.2}, sigma0=0.1)), Verdict.FAILS),
        (both(made(ALL | {"sphere": 0.2}), made(AUTHORS, sigma0=0.1)), Verdict.HOLDS),
        (both(made(ALL), made({"rosenbrock": 0.2}, sigma0=0.1)), Verdict.HOLDS),  # theirs is not all there
        (Results({}, {}), Verdict.UNDECIDED),
    ],
)
def test_claim_13(results, verdict):
    claim = VIEW.decide(results)[0]
    assert (claim.number, claim.verdict) == (13, verdict)
    assert claim.short == ("" if verdict is Verdict.UNDECIDED else "3 of 5 seeds")


def test_claim_13_states_both_settings_with_intervals_and_equal_evaluations():
    claim = VIEW.decide(both(made(ALL | {"ackley": 0.2}, seeds=5), made(AUTHORS, sigma0=0.1, seeds=5)))[0]
    assert claim.short == ""
    assert "GESMR / CMA-ES. With σ₀ = 0.1 this holds: ackley 0.01 (0.01–0.01), griewank" in claim.found
    assert "rosenbrock 0.01 (0.01–0.01); after as many evaluations ackley 0.1 (0.1–0.1)" in claim.found
    assert ". With σ₀ = 1 this does not hold: ackley 0.2 (0.2–0.2)" in claim.found
    assert "With σ₀ = 0.1 the runs are not all there. With σ₀ = 1 this holds" in VIEW.decide(made(ALL))[0].found


def test_ratios_of_means_have_intervals_of_seeds():
    values = np.array([[1.0, 10.0, 0.0], [3.0, 10.0, 0.0], [2.0, 10.0, 0.0], [2.0, 10.0, 0.0]])
    ratio = ratio_of_means(values)
    assert ratio.value == pytest.approx(0.2)
    assert 0.1 < ratio.low < 0.2 < ratio.high < 0.3


LINEAR, QUADRATIC = power(1, 1), power(2, 2)


@pytest.mark.parametrize(
    ("ga", "full", "verdict"),
    [
        (LINEAR, QUADRATIC, Verdict.HOLDS),
        (LINEAR, power(3, 2.2), Verdict.HOLDS),  # time may grow faster
        (LINEAR, power(1.7, 2), Verdict.FAILS),
        (LINEAR, power(2, 1.7), Verdict.FAILS),
        (LINEAR, power(2, 2.3), Verdict.FAILS),
        (power(0.7, 1), QUADRATIC, Verdict.FAILS),
        (power(1.3, 1), QUADRATIC, Verdict.FAILS),
        (power(1, 1.3), QUADRATIC, Verdict.FAILS),
        (power(1.2, 0.8), QUADRATIC | {10_000: NONE}, Verdict.HOLDS),  # as far as there is memory
        (LINEAR, QUADRATIC | {5000: NONE, 10_000: NONE}, Verdict.UNDECIDED),
        ({}, QUADRATIC, Verdict.UNDECIDED),
    ],
)
def test_claim_16(ga, full, verdict):
    claim = VIEW.decide(made({}, costs={"GESMR": ga, "CMA-ES": full}))[1]
    assert (claim.number, claim.verdict, claim.short) == (16, verdict, "")
    if verdict is not Verdict.UNDECIDED:
        assert "over d = 1000, 2000, 5000" in claim.found


def test_slopes_of_powers_are_their_exponents():
    costs = {"CMA-ES": power(2.5, 1.5) | {100: Measured(np.array([9.0]), 9.0)}}  # too small to count
    found = slopes(made({}, costs=costs), "CMA-ES")
    assert found is not None
    assert found.dims == [1000, 2000, 5000, 10_000]
    assert found.time == pytest.approx((2.5, 2.5, 2.5))
    assert found.memory == pytest.approx((1.5, 1.5, 1.5))
    noisy = {dim: one._replace(turns=one.turns * [0.9, 1.1]) for dim, one in power(1, 1).items()}
    found = slopes(made({}, costs={"GESMR": noisy}), "GESMR")
    assert found is not None
    assert found.time.value == pytest.approx(1.0)
    assert found.time.low < 0.99
    assert found.time.high > 1.01


def test_who_is_ahead():
    paper, *_ = tables(made({"ackley": 0.2, "sphere": 0.5, "griewank": 2.0}))
    assert [(row[0], row[8], row[-1]) for row in paper.rows] == [
        ("ackley", "CMA-ES", "GESMR"), ("ackley", "sep-CMA-ES", "GESMR"),
        ("sphere", "CMA-ES", "GESMR"), ("sphere", "sep-CMA-ES", "neither"),
        ("griewank", "CMA-ES", "CMA-ES"), ("griewank", "sep-CMA-ES", "sep-CMA-ES"),
    ]  # fmt: skip


def test_curves_of_seeds_meet_on_one_grid():
    x = np.array([[1.0, 2, 4, np.nan], [2.0, 4, 8, 16]])
    best = np.array([[9.0, 8, 7, np.nan], [6.0, 5, 4, 3]])
    grid, curves = on_one_grid(x, best)
    assert (grid[0], grid[-1]) == (2, 16)
    np.testing.assert_array_equal(curves[:, 0], [8, 6])
    np.testing.assert_array_equal(curves[:, grid == 4][:, 0], [7, 5])
    np.testing.assert_array_equal(curves[:, -1], [7, 3])


def test_figures_are_made_of_what_there_is():
    apart = figures(both(made(ALL), made(AUTHORS, sigma0=0.1)))["evaluations-std1"][1].axes
    titles = [axes.get_title("left") for axes in apart if axes.get_visible()]
    assert len(titles) == 8
    assert "Rastrigin\ncentred, σ₀ = 0.1" in titles
    assert list(figures(made(ALL))) == ["evaluations-std1", "seconds-std1", "cost"]
    assert list(figures(Results({}, made(ALL).costs))) == ["cost"]


def test_results_of_another_revision_do_not_count(duels):
    group, arrays = duels[0]
    old = StoredJob(tuple(as_json(replace(spec, revision=1)) for spec in group.specs), {}, arrays)
    cost = {"seconds": np.ones((1, 2)), "bytes": np.ones(1)}
    old_cost = StoredJob((as_json(Cost("GESMR", 10, 100, 2, revision=1)),), {}, cost)
    with pytest.raises(LabError, match="older version of the study"):
        load([old, old_cost])
    new_cost = StoredJob((as_json(Cost("GESMR", 10, 100, 2)),), {}, cost)
    results = load([old, old_cost, new_cost])
    assert (list(results.duels), list(results.costs)) == ([], [("GESMR", 10)])


def test_from_a_store_to_a_chapter(tmp_path, duels):
    store = Store(tmp_path / "cmaes", create=True)
    for group, arrays in duels:
        store.write(group.specs, arrays, {})
    assert runner.run(STUDY, duels[0][0].specs, store, console=Console(quiet=True)) == 0
    chapter = VIEW.chapter(tmp_path / "cmaes")
    assert chapter.runs == 4
    assert [(o.claim.number, o.claim.verdict) for o in chapter.outcomes] == [
        (13, Verdict.UNDECIDED), (16, Verdict.UNDECIDED)]  # fmt: skip
    VIEW.export(store, Options(), tmp_path / "out", Console(quiet=True))
    assert (tmp_path / "out" / "cmaes-paper.csv").exists()
    (section,) = chapter.sections
    assert len(section.context["tables"]) == 4
    assert len(section.context["images"]) == 2
