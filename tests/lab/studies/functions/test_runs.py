"""The main study: which runs there are, and that running them together is running them."""

import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

import gesmr
from gesmr import noise
from gesmr._compilation import OPTIONS
from gesmr.controllers import Feedback
from gesmr.lab.errors import LabError
from gesmr.lab.run import runner
from gesmr.lab.run.batch import Histories
from gesmr.lab.run.compilation import Programs
from gesmr.lab.run.function_task import FunctionTask, Place, function_lanes
from gesmr.lab.run.lanes import FIXED_RATES, METHODS, first
from gesmr.lab.run.reading import LateUCB, Reading
from gesmr.lab.run.store import Store
from gesmr.lab.show.view import Options
from gesmr.lab.studies import STUDIES, Selection, as_json, content_hash
from gesmr.lab.studies.functions.results import Row
from gesmr.lab.studies.functions.runs import Cost, Run, RunJob, kept_generations, summary
from gesmr.lab.studies.functions.show import VIEW
from gesmr.problems import functions
from helpers.studies import made_up_group

STUDY = STUDIES["functions"]
QUIET = Console(quiet=True)
PAIRS = ((1.0, 0), (1.0, 1), (10.0, 0), (10.0, 3))


def job_of(function, dim, shifted, generations, methods, pairs, reading=Reading.PRINT):
    """Runs of all methods at pairs of spread and seed, together."""
    what = shifted, generations, reading.value
    return RunJob(tuple(Run(function, dim, std, method, seed, *what) for method in methods for std, seed in pairs))


@pytest.fixture(scope="module")
def programs():
    """Compiled programs, shared by the tests of this file."""
    with Programs(2) as compiled:
        yield compiled


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """An environment whose subprocesses share what they compile, in a user's cache of its own."""
    home = str(tmp_path_factory.mktemp("cache"))
    return {**os.environ, "XDG_CACHE_HOME": home, "JAX_ENABLE_COMPILATION_CACHE": "1"}


def test_the_paper_profile_is_the_whole_study():
    specs = STUDY.specs(Selection("paper"))
    runs = [spec for spec in specs if isinstance(spec, Run)]
    assert len(runs) == 6 * 4 * 2 * 11 * 40
    assert {(run.dim, run.generations) for run in runs if run.function != "linear"} == {
        (2, 100), (30, 300), (100, 1000), (1000, 2500)}  # fmt: skip
    assert {run.generations for run in runs if run.function == "linear"} == {100}
    assert [spec.dim for spec in specs if isinstance(spec, Cost)] == [2, 30, 100, 1000]


def test_the_study_is_a_deterministic_generator():
    specs = STUDY.specs(Selection())
    assert specs == STUDY.specs(Selection())
    assert len(set(specs)) == len(specs) == 6 * 3 * 2 * 11 * 5 + 3
    assert len({content_hash(as_json(spec)) for spec in specs}) == len(specs)


def test_the_hash_of_a_specification_is_for_ever():
    """Results are found by it: if this changes, every store has to be computed again."""
    run = Run("ackley", 30, 10.0, "GESMR", 7, False, 300)
    assert content_hash(as_json(run)) == "0b8c2c6a2cd8c230bbba69e4d50635e8cf66b8fd45059546ed531fc2c71d4d3e"


def test_selections_narrow_a_profile():
    wanted = Selection("quick", 2, (30, 2), ("sphere", "ackley"), ("GESMR", "OFMR"), shifted=True)
    specs = STUDY.specs(wanted)
    assert len(specs) == 2 * 2 * 2 * 2 * 2
    assert {(s.function, s.dim, s.method, s.shifted) for s in specs} == {
        (f, d, m, True) for f in ("ackley", "sphere") for d in (2, 30) for m in ("OFMR", "GESMR")}  # fmt: skip
    assert [s.function for s in specs] == ["ackley"] * 16 + ["sphere"] * 16  # the study's order, not the caller's


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection("huge"), "profile must be one of 'quick', 'paper', got 'huge'"),
        (Selection(dims=(3,)), "dims must be one of 2, 30, 100, 1000, got 3"),
        (Selection(functions=("schwefel",)), "functions must be one of 'ackley'"),
        (Selection(methods=("GESMR", "gesmr")), "methods must be one of 'OFMR'"),
        (Selection(seeds=0), "seeds must be an integer from 1"),
    ],
)
def test_what_the_study_does_not_have_is_refused(selection, message):
    with pytest.raises(ValueError, match=message):
        STUDY.specs(selection)


