"""Constraints as users write them: what is accepted, and how far a solution is from keeping them."""

import pickle
import subprocess
import sys

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint
from scipy.optimize._constraints import PreparedConstraint
from scipy.sparse import csr_array

from gesmr.optimize.constraints import Constraints
from helpers.refusals import assert_refused

INF = np.inf


def make(constraints, dim=2, *, is_vector=True, **options):
    return Constraints(constraints, is_vector=is_vector, dim=dim, **options)


def norm(x):
    return (x**2).sum()


def both(x):
    return x[0] * x[1], x[0] - 2 * x[1]


@pytest.mark.parametrize("nothing", [None, [], ()])
def test_without_constraints_everything_is_feasible(nothing):
    none = make(nothing)
    assert not none
    assert none.violation(np.full(2, np.nan)) == none.traced(jnp.zeros(2)) == 0.0


def test_worked_by_hand():
    """At (3, 1): 10 is 6 above 4; 3 and 1 are within and 2 below; 3 − 1 = 2 is 1.9 beyond a tolerance of 0.1 from 0;
    4 is 1 − 0.1 away from 5."""
    constraints = [
        NonlinearConstraint(norm, -INF, 4.0),
        NonlinearConstraint(both, [0.0, 3.0], [5.0, INF]),
        {"type": "eq", "fun": lambda x, k: x[0] - k * x[1], "args": (1.0,)},
        LinearConstraint([[1.0, 1.0]], 5.0, 5.0),
        {"type": "ineq", "fun": lambda x: x[0]},
    ]
    for one, expected in zip(constraints, (6.0, 2.0, 1.9, 0.9, 0.0), strict=True):
        assert make(one, eq_tol=0.1).violation(np.array([3.0, 1.0])) == pytest.approx(expected)
    assert len(make(constraints)) == 5
    assert make(constraints, eq_tol=0.1).violation(np.array([3.0, 1.0])) == pytest.approx(10.8)
    assert make(tuple(constraints), eq_tol=0.1).traced(jnp.array([3.0, 1.0])) == pytest.approx(10.8)


numbers = st.floats(-1e3, 1e3, allow_subnormal=False)


@st.composite
def sides(draw, m):
    """lb ≤ ub, of which some are equal and some open."""
    low = np.array(draw(st.lists(numbers, min_size=m, max_size=m)))
    width = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 30.0, INF]), min_size=m, max_size=m)))
    open_below = np.array(draw(st.lists(st.booleans(), min_size=m, max_size=m))) & (width > 0)
    return np.where(open_below, -INF, low), low + width


@settings(derandomize=True, deadline=None)
@given(
    x=st.lists(numbers, min_size=2, max_size=2).map(np.array),
    linear=sides(3),
    nonlinear=sides(2),
    matrix=st.lists(numbers, min_size=6, max_size=6).map(lambda found: np.reshape(found, (3, 2))),
    inequality=st.booleans(),
)
def test_is_what_scipy_computes(x, linear, nonlinear, matrix, inequality):
    """But for the tolerance of equalities, here none."""
    given = [LinearConstraint(matrix, *linear), NonlinearConstraint(both, *nonlinear)]
    with np.errstate(all="ignore"):
        expected = sum(PreparedConstraint(one, np.ones(2)).violation(x).sum() for one in given)
    expected += max(-x[0], 0.0) if inequality else abs(x[0])
    given.append({"type": "ineq" if inequality else "eq", "fun": lambda x: x[0]})
    found = make(given, eq_tol=0.0).violation(x)
    assert found == pytest.approx(expected, rel=1e-12)
    assert (found == 0) == (expected == 0)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    rows=st.lists(numbers, min_size=8, max_size=8).map(lambda found: np.reshape(found, (4, 2))),
    linear=sides(3),
    nonlinear=sides(2),
    single=st.booleans(),
)
def test_traced_is_the_same(rows, linear, nonlinear, single):
    """For many solutions at once, in single and double precision: within rounding of the values of constraints."""
    matrix = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    given = [
        LinearConstraint(csr_array(matrix), *linear),
        NonlinearConstraint(lambda x: jnp.stack(both(x)), *nonlinear),
    ]
    constraints, dtype = make(given, eq_tol=0.25), "float32" if single else "float64"
    with jax.enable_x64(not single):
        rows = rows.astype(dtype)
        found = jax.vmap(constraints.traced)(jnp.asarray(rows))
        assert found.dtype == dtype
        expected = [constraints.violation(row) for row in rows]
    rounding = float(8 * np.finfo(dtype).eps * (1e6 + 4e3))  # products of numbers of at most 1e3
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5 if single else 1e-12, atol=rounding)


