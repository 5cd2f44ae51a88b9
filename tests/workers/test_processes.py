"""Evaluation by processes: the same values, and what happens when workers fail."""

import concurrent.futures
import importlib
import math
import os
import signal
import sys
import threading
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import gesmr
from gesmr.optimize import layout
from gesmr.optimize.called import PlainValues
from gesmr.optimize.options import Objective
from gesmr.workers import Pool, crew
from helpers import TESTS, misbehaving
from helpers.evaluation import INNOCENT, ROWS, SPHERES, assert_same, lines_to_copy, minimize, values
from helpers.misbehaving import BAD, asleep, sphere
from helpers.processes import Program, is_running, marked, wait_until, within
from helpers.refusals import assert_refused

LARGE = np.ones((4, 200_000))  # more than a process takes that does not listen


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def hasty():
    """A pool whose workers do not have much time."""
    with Pool(2, timeout=0.5) as pool:
        yield pool


def stop(pool):
    """As SIGSTOP does: its processes neither read nor answer."""
    for worker in pool._workers:
        os.kill(worker.process.pid, signal.SIGSTOP)


# Results


OPTIONS = {
    "plain": {},
    "repeated": {"repeats": 2, "direction": "maximize"},
    "evaluated again": {"reevaluate": "parents"},
    "in single precision": {"dtype": "float32"},
    "a tree": {"fun": misbehaving.tree_sphere, "x0": {"a": np.ones(2), "b": np.ones((2, 2))}, "args": (2.0,)},
    "with errors": {"fun": misbehaving.raises, "x0": (BAD, 1.0), "on_error": "worst"},
}


SLOW = ("evaluated again", "in single precision", "a tree")