@pytest.mark.parametrize("memory", [1, 10**6, 10**12])
def test_groups_hold_every_specification_once(memory):
    specs = STUDY.specs(Selection("quick", seeds=3))
    missing = [spec for i, spec in enumerate(specs) if i % 7]  # as after a run that was narrowed otherwise
    groups = STUDY.jobs(missing, memory)
    assert sorted(map(repr, (spec for group in groups for spec in group.specs))) == sorted(map(repr, missing))
    for group in groups:
        assert len(set(group.programs)) == len(group.programs)


def test_few_programs_serve_the_whole_study():
    groups = STUDY.jobs(STUDY.specs(Selection("quick")), 10**12)
    advancing = {p for group in groups for p in group.programs if p.function.__name__ == "_advance"}
    assert len(groups) == 6 * 3 * 9 + 3
    assert len(advancing) == 3 * 10  # per dimension: eight methods, the fixed rates at once, OFMR's last run


def direct(method, function, dim, std, seed, generations, shifted=False, reading=Reading.PRINT):
    """A run by the library alone. A method's noise is below the key of its first population, at (2²⁹, its name)."""
    key = noise.fold_in(noise.key(2022), seed)
    own = noise.fold_in(key, np.uint32(2**29), np.uint32(zlib.crc32(method.encode())))
    shift = None
    if shifted:
        draw = std * noise.normal(noise.bits(noise.fold_in(noise.key(2022), seed, 1), dim))
        shift = draw - functions.FORMULAS[function].optimum
    problem = functions.get(function, dim, std, shift)
    formula = functions.AS_PRINTED[function].value

    def objective(x):
        return formula(x if shift is None else x - shift)

    ties = "first" if reading is Reading.PRINT else "random"
    oracles = {"OFMR": gesmr.OFMR(ties=ties), "LAMR-100": gesmr.LAMR(window=100, ties=ties)}
    late = reading is Reading.PRINT and method.startswith("UCB")
    rates = LateUCB(gesmr.UCB(int(method[4:]), window=10, exploration=0.25)) if late else None
    ga = gesmr.GA(gesmr.Fixed() if method in oracles else rates or gesmr.controller(method))
    population = problem.init(key, 101)
    state = ga.init(own, population, objective(population))
    evolve = oracles[method].evolve if method in oracles else gesmr.evolve
    return evolve(ga, objective, state, generations)[1]


@pytest.mark.parametrize(
    ("methods", "reading"),
    [
        (("OFMR", "FMR", "1CMR"), Reading.PRINT),
        *(((method,), Reading.PRINT) for method in METHODS if method not in FIXED_RATES),
        (("UCB/5",), Reading.TEXT),
        (("LAMR-100",), Reading.TEXT),
    ],
)
def test_a_group_is_the_library_run_by_run(programs, methods, reading):
    """Ten generations: over many more, rounding that differs between programs would be amplified by selection."""
    group = job_of("rastrigin", 3, False, 10, methods, PAIRS, reading)
    arrays = group.run(programs, lambda work: None)
    compiled = jax.jit(direct, static_argnums=(0, 1, 2, 5, 6, 7), compiler_options=OPTIONS)
    for spec, elite, log_rate in zip(group.specs, arrays["elite"], arrays["log_rate"], strict=True):
        assert spec.reading == reading
        expected = compiled(spec.method, "rastrigin", 3, spec.std, spec.seed, 10, False, reading)
        np.testing.assert_allclose(elite, expected.elite, rtol=1e-4)
        np.testing.assert_allclose(log_rate, expected.log_rate, rtol=1e-4, atol=1e-4)


