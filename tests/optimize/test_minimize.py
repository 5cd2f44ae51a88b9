"""minimize: the three kinds of functions, the result, when it stops, and what it says."""

import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import gesmr
from gesmr.optimize.options import check
from helpers.compilations import count_compilations
from helpers.optimizing import SMALL, D, by_jax, by_numpy, many_by_jax, many_by_numpy, minimize, noise_of_its_own
from helpers.refusals import assert_refused

KINDS = {
    "jax": (by_jax, {}, "jax"),
    "jax, vectorized": (many_by_jax, {"vectorized": True}, "jax, vectorized"),
    "jax, told not to": (by_jax, {"jit": False}, "python"),
    "numpy": (by_numpy, {}, "python"),
    "numpy, vectorized": (many_by_numpy, {"vectorized": True}, "python, vectorized"),
    "mapped": (by_numpy, {"workers": map}, "python, mapped"),
    "in batches": (many_by_jax, {"vectorized": True, "batch_size": 5}, "jax, vectorized"),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_function(name):
    fun, options, path = KINDS[name]
    result = minimize(fun, **options)
    assert result.path == path
    assert isinstance(result, scipy.optimize.OptimizeResult)
    assert (result.nit, result.nfev) == (30, 13 + 30 * 12)
    assert result.fun < 0.3
    np.testing.assert_allclose(by_numpy(result.x), result.fun, rtol=1e-5)
    assert result.population.shape == (13, D)
    np.testing.assert_allclose(many_by_numpy(result.population), result.population_fitness, rtol=1e-5)
    assert result.population_fitness.min() == result.fun
    assert result.history.elite.shape == (30,)
    assert (np.diff(result.history.elite) <= 0).all()
    assert result.history.evaluations[-1] == result.nfev
    assert result.stop == {"maxiter": 30}
    assert result.success
    assert "30 generations" in result.message
    assert result.versions["jax"] == jax.__version__


def test_compiled_and_called_take_the_same_course():
    """The same draws and, but for rounding, the same values."""
    compiled, called = minimize(by_jax, dtype="float64"), minimize(by_numpy)
    np.testing.assert_allclose(compiled.history.elite, called.history.elite, rtol=1e-6)
    np.testing.assert_allclose(compiled.history.log_rate, called.history.log_rate, rtol=1e-6)
    np.testing.assert_allclose(compiled.x, called.x, rtol=1e-6)


def test_chunks_change_nothing():
    results = [minimize(by_jax, chunk=chunk) for chunk in (1, 7, None)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].population, other.population)
        np.testing.assert_array_equal(results[0].history.elite, other.history.elite)


def test_a_second_call_compiles_nothing():
    minimize(by_jax)
    with count_compilations() as count:
        minimize(by_jax, rng=5, maxiter=17, target=1e-9, patience=99)
    assert count() == 0


class Impure:
    """A Python function that JAX could trace, and must not: it counts and it is noisy."""

    def __init__(self):
        self.calls, self.generator = [], np.random.default_rng(0)

    def __call__(self, x):
        self.calls.append(np.array(x))
        return np.sum(x**2) + self.generator.normal()


def test_python_functions_are_called_for_every_candidate_and_not_once_more():
    fun = Impure()
    result = minimize(fun, maxiter=3)
    assert result.path == "python"
    assert len(fun.calls) == result.nfev == 13 + 36
    assert len(np.unique(fun.calls, axis=0)) == result.nfev


def test_a_jax_function_that_cannot_be_compiled_is_called():
    def fun(x):
        return jnp.sum(x**2) if x[0] > 0 else jnp.sum(jnp.abs(x))

    result = minimize(fun, maxiter=1)
    assert result.path == "python (JAX cannot compile it: TracerBoolConversionError)"
    with pytest.raises(ValueError, match=r"fun must be a JAX function .* TracerBoolConversionError"):
        minimize(fun, jit=True)


def test_the_function_may_change_its_argument():
    def fun(x):
        x -= 1
        return float(np.sum(x**2))

    assert minimize(fun).fun == minimize(by_numpy).fun