@pytest.mark.parametrize("wrong", [np.nan, INF, -INF])
def test_what_is_not_finite_is_infinitely_far(wrong):
    one = NonlinearConstraint(lambda x: jnp.array([0.0, wrong]) + 0 * x, -INF, INF)
    assert make([one]).violation(np.zeros(2)) == INF
    assert jax.jit(make(one).traced)(jnp.zeros(2)) == INF


def test_equalities_hold_within_the_tolerance():
    """Also far from zero in single precision, where 2048 ± 0.001 is no other number than 2048."""
    for x, slack, feasible in [
        (1 + 9e-5, 1e-4, True),
        (1 + 2e-4, 1e-4, False),
        (1.0, 0.0, True),
        (1.0000001, 0, False),
    ]:
        found = make({"type": "EQ", "fun": lambda x: x[0] - 1}, eq_tol=slack).violation(np.array([x, 0.0]))
        assert (found == 0) == feasible
    far = make(NonlinearConstraint(lambda x: x[0], 2048, 2048), eq_tol=1e-3)
    near = np.array([2048.0, np.nextafter(np.float32(2048), np.float32(0))], np.float32)  # 1.2e-4 less
    assert [far.violation(np.full(2, x, np.float32)) for x in near] == [0.0, 0.0]
    assert far.traced(jnp.full(2, near[1])) == 0.0


@pytest.mark.parametrize("returned", [3, np.float32(3), [3.0], np.full((1, 1), 3.0), jnp.full(1, 3.0, jnp.bfloat16)])
def test_whatever_numbers_a_function_returns(returned):
    one = make(NonlinearConstraint(lambda x: returned, 0, 1))
    assert one.violation(np.zeros(2)) == 2.0
    assert one.traced(jnp.zeros(2)) == 2.0


def test_a_pytree_is_handed_over_as_it_is():
    one = make({"type": "ineq", "fun": lambda x: x["a"].sum() - x["b"]}, 4, is_vector=False)
    assert one.violation({"a": np.ones(3), "b": 5.0}) == 2.0
    assert jax.jit(one.traced)({"a": jnp.ones(3), "b": 5.0}) == 2.0


def test_what_is_for_other_methods_is_ignored():
    """scipy would refuse keep_feasible here, or use jac."""

    def never(x):
        raise AssertionError

    one = NonlinearConstraint(norm, 0, 1, jac=never, hess=never, keep_feasible=True)
    assert make([one, {"type": "ineq", "fun": norm, "jac": never}]).violation(np.array([3.0, 0.0])) == 8.0


def test_can_be_sent_to_workers():
    sent = pickle.loads(pickle.dumps(make([LinearConstraint(np.eye(2), 0, 1), NonlinearConstraint(norm, 0, 1)])))
    assert sent.violation(np.array([2.0, 0.0])) == 4.0