def test_methods_share_first_populations_and_no_noise(programs):
    """In 100-D the rates of FMR and 1CMR are the same, 0.01: with shared noise these would be equal to the bit."""
    group = job_of("sphere", 100, False, 2, ("FMR", "1CMR"), ((1.0, 0), (1.0, 1)))
    arrays = group.run(programs, lambda work: None)
    fixed, by_dimension = arrays["elite"].reshape(2, 2, 2)
    np.testing.assert_array_equal(arrays["first"][:2], arrays["first"][2:])
    np.testing.assert_allclose(arrays["log_rate"], np.log(0.01), rtol=1e-6)
    assert (fixed != by_dimension).all()


@pytest.mark.parametrize(("function", "scale"), [("ackley", 1e-7), ("griewank", 1e-4), ("rastrigin", 1e-4)])
def test_the_functions_are_the_printed_ones(function, scale):
    """Near the optimum, where terms cancel in single precision; the library's own do not."""
    x = np.random.default_rng(0).normal(scale=scale, size=(20, 2)).astype(np.float32)
    place = Place(np.float32(1), np.zeros(2, np.float32))
    for reading in Reading:
        task = FunctionTask(2, reading=reading)
        values = task.objective(np.int32(list(functions.FORMULAS).index(function)), place)(x)
        np.testing.assert_allclose(values, functions.AS_PRINTED[function].value(x), atol=4e-6)
        assert len(np.unique(values)) < 10  # a few multiples of what terms of about 20, or of 1, are rounded to
    assert len(np.unique(functions.get(function, 2)(x))) == 20


def test_linear_in_print_has_coefficients():
    """The first d of 3,000 evenly spaced from −10 to 10; by the text all are one."""
    x, place = (
        np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]], np.float32),
        Place(1.0, np.zeros(3, np.float32)),
    )
    in_print, in_text = (
        FunctionTask(3, only="linear", reading=reading).objective(None, place)(x) for reading in Reading
    )
    step = 20 / 2999
    np.testing.assert_allclose(in_print, [-10, 3 * (-10 + 2 * step), 3 * -10 + 3 * step], rtol=1e-6)
    np.testing.assert_allclose(in_text, [1, 3, 3])


@pytest.mark.parametrize("function", [pytest.param("rosenbrock", marks=pytest.mark.slow), "sphere"])
def test_shifted_runs_have_their_optimum_at_a_draw_of_the_initial_distribution(programs, function):
    group = job_of(function, 3, True, 10, ("GESMR",), PAIRS)
    arrays = group.run(programs, lambda work: None)
    for spec, elite in zip(group.specs, arrays["elite"], strict=True):
        expected = direct("GESMR", function, 3, spec.std, spec.seed, 10, shifted=True)
        np.testing.assert_allclose(elite, expected.elite, rtol=1e-4)
    data = function_lanes(function, 200, [1.0, 10.0], [0, 1], True)
    optimum = np.asarray(data.own.shift) + functions.FORMULAS[function].optimum
    np.testing.assert_allclose(optimum.std(axis=1), [1.0, 10.0], rtol=0.2)
    np.testing.assert_allclose(optimum.mean(axis=1) / [1.0, 10.0], 0.0, atol=0.25)
    assert not np.allclose(optimum[0], optimum[1] / 10)  # seed by seed


def test_neither_grouping_nor_batch_size_changes_a_draw(programs):
    stds, seeds = zip(*PAIRS, strict=True)
    together = function_lanes("ackley", 3, stds, seeds, False)
    whole, _ = programs(first(FunctionTask(3), 4))(together)
    batch = job_of("ackley", 3, False, 10, ("GESMR",), PAIRS).run(programs, lambda work: None)
    for i, (std, seed) in enumerate(PAIRS):
        alone, _ = programs(first(FunctionTask(3), 1))(function_lanes("ackley", 3, [std], [seed], False))
        np.testing.assert_array_equal(alone[0], whole[i])
        single = job_of("ackley", 3, False, 10, ("GESMR",), ((std, seed),)).run(programs, lambda work: None)
        np.testing.assert_allclose(single["elite"][0], batch["elite"][i], rtol=1e-5)
        np.testing.assert_allclose(single["log_rate"][0], batch["log_rate"][i], rtol=1e-5, atol=1e-5)