@pytest.mark.filterwarnings("ignore:fun failed")
@pytest.mark.parametrize(
    "name", ["plain", "repeated", "with errors", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_results_are_those_of_no_workers(pool, name):
    options = {key: value for key, value in OPTIONS[name].items() if key not in ("fun", "x0")}
    start = {key: value for key, value in OPTIONS[name].items() if key in ("fun", "x0")}
    result = minimize(**start, workers=pool, **options)
    assert result.path == "python, 2 processes"
    assert_same(result, minimize(**start, **options))


def test_functions_that_have_no_name_are_sent_by_cloudpickle(pool):
    pytest.importorskip("cloudpickle")
    shift = np.arange(3.0)
    assert_same(minimize(lambda x: sphere(x - shift), workers=pool), minimize(lambda x: sphere(x - shift)))


def test_processes_stay_for_the_next_call(pool):
    before = {worker.process.pid for worker in pool._workers}
    minimize(workers=pool)
    assert {worker.process.pid for worker in pool._workers} == before


@pytest.mark.parametrize("ways", [(False, True), (True, False)])
def test_a_run_goes_on_with_other_workers(pool, tmp_path, ways):
    result = None
    for generations, parallel in zip((2, 5), ways, strict=True):
        options = {"workers": pool} if parallel else {}
        result = minimize(maxiter=generations, checkpoint=tmp_path / "run.npz", resume=True, **options)
    assert_same(result, minimize(maxiter=5))


# Failures


def test_exceptions_come_back_as_they_are_the_first_one_first(pool):
    with pytest.raises(ZeroDivisionError, match="at 14") as error:
        values(pool, misbehaving.raises)
    assert "misbehaving.py" in error.value.__notes__[0]
    np.testing.assert_array_equal(values(pool, sphere)[1], SPHERES)  # the pool is as good as new


def test_exceptions_that_cannot_be_sent_come_back_as_text(pool):
    with pytest.raises(gesmr.WorkerError, match="StubbornError: 1 and 2"):
        values(pool, misbehaving.raises_stubbornly)


@pytest.mark.parametrize("workers", [None, "pool"])
def test_exceptions_without_a_text_are_named(pool, workers):
    workers = pool if workers else None
    with pytest.raises(misbehaving.UnspeakableError):
        values(workers, misbehaving.raises_unspeakably)
    by, found = values(workers, misbehaving.raises_unspeakably, on_error="worst")
    assert (by.errors, by.first_error) == (len(ROWS), "UnspeakableError (whose text cannot be had)")
    assert np.isnan(found).all()


def test_exceptions_without_a_text_are_named_for_all_candidates_at_once():
    by, _ = values(None, misbehaving.raises_unspeakably, on_error="worst", vectorized=True)
    assert by.first_error == "UnspeakableError (whose text cannot be had)"


def test_exceptions_that_cannot_be_packed_come_back_as_text(pool):
    with pytest.raises(gesmr.WorkerError, match="fun raised ImmovableError: too heavy"):
        values(pool, misbehaving.raises_immovably)


def test_what_keeps_fun_from_loading_is_named_even_without_a_text(pool):
    with within(60), pytest.raises(gesmr.WorkerError, match=r"a worker cannot load fun: UnspeakableError \(whose text"):
        values(pool, misbehaving.Unloadable(misbehaving.raises_unspeakably, 0))


def test_a_worker_that_wants_to_exit_ends_the_program_as_it_would_without(pool):
    with pytest.raises(SystemExit):
        values(pool, misbehaving.exits)


@pytest.mark.parametrize("fun", [misbehaving.text, misbehaving.array, misbehaving.raises])
def test_errors_are_treated_as_without_workers(pool, fun):
    errors = []
    for workers in (None, pool):
        with pytest.raises((TypeError, ZeroDivisionError)) as error:
            values(workers, fun)
        errors.append((type(error.value), str(error.value)))
    assert errors[0] == errors[1]
    (alone, expected), (by, found) = values(None, fun, on_error="worst"), values(pool, fun, on_error="worst")
    np.testing.assert_array_equal(found, expected)
    assert (by.errors, by.first_error) == (alone.errors, alone.first_error)
    assert alone.errors > 0


def test_a_candidate_that_kills_workers_is_given_up_after_three_tries(pool, tmp_path):
    by, found = values(pool, misbehaving.dies, tmp_path / "calls", on_error="worst")
    np.testing.assert_array_equal(found, np.where(INNOCENT, SPHERES, np.nan))
    assert by.errors == 1
    assert by.first_error == "its process was killed by SIGKILL, in the last of 3 tries"
    assert (tmp_path / "calls").read_text() == "xxx"


@pytest.mark.slow
def test_a_candidate_that_kills_workers_is_an_error(pool, tmp_path):
    with pytest.raises(gesmr.WorkerError, match="candidate 7: its process was killed by SIGKILL"):
        values(pool, misbehaving.dies, tmp_path / "calls")


def test_a_worker_that_dies_by_a_signal_is_replaced_and_nothing_is_lost(pool, tmp_path):
    by, found = values(pool, misbehaving.dies_once, tmp_path / "calls")
    np.testing.assert_array_equal(found, SPHERES)
    assert by.errors == 0
    assert (tmp_path / "calls").read_text() == "xx"


def test_a_worker_that_hangs_is_replaced_and_nothing_is_lost(hasty, tmp_path):
    by, found = values(hasty, misbehaving.hangs_once, tmp_path / "calls")
    np.testing.assert_array_equal(found, SPHERES)
    assert by.errors == 0


@pytest.mark.slow
def test_a_candidate_that_always_hangs_is_given_up(hasty, tmp_path):
    by, found = values(hasty, misbehaving.hangs, tmp_path / "calls", on_error="worst")
    np.testing.assert_array_equal(found, np.where(INNOCENT, SPHERES, np.nan))
    assert (by.errors, by.first_error) == (1, "no answer within 0.5 s, in the last of 3 tries")
    assert (tmp_path / "calls").read_text() == "xxx"


def test_a_stopped_worker_is_replaced_when_time_is_up(hasty):
    """Its candidate is too large to be sent to somebody who does not listen."""
    by, _ = values(hasty, sphere, rows=LARGE)
    stop(hasty)
    with within(60):
        np.testing.assert_array_equal(by(LARGE)[0], [200_000.0] * 4)
    assert by.errors == 0


def test_ctrl_c_works_while_nobody_listens(pool):
    """Without a timeout a stopped process is waited for."""
    by, _ = values(pool, sphere, rows=LARGE)
    stop(pool)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with within(60), pytest.raises(KeyboardInterrupt):
            by(LARGE)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    np.testing.assert_array_equal(values(pool, sphere)[1], SPHERES)


@pytest.mark.slow
def test_programs_that_fun_has_started_end_with_their_worker(hasty, tmp_path):
    values(hasty, misbehaving.starts_a_program, tmp_path / "programs", on_error="worst")
    programs = (tmp_path / "programs").read_text().split()
    assert len(programs) == 3
    assert not [program for program in programs if is_running(program)]


@pytest.mark.slow
def test_idle_workers_help_late_ones(pool, tmp_path):
    """Without a timeout: the first attempt hangs, a copy of it answers."""
    values(pool, asleep, 0.001)
    start = time.monotonic()
    _, found = values(pool, misbehaving.hangs_once, tmp_path / "calls")
    np.testing.assert_array_equal(found, SPHERES)
    assert time.monotonic() - start < 60
    _, found = values(pool, sphere)  # the one that hangs has another function to load, and is replaced
    np.testing.assert_array_equal(found, SPHERES)


def test_what_cannot_be_sent_is_said_before_anything_is_started():
    pool = Pool(2)
    with pytest.raises(TypeError, match=r"args\[1\] \(a lock\) cannot be sent to workers.*pickle"):
        minimize(args=(1, threading.Lock()), workers=pool)
    assert not pool._is_open


def test_what_cannot_be_loaded_is_said_before_any_work(pool):
    by = PlainValues(Objective(misbehaving.Unloadable(), workers=pool), layout.of(ROWS[0])[0])
    for _ in range(2):
        with pytest.raises(gesmr.WorkerError, match="a worker cannot load fun: ImportError: not here"):
            by(ROWS)
    np.testing.assert_array_equal(values(pool, sphere)[1], SPHERES)


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ((os._exit, 3), "exited with status 3"),
        pytest.param((misbehaving.kill_this, signal.SIGSEGV), "was killed by SIGSEGV", marks=pytest.mark.slow),
    ],
)
def test_a_function_that_kills_whoever_loads_it_is_given_up(pool, does, why):
    values(pool, sphere)
    match = f"a worker could not be started, 3 times in a row: its process {why} while it was loading fun"
    with within(120), pytest.raises(gesmr.WorkerError, match=match):
        values(pool, misbehaving.Unloadable(*does))
    np.testing.assert_array_equal(values(pool, sphere)[1], SPHERES)