def off_centre(x, centre, power):
    return ((x - centre) ** power).sum()


def test_args_are_passed_on():
    with_array = minimize(lambda x, centre: jnp.sum((x - centre) ** 2), args=(jnp.full(D, 2.0),), maxiter=60)
    np.testing.assert_allclose(with_array.x, 2.0, atol=0.3)
    assert with_array.path == "jax"
    for args in ((2.0, 2), (np.full(D, 2.0), 2)):
        np.testing.assert_allclose(minimize(off_centre, args=args, maxiter=60).x, 2.0, atol=0.3)
    one = minimize(lambda x, centre: float(np.sum((x - centre) ** 2)), args=2.0, maxiter=60)
    np.testing.assert_allclose(one.x, 2.0, atol=0.3)


def test_arrays_in_args_are_data_and_the_rest_is_code():
    def fun(x, centre, power):
        return jnp.sum((x - centre) ** 2) if power == 2 else jnp.sum(jnp.abs(x - centre))

    def arrays_only(x, centre):
        return jnp.sum((x - centre) ** 2)

    here, there = np.zeros(D, np.float32), np.full(D, 9.0, np.float32)
    near = minimize(fun, args=(here, 2), maxiter=0)
    assert near.path == "jax"
    minimize(arrays_only, args=(here,), maxiter=0)
    with count_compilations() as count:
        far = minimize(fun, args=(there, 2), maxiter=0)
        minimize(arrays_only, args=(there,), maxiter=0)
    assert count() == 0
    assert far.fun > near.fun
    assert minimize(fun, args=(there, 1), maxiter=0).fun < far.fun


def test_problems_of_the_library_are_functions():
    result = minimize(gesmr.problems.functions.get("rosenbrock", D), maxiter=0)
    assert result.path == "jax"
    np.testing.assert_allclose(scipy.optimize.rosen(result.x), result.fun, rtol=1e-5)


def negative_by_jax(x):
    return -by_jax(x)


@pytest.mark.parametrize("fun", [negative_by_jax, lambda x: -by_numpy(x)], ids=["jax", "python"])
def test_maximising(fun):
    up, down = minimize(fun, direction="maximize", target=-0.3), minimize(lambda x: -fun(x), target=0.3, jit=False)
    assert up.stop == {"target": -0.3}
    np.testing.assert_allclose(up.fun, -down.fun, rtol=1e-4)
    assert up.nit == down.nit


@pytest.mark.parametrize("make", [lambda: map, lambda: ThreadPoolExecutor(2)], ids=["map", "executor"])
def test_workers_give_the_same_as_none(make):
    workers = make()
    result = minimize(workers=workers)
    np.testing.assert_array_equal(result.population, minimize().population)


@pytest.mark.slow
def test_workers_in_other_processes():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        result = minimize(workers=pool.map, maxiter=3)
    np.testing.assert_array_equal(result.population, minimize(maxiter=3).population)


# pytrees


def test_pytrees_of_every_kind_of_function():
    start = {"w": jnp.zeros((2, 2)), "b": jnp.ones(2)}

    def one(p):
        return jnp.sum((p["w"] - 1) ** 2) + jnp.sum(p["b"] ** 2)

    def numbers(p):
        return float(np.sum((np.asarray(p["w"]) - 1) ** 2) + np.sum(np.asarray(p["b"]) ** 2))

    def many(p):
        return np.sum((p["w"] - 1) ** 2, axis=(1, 2)) + np.sum(p["b"] ** 2, axis=1)

    expected = None
    for fun, path in ((one, "jax"), (numbers, "python"), (many, "python, vectorized")):
        vectorized, jit = "vectorized" in path, None if path == "jax" else False
        result = gesmr.minimize(fun, start, **SMALL, maxiter=20, vectorized=vectorized, jit=jit)
        assert result.path == path
        assert isinstance(result.x["w"], jax.Array)
        np.testing.assert_allclose(numbers(result.x), result.fun, rtol=1e-5)
        expected = expected or result.fun
        np.testing.assert_allclose(result.fun, expected, rtol=1e-3)