def test_all_methods_share_first_populations(programs):
    for methods in (("GESMR",), ("SAMR",), ("OFMR", "FMR")):
        group = job_of("linear", 2, False, 1, methods, PAIRS[:2])
        assert first(FunctionTask(2, reading=group.task.reading), 2) in group.programs
    lanes = function_lanes("linear", 2, [1, 1], [0, 1], False)
    assert np.unique(np.asarray(programs(first(FunctionTask(2), 2))(lanes)[0])).size > 400


def test_histories_are_thinned_and_averages_are_not():
    generations = 1000
    elite = np.linspace(5, 1, generations)[None] ** 2
    log_rate = np.sin(np.arange(generations))[None] - 3
    kept = summary(Histories(elite[:, 0] + 1, elite, log_rate, log_rate[:, 0]))
    points = kept_generations(generations)
    assert (len(points), points[0], points[-1]) == (500, 1, 1000)
    assert len(set(points)) == 500
    np.testing.assert_allclose(kept["elite"][0], elite[0, points - 1], rtol=1e-6)
    np.testing.assert_allclose(kept["mean_elite"], elite.mean())
    np.testing.assert_allclose(kept["mean_log_rate"], log_rate.mean())
    np.testing.assert_array_equal(kept_generations(300), np.arange(1, 301))


def test_tables_2_and_3_are_those_of_whole_histories(tmp_path):
    """As printed: with generation 0, and with the rates that an update left in force beside what LAMR-100 used.

    As text: generations 1 … T, and the rates that children were made with.
    """
    rng, generations = np.random.default_rng(0), 300
    elite = rng.random((2, generations + 1))  # from generation 0 on
    rates = rng.normal(-3, 1, (2, generations + 1))  # those in force before each generation, and after the last
    oracle = np.repeat(rng.normal(-4, 1, (2, 3)), 100, axis=1)  # what each used, constant in every window
    store = Store(tmp_path / "s", create=True)
    for reading in Reading:
        for method, used, after in (("GESMR", rates[:, :-1], rates[:, -1]), ("LAMR-100", oracle, oracle[:, -1])):
            specs = [Run("sphere", 30, 1.0, method, seed, False, generations, reading.value) for seed in (0, 1)]
            store.write(specs, summary(Histories(elite[:, 0], elite[:, 1:], used, after)), {})
    printed, text = (VIEW.results(store, Options(as_text=reading is Reading.TEXT)) for reading in Reading)
    row = Row("sphere", 30, 1.0)
    first_choice = np.concatenate([oracle[:, :1], oracle], axis=1)
    expected = {
        "mean": (elite.mean(axis=1), elite[:, 1:].mean(axis=1)),
        "rate_error": (np.square(rates - first_choice).mean(axis=1), np.square(rates[:, :-1] - oracle).mean(axis=1)),
        "used_rate_error": (np.square(rates[:, :-1] - oracle).mean(axis=1),) * 2,
    }
    for name, values in expected.items():
        for results, value in zip((printed, text), values, strict=True):
            np.testing.assert_allclose(results.values(getattr(results, name), row, "GESMR"), value, rtol=1e-6)
            itself = results.values(results.rate_error, row, "LAMR-100")
            np.testing.assert_allclose(itself, 0, atol=1e-12)
    assert not np.allclose(*expected["rate_error"])


def test_some_seeds_of_a_store(tmp_path):
    specs, arrays = made_up_group(seeds=4)
    store = Store(tmp_path / "s", create=True)
    store.write(specs, arrays, {})
    assert VIEW.results(store).seeds == (0, 1, 2, 3)
    results = VIEW.results(store, Options(seeds=range(2, 9)))
    assert results.seeds == (2, 3)
    np.testing.assert_array_equal(results.final, [[[3.0, 4.0]]])
    with pytest.raises(LabError, match="no centred runs of seeds 40-79"):
        VIEW.results(store, Options(seeds=range(40, 80)))
    with pytest.raises(LabError, match="no centred, as text runs"):
        VIEW.results(store, Options(as_text=True))


def test_a_range_of_seeds():
    specs = STUDY.specs(Selection("paper", range(40, 80), (2,), ("sphere",), ("GESMR",)))
    assert [spec.seed for spec in specs] == [*range(40, 80)] * 2
    with pytest.raises(ValueError, match="seeds must be an integer from 0"):
        STUDY.specs(Selection(seeds=range(2**31, 2**31 + 2)))


