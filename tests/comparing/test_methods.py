"""Every adapter: it uses exactly its evaluations, is better than random search, repeats itself, keeps to the bounds."""

import contextlib
import functools
import sys

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import gesmr
from gesmr.comparing import compare, method
from gesmr.spaces import Choice, Float, Int, Space
from helpers.refusals import assert_refused

OWN = ["gesmr", "GESMR", "SAMR", "15MR"]
OTHERS = ["DE", "CMA-ES", "sep-CMA-ES"]
OPTUNA = ["optuna:TPE", "optuna:NSGAIISampler"]
EVOSAX = ["evosax:SNES", "evosax:CR_FM_NES", "evosax:PSO", "evosax:SAMR_GA"]


class Sphere:
    """Counts its calls, and what was outside of [−5, 5]."""

    def __init__(self):
        self.calls = self.outside = 0

    def __call__(self, x):
        self.calls += 1
        self.outside += bool(np.any(np.abs(x) > 5))
        return float(np.sum((x - 1.3) ** 2))


def needing(name):
    """A method, where its package is there."""
    pytest.importorskip({"optuna": "optuna", "evosax": "evosax"}.get(name.partition(":")[0], "cma"))
    return name


@pytest.mark.parametrize("name", [*OWN, *OTHERS, *OPTUNA, *EVOSAX])
def test_better_than_random_with_the_same_evaluations(name):
    """On a sphere in 3 dimensions with seeds 0 to 2; the seeds are fixed, so this holds or it does not."""
    sphere, maxfun = Sphere(), 151 if name in OPTUNA else 1501
    one = method(name, popsize=21) if name in OWN else needing(name)
    found = compare(sphere, [-4.0, 3.0, 2.0], {name: one, "random": "random"}, 3, maxfun, bounds=(-5, 5))
    assert [run.evaluations for run in found.runs] == [maxfun] * 6
    assert sphere.calls == 6 * maxfun
    assert sphere.outside == 0
    assert not any(run.error for run in found.runs)
    assert np.median(found.values(name)) < np.median(found.values("random"))


@pytest.mark.parametrize("name", ["gesmr", "CMA-ES", "sep-CMA-ES", "evosax:SNES", "evosax:GESMR_GA"])
@pytest.mark.parametrize("bounds", [None, (0, None)])
def test_without_ranges(name, bounds):
    found = compare(Sphere(), [4.0, 3.0, 2.0], [needing(name), "random"], 2, 400, bounds=bounds)
    assert not any(run.error for run in found.runs)
    assert np.median(found.values(name)) < np.median(found.values("random"))
    assert bounds is None or min(found.best.x) >= 0


@pytest.mark.parametrize("name", ["gesmr", "DE", "CMA-ES", "random", "optuna:TPE", "evosax:SNES"])
def test_a_seed_repeats_a_run(name):
    sphere = functools.partial(compare, Sphere(), [1.0, 2.0], [needing(name)], maxfun=150, bounds=(-5, 5))
    np.random.seed(5)  # noqa: NPY002 - which pycma would draw from
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = sphere(seeds=[3, 4]), sphere(seeds=[4])
    assert first.runs[1].values == again.runs[0].values
    assert first.runs[0].values != first.runs[1].values
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


SPACE = Space(lr=Float(1e-5, 1, log=True), size=Int(1, 500, log=True), deep=Int(1, 8), kind=Choice("a", "b", "c"),
              w=Float(-1, 1, shape=(2,)))  # fmt: skip


def mixed(s):
    assert list(s) == ["lr", "size", "deep", "kind", "w"]
    assert 1e-5 <= s["lr"] <= 1
    assert (type(s["size"]), type(s["deep"])) == (int, int)
    assert 1 <= s["deep"] <= 8
    far = (np.log10(s["lr"]) + 3) ** 2 + np.log(s["size"] / 20) ** 2 + (s["deep"] - 6) ** 2 + 2 * (s["kind"] != "c")
    return float(far + np.sum((s["w"] - 0.5) ** 2))


