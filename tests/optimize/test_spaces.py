"""Spaces, integers and bounds of pytrees in `minimize` and `Optimizer`: what functions see, and that nothing leaves."""

import json
import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import LinearConstraint, differential_evolution

import gesmr
from gesmr import noise
from gesmr.bounds import Bounds
from gesmr.ga import make_children
from gesmr.optimize.options import check
from gesmr.optimize.pending import keys
from helpers.processes import finish, kill_at_random
from helpers.refusals import assert_refused

Choice, Float, Int = gesmr.Choice, gesmr.Float, gesmr.Int
SPACE = gesmr.Space(
    lr=Float(1e-5, 0.3, log=True),
    layers=Int(1, 8),
    act=Choice("relu", "tanh", None),
    w=Float(-0.1, 0.7, shape=(2,)),
    many=Int(1, 1000, log=True),
    mixed=Choice(True, 1, 1.0, shape=(2,)),
)
NUMBERS = gesmr.Space(
    lr=Float(1e-5, 0.3, log=True),
    n=Int(-2, 3),
    width=Choice(16, 32, 2.5),
    w=Float(0.1, 0.3, shape=(2,)),
    fixed=Int(7, 7),
)
SMALL = {"popsize": 13, "rng": 0}
ERROR = 1e-6  # how often a test of chance is wrong


def loss(x):
    wrong = (x["act"] != "tanh") + sum(type(one) is not int for one in x["mixed"])
    return (np.log10(x["lr"]) + 2) ** 2 + abs(x["layers"] - 3) + float(wrong) + np.sum((x["w"] - 0.2) ** 2)


def by_jax(x):
    return (
        (jnp.log10(x["lr"]) + 2) ** 2
        + jnp.abs(x["n"] - 1)
        + jnp.abs(x["width"] - 2.5)
        + jnp.sum((x["w"] - 0.2) ** 2, axis=-1)
    )


def by_numpy(x):
    return float(
        (np.log10(x["lr"]) + 2) ** 2 + abs(x["n"] - 1) + abs(x["width"] - 2.5) + np.sum((np.asarray(x["w"]) - 0.2) ** 2)
    )


def assert_inside(space, x):
    """A dictionary of plain values, in order, each one that its variable has."""
    assert type(x) is dict
    assert tuple(x) == space.names
    for name, variable in zip(space.names, space.variables, strict=True):
        value = x[name]
        if variable.shape:
            assert isinstance(value, np.ndarray)
            assert value.shape == variable.shape
        entries = value.ravel().tolist() if variable.shape else [value]
        for entry in entries:
            if isinstance(variable, Choice):
                assert (type(entry), entry) in {(type(option), option) for option in variable.options}
            else:
                assert type(entry) is (float if isinstance(variable, Float) else int)
                assert variable.low <= entry <= variable.high


# what users see


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_solutions_are_dictionaries_of_plain_values_everywhere(tmp_path, dtype):
    seen, told = [], []

    def fun(x, factor):
        assert_inside(SPACE, x)
        seen.append(x)
        return factor * loss(x)

    log = gesmr.JSONLines(tmp_path / "log", x=True)
    result = gesmr.minimize(
        fun, SPACE, **SMALL, args=(2.0,), maxiter=40, dtype=dtype, callback=[lambda r: told.append(r.x), log]
    )
    assert len(seen) == result.nfev == 13 + 40 * 12
    assert len(told) == 41  # after the first population too
    for x in (*told, result.x):
        assert_inside(SPACE, x)
    assert result.fun == np.asarray(2 * loss(result.x), dtype)
    assert result.x["layers"] == 3
    assert result.x["act"] == "tanh"
    assert result.path == "python"
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert lines[-1]["x"]["act"] == "tanh"
    assert lines[-1]["x"]["w"] == result.x["w"].tolist()
    assert list(result.population) == list(SPACE.names)
    assert result.population["w"].shape == (13, 2)
    assert set(result.population["act"]) <= {"relu", "tanh", None}
    best = int(np.argmin(result.population_fitness))
    assert result.population["many"][best] == result.x["many"]
    assert "tanh" in repr(result)


def test_ask_and_tell_in_dictionaries():
    opt = gesmr.Optimizer(SPACE, **SMALL)
    for _ in range(5):
        xs = opt.ask()
        assert isinstance(xs, list)
        for x in xs:
            assert_inside(SPACE, x)
        opt.tell(xs, [loss(x) for x in xs])
    assert opt.result.fun == loss(opt.result.x)