def test_as_text_is_another_study():
    printed, text = (STUDY.specs(Selection(seeds=1, dims=(2,), as_text=as_text)) for as_text in (False, True))
    assert len(text) == 6 * 2 * 11
    assert {spec.reading for spec in text} == {"text"}
    assert not {content_hash(as_json(spec)) for spec in printed} & {content_hash(as_json(spec)) for spec in text}


def test_ucb_in_print_by_hand():
    """Fifteen generations beside the sentences: the last ten rewards, 0.5·√(ln t / n), credit to the next arm."""
    rng, rewards = np.random.default_rng(1), []
    controller = Reading.PRINT.controller("UCB/3", 2)
    state = controller.init(noise.key(0), 2, 2)
    credited, arm = {0: [], 1: [], 2: []}, 0
    rates = np.array([1e-3, 10**-1.5, 1.0])
    played = []
    for _ in range(15):
        np.testing.assert_allclose(controller.rates(state, np.arange(2)), [rates[arm]] * 2, rtol=1e-5)
        rewards.append(float(rng.normal(scale=0.4)))
        t = sum(map(len, credited.values()))

        def score(a, t=t):
            given = credited[a]
            return np.inf if not given else np.mean(given[-10:]) + 0.5 * np.sqrt(np.log(t) / len(given))

        arm = max((0, 1, 2), key=score)  # the first of the highest
        credited[arm].append(rewards[-1])
        played.append(arm)
        told = Feedback(np.int32(0), np.zeros(2, np.int32), np.ones(2), np.zeros(2), np.array([9.0, -rewards[-1]]))
        state = controller.update(noise.key(0), state, told)
    assert played[:3] == [0, 1, 2]
    assert len(set(played[3:])) > 1  # the scores mattered
    assert max(map(len, credited.values())) < 15


SMALL = Selection(seeds=2, dims=(2,), functions=("ackley", "sphere", "linear"), methods=("FMR", "SAMR", "GESMR"))


def arrays_of(store):
    return {path.name: path.read_bytes() for path in store.directory.glob("groups/*.npz")}


def without_times(store):
    """Every stored array, by specification, but for the measured times."""
    return {
        content_hash(spec): {name: array[i].tobytes() for name, array in group.arrays.items()}
        for group in store.jobs()
        for i, spec in enumerate(group.specs)
        if spec["kind"] == "run"
    }


@pytest.fixture(scope="module")
def small_store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("small") / "functions", create=True)
    specs = STUDY.specs(SMALL)
    assert runner.run(STUDY, specs, store, console=QUIET, threads=1) == len(specs)
    return store


def test_started_again_it_computes_nothing(small_store):
    before = arrays_of(small_store)
    assert runner.run(STUDY, STUDY.specs(SMALL), small_store, console=QUIET) == 0
    assert arrays_of(small_store) == before
    assert [session["runs"] for session in small_store.sessions()] == [len(STUDY.specs(SMALL))]


def test_threads_change_nothing(small_store, tmp_path):
    other = Store(tmp_path / "functions", create=True)
    runner.run(STUDY, STUDY.specs(SMALL), other, console=QUIET, threads=3)
    assert without_times(other) == without_times(small_store)


def test_more_seeds_compute_only_those(small_store, tmp_path):
    fewer = Store(tmp_path / "functions", create=True)
    narrow = Selection(seeds=1, dims=(2,), functions=("sphere",), methods=("SAMR",))
    wide = Selection(seeds=2, dims=(2,), functions=("sphere",), methods=("SAMR",))
    runner.run(STUDY, STUDY.specs(narrow), fewer, console=QUIET)
    assert runner.run(STUDY, STUDY.specs(wide), fewer, console=QUIET, memory=1) == 2
    row = Row("sphere", 2, 1.0)
    ours, theirs = (VIEW.results(store).curves(row, "SAMR").elite for store in (fewer, small_store))
    np.testing.assert_allclose(ours[:, :10], theirs[:, :10], rtol=1e-4)