def test_scipy_optimize_is_not_imported_for_them():
    code = """import sys, gesmr.optimize.constraints as c
c.Constraints({"type": "ineq", "fun": abs}, is_vector=True, dim=1)
assert "scipy.optimize" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True)


INEQ = {"type": "ineq", "fun": norm}


@pytest.mark.parametrize(
    ("constraints", "exception", "words"),
    [
        (norm, TypeError, ["constraints must be", "NonlinearConstraint", "norm"]),
        ([INEQ, "x"], TypeError, ["constraints[1]", "'x'"]),
        (Bounds(0, 1), TypeError, ["Bounds", "argument of their own"]),
        ({"type": "ineq"}, ValueError, ["constraints", "'fun'"]),
        ([INEQ, {"fun": norm}], ValueError, ["constraints[1]", "'type'", "['fun']"]),
        ([{"type": "<=", "fun": norm}], ValueError, ["type of constraints[0]", "'ineq', 'eq'", "'<='"]),
        ([{"type": 0, "fun": norm}], ValueError, ["type of constraints[0]", "0"]),
        ([{"type": "eq", "fun": 3}], TypeError, ["fun of constraints[0]", "callable", "3"]),
        ({**INEQ, "arg": 1}, ValueError, ["args", "'arg'"]),
        ([NonlinearConstraint("f", 0, 1)], TypeError, ["fun of constraints[0]", "'f'"]),
        ([NonlinearConstraint(norm, 2, 1)], ValueError, ["constraints[0]", "lb=2.0", "ub=1.0"]),
        ([NonlinearConstraint(norm, [0, 2], 1)], ValueError, ["constraints[0]", "lb=2.0"]),
        ([NonlinearConstraint(norm, INF, INF)], ValueError, ["lb below inf", "lb=inf"]),
        ([NonlinearConstraint(norm, np.nan, 1)], ValueError, ["lb of constraints[0]", "NaN"]),
        ([NonlinearConstraint(norm, 0, None)], TypeError, ["ub of constraints[0]", "None"]),
        ([NonlinearConstraint(norm, "0", 1)], TypeError, ["lb of constraints[0]", "'0'"]),
        ([NonlinearConstraint(norm, [0, 0], [1, 1, 1])], ValueError, ["constraints[0]", "(2,)", "(3,)"]),
        ([INEQ, LinearConstraint(np.ones((1, 3)), 0, 1)], ValueError, ["constraints[1]", "(m, 2)", "(1, 3)"]),
        ([LinearConstraint([[1.0, np.nan]], 0, 1)], ValueError, ["constraints[0]", "finite"]),
    ],
)
def test_bad_constraints_are_refused(constraints, exception, words):
    assert_refused(lambda: make(constraints), exception, words)


def test_linear_constraints_need_a_vector():
    linear = LinearConstraint(np.eye(2), 0, 1)
    assert_refused(lambda: make(linear, is_vector=False), TypeError, ["LinearConstraint", "vector"])


@pytest.mark.parametrize(
    ("fun", "lb", "exception", "words"),
    [
        (both, [0, 0, 0], ValueError, ["constraints[0]", "(3,)", "(2,)"]),
        (norm, [0, 0], ValueError, ["constraints[0]", "(2,)", "(1,)"]),
        (both, [[0], [0]], ValueError, ["(2, 1)", "(2,)"]),
        (lambda x: x[0] > 0, 0, TypeError, ["constraints[0]", "bool"]),
        (lambda x: x * 1j, 0, TypeError, ["constraints[0]", "complex"]),
    ],
)
def test_bad_values_of_constraints_are_refused(fun, lb, exception, words):
    constraints = make([NonlinearConstraint(fun, lb, INF)])
    assert_refused(lambda: constraints.violation(np.ones(2)), exception, words)
    assert_refused(lambda: jax.eval_shape(constraints.traced, jnp.ones(2)), exception, words)


def test_texts_as_values_are_refused():
    constraints = make({"type": "ineq", "fun": lambda x: "positive"})
    assert_refused(lambda: constraints.violation(np.ones(2)), TypeError, ["constraints must return real numbers"])


@pytest.mark.parametrize("wrong", [-1.0, np.nan, INF, "0.1", None, [0.1, 0.2], True])
def test_bad_tolerances_are_refused(wrong):
    exception = ValueError if isinstance(wrong, float) else TypeError
    assert_refused(lambda: make(None, eq_tol=wrong), exception, ["eq_tol must be"])