def test_x_can_be_changed_by_whoever_gets_it():
    """A function that spoils its argument spoils nothing else."""

    def spoil(x):
        value = loss(x)
        x["w"][:] = 99
        x["layers"] = None
        return value

    one, other = (gesmr.minimize(fun, SPACE, **SMALL, maxiter=10) for fun in (loss, spoil))
    assert one.fun == other.fun
    np.testing.assert_array_equal(one.x["w"], other.x["w"])


def test_solutions_that_are_known():
    known = [
        {"lr": 0.01, "layers": 3, "act": "tanh", "w": np.array([0.2, 0.2]), "many": 10, "mixed": [1, 1]},
        {"lr": 1e-5, "layers": 8, "act": None, "w": np.array([-0.1, 0.7]), "many": 1000, "mixed": [True, 1.0]},
    ]
    seen = []

    def fun(x):
        seen.append(x)
        return loss(x)

    result = gesmr.minimize(fun, SPACE, **SMALL, init=known, maxiter=2, jit=False)
    for x, given in zip(seen, known, strict=False):
        np.testing.assert_allclose(x.pop("w"), given.pop("w"), rtol=1e-15)
        assert x.pop("mixed").tolist() == given.pop("mixed")
        assert x.pop("lr") == pytest.approx(given.pop("lr"), rel=1e-14)
        assert x == given
    assert result.fun < 1e-20
    valued = gesmr.Optimizer(NUMBERS, **SMALL, init=([NUMBERS.decode(NUMBERS.low)], [-5.0]))
    assert valued.result.fun == -5
    assert len(valued.ask()) == 12
    wrong = {**NUMBERS.decode(NUMBERS.low), "n": 9}
    assert_refused(lambda: gesmr.Optimizer(NUMBERS, init=[wrong]), ValueError, ["init", "n must be", "-2 to 3", "9"])


# nothing is ever outside


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_candidate_is_outside_its_space(dtype):
    """A hundred thousand of them, that crowd at the bounds; both ends of every variable are reached."""
    ends = {name: [np.inf, -np.inf] for name in NUMBERS.names}
    seen = 0

    def fun(x):
        nonlocal seen
        for name, variable in zip(NUMBERS.names, NUMBERS.variables, strict=True):
            values = np.asarray(x[name], np.float64)
            if isinstance(variable, Choice):
                assert np.isin(values, variable.options).all()
            else:
                assert ((values >= variable.low) & (values <= variable.high)).all()
                assert isinstance(variable, Float) or x[name].dtype == np.int64
            ends[name] = [min(ends[name][0], values.min()), max(ends[name][1], values.max())]
        seen += len(x["lr"])
        return x["lr"] - x["n"] + x["w"][:, 0] - x["w"][:, 1]

    result = gesmr.minimize(fun, NUMBERS, popsize=5001, maxiter=20, rng=0, vectorized=True, jit=False, dtype=dtype)
    assert seen == result.nfev == 5001 + 20 * 5000
    assert ends["n"] == [-2, 3]
    assert ends["width"] == [2.5, 32]
    assert ends["fixed"] == [7, 7]
    np.testing.assert_allclose(ends["lr"], [1e-5, 0.3], rtol=0.01)
    np.testing.assert_allclose(ends["w"], [0.1, 0.3], rtol=0.01)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_candidate_is_outside_where_functions_are_compiled(dtype):
    """What a compiled function sees: it returns how far outside its arguments are, which must be 0 everywhere."""

    low, high = np.asarray(0.1, dtype), np.asarray(0.3, dtype)
    low = np.nextafter(low, high) if float(low) < 0.1 else low
    high = np.nextafter(high, low) if float(high) > 0.3 else high

    def outside(x):
        n, width, w, lr = x["n"], x["width"], x["w"], x["lr"]
        assert n.dtype in (jnp.int32, jnp.int64)
        assert lr.dtype == w.dtype == dtype
        far = (n < -2) | (n > 3) | (x["fixed"] != 7)
        far |= (width != 16) & (width != 32) & (width != 2.5)
        far |= jnp.any((w < low) | (w > high))
        return jnp.where(far, -1e3, 0) + jnp.sum(w) - n

    result = gesmr.minimize(outside, NUMBERS, popsize=2001, maxiter=50, rng=0, dtype=dtype, jit=True)
    assert result.path == "jax"
    assert result.fun >= 0.2 - 3 - 1e-6
    assert (result.population_fitness > -100).all()
    assert_inside(NUMBERS, result.x)