def test_a_damaged_group_is_computed_again(small_store):
    """The whole way: spoil, run, and it is what it was."""
    before = without_times(small_store)
    groups = [path for path in small_store.directory.glob("groups/*.npz") if b"seconds" not in path.read_bytes()]
    groups[0].write_bytes(b"spoiled")
    said = []
    again = Store(small_store.directory, warn=said.append)
    assert runner.run(STUDY, STUDY.specs(SMALL), again, console=QUIET, threads=1) > 0
    assert groups[0].name in " ".join(said)
    assert without_times(again) == before


def test_a_group_whose_description_was_changed_is_computed_again(small_store):
    """It is JSON as before, of the same runs, but says of them what is not so."""
    before = without_times(small_store)
    path = next(small_store.directory.glob("groups/*.json"))
    honest = path.read_text()
    path.write_text(honest.replace('"on": "cpu:0"', '"on": "cpu:7"'))
    assert path.read_text() != honest
    said = []
    again = Store(small_store.directory, warn=said.append)
    assert runner.run(STUDY, STUDY.specs(SMALL), again, console=QUIET, threads=1) > 0
    assert f"set aside {path.name}: its content is not what was written" in said[0]
    assert {group.provenance["on"] for group in again.jobs()} == {"cpu:0"}
    assert without_times(again) == before


def command(out, *options):
    selection = ["--seeds", "2", "--dims", "2", "--functions", "ackley,sphere,linear", "--methods", "FMR,SAMR,GESMR"]
    return [sys.executable, "-m", "gesmr.lab.cli", "study", "run", "functions", *selection, "--out", str(out), *options]


def groups_in(directory: Path) -> int:
    return len(list(directory.glob("functions/groups/*.json")))


def test_killed_and_resumed_it_is_the_uninterrupted_study(tmp_path, cache, small_store):
    """SIGKILL between groups, three times, then to the end: the arrays are the same, byte for byte."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole, "--threads", "1"), env=cache, check=True, capture_output=True, timeout=300)
    for target in (1, 3, 5):
        with subprocess.Popen(command(killed, "--threads", "1"), env=cache, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 240
            while groups_in(killed) < target and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
        assert groups_in(killed) >= target
    assert list(Path(cache["XDG_CACHE_HOME"]).glob("gesmr/programs-*/*"))
    assert groups_in(killed) < groups_in(whole), "the last kill came too late to interrupt anything"
    subprocess.run(command(killed, "--threads", "1"), env=cache, check=True, capture_output=True, timeout=300)
    assert without_times(Store(killed / "functions")) == without_times(Store(whole / "functions"))
    assert len(without_times(Store(whole / "functions"))) == len(without_times(small_store))


def test_two_runners_share_a_directory(tmp_path, cache):
    both = [
        subprocess.Popen(command(tmp_path / "both"), env=cache, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    errors = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    said = []
    store = Store(tmp_path / "both" / "functions", warn=said.append)
    assert store.done() == {content_hash(as_json(spec)) for spec in STUDY.specs(SMALL)}
    assert not said
    assert len(arrays_of(store)) == groups_in(tmp_path / "both")  # every group was computed once


def test_an_error_in_a_group_stops_the_runner_and_keeps_what_is_finished(tmp_path):
    class Broken(RunJob):
        def run(self, compiled, tick):
            raise ZeroDivisionError("in the middle")

    class Study:
        name = "functions"

        def jobs(self, specs, memory):
            groups = STUDY.jobs(specs, memory)
            return [*groups[:2], Broken(job_of("linear", 2, False, 100, ("SAMR",), PAIRS).specs)]

    store = Store(tmp_path / "functions", create=True)
    with pytest.raises(ZeroDivisionError):
        runner.run(Study(), STUDY.specs(SMALL), store, console=QUIET, threads=1)
    assert len(list(store.jobs())) == 2


def test_results_say_what_is_missing(small_store):
    with pytest.raises(LabError, match="no shifted runs"):
        VIEW.results(small_store, Options(shifted=True))
    results = VIEW.results(small_store)
    assert results.methods == ("FMR", "SAMR", "GESMR")
    assert results.ranked == results.methods
    assert len(results.rows) == 6
    assert np.isnan(results.rate_error).all()  # without LAMR-100 there is no Table 3
    assert np.isfinite(results.final).all()
    assert results.seconds[2].shape == (21, 2)