# stopping


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        ({"maxiter": 0}, {"maxiter": 0}),
        ({"maxiter": 5}, {"maxiter": 5}),
        ({"maxiter": None, "maxfun": 100}, {"maxfun": 100}),
        ({"maxiter": 400, "target": 0.2}, {"target": 0.2}),
        ({"maxiter": 400, "target": 0.2, "maxfun": 13}, {"maxfun": 13}),
    ],
)
def test_limits(fun, limits, stop):
    result = minimize(fun, **limits)
    assert result.stop == stop
    assert result.nfev == 13 + 12 * result.nit
    assert len(result.history.elite) == result.nit
    if "maxfun" in stop:
        assert stop["maxfun"] - 12 < result.nfev <= stop["maxfun"]
    if "target" in stop:
        assert result.fun <= 0.2
        assert result.nit == 0 or (result.history.elite[:-1] > 0.2).all()  # at once, not at the end of a chunk
    assert result.success == (limits.get("target") is None or "target" in stop)


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_patience(fun):
    """A floor that is soon reached: the run ends so many generations after its last improvement, exactly."""

    def floored(x):
        value = fun(x)
        return jnp.maximum(value, 0.1) if fun is by_jax else max(value, 0.1)

    result = minimize(floored, maxiter=500, patience=9)
    assert result.stop == {"patience": 9}
    last = 1 + np.flatnonzero(result.history.elite > result.fun)[-1]  # generations that were worse
    assert result.nit == last + 1 + 9


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_time(fun):
    minimize(fun)
    start = time.monotonic()
    result = minimize(fun, maxiter=None, maxtime=0.5)
    assert result.stop == {"maxtime": 0.5}
    assert 0.5 <= time.monotonic() - start < 3
    assert result.seconds >= 0.5


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_it_ends_by_itself_if_nothing_is_said(fun):
    """On a sphere when it is as good as solved."""
    result = gesmr.minimize(fun, np.zeros(D), **SMALL)
    assert result.stop == {"ftol": 1e-12}
    assert result.success
    assert result.fun < 1e-10


def test_a_sphere_in_two_dimensions_does_not_take_long():
    assert gesmr.minimize(by_numpy, np.zeros(2), rng=0).nfev < 20_000


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_tolerances(fun):
    """xtol: the population has shrunk to it, and not before; ftol ends a run that has limits too; tol is both."""
    result = minimize(fun, maxiter=2000, xtol=1e-3)
    assert result.stop == {"xtol": 1e-3}
    assert result.history.diversity[-1] <= 1e-3 < result.history.diversity[:-1].min()
    spread = np.sqrt(np.asarray(result.population, np.float64).var(axis=0).mean())
    np.testing.assert_allclose(result.history.diversity[-1], spread, rtol=1e-4)
    assert minimize(fun, maxiter=2000, ftol=1e-4, patience=10).stop == {"ftol": 1e-4}
    assert minimize(fun, maxiter=2000, tol=1e-3).stop.keys() <= {"xtol", "ftol"}
    with pytest.raises(ValueError, match="tol"):
        minimize(fun, tol=0)


def test_a_callback_that_returns_true_stops():
    """As in scipy; other values do not, such as those of a list's append."""
    assert minimize(callback=lambda r: r.nit == 4).nit == 4
    assert minimize(callback=lambda r: 1 if r.nit == 4 else None).nit == 30


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_callbacks(fun):
    seen, others = [], []

    def callback(intermediate_result):
        seen.append(intermediate_result)
        if intermediate_result.nit >= 6:
            raise StopIteration

    result = minimize(fun, callback=[others.append, callback], chunk=2)
    assert result.stop == {"callback": True}
    assert "callback" in result.message
    assert [r.nit for r in seen] == ([0, 2, 4, 6] if fun is by_jax else list(range(7)))
    assert [r.nfev for r in seen] == [13 + 12 * r.nit for r in seen]
    assert len(others) == len(seen)
    np.testing.assert_array_equal(np.concatenate([r.recent.elite for r in seen]), result.history.elite)
    for r in seen:
        np.testing.assert_allclose(by_numpy(r.x), r.fun, rtol=1e-5)
    assert seen[-1].fun == result.fun