@pytest.mark.parametrize("name", ["gesmr", "DE", "CMA-ES", "optuna:TPE", "evosax:SNES"])
def test_mixed_spaces(name):
    found = compare(mixed, SPACE, [needing(name), "random"], 3, 120 if name in OPTUNA else 400)
    assert not [run.error for run in found.runs if run.error]
    assert np.median(found.values(name)) < np.median(found.values("random"))
    assert found.best.x["kind"] in ("a", "b", "c")
    assert mixed(found.best.x) == found.best.fun


@pytest.mark.parametrize("name", ["gesmr", "DE", "CMA-ES", "random", "optuna:TPE", "evosax:SNES"])
def test_integers(name):
    seen = set()

    def fun(x):
        assert x[0] == round(x[0])
        seen.add(int(x[0]))
        return float((x[0] - 4) ** 2 + (x[1] - 0.5) ** 2)

    found = compare(fun, [0.0, 0.0], [needing(name)], 1, 200, bounds=[(-3.5, 4.2), (-1, 1)], integrality=[1, 0])
    assert seen <= set(range(-3, 5))
    assert found.best.x[0] == 4


@pytest.mark.parametrize("name", ["gesmr", "DE", "CMA-ES", "random", "optuna:TPE"])
def test_constraints(name):
    """x0 + x1 ≥ 1, of which x0 = x1 = ½ is the best: what violates it is counted, but not evaluated."""
    calls, maxfun = [], 150 if name in OPTUNA else 400

    def fun(x):
        assert x[0] + x[1] >= 1
        calls.append(x)
        return float(x @ x)

    above = {"type": "ineq", "fun": lambda x: x[0] + x[1] - 1}
    found = compare(fun, [0.0, -1.0], [needing(name)], 2, maxfun, bounds=(-5, 5), constraints=above)
    assert [(run.evaluations, run.error) for run in found.runs] == [(maxfun, ""), (maxfun, "")]
    assert len(calls) < 2 * maxfun
    assert 0.5 <= found.best.fun < (2 if name == "random" else 0.7)


def test_batches_are_what_one_by_one_is():
    def rows(xs):
        assert xs.ndim == 2
        return np.sum((xs - 1.3) ** 2, axis=1)

    options = {"methods": ["gesmr", "DE", "CMA-ES", "random"], "seeds": 2, "maxfun": 150, "bounds": (-5, 5)}
    one, many = compare(Sphere(), [1.0, 2.0], **options), compare(rows, [1.0, 2.0], **options, vectorized=True)
    assert [run.improved_at for run in one.runs] == [run.improved_at for run in many.runs]
    np.testing.assert_allclose(one.best.x, many.best.x)


def test_maximize_is_minimize_upside_down():
    options = {"methods": ["gesmr", "DE", "random"], "seeds": 2, "maxfun": 150, "bounds": (-5, 5)}
    down = compare(Sphere(), [1.0, 2.0], **options)
    up = compare(lambda x: -Sphere()(x), [1.0, 2.0], **options, direction="maximize")
    assert [row.median for row in up.rows] == [-row.median for row in down.rows]
    assert [(row.method, row.rank) for row in up.rows] == [(row.method, row.rank) for row in down.rows]
    assert up.best.fun == -down.best.fun


def test_pytrees():
    start = {"w": np.full((2, 2), 3.0), "b": np.zeros(2)}
    found = compare(
        lambda p: float(np.sum(p["w"] ** 2) + np.sum((p["b"] - 1) ** 2)), start, ["gesmr", "CMA-ES"], 2, 600
    )
    assert not any(run.error for run in found.runs)
    assert found.best.fun < 0.1
    assert found.best.x.shape == (6,)


def test_same_starts_for_all():
    """What methods are told: the same for all of them, another for every seed; if it is drawn, as it was drawn."""
    starts = {}

    def noting(name):
        def method(objective, problem):
            starts[name, problem.seed] = problem.x0
            objective.many(np.tile(problem.x0, (11, 1)))

        return method

    methods = {name: noting(name) for name in ("one", "two")}
    compare(Sphere(), lambda rng: rng.uniform(-5, 5, 3), methods, 2, 10, bounds=(-5, 5))
    for seed in (0, 1):
        drawn = np.random.default_rng(seed).uniform(-5, 5, 3)
        np.testing.assert_array_equal(starts["one", seed], drawn)
        np.testing.assert_array_equal(starts["two", seed], drawn)
    compare(mixed, SPACE, methods, 2, 10)
    np.testing.assert_array_equal(starts["one", 1], starts["two", 1])
    theirs = gesmr.Optimizer(SPACE, rng=1, dtype="float64").ask()
    assert any(mixed(x) == mixed(SPACE.decode(starts["one", 1])) for x in theirs)