def test_a_module_that_ends_workers_when_it_is_imported_is_given_up(pool, tmp_path, monkeypatch):
    source = "import multiprocessing, os\nif multiprocessing.parent_process():\n    os._exit(3)\ndef fun(x): pass\n"
    (tmp_path / "deadly.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with within(120), pytest.raises(gesmr.WorkerError, match="exited with status 3 while it was loading fun"):
        values(pool, importlib.import_module("deadly").fun)


def test_a_function_that_takes_too_long_to_load_is_given_up(monkeypatch):
    monkeypatch.setattr(crew, "_LOADING_SECONDS", 1.0)
    match = "3 times in a row: it has not loaded fun within 1 s"
    with Pool(2, timeout=0.5) as pool, within(120), pytest.raises(gesmr.WorkerError, match=match):
        values(pool, misbehaving.Unloadable(time.sleep, 1000))


def test_how_long_loading_may_take():
    assert [Pool(timeout=timeout).patience for timeout in (None, 1.0, 120.0)] == [math.inf, 60.0, 120.0]


def test_workers_that_slow_a_run_down_are_warned_about(pool):
    """Once. How long things take depends on how busy the machine is, so a pool is told what its populations took."""
    minimize(workers=pool, maxiter=1)

    def said(wall, spent):
        pool._populations, pool._wall, pool._spent, pool._schedule.spent = 0, 0.0, 0.0, spent
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(30):
                pool._judge(wall)
        return [str(warning.message) for warning in caught]

    (warning,) = said(wall=2e-3, spent=1e-3)
    assert "2 processes are slower than none: 10 generations took 0.02 s, of which fun itself needs 0.01 s" in warning
    assert said(wall=1e-3, spent=2e-3) == []


def test_a_pool_does_one_thing_at_a_time(pool):
    with pool._busy, pytest.raises(RuntimeError, match="a Pool of its own"):
        minimize(workers=pool)


REFUSED = {
    "none at all": (lambda: minimize(workers=0), ValueError, ["workers", "0", "number of processes"]),
    "a negative number": (lambda: minimize(workers=-2), ValueError, ["workers", "-2"]),
    "a fraction": (lambda: minimize(workers=1.5), ValueError, ["workers", "1.5"]),
    "a truth": (lambda: minimize(workers=True), ValueError, ["workers", "True"]),
    "a name": (lambda: minimize(workers="bob"), ValueError, ["workers", "'bob'", "ray://host:10001"]),
    "a class": (lambda: minimize(workers=Pool), ValueError, ["workers", "Pool"]),
    "too many": (lambda: minimize(workers=10**9), ValueError, ["processes", "1024", "1000000000"]),
    "no processes": (lambda: Pool(0), ValueError, ["processes", "0"]),
    "no time": (lambda: Pool(timeout=0), ValueError, ["timeout", "above 0", "0"]),
    "no tries": (lambda: Pool(tries=0), ValueError, ["tries", "0"]),
    "empty chunks": (lambda: Pool(chunk=0), ValueError, ["chunk", "0"]),
    "vectors": (lambda: minimize(vectorized=True, workers=2), ValueError, ["workers", "vectorized"]),
    "compiled": (lambda: minimize(jit=True, workers=2), ValueError, ["workers", "jit"]),
    "another place": (lambda: gesmr.Ray("somewhere"), ValueError, ["address", "'somewhere'", "host:6379"]),
    "no actors": (lambda: gesmr.Ray(actors=0), ValueError, ["actors", "0"]),
    "no share": (lambda: gesmr.Ray(cpus=0), ValueError, ["cpus", "0"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    assert_refused(*REFUSED[name])


# Other people's workers


@pytest.mark.slow
def test_executors_and_pools_of_the_standard_library():
    expected = minimize()
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert_same(minimize(workers=executor), expected)
    with get_context("spawn").Pool(2) as pool:
        assert_same(minimize(workers=pool.map), expected)


@pytest.mark.slow
def test_executors_survive_exceptions_that_cannot_be_sent():
    """Unpacking one would break the executor."""
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        with pytest.raises(gesmr.WorkerError, match="fun raised StubbornError: 1 and 2"):
            values(executor, misbehaving.raises_stubbornly)
        with pytest.raises(misbehaving.UnspeakableError):
            values(executor, misbehaving.raises_unspeakably)
        by, _ = values(executor, misbehaving.raises_unspeakably, on_error="worst")
    assert by.first_error == "UnspeakableError (whose text cannot be had)"


# The docs


@pytest.mark.slow
def test_the_lines_of_the_docs_to_copy():
    names = {"fun": sphere, "x0": [1.0, 2.0], "gesmr": gesmr, "concurrent": concurrent, "spawn": get_context("spawn")}
    paths = []
    for lines in lines_to_copy():
        assert len(lines.split("\n")) - lines.count("\n\n") == 3  # two, and the end of the last
        if "ray" not in lines:
            exec(lines.replace("x0,", "x0, maxiter=2,").replace("Executor()", "Executor(2, mp_context=spawn)"), names)
            paths.append(names["result"].path)
    assert paths == ["python, 2 processes", "python, mapped"]


# Ray, as far as it can be had without a cluster


def test_ray_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'gesmr\[ray\]'"):
        minimize(workers="ray")


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_an_error():
    pytest.importorskip("ray")
    with pytest.raises(ConnectionError, match="no Ray cluster answers at"):
        minimize(workers="127.0.0.1:1")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_actors_give_up_what_kills_them_while_they_load_it(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr(crew, "_LOADING_SECONDS", 2.0)
    with gesmr.Ray(actors=1, cpus=0.5, timeout=1.0, num_cpus=1, object_store_memory=10**8) as actors:
        values(actors, sphere)
        with within(120), pytest.raises(gesmr.WorkerError, match="3 times in a row: its actor died while it was load"):
            values(actors, misbehaving.Unloadable(os._exit, 3))
        with within(120), pytest.raises(gesmr.WorkerError, match="3 times in a row: it has not loaded fun within 2 s"):
            values(actors, misbehaving.Unloadable(time.sleep, 1000))
        with pytest.raises(misbehaving.UnspeakableError):
            values(actors, misbehaving.raises_unspeakably)
        np.testing.assert_array_equal(values(actors, sphere)[1], SPHERES)


# Leaks


SCRIPT = """
import signal, sys, time
import numpy as np
import gesmr


def fun(x, way, mark):
    if way != "success":
        open(mark, "a").write("x")
    if way == "error":
        raise ZeroDivisionError
    if way in ("interrupt", "kill"):
        time.sleep(1000)
    return float(np.sum(x**2))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    workers, way, mark = sys.argv[1:]
    workers = gesmr.Ray(num_cpus=2, object_store_memory=10**8) if workers == "ray" else int(workers)
    result = gesmr.minimize(fun, np.ones(3), args=(way, mark), popsize=13, maxiter=2, workers=workers, rng=0)
    print(result.message)
"""


WAYS = ["success", "error", "interrupt", "kill"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("workers", ["2", "ray"])
def test_nothing_is_left_behind(tmp_path, workers, way):
    calls = tmp_path / "calls"
    program = Program(SCRIPT, tmp_path, workers, way, calls)
    if way in ("interrupt", "kill"):
        wait_until(calls.exists)  # it is in the middle of something
        assert len(marked(program.mark)) > 2
    if way == "interrupt":
        os.killpg(program.process.pid, 2)  # as a terminal does
    elif way == "kill":
        program.process.kill()
    out, err, status = program.finish()
    expected = {"success": (0, "2 generations"), "error": (1, ""), "interrupt": (0, "nterrupted"), "kill": (-9, "")}[
        way
    ]
    assert status == expected[0], err
    assert expected[1] in out
    assert ("ZeroDivisionError" in err) == (way == "error")
    assert "Traceback" not in err or way == "error"
    program.assert_nothing_left()


@pytest.mark.slow
def test_a_script_that_would_start_workers_in_workers_gets_one_clear_error(tmp_path):
    source = "import gesmr\nfrom helpers.misbehaving import sphere\ngesmr.minimize(sphere, [1.0], workers=2)\n"
    source = f"import sys\nsys.path.insert(0, {str(TESTS)!r})\n{source}"
    program = Program(source, tmp_path)
    _, err, status = program.finish()
    program.assert_nothing_left()
    assert status == 1
    assert err.count("Traceback") == 1
    assert 'put what the script does below `if __name__ == "__main__":`' in err