@pytest.mark.parametrize("vectorized", [False, True])
def test_compiled_and_called_functions_see_the_same(vectorized):
    """The same seed and precision: the same first population, and the same values of it."""
    options = {"popsize": 51, "rng": 3, "dtype": "float32", "maxiter": 0, "vectorized": vectorized}

    def called(x):
        if not vectorized:
            return by_numpy(x)
        return np.array([by_numpy({name: x[name][i] for name in x}) for i in range(len(x["n"]))])

    compiled, plain = gesmr.minimize(by_jax, NUMBERS, **options), gesmr.minimize(called, NUMBERS, **options)
    assert compiled.path.startswith("jax")
    assert plain.path.startswith("python")
    for name in NUMBERS.names:
        np.testing.assert_allclose(compiled.population[name], plain.population[name], rtol=1e-6)
    np.testing.assert_allclose(compiled.population_fitness, plain.population_fitness, rtol=1e-4)
    both = [gesmr.minimize(f, NUMBERS, **{**options, "maxiter": 60}) for f in (by_jax, called)]
    for result in both:
        assert result.fun < 0.01
        assert (result.x["n"], result.x["width"], result.x["fixed"]) == (1, 2.5, 7)


def test_many_at_once_and_by_workers():
    """Options that are no numbers in arrays; and dictionaries in other processes. The values are those of a loop."""
    options = {**SMALL, "maxiter": 5, "dtype": "float64"}
    alone = gesmr.minimize(loss, SPACE, **options)

    def many(xs):
        assert xs["act"].dtype == xs["mixed"].dtype == object
        return np.array([loss({name: xs[name][i] for name in xs}) for i in range(len(xs["lr"]))])

    together = gesmr.minimize(many, SPACE, **options, vectorized=True)
    with gesmr.Pool(2) as pool:
        elsewhere = gesmr.minimize(loss, SPACE, **options, workers=pool)
    for result in (together, elsewhere):
        assert_same(result, alone)


# choices