def test_a_method_of_ones_own_is_begun_again_elsewhere():
    told = []

    def nelder_mead(objective, problem):
        told.append(problem)
        scipy_minimize(objective, problem.x0, method="Nelder-Mead")

    found = compare(Sphere(), [4.0, -4.0], nelder_mead, [7], 400)
    assert [problem.attempt for problem in told] == list(range(len(told)))
    assert len(told) == found.runs[0].attempts > 2
    assert len({problem.seed for problem in told}) == len(told)
    np.testing.assert_array_equal(told[0].x0, [4, -4])
    assert not np.array_equal(told[1].x0, [4, -4])
    assert told[1].maxfun < 400
    assert found.runs[0].evaluations == 400
    assert found.best.fun < 1e-6


def test_one_that_catches_everything_ends_too():
    def stubborn(objective, problem):
        while True:
            with contextlib.suppress(Exception):
                objective(problem.x0)

    assert compare(Sphere(), [1.0], stubborn, 1, 20).runs[0].evaluations == 20


def test_controllers_and_options():
    object_, small = gesmr.controller("SAMR"), method("SAMR", popsize=11)
    found = compare(Sphere(), [1.0, 2.0], {"object": object_, "name": "SAMR", "small": small, "arms": "UCB/7"}, 1, 220)
    by_object, by_name, of_few, _ = (run.values for run in found.runs)
    assert by_object == by_name != of_few
    assert not any(run.error for run in found.runs)
    alone = compare(Sphere(), [1.0, 2.0], object_, 1, 220)
    assert alone.runs[0].values == by_name
    assert alone.methods[alone.runs[0].method].endswith(f"controller={object_!r}")


@pytest.mark.parametrize(
    ("methods", "exception", "words"),
    [
        (["DEE"], ValueError, ["'DEE'", "DE, random", "GESMR-AVG", "optuna:TPE", "evosax:SNES"]),
        (["DE"], ValueError, ["DE needs bounds on both sides"]),
        (["optuna:TPE"], ValueError, ["optuna:TPE needs bounds"]),
        (["optuna:TPEE"], ValueError, ["TPE, ", "'TPEE'"]),
        ([], ValueError, ["at least one"]),
        (["gesmr", "gesmr"], ValueError, ["'gesmr' twice"]),
        ([3], TypeError, ["names, controllers or callables", "3 (int)"]),
        (3, TypeError, ["a list of names", "got 3"]),
        ([method("gesmr", popsize=1)], ValueError, ["popsize must be an integer from 2"]),
        ([method("gesmr", popsizes=1)], TypeError, ["popsizes"]),
    ],
)
def test_bad_methods(methods, exception, words):
    assert_refused(lambda: compare(Sphere(), [1.0, 2.0], methods, 1, 120), exception, words)


def test_cma_es_needs_two_variables_and_is_left_out_by_default():
    assert_refused(lambda: compare(Sphere(), [1.0], ["CMA-ES"], 1, 120), ValueError, ["CMA-ES needs at least two"])
    assert list(compare(Sphere(), [1.0], None, 1, 120).methods) == ["gesmr", "random"]
    bounded = compare(Sphere(), [1.0, 1.0], None, 1, 120, bounds=(-5, 5))
    assert list(bounded.methods) == ["gesmr", "CMA-ES", "DE", "random"]


def test_what_is_not_installed_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(ImportError, match=r"^CMA-ES needs the package cma: pip install cma$"):
        compare(Sphere(), [1.0, 2.0], ["CMA-ES"], 1, 120)
    assert "CMA-ES" not in compare(Sphere(), [1.0, 2.0], None, 1, 120).methods