def test_stop_iteration_of_the_function_is_an_error():
    def fun(x):
        raise StopIteration

    with pytest.raises(StopIteration):
        minimize(fun)


def test_displays(capsys):
    minimize(disp=True)
    said = capsys.readouterr().out
    assert "30 generations" in said
    assert "Best value" in said


# Ctrl-C


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_interrupting_returns_the_best_so_far(fun):
    minimize(fun)

    def later(_=None):
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have told us to ignore it
    timer = threading.Timer(0.4, later)
    timer.start()
    try:
        result = minimize(fun, maxiter=None, maxtime=60)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    assert result.stop == {"interrupted": True}
    assert result.nit > 0
    assert not result.success
    np.testing.assert_allclose(by_numpy(result.x), result.fun, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_an_interrupt_that_python_drops_is_seen(fun):
    """What a signal raises in a callback of the garbage collector is dropped."""
    minimize(fun)
    sent = []

    def collecting(phase, info):
        if not sent:
            sent.append(phase)
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100):  # it arrives between two of these
                pass

    def collect(_):
        gc.collect()

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.callbacks.append(collecting)
    try:
        result = minimize(fun, maxiter=None, maxtime=60, callback=collect)
    finally:
        gc.callbacks.remove(collecting)
        signal.signal(signal.SIGINT, handler)
    assert sent
    assert result.stop == {"interrupted": True}


def test_the_second_interrupt_does_not_wait():
    def twice(_):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        begin = time.monotonic()
        result = minimize(by_jax, maxiter=None, maxtime=120, callback=twice)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert result.stop == {"interrupted": True}
    assert time.monotonic() - begin < 50
    assert signal.getsignal(signal.SIGINT) is handler


# what is not finite, what raises


@pytest.mark.parametrize("fun", [lambda x: jnp.sum(x) * jnp.nan, lambda x: float("nan")], ids=["jax", "python"])
def test_nothing_finite(fun):
    with pytest.warns(RuntimeWarning, match="no candidate has had a finite value") as warned:
        result = minimize(fun, maxiter=500, patience=8)
    assert len(warned) == 1
    assert result.stop == {"nonfinite": 8}
    assert result.nit == 8
    assert not result.success
    with pytest.warns(RuntimeWarning, match="100 generations"):
        assert minimize(fun, maxiter=500).stop == {"nonfinite": 100}


def half_raises(x):
    if x[0] > 0.5:
        raise RuntimeError("too far out")
    return float(np.sum((x - 1) ** 2))


def test_exceptions_come_through():
    with pytest.raises(RuntimeError, match="too far out"):
        minimize(half_raises)


def test_exceptions_as_the_worst_value():
    with pytest.warns(RuntimeWarning, match="RuntimeError: too far out") as warned:
        result = minimize(half_raises, on_error="worst")
    assert len(warned) == 1
    assert result.errors > 10
    assert result.x[0] <= 0.5
    assert result.fun < 1.0
    assert not np.isfinite(result.population_fitness[np.asarray(result.population)[:, 0] > 0.5]).any()


def test_a_vectorized_function_that_raises_loses_the_batch():
    calls = []

    def fun(xs):
        calls.append(len(xs))
        if len(calls) % 2 == 0:
            raise RuntimeError("a bad day")
        return many_by_numpy(xs)

    with pytest.warns(RuntimeWarning, match="a bad day"):
        result = minimize(fun, vectorized=True, on_error="worst", maxiter=3, jit=False)
    assert calls == [13, 12, 12, 12]
    assert result.errors == 12 + 12


@pytest.mark.parametrize("value", [None, "1.0", 1j, [1.0, 2.0], True, object()])
def test_what_is_no_number_is_an_error(value):
    with pytest.raises(TypeError, match="fun must return one real number"):
        minimize(lambda x: value)


@pytest.mark.parametrize("value", [1, np.float32(1), np.ones(1), np.ones((1, 1)), jnp.ones(())])
def test_what_counts_as_a_number(value):
    assert minimize(lambda x: value, maxiter=1, jit=False).fun == 1.0


