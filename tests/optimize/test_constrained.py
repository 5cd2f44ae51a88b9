"""Constraints in `minimize`: what is called, what is best, what is found, and that it goes on exactly."""

import json
import math
import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from scipy.optimize import LinearConstraint, NonlinearConstraint

import gesmr
from helpers.refusals import assert_refused

INF = np.inf
SMALL = {"popsize": 21, "rng": 0}


def by_numpy(x):
    return float((x[0] - 3) ** 2 + (x[1] - 3) ** 2)


def by_jax(x):
    return jnp.sum((x - 3) ** 2)


def disk(x):
    return x[0] ** 2 + x[1] ** 2


DISK = NonlinearConstraint(disk, -INF, 4.0)
HALF = LinearConstraint([[1.0, -1.0]], 0.5, INF)
TWO = [DISK, HALF]
IMPOSSIBLE = [{"type": "ineq", "fun": lambda x: x[0] - 1}, {"type": "ineq", "fun": lambda x: -1 - x[0]}]


def is_feasible(x):
    return disk(x) <= 4 and x[0] - x[1] >= 0.5


def strict(x, *_):
    """A function that must not be called outside; at module level, so that it can be sent to workers."""
    assert is_feasible(x), x
    return by_numpy(x)


# what is found


def normal(x):
    return float(np.sum((x - np.arange(5.0)) ** 2))


def rosenbrock(x):
    return float(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2)


