"""What is compiled for a user's function: when it is used again, and what it keeps alive."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr.optimize import compiled
from helpers.compilations import count_compilations

START = jnp.zeros(3)
QUICK = {"popsize": 8, "maxiter": 4, "rng": 0}


shift = 1.0


def reads_a_global(x):
    return jnp.sum((x - shift) ** 2)


class Model:
    offset = 1.0

    def loss(self, x):
        return jnp.sum((x - self.offset) ** 2)


class Settings:
    def __init__(self, value):
        self.value = value


def test_a_new_call_sees_what_has_changed_since(monkeypatch):
    """Globals, attributes, objects in args and arrays changed in place, with the function the same object."""
    model, settings, table = Model(), Settings(1.0), np.ones(3, np.float32)

    def reads_an_object(x, settings):
        return jnp.sum((x - settings.value) ** 2)

    def reads_an_array(x):
        return jnp.sum((x - table) ** 2)

    def values():
        functions = [(reads_a_global,), (model.loss,), (reads_an_object, settings), (reads_an_array,)]
        return [gesmr.minimize(fun, START, args=tuple(args), **QUICK).history.elite[0] for fun, *args in functions]

    before = values()
    assert len(set(before)) == 1  # all four compute the same
    monkeypatch.setitem(globals(), "shift", 100.0)
    model.offset = settings.value = 100.0
    table[:] = 100.0
    after = values()
    assert len(set(after)) == 1
    assert after[0] > 100 * before[0]


def test_what_changes_during_a_run_is_not_seen():
    """Arrays of NumPy that a callback changes, closed over and in args: copied once, when the run begins."""
    table, offset = np.ones(3, np.float32), np.ones(3, np.float32)

    def fun(x, offset):
        return jnp.sum((x - table) ** 2) + jnp.sum((x - offset) ** 2)

    def change(_):
        table[:], offset[:] = 100.0, -100.0

    untouched = gesmr.minimize(fun, START, args=(offset,), chunk=1, **QUICK)
    changed = gesmr.minimize(fun, START, args=(offset,), chunk=1, callback=change, **QUICK)
    np.testing.assert_array_equal(changed.history.elite, untouched.history.elite)
    assert gesmr.minimize(fun, START, args=(offset,), **QUICK).fun > 100 * untouched.fun


def test_a_jitted_function_is_traced_anew(monkeypatch):
    fun = jax.jit(reads_a_global)
    near = gesmr.minimize(fun, START, **QUICK).fun
    monkeypatch.setitem(globals(), "shift", 100.0)
    assert gesmr.minimize(fun, START, **QUICK).fun > 100 * near


def test_other_numbers_need_no_other_program():
    """Floats and arrays in args, arrays that a function closes over, and the same function written again."""

    def scaled(x, a):
        return a * jnp.sum(x**2)

    def closing_over(data):
        return lambda x: jnp.sum((x - data) ** 2)

    near, far = (jnp.asarray(np.full(3, x, np.float32)) for x in (1, 50))
    first = gesmr.minimize(scaled, START, args=(2.0,), **QUICK)
    gesmr.minimize(closing_over(near), START, **QUICK)
    with count_compilations() as count:
        assert gesmr.minimize(scaled, START, args=(4.0,), **QUICK).fun == 2 * first.fun  # powers of two: exact
        assert gesmr.minimize(closing_over(far), START, **QUICK).fun > 1000
    assert count() == 0


def test_a_float_that_decides_is_part_of_the_program():
    def powered(x, a):
        return jnp.sum(jnp.abs(x - 1)) if a > 1 else jnp.sum((x - 1) ** 2)

    results = [gesmr.minimize(powered, START, args=(a,), jit=True, **QUICK) for a in (0.5, 2.0)]
    assert results[0].path == results[1].path == "jax"
    assert results[0].fun != results[1].fun


def test_callbacks_into_python_are_not_taken_for_each_other():
    """Lowered, two programs that call back differ in nothing but the function that is called."""

    def calling(scale):
        def host(x):
            return np.asarray(scale * (x**2).sum(-1), x.dtype)

        return lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="expand_dims")

    one, two = (gesmr.minimize(calling(scale), START + 1, jit=True, **QUICK).fun for scale in (1.0, 2.0))
    assert two == 2 * one


@pytest.mark.parametrize("vectorized", [False, True])
def test_data_is_let_go(vectorized):
    """What a function closed over is not kept alive by what was compiled for it."""

    class Data:
        def __init__(self, i):
            self.array = jnp.full(1000, float(i))

    def run(i):
        data = Data(i)
        alive.append(weakref.ref(data))

        def fun(x):
            return jnp.sum((x - data.array.mean()) ** 2, axis=-1)

        gesmr.minimize(fun, START, vectorized=vectorized, **QUICK)
        return weakref.ref(data.array)

    alive = []
    arrays = [run(i) for i in range(4)]
    gc.collect()
    assert [ref() for ref in alive] == [None] * 4
    assert sum(ref() is not None for ref in arrays) == 0


@pytest.mark.slow
def test_memory_does_not_grow_with_calls():
    """Two hundred calls with functions of their own, of which a part closes over data: the process stays as large."""
    import psutil  # noqa: PLC0415

    process = psutil.Process()

    def call(i):
        data = np.full(100_000, float(i), np.float32)
        if i % 5 == 0:  # a program of its own
            gesmr.minimize(lambda x: jnp.sum((x - data.mean()) ** 2) * i, START, popsize=3, maxiter=1, rng=0)
        else:
            gesmr.minimize(lambda x: jnp.sum((x - jnp.mean(data)) ** 2), START, popsize=3, maxiter=1, rng=0)

    sizes = []
    for i in range(200):
        call(i)
        if i % 20 == 19:
            gc.collect()
            sizes.append(process.memory_info().rss / 2**20)
    info = compiled._kept.cache_info()
    assert info.maxsize is not None
    assert info.currsize <= info.maxsize <= 16
    assert sizes[-1] - sizes[3] < 40, sizes  # MiB, over 120 calls that compile 24 programs


# finding out what a function is


def test_a_function_that_fills_a_cache_on_first_use():
    """Nothing of a trace is left in it, whether it computes with JAX or not."""
    kept = {}

    def called(x):
        if "matrix" not in kept:
            kept["matrix"] = jnp.eye(3)
        return float(np.sum(np.asarray(kept["matrix"]) @ np.asarray(x) ** 2))

    def traced(x):
        if "ones" not in kept:
            kept["ones"] = jnp.ones(3)
        return jnp.sum(kept["ones"] * x**2)

    assert gesmr.minimize(called, np.zeros(3), **QUICK).path == "python"
    assert gesmr.minimize(traced, np.zeros(3), **QUICK).path == "jax"
    np.testing.assert_array_equal(kept["matrix"], np.eye(3))
    np.testing.assert_array_equal(kept["ones"], np.ones(3))


@pytest.mark.parametrize("on_error", ["raise", "worst"])
def test_a_function_that_raises_is_called_once_for_a_candidate(on_error):
    seen = []

    def fun(x):
        seen.append(x.copy())
        raise ValueError("no")

    options = dict(QUICK, maxiter=0, on_error=on_error)
    if on_error == "raise":
        with pytest.raises(ValueError, match="no"):
            gesmr.minimize(fun, np.zeros(3), **options)
        assert len(seen) == 1
    else:
        with pytest.warns(RuntimeWarning):
            result = gesmr.minimize(fun, np.zeros(3), **options)
        assert result.errors == result.nfev == len(seen) == 8
        assert len(np.unique(seen, axis=0)) == 8