# noise


class Noisy:
    """The distance to 1 and noise; how often it was called."""

    def __init__(self):
        self.generator, self.calls = np.random.default_rng(0), 0

    def __call__(self, xs):
        self.calls += len(xs)
        return many_by_numpy(xs) + self.generator.normal(size=len(xs))


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [
        ({"repeats": 3}, 3 * 12, 3 * 12),
        ({"reevaluate": "elite"}, 13, 13),
        ({"reevaluate": "parents"}, 12 + 1 + 2, 12 + 1 + 6),
        ({"reevaluate": "elite", "repeats": 2}, 26, 26),
    ],
)
def test_what_noisy_evaluations_cost(options, least, most):
    fun = Noisy()
    result = minimize(fun, vectorized=True, **options)
    assert fun.calls == result.nfev
    costs = np.diff(result.history.evaluations)
    assert (costs >= least).all()
    assert (costs <= most).all()


def keyed(x, key):
    return jnp.sum((x - 1) ** 2) + jax.random.normal(key)


@pytest.mark.parametrize(
    "fun", [pytest.param(noise_of_its_own, marks=pytest.mark.slow, id="jax"), pytest.param(Noisy(), id="python")]
)
def test_reevaluation_keeps_the_elite_honest(fun):
    """With noise of 1 the value of a lucky elite is far below the truth; evaluated again and again it is not."""
    options = {"keyed": True} if fun is noise_of_its_own else {"vectorized": True}
    lucky, honest = (minimize(fun, maxiter=150, reevaluate=how, **options) for how in ("none", "elite"))
    assert lucky.fun < -1.5
    assert abs(honest.fun - by_numpy(honest.x)) < 1.2  # rarely more than a few evaluations behind it
    assert honest.nfev == lucky.nfev + 150


@pytest.mark.slow
def test_parents_compared_on_the_same_day():
    """A common draw per generation cancels in Δ if parents are evaluated again, so the search does not notice it."""
    quiet = minimize(by_jax, maxiter=60)
    noisy = minimize(keyed, keyed=True, maxiter=60, reevaluate="parents")
    assert by_numpy(noisy.x) < 30 * max(by_numpy(quiet.x), 1e-3)


def only_noise(x, key):
    return jax.random.normal(key)


def test_repeats_take_the_mean():
    """The mean of 64 has an eighth of the noise. Eight draws of it have a spread above a quarter once in a million."""
    values = [minimize(only_noise, rng=seed, maxiter=0, keyed=True, repeats=64) for seed in range(8)]
    assert 0 < np.std([result.fun for result in values]) < 0.25
    assert values[0].nfev == 64 * 13


def test_noise_options_of_a_function_without_noise_are_refused():
    with pytest.raises(TypeError, match="keyed=True"):
        minimize(by_jax, repeats=2)
    with pytest.raises(TypeError, match="keyed=True"):
        minimize(by_jax, reevaluate="elite")
    with pytest.raises(ValueError, match="keyed needs a compiled"):
        minimize(by_jax, keyed=True, jit=False)


# restarts


@pytest.mark.parametrize(
    ("fun", "popsize"),
    [
        (by_jax, "keep"),
        (by_numpy, "keep"),
        pytest.param(by_jax, "double", marks=pytest.mark.slow),
        pytest.param(by_numpy, "double", marks=pytest.mark.slow),
    ],
)
def test_restarts(fun, popsize):
    def floored(x):  # ends in one of many flat holes
        value = jnp.ceil(2 * fun(x)) if fun is by_jax else np.ceil(2 * fun(x))
        return value

    result = minimize(floored, maxiter=500, patience=5, restarts=2, restart_popsize=popsize)
    assert result.restarts == 2
    assert result.stop == {"patience": 5}
    assert result.population.shape == (13 if popsize == "keep" else 52, D)
    assert result.fun == result.history.elite.min()
    assert floored(result.x) == result.fun
    assert result.nit == len(result.history.elite) == len(result.history.evaluations)
    assert result.history.evaluations[-1] == result.nfev


