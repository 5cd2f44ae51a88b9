"""Calls that make no sense end in TypeError or ValueError (or, for files, OSError), whatever they are (hypothesis)."""

import math
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gesmr
from gesmr.workers import crew_of
from test_optimizer import optimizer, run


class ReachedError(Exception):
    """The call was accepted and the function evaluated: it was not malformed after all."""


def fun(x, *rest):
    raise ReachedError


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**63, -(2**80), 10**400]),
    st.floats(width=32),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, 5e-324]),
    st.complex_numbers(max_magnitude=3),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.one_of(st.none(), st.floats(), st.text(max_size=1), st.integers(-2, 2)), max_size=3),
    st.lists(st.tuples(st.floats(), st.one_of(st.floats(), st.none())), max_size=3),
    st.tuples(st.floats(), st.floats()),
    st.dictionaries(st.sampled_from("ab"), st.floats(), max_size=2),
    st.sets(st.integers(0, 2), max_size=2),
    st.sampled_from(
        [
            object(),
            int,
            len,
            gesmr.GESMR,
            gesmr.GESMR(groups=3),
            gesmr.Bounds(0, 1),
            gesmr.Bounds("a", None),
            np.zeros((0, 2)),
            np.zeros((2, 2)),
            np.zeros(2, complex),
            np.array(["a", "b"]),
            np.array([None, 1], object),
            np.float64("nan"),
            jnp.zeros((2, 3)),
            jnp.zeros(2, jnp.bfloat16),
            jax.random.key(0),
            jax.random.split(jax.random.key(0)),
            np.random.default_rng(0),
            range(2),
            "double",
            "reflect",
            "worst",
            "float16",
        ]
    ),
)
SETUP = ("bounds", "popsize", "controller", "truncation", "rng", "seed", "init", "init_std", "direction", "dtype",
         "restarts", "restart_popsize", "maxiter", "maxfun", "maxtime", "target", "patience")  # fmt: skip
MORE = ("args", "callback", "workers", "vectorized", "checkpoint", "resume", "batch_size", "jit", "keyed", "chunk",
        "on_error", "repeats", "reevaluate", "nonsense")  # fmt: skip


def options(names):
    return st.dictionaries(st.sampled_from(names), JUNK, min_size=1, max_size=3)


def check(call):
    try:
        call()
        message = "accepted"
    except ReachedError:
        message = "accepted"
    except (TypeError, ValueError, OSError) as error:
        message = str(error)
    assert message


def is_crew(workers):
    """Whether it is right after all, and would start processes."""
    try:
        return crew_of(workers) is not None
    except (TypeError, ValueError):
        return False


class Malformed:
    """The properties, run with few examples every day and with ten thousand by `make test-all`."""

    def constructor(self, x0, given_options):
        check(lambda: gesmr.Optimizer(x0, **given_options))

    def minimize(self, x0, given_options, broken):
        with tempfile.TemporaryDirectory() as directory:
            path = given_options.get("checkpoint")
            if isinstance(path, str) and path:  # anywhere, but not among our files
                given_options = {**given_options, "checkpoint": Path(directory) / "run" / path.replace("\0", "")}
            given_options = {n: v for n, v in given_options.items() if n != "workers" or not is_crew(v)}
            check(lambda: gesmr.minimize(broken if callable(broken) else fun, x0, **given_options))

    def tell(self, xs, values, right):
        candidates = np.array(OPTIMIZER.ask())
        before = OPTIMIZER.result
        with pytest.raises((TypeError, ValueError)) as error:
            OPTIMIZER.tell(candidates if right else xs, values)
        assert str(error.value)
        np.testing.assert_array_equal(candidates, OPTIMIZER.ask())
        assert OPTIMIZER.result.nfev == before.nfev


OPTIMIZER = optimizer()
START = st.one_of(st.just(np.zeros(2)), st.just(np.zeros(2)), JUNK)


def examples(number):
    return settings(
        max_examples=number, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
    )


def few_and_many(few, many):
    """The same test twice: with few examples, and with many among the slow ones."""
    return pytest.mark.parametrize("number", [few, pytest.param(many, marks=pytest.mark.slow)])


@few_and_many(100, 4000)
def test_constructors(number):
    examples(number)(given(START, options(SETUP))(Malformed().constructor))()


@few_and_many(100, 4000)
def test_minimize(number):
    functions = st.one_of(st.just(fun), st.just(fun), JUNK)
    examples(number)(given(START, options(SETUP + MORE), functions)(Malformed().minimize))()


@few_and_many(100, 2000)
def test_tell(number):
    if OPTIMIZER.result.nit == 0:
        run(OPTIMIZER, 1)
    examples(number)(given(JUNK, JUNK, st.booleans())(Malformed().tell))()