def children(bounds, rate, dtype, parents, seed=0):
    """Children of the `parents f[n, d]`, each with this rate, after the elite in slot 0, which has none."""
    n = parents.shape[0]
    key, generation = noise.key(seed), jnp.int32(0)
    rows = jnp.asarray(np.concatenate([parents[:1], parents]), dtype)
    rates = jnp.full(n, rate, jnp.float32)
    found = jax.jit(make_children)(key, generation, rows, jnp.arange(n + 1), rates, bounds).population
    np.testing.assert_array_equal(found[0], rows[0])
    return np.asarray(found[1:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rate", "leaps"), [(1e-3, None), (0.3, None), (5.0, None), (1e-3, 0.05), (0.3, 0.05)])
@pytest.mark.parametrize("options", [2, 3, 7])
def test_a_choice_changes_with_the_chance_of_its_rate_and_goes_anywhere(dtype, rate, leaps, options, x64):
    """min(rate, 1) · (k − 1)/k, at least that of its leaps: both within what chance gives all but once in a million."""
    n, genes = 2000, 100
    parents = np.tile(np.arange(genes) % options, (n, 1)).astype(dtype)
    k = np.full(genes, options, dtype)
    bounds = Bounds(
        k * 0 - 0.5, k - 0.5, leaps=None if leaps is None else k * 0 + leaps, unordered=np.ones(genes, bool)
    )
    found = children(bounds, rate, dtype, parents)
    assert set(np.unique(found)) <= set(range(options))
    changed = found != parents
    chance = min(max(rate, leaps or 0), 1) * (options - 1) / options
    assert stats.binomtest(int(changed.sum()), n * genes, chance).pvalue > ERROR
    where = (found - parents)[changed] % options
    counts = np.bincount(where.astype(int), minlength=options)[1:]
    if options > 2:
        assert stats.chisquare(counts).pvalue > ERROR
    by_gene = changed.sum(axis=0)
    assert stats.chisquare(by_gene).pvalue > ERROR


def test_whether_a_choice_changes_and_where_it_goes_are_independent(x64):
    """The option that is drawn says nothing of what happens to the other genes, at a small rate too."""
    parents = np.zeros((40_000, 2))
    bounds = Bounds(np.full(2, -0.5), np.full(2, 3.5), unordered=np.ones(2, bool))
    for rate in (1e-2, 0.9):
        found = children(bounds, rate, "float64", parents).astype(int)
        if rate > 0.5:
            one = np.array([1 - 0.75 * rate, rate / 4, rate / 4, rate / 4])
            counts = np.bincount(found[:, 0] * 4 + found[:, 1], minlength=16)
            assert stats.chisquare(counts, np.outer(one, one).ravel() * len(found)).pvalue > ERROR
        both = ((found[:, 0] != 0) & (found[:, 1] != 0)).sum()
        assert stats.binomtest(int(both), len(found), (rate * 0.75) ** 2).pvalue > ERROR


@pytest.mark.parametrize("leaps", [None, 0.5])
def test_at_a_rate_of_zero_nothing_changes(leaps, x64):
    low, high = np.array([-0.5, -0.5, -3.0]), np.array([2.5, 8.5, 3.0])
    leaps = None if leaps is None else np.array([0.5, 0.5, 0])
    bounds = Bounds(low, high, leaps=leaps, unordered=np.array([True, False, False]))
    parents = np.random.default_rng(0).uniform(low, high, (200, 3))
    np.testing.assert_array_equal(children(bounds, 0.0, "float64", parents), parents)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_integer_leaps_by_one_with_its_chance_and_stays_inside(dtype, x64):
    """At a rate that moves nothing: a quarter leap, up and down alike, and from the ends inwards."""
    n, chance = 40_000, 0.25
    low, high = np.array([-0.5, -0.5, -0.5, -np.inf], dtype), np.array([8.5, 8.5, 8.5, np.inf], dtype)
    parents = np.tile(np.array([4, 0, 8, 4], dtype), (n, 1))
    bounds = Bounds(low, high, leaps=np.array([chance, chance, chance, chance], dtype))
    moves = np.round(children(bounds, 1e-6, dtype, parents) - parents)
    assert set(np.unique(moves)) == {-1, 0, 1}
    for gene in (0, 3):
        up, down = (int((moves[:, gene] == step).sum()) for step in (1, -1))
        assert stats.binomtest(up, up + down, 0.5).pvalue > ERROR
        assert stats.binomtest(up + down, n, chance).pvalue > ERROR
    assert set(np.unique(moves[:, 1])) == {0, 1}
    assert set(np.unique(moves[:, 2])) == {-1, 0}
    for gene in (1, 2):
        assert stats.binomtest(int((moves[:, gene] != 0).sum()), n, chance).pvalue > ERROR


def test_the_elite_keeps_its_choices():
    """With rates of 1, where every child gets other options."""
    opt = gesmr.Optimizer(SPACE, **SMALL, controller=gesmr.Fixed(1.0))
    best = None
    for _ in range(10):
        xs = opt.ask()
        opt.tell(xs, [loss(x) for x in xs])
        if best is not None and opt.result.fun == best.fun:
            assert opt.result.x["act"] == best.x["act"]
            assert opt.result.x["mixed"].tolist() == best.x["mixed"].tolist()
        best = opt.result


def test_integers_of_a_first_population_are_equally_frequent():
    """Cells of one width, ends included: chi-square, wrong once in a million."""
    opt = gesmr.Optimizer(gesmr.Space(n=Int(1, 8), c=Choice(*"abc"), far=Int(-3, 3)), popsize=8001, rng=0)
    xs = opt.ask()[1:]
    for name, k in (("n", 8), ("c", 3), ("far", 7)):
        counts = np.unique([x[name] for x in xs], return_counts=True)[1]
        assert len(counts) == k
        assert stats.chisquare(counts).pvalue > ERROR


# integrality


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiled", [False, True])
def test_integers_as_scipy_has_them(dtype, compiled):
    """They are rounded where they are used, and the others are not."""

    def fun(x):
        value = (x[0] - 1.6) ** 2 + (x[1] - 0.5) ** 2
        return value if compiled else float(value)

    result = gesmr.minimize(
        fun, np.zeros(2), bounds=[(-2, 3), (-2, 3)], integrality=[1, 0], popsize=201, rng=0, maxiter=30, dtype=dtype,
        jit=compiled
    )  # fmt: skip
    integers, numbers = np.asarray(result.population).T
    assert (integers == np.round(integers)).all()
    assert (numbers != np.round(numbers)).any()
    assert result.x[0] == 2
    assert 0 < abs(result.x[1] - 0.5) < 0.05
    np.testing.assert_allclose(result.fun, 0.4**2 + (result.x[1] - 0.5) ** 2, rtol=1e-5)


def everything(bounds, **options):
    """All that a first population and ten generations of chance have of the first variable."""
    opt = gesmr.Optimizer(np.zeros(2), bounds=bounds, popsize=400, rng=0, **options)
    seen = []
    for _ in range(10):
        xs = opt.ask()
        seen.append(xs[:, 0])
        opt.tell(xs, np.random.default_rng(0).random(len(xs)))
    return np.concatenate(seen)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("handling", ["reflect", "clip", "resample"])
def test_both_ends_are_reached_and_nothing_beyond(dtype, handling):
    bounds = Bounds(np.array([-1.0, 0.0]), np.array([2.0, 1.0]), handling)
    assert set(everything(bounds, integrality=[True, False], dtype=dtype).tolist()) == {-1.0, 0.0, 1.0, 2.0}


def test_bounds_between_integers_leave_those_inside():
    assert set(everything([(-1.7, 2.9), (0, 1)], integrality=[1, 0]).tolist()) == {-1.0, 0.0, 1.0, 2.0}
    assert set(everything([(0, 0), (0, 1)], integrality=[1, 0]).tolist()) == {0.0}


def test_integers_that_are_open_on_a_side_or_both():
    for bounds in (None, [(None, None), (0, 1)], [(-3, None), (0, 1)]):
        seen = everything(bounds, integrality=[1, 0])
        assert (seen == np.round(seen)).all()
        assert len(set(seen.tolist())) > 3
        if bounds and bounds[0][0] is not None:
            assert seen.min() == -3


def test_open_integers_leap_too():
    """However small the rates are."""
    opt = gesmr.Optimizer(np.zeros(2), popsize=200, rng=0, integrality=1, controller=gesmr.Fixed(1e-6), init_std=1e-6)
    for _ in range(2):
        opt.tell(opt.ask(), np.zeros(len(opt.ask())))
    assert {-1, 0, 1} <= set(np.unique(opt.ask())) <= {-2, -1, 0, 1, 2}


def test_flags_shaped_like_x0():
    x0 = {"a": np.zeros((2, 2), np.float32), "b": np.float32(0.0)}
    flags = {"a": np.array([[1, 0], [0, 1]]), "b": True}
    opt = gesmr.Optimizer(x0, popsize=30, rng=0, integrality=flags)
    for x in opt.ask()[1:]:
        rounded = x["a"] == np.round(x["a"])
        assert rounded.tolist() == [[True, False], [False, True]]
        assert x["b"] == np.round(x["b"])
        assert x["a"].dtype == np.float32
    everywhere = gesmr.Optimizer(np.zeros(3), popsize=9, rng=0, integrality=True).ask()
    assert (everywhere == np.round(everywhere)).all()
    nowhere = gesmr.Optimizer(np.zeros(3), popsize=9, rng=0, integrality=0).ask()
    np.testing.assert_array_equal(nowhere, gesmr.Optimizer(np.zeros(3), popsize=9, rng=0).ask())


def test_scipys_differential_evolution_has_no_other_integers():
    """The same problem, the same answer: distances to (2.6, −1.2) and (4.4), of which the last may be any number."""

    def fun(x):
        return float(abs(x[0] - 2.6) + abs(x[1] + 1.2) + (x[2] - 4.4) ** 2)

    problem = {"bounds": [(-5, 5), (-5, 5), (0, 9)], "integrality": [1, 1, 0]}
    theirs = differential_evolution(fun, **problem, rng=0)
    ours = gesmr.minimize(fun, [0.0, 0.0, 0.0], **problem, rng=0, maxfun=3000)
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-3)
    assert ours.x[:2].tolist() == [3, -1]


# bounds of pytrees

TREE = {"w": np.full((2, 2), 0.5), "b": (np.array(2.0), np.zeros(3))}
OPEN = {"w": -np.ones((2, 2)), "b": (np.array(1.0), np.array([-np.inf, -2, -3]))}, {
    "w": np.array([[1, 2], [3, 0.5]]), "b": (np.array(np.inf), np.array([0, 0, np.inf]))
}  # fmt: skip


def all_of(number):
    return jax.tree.map(lambda leaf: np.full_like(leaf, number), TREE)


TREES = {
    "a pair of trees": (OPEN, OPEN),
    "a list of two trees": (list(OPEN), OPEN),
    "a tree of pairs": (
        {"w": (-1, np.array([[1, 2], [3, 0.5]])), "b": ((1, None), ([-np.inf, -2, -3], [0, 0, np.inf]))},
        OPEN,
    ),
    "open sides": (
        {"w": (None, 1), "b": ((None, None), (-1, None))},
        (
            {"w": np.full((2, 2), -np.inf), "b": (-np.inf, np.full(3, -1))},
            {"w": np.ones((2, 2)), "b": (np.inf, np.full(3, np.inf))},
        ),
    ),
    "one pair for all": ((-4, 4), (all_of(-4), all_of(4))),
    "a tree and a number": ((OPEN[0], np.inf), (OPEN[0], all_of(np.inf))),
}


@pytest.mark.parametrize("name", TREES)
def test_bounds_of_pytrees(name):
    given, (low, high) = TREES[name]
    opt = gesmr.Optimizer(TREE, bounds=given, popsize=101, rng=0)
    extremes = None
    for _ in range(4):
        xs = opt.ask()
        for x in xs:
            inside = jax.tree.map(lambda a, x, b: bool(((a <= x) & (x <= b)).all()), low, x, high)
            assert all(jax.tree.leaves(inside))
        opt.tell(xs, np.random.default_rng(1).random(len(xs)))
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *xs)
        extremes = jax.tree.map(lambda x: np.ptp(x, axis=0).max(), stacked)
    assert min(jax.tree.leaves(extremes)) > 0.3  # they move