def test_restarts_with_twice_the_population():
    setup = check(np.zeros(D), {**SMALL, "restarts": 2, "restart_popsize": "double"})
    assert [setup.members(run) for run in range(3)] == [13, 26, 52]
    assert [setup.ga(run).num_children for run in range(3)] == [12, 25, 51]


def test_no_restart_without_room_for_it():
    result = minimize(lambda x: 1.0, maxiter=None, maxfun=13 + 5 * 12 + 12, patience=5, restarts=1, jit=False)
    assert result.restarts == 0
    assert result.stop == {"patience": 5}


# the result, and scipy


def test_the_result_works_where_scipys_would():
    theirs = scipy.optimize.minimize(by_numpy, np.zeros(D), method="Nelder-Mead")
    ours = minimize()
    assert set(theirs) - {"final_simplex"} <= set(ours)
    for name in ("success", "status", "message", "fun", "nit", "nfev"):
        assert isinstance(ours[name], int | float | bool | str)
    assert ours.x.dtype == theirs.x.dtype
    assert ours["x"] is ours.x
    ours.x += 1
    assert "message: All 30 generations were run." in repr(ours)
    with pytest.raises(AttributeError):
        _ = ours.hess_inv


def test_as_a_method_of_scipy():
    seen = []
    result = scipy.optimize.minimize(
        lambda x, centre: np.sum((x - centre) ** 2),
        np.zeros(D),
        args=(1.0,),
        bounds=[(0, 5)] * D,
        method=gesmr.scipy_method,
        callback=seen.append,
        options={"popsize": 13, "rng": 0, "maxiter": 30, "maxfev": 10_000},
    )
    ours = minimize(bounds=(0, 5))
    np.testing.assert_array_equal(result.x, ours.x)
    assert len(seen) == 31
    options = {"popsize": 13, "rng": 0, "maxiter": 30}
    for constraint in (
        scipy.optimize.NonlinearConstraint(lambda x: x[0], 2, np.inf),
        scipy.optimize.LinearConstraint(np.eye(D)[:1], 2, np.inf),
        {"type": "ineq", "fun": lambda x: x[0] - 2},
    ):
        result = scipy.optimize.minimize(
            by_numpy, np.zeros(D), method=gesmr.scipy_method, constraints=constraint, options=options, tol=1e-9
        )
        assert result.x[0] >= 2
        assert result.constr_violation == 0