PROBLEMS = {
    "a disk and a half plane": (by_numpy, TWO, 2, 3000, 1e-3),
    "Rosenbrock in a disk": (rosenbrock, {"type": "ineq", "fun": lambda x: 1.5 - disk(x)}, 2, 6000, 1e-2),
    "five variables": (
        normal,
        [
            LinearConstraint(np.vstack([np.ones(5), [1, -1, 1, -1, 1]]), [-INF, -2], [6, 2]),
            NonlinearConstraint(lambda x: np.array([np.sum(x**2), x[0] * x[4]]), [-INF, 0.5], [16, INF]),
        ],
        5,
        12_000,
        0.02,
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimum_of_software_that_has_gradients(name):
    """SLSQP from near it. The median of five seeds is within the tolerance, relative to 1 or to the optimum."""
    fun, constraints, dim, maxfun, close = PROBLEMS[name]
    found, x = [], np.zeros(dim)
    for seed in range(5):
        result = gesmr.minimize(
            fun, np.full(dim, 0.3), bounds=(-5, 5), constraints=constraints, rng=seed, maxfun=maxfun
        )
        assert result.success
        assert result.constr_violation == 0
        assert result.nfev <= maxfun
        found, x = [*found, result.fun], result.x
    theirs = optimize.minimize(fun, x, method="SLSQP", bounds=[(-5, 5)] * dim, constraints=constraints)
    assert theirs.success
    assert min(found) >= theirs.fun - 1e-6
    assert np.median(found) <= theirs.fun + close * max(1, abs(theirs.fun))


def test_an_equality_holds_within_its_tolerance():
    """min x·x on x₀ + x₁ + x₂ = 1, which is 1/3; in a thin shell it is feasible, and no more is promised."""
    equality = {"type": "eq", "fun": lambda x: np.sum(x) - 1}
    for eq_tol, close in ((0.05, 0.03), (1e-3, 3.0)):
        result = gesmr.minimize(
            lambda x: float(np.sum(x**2)),
            np.zeros(3),
            bounds=(-2, 2),
            constraints=equality,
            eq_tol=eq_tol,
            rng=0,
            maxfun=5000,
        )
        assert abs(np.sum(result.x) - 1) <= eq_tol
        assert result.constr_violation == 0
        assert (1 - eq_tol) ** 2 / 3 <= result.fun < 1 / 3 + close


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_compiled_and_called_agree(direction):
    """The same population, the same violations, the same members that have values; and both find the optimum."""
    sign = 1 if direction == "minimize" else -1
    options = {
        "bounds": (-5, 5),
        "constraints": TWO,
        "direction": direction,
        "dtype": "float32",
        "popsize": 101,
        "rng": 1,
    }
    runs = []
    for maxiter in (0, 60):
        one = gesmr.minimize(lambda x: sign * by_jax(x), np.zeros(2), maxiter=maxiter, **options)
        other = gesmr.minimize(lambda x: sign * by_numpy(x), np.zeros(2), maxiter=maxiter, **options)
        assert (one.path, other.path) == ("jax", "python")
        runs.append((one, other))
    (one, other), found = runs
    np.testing.assert_array_equal(one.population, other.population)
    np.testing.assert_allclose(one.population_fitness, other.population_fitness, rtol=1e-5)
    feasible = np.array([is_feasible(x) for x in one.population])
    assert 0 < feasible.sum() < 101
    np.testing.assert_array_equal(np.isfinite(one.population_fitness), feasible)
    assert (one.population_fitness[~feasible] == sign * INF).all()
    best = optimize.minimize(by_numpy, [1.5, 0.5], constraints=TWO).fun
    for result in found:
        assert result.constr_violation == 0
        assert sign * result.fun == pytest.approx(best, abs=0.02)
        assert is_feasible(result.x.astype(np.float64) * (1 - 1e-6))


# where fun is called


def test_a_python_function_is_called_only_where_all_are_satisfied():
    result = gesmr.minimize(strict, np.zeros(2), **SMALL, constraints=TWO, maxiter=40)
    assert result.fun < 5.4  # the lowest is 5.29
    assert result.errors == 0
    assert result.nfev == 21 + 40 * 20  # those that were not called count as well


def test_also_if_the_start_and_all_of_the_first_population_violate_them():
    """Neither where it is asked whether it is a JAX function."""
    result = gesmr.minimize(strict, np.full(2, -9.0), **SMALL, init_std=0.1, constraints=TWO, maxiter=80)
    assert result.constr_violation == 0
    assert result.fun < 10
    assert result.path.startswith("python")
    with pytest.raises(AssertionError):
        gesmr.minimize(strict, np.full(2, -9.0), **SMALL, init_std=0.1, maxiter=80)


def test_a_known_value_is_not_computed_again():
    """The call that finds out about JAX is that of a member."""
    calls = []

    def fun(x):
        calls.append(tuple(x))
        return strict(x)

    x0 = np.array([1.5, 0.5])
    result = gesmr.minimize(fun, x0, **SMALL, constraints=TWO, maxiter=0)
    assert len(calls) == len(set(calls)) == np.isfinite(result.population_fitness).sum()


@pytest.mark.parametrize("far", [False, True])
def test_functions_of_jax_are_found_wherever_the_start_is(far):
    """By calling them at a member that is feasible or, if there is none, by their constraints."""
    x0, spread = (np.full(2, -9.0), {"init_std": 0.1}) if far else (np.zeros(2), {})
    ours = {"type": "ineq", "fun": lambda x: 4 - jnp.sum(x**2)}
    result = gesmr.minimize(by_jax, x0, **SMALL, **spread, constraints=[ours, HALF], maxiter=100)
    assert result.path == "jax"
    assert result.constr_violation == 0
    unknown = gesmr.minimize(by_jax, x0, **SMALL, **spread, constraints=TWO, maxiter=3)
    assert unknown.path.startswith("python" if far else "jax")
    assert ("constraints" in unknown.path) == far
    assert gesmr.minimize(by_jax, x0, **SMALL, **spread, constraints=TWO, maxiter=3, jit=True).path == "jax"


@pytest.mark.parametrize("batch_size", [None, 4])
def test_many_at_once(batch_size):
    sizes = []

    def fun(xs):
        sizes.append(len(xs))
        assert all(map(is_feasible, xs))
        return np.array([by_numpy(x) for x in xs])

    options = {**SMALL, "constraints": TWO, "maxiter": 20}
    result = gesmr.minimize(fun, np.zeros(2), **options, vectorized=True, batch_size=batch_size)
    one_by_one = gesmr.minimize(by_numpy, np.zeros(2), **options)
    assert result.fun == one_by_one.fun
    np.testing.assert_array_equal(result.x, one_by_one.x)
    assert batch_size is None or max(sizes) == batch_size


def test_workers_are_sent_what_is_feasible():
    options = {**SMALL, "constraints": TWO, "maxiter": 5}
    with gesmr.Pool(2) as pool:
        result = gesmr.minimize(strict, np.zeros(2), **options, workers=pool)
    alone = gesmr.minimize(strict, np.zeros(2), **options)
    assert (result.fun, result.nfev) == (alone.fun, alone.nfev)
    np.testing.assert_array_equal(result.population, alone.population)


def test_repeats_and_batches():
    """Of a noisy function, and of a compiled one in batches that do not fit."""
    rng = np.random.default_rng(0)

    def noisy(x):
        return strict(x) + 0.01 * rng.normal()

    result = gesmr.minimize(noisy, np.zeros(2), **SMALL, constraints=TWO, maxiter=30, repeats=3, jit=False)
    assert result.nfev == 3 * (21 + 30 * 20)
    assert result.fun == pytest.approx(5.29, abs=0.1)
    whole, parts = (
        gesmr.minimize(by_jax, np.zeros(2), **SMALL, constraints=TWO, maxiter=30, batch_size=size) for size in (None, 7)
    )
    np.testing.assert_allclose(parts.population, whole.population, rtol=1e-5)


def test_a_random_function_of_jax():
    def noisy(x, key):
        return by_jax(x) + 0.01 * jax.random.normal(key)

    result = gesmr.minimize(noisy, np.zeros(2), **SMALL, constraints=TWO, maxiter=60, keyed=True, repeats=2)
    assert result.constr_violation == 0
    assert result.fun == pytest.approx(5.29, abs=0.1)


# what is best


@pytest.mark.parametrize("compiled", [False, True])
def test_if_nothing_is_feasible_it_is_the_nearest_and_no_success(compiled):
    seen = []

    def watch(x):
        if not compiled:
            seen.append(abs(x[0] - 1) * (x[0] < 1) + abs(x[0] + 1) * (x[0] > -1))
        return x[0]

    constraints = [NonlinearConstraint(watch, 1, INF), NonlinearConstraint(lambda x: x[0], -INF, -1), DISK]
    fun = by_jax if compiled else strict
    result = gesmr.minimize(
        fun, np.zeros(2), bounds=(-5, 5), **SMALL, constraints=constraints, maxiter=15, jit=compiled
    )
    assert not result.success
    assert result.fun == INF
    assert "Nothing satisfies the constraints" in result.message
    assert "All 15 generations" in result.message
    assert result.constr_violation == pytest.approx(2, rel=1e-6)  # whatever is between −1 and 1 is 2 away
    assert -1 <= result.x[0] <= 1
    assert (result.history.elite == INF).all()
    assert not np.isfinite(result.population_fitness).any()
    if not compiled:
        assert result.constr_violation <= min(seen) + 1e-12


def test_the_violation_is_the_least_of_all_that_were_seen():
    """Two equalities that contradict each other by different amounts: |x₀ − 1| + |x₀ + x₁² + 1| is at least 2."""
    seen = []

    def watch(x):
        values = np.array([x[0] - 1, x[0] + x[1] ** 2 + 1])
        seen.append(np.maximum(np.abs(values) - 1e-4, 0).sum())
        return values

    constraints = {"type": "eq", "fun": watch}
    result = gesmr.minimize(by_numpy, np.full(2, 3.0), **SMALL, constraints=constraints, maxiter=60, jit=False)
    assert result.constr_violation == pytest.approx(min(seen), rel=1e-12)
    assert result.constr_violation == pytest.approx(2, abs=0.01)
    assert f"{result.constr_violation:.3g}" in result.message


def test_the_result_is_the_best_of_all_that_were_feasible():
    values = []

    def fun(x):
        values.append(strict(x))
        return values[-1]

    options = {**SMALL, "constraints": TWO, "restarts": 3, "patience": 4, "maxiter": 80}
    result = gesmr.minimize(fun, np.zeros(2), **options)
    assert result.restarts > 0
    assert result.fun == min(values)
    assert result.constr_violation == 0
    assert result.fun <= np.nanmin(result.population_fitness)


def test_a_feasible_best_outlives_restarts_that_find_nothing():
    """Only where it starts something is feasible: a restart that never finds it must not lose it."""
    tiny = {"type": "ineq", "fun": lambda x: 1e-6 - abs(x[0] - 0.3) - abs(x[1] - 0.3)}
    options = {**SMALL, "bounds": (-5, 5), "restarts": 2, "patience": 3, "maxiter": 40}
    result = gesmr.minimize(by_numpy, np.full(2, 0.3), **options, constraints=tiny)
    assert result.restarts > 0
    assert result.constr_violation == 0
    np.testing.assert_allclose(result.x, 0.3, atol=1e-6)
    assert result.success


def test_a_target_is_reached_by_what_is_feasible_only():
    """Below 1 there is nothing inside the disk; outside there is."""
    for fun in (by_numpy, by_jax):
        missed = gesmr.minimize(fun, np.full(2, 3.0), **SMALL, constraints=TWO, target=1.0, maxiter=30)
        assert not missed.success
        assert missed.stop == {"maxiter": 30}
        reached = gesmr.minimize(fun, np.full(2, 3.0), **SMALL, constraints=TWO, target=6.0, maxiter=300)
        assert reached.success
        assert reached.fun <= 6
        assert reached.constr_violation == 0
        assert reached.nit < 300


def test_from_infeasible_to_feasible_and_never_back():
    """What callbacks are shown; the first value comes with the first feasible solution."""
    shown = []
    gesmr.minimize(
        by_numpy, np.full(2, -9.0), **SMALL, init_std=0.1, constraints=TWO, maxiter=60,
        callback=lambda r: shown.append((r.constr_violation, r.fun)),
    )  # fmt: skip
    assert shown == sorted(shown, reverse=True)
    assert shown[0][0] > 0
    assert shown[-1][0] == 0
    assert all(math.isfinite(fun) == (violation == 0) for violation, fun in shown)


def test_no_warning_where_violations_are_finite_and_one_where_they_are_not():
    """Warnings are errors in tests."""
    gesmr.minimize(by_numpy, np.zeros(2), **SMALL, constraints=IMPOSSIBLE, maxiter=3, jit=False)
    nothing = {"type": "ineq", "fun": lambda x: np.nan}
    with pytest.warns(RuntimeWarning, match="no candidate has had a finite value"):
        result = gesmr.minimize(by_numpy, np.zeros(2), **SMALL, constraints=nothing, patience=5, maxiter=50, jit=False)
    assert result.constr_violation == INF
    assert not result.success
    assert set(result.stop) == {"nonfinite"}


@pytest.mark.parametrize("bad", [np.nan, INF, -INF])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_constraint_without_a_value_is_violated(bad, compiled):
    """Even if infinity would be on the right side."""
    xp = jnp if compiled else np

    def one(x):
        return xp.where(x[0] > 1, bad, 1 - disk(x))

    fun = by_jax if compiled else by_numpy
    result = gesmr.minimize(fun, np.zeros(2), **SMALL, constraints={"type": "ineq", "fun": one}, maxiter=40)
    assert result.constr_violation == 0
    assert disk(result.x) <= 1 + 1e-6
    assert result.fun == pytest.approx((3 * np.sqrt(2) - 1) ** 2, abs=0.3)


def test_errors_count_as_the_worst_if_that_is_wanted():
    def raising(x):
        if x[0] < 0:
            raise RuntimeError("negative")
        return 4 - disk(x)

    def fun(x):
        assert x[0] >= 0
        return math.sqrt(1 - x[1]) + by_numpy(x)  # raises above 1

    constraints = {"type": "ineq", "fun": raising}
    options = {**SMALL, "constraints": constraints, "maxiter": 20, "jit": False}
    with pytest.raises(RuntimeError, match="negative"):
        gesmr.minimize(fun, np.zeros(2), **options)
    with pytest.warns(RuntimeWarning, match="such candidates count as the worst"):
        result = gesmr.minimize(fun, np.zeros(2), **options, on_error="worst")
    assert result.errors > 20
    assert result.constr_violation == 0
    assert result.x[0] >= 0
    assert result.x[1] <= 1


def test_integers_and_spaces():
    """min over integers in a disk: of those within 2 of the origin (1, 1) is the nearest to (3, 3)."""
    result = gesmr.minimize(by_numpy, np.zeros(2), bounds=(-5, 5), integrality=1, **SMALL, constraints=DISK, maxiter=30)
    assert result.x.tolist() == [1, 1]
    space = gesmr.Space(n=gesmr.Int(0, 9), kind=gesmr.Choice("a", "b"), x=gesmr.Float(0, 1))
    both = NonlinearConstraint(lambda s: s["n"] + s["x"], 0, 4.5)
    rule = [{"type": "ineq", "fun": lambda s: (s["kind"] == "b") - 0.5}, both]

    def fun(s):
        assert s["kind"] == "b"
        assert s["n"] + s["x"] <= 4.5
        return -s["n"] - s["x"]

    result = gesmr.minimize(fun, space, **SMALL, constraints=rule, maxiter=60)
    assert result.x["n"] == 4
    assert result.x["x"] == pytest.approx(0.5, abs=0.02)
    assert result.constr_violation == 0
    numbers = gesmr.Space(n=gesmr.Int(0, 9), width=gesmr.Choice(16, 32), x=gesmr.Float(0, 1))
    result = gesmr.minimize(
        lambda s: -s["n"] - s["x"] + jnp.abs(s["width"] - 16.0),
        numbers,
        **SMALL,
        maxiter=60,
        constraints=[
            {"type": "ineq", "fun": lambda s: jnp.asarray(s["width"]) - 20},
            both,
        ],
    )
    assert result.path == "jax"
    assert (result.x["n"], result.x["width"]) == (4, 32)
    assert result.constr_violation == 0


def test_through_scipy():
    result = optimize.minimize(
        by_numpy,
        np.zeros(2),
        method=gesmr.scipy_method,
        bounds=[(-5, 5)] * 2,
        constraints=[DISK, {"type": "ineq", "fun": lambda x: x[0] - x[1] - 0.5}],
        options={"rng": 0, "maxfev": 3000},
    )
    best = optimize.minimize(by_numpy, [1.5, 0.5], constraints=TWO)
    assert result.fun == pytest.approx(best.fun, abs=0.02)
    assert result.constr_violation == 0
    np.testing.assert_allclose(result.x, best.x, atol=0.05)


# exactly


def assert_same(a, b):
    assert (a.nit, a.nfev, a.fun, a.constr_violation, a.stop) == (b.nit, b.nfev, b.fun, b.constr_violation, b.stop)
    for name in ("x", "population", "population_fitness", "mutation_rates"):
        np.testing.assert_array_equal(a[name], b[name])
    for one, other in zip(a.history, b.history, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("fun", [by_numpy, by_jax])
@pytest.mark.parametrize("restarts", [0, 2])
def test_going_on_is_exact(tmp_path, fun, restarts):
    """Cut while nothing is feasible, soon after, and later."""
    options = {**SMALL, "init_std": 0.1, "constraints": TWO, "jit": fun is by_jax, "patience": 8, "restarts": restarts}
    whole = gesmr.minimize(fun, np.full(2, -9.0), **options, maxiter=60)
    for generations in (1, 5, 23, 60):
        cut = {"maxiter": generations, "checkpoint": tmp_path / "run", "resume": True}
        part = gesmr.minimize(fun, np.full(2, -9.0), **options, **cut)
    assert_same(part, whole)
    assert whole.constr_violation == 0


def test_a_run_of_another_kind_is_not_gone_on_with(tmp_path):
    options = {**SMALL, "checkpoint": tmp_path / "run", "resume": True, "jit": False}
    gesmr.minimize(by_numpy, np.zeros(2), **options, constraints=TWO, maxiter=10)
    with pytest.raises(gesmr.CheckpointError, match="constrained was True, now False"):
        gesmr.minimize(by_numpy, np.zeros(2), **options, maxiter=20)
    with pytest.raises(gesmr.CheckpointError, match="fun has inf where it had"):
        gesmr.minimize(by_numpy, np.zeros(2), **options, constraints=IMPOSSIBLE, maxiter=20)


SHARDED = """
    import jax, json
    jax.config.update("jax_num_cpu_devices", 2)
    import jax.numpy as jnp
    import numpy as np
    import gesmr

    def fun(x):
        return jnp.max(jnp.abs(x - 3))

    constraints = {"type": "ineq", "fun": lambda x: 2 - jnp.max(jnp.abs(x))}
    options = {"popsize": 14, "rng": 0, "constraints": constraints, "maxiter": 40}
    one, two = (gesmr.minimize(fun, np.full(5, 2.5), **options, devices=devices) for devices in (None, 2))
    same = bool((one.population == two.population).all())
    print(json.dumps([same, one.fun == two.fun, one.constr_violation, two.constr_violation, two.path]))
"""


def test_on_two_devices_it_is_the_same_to_the_bit():
    """A function without sums, whose order could differ."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", textwrap.dedent(SHARDED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == [True, True, 0.0, 0.0, "jax, devices: 2"]


# what is refused

MEMBERS = np.zeros((2, 2)), [1.0, 2.0]
REFUSED = {
    "the elite again": ({"reevaluate": "elite", "constraints": TWO}, ValueError, ["reevaluate", "repeats"]),
    "parents again": ({"reevaluate": "parents", "constraints": TWO}, ValueError, ["reevaluate", "repeats"]),
    "members with values": ({"init": MEMBERS, "constraints": TWO}, ValueError, ["init", "constraints", "values"]),
    "a tolerance below 0": ({"eq_tol": -1.0}, ValueError, ["eq_tol", "-1"]),
    "tolerances": ({"eq_tol": [1.0, 2.0]}, TypeError, ["eq_tol", "one number"]),
    "a function": ({"constraints": by_numpy}, TypeError, ["constraints", "NonlinearConstraint"]),
    "bounds": ({"constraints": optimize.Bounds(0, 1)}, TypeError, ["constraints", "bounds"]),
    "a matrix of another size": ({"constraints": LinearConstraint(np.ones((1, 3)), 0, 1)}, ValueError, ["(m, 2)"]),
    "text": ({"constraints": "x > 0"}, TypeError, ["constraints", "'x > 0'"]),
    "an unknown type": ({"constraints": {"type": "le", "fun": disk}}, ValueError, ["type", "'le'", "'ineq'"]),
    "sides of another shape": (
        {"constraints": NonlinearConstraint(disk, [0, 0, 0], 1)}, ValueError, ["constraints", "shape", "(3,)"]
    ),
    "a constraint that returns text": (
        {"constraints": {"type": "ineq", "fun": lambda x: "yes"}}, TypeError, ["constraints", "real numbers"]
    ),
    "a NumPy constraint of a compiled function": (
        {"constraints": {"type": "ineq", "fun": lambda x: np.asarray(x).sum()}, "jit": True}, ValueError, ["JAX"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name):
    options, exception, words = REFUSED[name]
    fun = by_jax if options.get("jit") else by_numpy
    assert_refused(lambda: gesmr.minimize(fun, np.zeros(2), **options, maxiter=1), exception, words)


def test_an_optimiser_takes_no_values_of_members_that_may_be_infeasible():
    words = ["init", "constraints", "values"]
    assert_refused(lambda: gesmr.Optimizer(np.zeros(2), constrained=True, init=MEMBERS), ValueError, words)
    assert_refused(lambda: gesmr.Optimizer(np.zeros(2), constrained="yes"), TypeError, ["constrained", "'yes'"])