@pytest.mark.parametrize(
    "given",
    [
        {"w": (-1, 1)},
        {"w": (-1, 1), "b": (0, 1)},
        {"w": (-1, 1, 2), "b": ((0, 3), (-1, 1))},
        ({"w": -1}, {"w": 1}),
        {"w": (-1, np.zeros(5)), "b": ((0, 3), (-1, 1))},
        {"w": ("a", 1), "b": ((0, 3), (-1, 1))},
        {"w": (1, -1), "b": ((0, 3), (-1, 1))},
    ],
)
def test_bounds_that_are_not_like_x0_are_refused(given):
    assert_refused(lambda: gesmr.Optimizer(TREE, bounds=given), (TypeError, ValueError), ["bounds must"])


# what contradicts itself


def refused(x0, *words, error=ValueError, **options):
    return lambda: gesmr.minimize(lambda x: 0.0, x0, **options), error, words


MATRIX = LinearConstraint(np.ones((1, 9)), 0, 1)
REFUSED = {
    "bounds": refused(SPACE, "bounds", "Space", "(0, 1)", bounds=(0, 1)),
    "a spread": refused(SPACE, "init_std", "Space", "0.5", init_std=0.5),
    "integrality": refused(SPACE, "integrality", "Space", integrality=1),
    "half precision": refused(SPACE, "bfloat16", "Space", "float32", dtype="bfloat16"),
    "text, compiled": refused(SPACE, "jit", "Space", "numbers", jit=True),
    "text, with a key": refused(SPACE, "keyed", "Space", "numbers", keyed=True),
    "text, on devices": refused(SPACE, "devices", "compiled", devices=1),
    "a class": refused(gesmr.Space, "x0", error=TypeError),
    "linear constraints": refused(SPACE, "LinearConstraint", "vector", error=TypeError, constraints=MATRIX),
    "large integers": refused(gesmr.Space(n=Int(0, 2**40)), "float32", "float64", dtype="float32"),
    "half a solution": refused(SPACE, "init", "layers", init=[{"lr": 1}]),
    "integers in half precision": refused([0.0], "bfloat16", integrality=1, dtype="bfloat16", bounds=(0, 5)),
    "open integers in half precision": refused([0.0], "bfloat16", "integers", integrality=1, dtype="bfloat16"),
    "integrality of 2": refused([0.0, 1.0], "integrality", "0 or 1", integrality=[1, 2]),
    "integrality of another size": refused([0.0], "integrality", "[1, 0]", integrality=[1, 0]),
    "integrality of text": refused([0.0], "integrality", "'yes'", integrality="yes"),
    "integrality of another tree": refused(TREE, "integrality", "x0", integrality={"w": 1}),
    "no integer inside": refused([0.5], "bounds", "no integer", "variable 0", integrality=1, bounds=(0.2, 0.8)),
    "large bounds": refused([0.5], "integers", "float32", integrality=1, bounds=(0, 1e9), dtype="float32"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_contradicts_itself_is_named(name):
    assert_refused(*REFUSED[name])


def test_solutions_of_another_space_are_not_told():
    opt = gesmr.Optimizer(NUMBERS, **SMALL)
    assert_refused(lambda: opt.tell([{"n": 1}], [0.0]), ValueError, ["xs", "must have lr, n, width"])


def test_members_of_uneven_pytrees():
    """Leaves of other shapes, of which NumPy makes no array."""
    x0 = (np.zeros((2, 2)), np.zeros(3), np.array(0.0))
    known = [jax.tree.map(lambda leaf: leaf + 1, x0), x0, x0]
    opt = gesmr.Optimizer(x0, init=known, maxfun=50, rng=0)
    assert opt.ask()[0][0].tolist() == [[1, 1], [1, 1]]


# checkpoints


def assert_same(a, b):
    assert (a.nit, a.nfev, a.fun, a.stop) == (b.nit, b.nfev, b.fun, b.stop)
    for name in ("x", "population"):
        for key in a[name]:
            np.testing.assert_array_equal(a[name][key], b[name][key])
    for name in ("population_fitness", "mutation_rates"):
        np.testing.assert_array_equal(a[name], b[name])
    for one, other in zip(a.history, b.history, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("fun", "space"), [(loss, SPACE), (by_numpy, NUMBERS), (by_jax, NUMBERS)])
def test_going_on_is_exact(tmp_path, fun, space):
    whole = gesmr.minimize(fun, space, **SMALL, maxiter=20)
    for generations in (3, 11, 20):
        options = {**SMALL, "maxiter": generations, "checkpoint": tmp_path / "run", "resume": True}
        part = gesmr.minimize(fun, space, **options)
        assert part.nit == generations
    assert_same(part, whole)
    other = gesmr.Space(dict(zip(space.names, (Float(1e-5, 0.4, log=True), *space.variables[1:]), strict=True)))
    with pytest.raises(gesmr.CheckpointError, match="space was"):
        gesmr.minimize(fun, other, **options)


def test_an_optimiser_of_a_space_is_read_without_it(tmp_path):
    opt = gesmr.Optimizer(SPACE, **SMALL)
    for number in range(8):
        opt.save(tmp_path / "run")
        other = gesmr.Optimizer.load(tmp_path / "run")
        assert repr(other.ask()) == repr(opt.ask())
        for one in (opt, other):
            xs = one.ask()
            one.tell(xs, [loss(x) for x in xs])
        assert_same(opt.result, other.result)
        if number % 2:
            opt = other


def test_integers_go_on_exactly(tmp_path):
    opt = gesmr.Optimizer(np.zeros(3), **SMALL, integrality=[1, 0, 1], bounds=[(-5, 5), (0, 1), (None, None)])
    for _ in range(5):
        opt.save(tmp_path / "run")
        other = gesmr.Optimizer.load(tmp_path / "run")
        np.testing.assert_array_equal(opt.ask(), other.ask())
        assert (opt.ask()[:, [0, 2]] == np.round(opt.ask()[:, [0, 2]])).all()
        opt.tell(opt.ask(), np.sum((opt.ask() - 1.4) ** 2, axis=1))
        other.tell(other.ask(), np.sum((other.ask() - 1.4) ** 2, axis=1))
        np.testing.assert_array_equal(opt.result.population, other.result.population)


def test_a_larger_budget_keeps_the_population(tmp_path):
    """Whose size was chosen for the first."""
    options = {"rng": 0, "checkpoint": tmp_path / "run", "resume": True}
    first = gesmr.minimize(loss, SPACE, **options, maxfun=400)
    size = len(first.population_fitness)
    second = gesmr.minimize(loss, SPACE, **options, maxfun=4000)
    assert len(second.population_fitness) == size
    assert 400 < second.nfev <= 4000
    assert size < len(gesmr.minimize(loss, SPACE, rng=0, maxfun=4000).population_fitness)
    whole = gesmr.minimize(loss, SPACE, rng=0, maxfun=4000, popsize=size)
    assert_same(second, whole)


KILLED = """
    import sys, time
    import numpy as np
    import jax.numpy as jnp
    import gesmr

    compiled, path = sys.argv[1] == "jax", sys.argv[2]
    space = gesmr.Space(
        lr=gesmr.Float(1e-5, 0.3, log=True),
        n=gesmr.Int(-2, 3),
        c=gesmr.Choice(16, 32, 2.5),
        w=gesmr.Float(-1, 1, shape=(3,)),
    )

    def by_numpy(x):
        time.sleep(0.0005)
        return float((np.log10(x["lr"]) + 2) ** 2 + abs(x["n"] - 1) + abs(x["c"] - 32) + np.sum((x["w"] - 0.2) ** 2))

    def by_jax(x):
        return (jnp.log10(x["lr"]) + 2) ** 2 + abs(x["n"] - 1) + abs(x["c"] - 32) + jnp.sum((x["w"] - 0.2) ** 2)

    result = gesmr.minimize(
        by_jax if compiled else by_numpy, space, rng=0, popsize=13, maxiter=2000 if compiled else 60, ftol=None,
        chunk=20 if compiled else None, checkpoint=gesmr.Checkpoint(path, every=20 if compiled else 1), resume=True
    )
    found = result.x, result.fun, result.nit, result.nfev, result.population, result.mutation_rates
    with open(path + ".result", "w") as file:
        print(repr(found), file=file)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["jax", "python"])
def test_killed_in_the_middle_it_goes_on_exactly(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(KILLED))
    whole, cut = str(tmp_path / "whole"), str(tmp_path / "cut")
    finish([sys.executable, script, how, whole])
    command = [sys.executable, script, how, cut]
    at_work = kill_at_random(command, lambda: lambda: os.path.exists(cut), 0.8, kills=5)
    assert at_work >= 0.2
    finish(command)
    assert (tmp_path / "cut.result").read_text() == (tmp_path / "whole.result").read_text()


# many devices

SHARDED = """
    import jax, json
    jax.config.update("jax_num_cpu_devices", 2)
    import jax.numpy as jnp
    import numpy as np
    import gesmr

    space = gesmr.Space(
        lr=gesmr.Float(1e-5, 0.3, log=True),
        n=gesmr.Int(-2, 3),
        c=gesmr.Choice(16, 32, 2.5),
        w=gesmr.Float(-1, 1, shape=(4,)),
    )

    def fun(x):
        return jnp.abs(x["n"] - 1) + jnp.abs(x["c"] - 32) + jnp.max(jnp.abs(x["w"] - 0.25)) + x["lr"]

    def rows(x):
        return jnp.max(jnp.abs(x - 0.25))

    found = []
    integers = {"bounds": (-1, 1), "integrality": [1, 0, 0, 1, 0, 0, 1]}
    for f, x0, more in ((fun, space, {}), (rows, np.zeros(7), integers)):
        one, two = (gesmr.minimize(f, x0, popsize=13, rng=0, maxiter=30, devices=d, **more) for d in (None, 2))
        same = jax.tree.map(lambda a, b: bool((np.asarray(a) == np.asarray(b)).all()), one.population, two.population)
        found.append([all(jax.tree.leaves(same)), one.fun == two.fun, one.nfev == two.nfev, two.path])
    print(json.dumps(found))
"""


def test_on_two_devices_it_is_the_same_to_the_bit():
    """A function without sums, whose order could differ."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", textwrap.dedent(SHARDED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == [[True, True, True, "jax, devices: 2"]] * 2


def test_keys_of_candidates_are_those_of_what_users_get():
    """In single precision, where a logarithm and back is not what it was."""
    setup = check(SPACE, {"dtype": "float32", "popsize": 50, "rng": 0})
    opt = gesmr.Optimizer(SPACE, dtype="float32", popsize=50, rng=0)
    xs = opt.ask()
    rows = np.stack([setup.layout.flatten(x) for x in xs])
    assert len(set(keys(rows, setup.layout))) == 50
    opt.tell(xs[::-1], [loss(x) for x in xs[::-1]])
    assert opt.result.nfev == 50