BAD = {
    "no function": (lambda: minimize(3), TypeError, ["fun", "callable", "3"]),
    "workers by name": (lambda: minimize(workers="bob"), ValueError, ["workers", "'bob'", "map"]),
    "workers and vectors": (lambda: minimize(many_by_numpy, vectorized=True, workers=map), ValueError, ["workers"]),
    "workers and jit": (lambda: minimize(by_jax, jit=True, workers=map), ValueError, ["jit", "workers"]),
    "jit of text": (lambda: minimize(jit="yes"), TypeError, ["jit", "'yes'"]),
    "vectors of text": (lambda: minimize(vectorized="yes"), TypeError, ["vectorized", "'yes'"]),
    "a callback of text": (lambda: minimize(callback=3), TypeError, ["callback", "3"]),
    "half a chunk": (lambda: minimize(by_numpy, chunk=0.5), TypeError, ["chunk", "0.5"]),
    "empty batches": (lambda: minimize(batch_size=0), ValueError, ["batch_size", "0"]),
    "an unknown policy": (lambda: minimize(on_error="ignore"), ValueError, ["on_error", "'worst'", "'ignore'"]),
    "an unknown reevaluation": (lambda: minimize(reevaluate="all"), ValueError, ["reevaluate", "'parents'", "'all'"]),
    "no repeats": (lambda: minimize(repeats=0), ValueError, ["repeats", "0"]),
    "one value for all": (lambda: minimize(by_jax, vectorized=True, jit=True), ValueError, ["fun", "its rows", "()"]),
    "one value for all, called": (
        lambda: minimize(np.sum, vectorized=True),
        ValueError,
        ["what fun returns", "(1,)", "()"],
    ),
    "a vector for one": (lambda: minimize(lambda x: x, jit=True), ValueError, ["fun", "one real number"]),
    "resuming nothing": (lambda: minimize(resume=True), ValueError, ["resume", "checkpoint"]),
    "an unknown argument": (lambda: minimize(tolerance=1), TypeError, ["tolerance"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_named(name):
    assert_refused(*BAD[name])


# logging


def test_lines_of_json(tmp_path):
    path = tmp_path / "run.jsonl"
    for fun in (by_jax, by_numpy):
        path.unlink(missing_ok=True)
        result = minimize(fun, callback=gesmr.JSONLines(path), maxiter=10)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["nit"] for line in lines] == list(range(1, 11))
        np.testing.assert_array_equal([line["fun"] for line in lines], result.history.elite)
        np.testing.assert_allclose([line["mutation_rate"] for line in lines], np.exp(result.history.log_rate))
        np.testing.assert_array_equal([line["diversity"] for line in lines], result.history.diversity)
        assert lines[-1]["nfev"] == result.nfev
        assert "x" not in lines[-1]


def test_logging_solutions_of_a_space(tmp_path):
    space = gesmr.Space(n=gesmr.Int(1, 9), kind=gesmr.Choice("a", None), w=gesmr.Float(0, 1, shape=(2,)))
    path = tmp_path / "run.jsonl"
    result = gesmr.minimize(lambda x: x["n"], space, callback=gesmr.JSONLines(path, x=True), maxiter=3, **SMALL)
    found = json.loads(path.read_text().splitlines()[-1])["x"]
    assert list(found.items()) == list({**result.x, "w": result.x["w"].tolist()}.items())


def test_logging_where_nothing_can_be_written(tmp_path):
    with pytest.raises(FileNotFoundError):
        gesmr.JSONLines(tmp_path / "absent" / "run.jsonl")


@pytest.mark.slow
def test_a_first_call_starts_within_three_seconds():
    """In a fresh process, from the call to its first callback, in processor time: the machine may be busy."""
    code = (
        "import time, jax.numpy as jnp, numpy as np, gesmr\n"
        "start, seen = time.process_time(), []\n"
        "gesmr.minimize(lambda x: jnp.sum(x**2), np.ones(100), maxiter=5,"
        " callback=lambda r: seen.append(time.process_time()))\n"
        "print(seen[0] - start)"
    )
    assert float(subprocess.check_output([sys.executable, "-c", code])) < 3.0


def valued_with_a_key(x, key):
    return jnp.sum((x - 1) ** 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_precision_has_the_same_number_of_parents(dtype):
    """0.29 · 50 + ½ is 15 in single precision and just below in double. A function that is not noisy is given the
    values of parents once more: nothing may change."""
    options = {"popsize": 51, "truncation": 0.29, "dtype": dtype, "maxiter": 12, "keyed": True}
    plain, again = (minimize(valued_with_a_key, reevaluate=how, **options) for how in ("none", "parents"))
    np.testing.assert_allclose(again.mutation_rates, plain.mutation_rates, rtol=1e-5)
    np.testing.assert_allclose(again.population, plain.population, rtol=1e-4, atol=1e-6)


def test_a_callback_may_change_what_it_is_given():
    seen = []

    def spoil(r):
        seen.append(r.x.copy())
        r.x[:] = 1e9

    options = {"patience": 2, "restarts": 3, "maxiter": 60}
    result, untouched = minimize(callback=spoil, **options), minimize(**options)
    assert result.restarts > 0
    assert max(np.abs(x).max() for x in seen) < 1e3
    np.testing.assert_array_equal(result.x, untouched.x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jit": 0}, r"jit must be True or False, got 0 \(int\)"),
        ({"disp": "no"}, r"disp must be True or False, got 'no' \(str\)"),
        ({"vectorized": 1}, "vectorized must be True or False"),
        ({"keyed": "yes"}, "keyed must be True or False"),
    ],
)
def test_switches_are_true_or_false(options, message):
    with pytest.raises(TypeError, match=message):
        minimize(by_jax, **options)


def test_numpys_false_is_false():
    assert minimize(by_jax, jit=np.False_, disp=np.False_).path == "python"
