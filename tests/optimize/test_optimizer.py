"""Ask and tell: what is handed out, what is taken back, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr.optimize.options import check
from helpers.compilations import count_compilations
from helpers.optimizing import MEMBERS, TREE, D, ask_and_tell, many_by_numpy, optimizer
from helpers.refusals import assert_refused

N = MEMBERS - 1


def test_first_all_then_the_children():
    opt = optimizer()
    asked = ask_and_tell(opt, 3)
    assert [xs.shape for xs in asked] == [(N + 1, D), (N, D), (N, D), (N, D)]
    np.testing.assert_array_equal(asked[0][0], np.zeros(D))
    assert opt.result.nfev == 4 * N + 1
    assert opt.result.nit == 3


def test_it_is_the_ga_and_nothing_else():
    """The same candidates and values as GA.init, ask and tell, step by step, with the seed as the key."""
    opt = optimizer(dtype="float32", rng=7)
    asked = ask_and_tell(opt, 8)
    ga = gesmr.GA(gesmr.GESMR(truncation=0.1), N, truncation=0.2)
    state = ga.init(7, asked[0], many_by_numpy(asked[0]))
    ask, tell = jax.jit(ga.ask), jax.jit(ga.tell)
    for xs in asked[1:]:
        proposal = ask(state)
        np.testing.assert_allclose(xs, proposal.candidates, rtol=2e-4, atol=1e-6)
        state = tell(state, proposal, many_by_numpy(proposal.candidates))
    np.testing.assert_allclose(opt.result.fun, state.best_fitness, rtol=1e-3, atol=1e-6)


def test_the_defaults_are_what_the_studies_recommend_and_names_are_the_papers():
    assert len(gesmr.Optimizer(np.zeros(2)).ask()) == gesmr.GA().num_children + 1
    recombining = gesmr.GA(gesmr.GESMR(truncation=0.3, recombine=0.4), truncation=0.3)
    assert check(np.zeros(2), {}).ga(0) == recombining
    assert check(np.zeros(2), {"popsize": 51}).ga(0).controller == recombining.controller
    copying = gesmr.GA(gesmr.GESMR(truncation=0.1), 49, truncation=10 / 49)
    assert check(np.zeros(2), {"popsize": 50}).ga(0) == copying
    assert check(np.zeros(2), {"integrality": [1, 0]}).ga(0).controller == copying.controller
    assert check(np.zeros(2), {"controller": "GESMR"}).ga(0) == gesmr.GA(gesmr.controller("GESMR"))
    assert check(np.zeros(2), {"controller": "SAMR", "truncation": 0.3}).ga(0).truncation == 0.3


def test_the_share_of_parents_is_checked():
    for wrong in (0.0, 1.5, "half", [0.1, 0.2]):
        with pytest.raises((TypeError, ValueError), match="truncation"):
            gesmr.Optimizer(np.zeros(2), truncation=wrong)


def test_asking_again_gives_the_same_and_it_cannot_be_changed():
    opt = optimizer()
    for _ in range(2):
        xs = opt.ask()
        assert opt.ask() is xs
        with pytest.raises(ValueError, match="read-only"):
            xs[0] = 5.0
        opt.tell(xs, many_by_numpy(xs))


def same_as_before(opt, call, exception, words):
    """The call is refused with these words, and the optimiser goes on as if it had not been made."""
    before = opt.result
    pending = np.array(opt.ask())
    assert_refused(lambda: call(opt), exception, words)
    np.testing.assert_array_equal(pending, opt.ask())
    after = opt.result
    assert (before.fun, before.nit, before.nfev) == (after.fun, after.nit, after.nfev)
    np.testing.assert_array_equal(before.population, after.population)


REFUSED = {
    "other candidates": (lambda o: o.tell(np.array(o.ask()) + 1e-9, np.zeros(N)), ValueError, ["xs", "got another"]),
    "one of them twice": (lambda o: o.tell(np.array(o.ask())[[0, 0]], np.zeros(2)), ValueError, ["xs", "position 1"]),
    "too few values": (lambda o: o.tell(o.ask(), np.zeros(N - 1)), ValueError, ["values", "(12,)", "(11,)"]),
    "too many values": (lambda o: o.tell(o.ask(), np.zeros(N + 1)), ValueError, ["values", "(12,)", "(13,)"]),
    "a column of values": (lambda o: o.tell(o.ask(), np.zeros((N, 1))), ValueError, ["values", "(12,)", "(12, 1)"]),
    "values as text": (lambda o: o.tell(o.ask(), ["a"] * N), TypeError, ["values", "real"]),
    "values of nothing": (lambda o: o.tell(o.ask(), None), TypeError, ["values", "real"]),
    "missing values": (lambda o: o.tell(o.ask(), [None] * N), TypeError, ["values", "real"]),
    "complex values": (lambda o: o.tell(o.ask(), np.zeros(N) * 1j), TypeError, ["values", "complex"]),
    "truth values": (lambda o: o.tell(o.ask(), np.zeros(N, bool)), TypeError, ["values", "bool"]),
    "ragged values": (lambda o: o.tell(o.ask(), [[1, 2], *range(N - 1)]), TypeError, ["values", "real"]),
    "no candidates": (lambda o: o.tell(None, np.zeros(N)), TypeError, ["xs", "NoneType"]),
    "one number": (lambda o: o.tell(3, np.zeros(N)), TypeError, ["xs", "int"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_tell_is_refused_and_changes_nothing(name):
    opt = optimizer()
    ask_and_tell(opt, 2)
    same_as_before(opt, *REFUSED[name])


def test_telling_twice_is_refused():
    opt = optimizer()
    ask_and_tell(opt, 1)
    xs = opt.ask()
    opt.tell(xs, many_by_numpy(xs))
    same_as_before(opt, lambda o: o.tell(xs, many_by_numpy(xs)), ValueError, ["xs", "not been told", "position 0"])
    same_as_before(opt, lambda o: o.tell(np.array(xs), many_by_numpy(xs)), ValueError, ["xs", "not been told"])


def test_equal_candidates_are_the_candidates():
    opt, other = optimizer(), optimizer()
    xs = opt.ask()
    opt.tell([list(x) for x in xs], list(many_by_numpy(xs)))
    ask_and_tell(other, 0)
    np.testing.assert_array_equal(opt.ask(), other.ask())


def test_one_program_and_no_more():
    """After the second tell everything is compiled: first population, later generations."""
    ask_and_tell(optimizer(), 2)
    opt = optimizer(rng=5)
    with count_compilations() as count:
        ask_and_tell(opt, 5)
    assert count() == 0


def test_seeds():
    first, again, other = (ask_and_tell(optimizer(rng=seed), 3) for seed in (3, 3, 4))
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a[1:] != c[1:]).all()
    unseeded = optimizer(rng=None)
    np.testing.assert_array_equal(unseeded.ask(), optimizer(rng=unseeded.result.seed).ask())
    assert optimizer(rng=None).result.seed != unseeded.result.seed
    np.testing.assert_array_equal(optimizer(rng=None, seed=3).ask(), first[0])
    for make in (lambda: np.random.default_rng(1), lambda: jax.random.key(1)):
        np.testing.assert_array_equal(optimizer(rng=make()).ask(), optimizer(rng=make()).ask())
    generator = np.random.default_rng(1)
    assert optimizer(rng=generator).result.seed != optimizer(rng=generator).result.seed


def test_maximising_is_minimising_the_negative():
    up, down = optimizer(direction="maximize"), optimizer()
    for a, b in zip(ask_and_tell(up, 5, lambda xs: -many_by_numpy(xs)), ask_and_tell(down, 5), strict=True):
        np.testing.assert_array_equal(a, b)
    assert up.result.fun == -down.result.fun
    np.testing.assert_array_equal(up.result.population_fitness, -down.result.population_fitness)
    np.testing.assert_array_equal(up.result.history.elite, -down.result.history.elite)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_values_are_the_worst_in_either_direction(bad):
    for direction, sign in (("minimize", 1), ("maximize", -1)):
        opt = optimizer(direction=direction)
        ask_and_tell(opt, 2, lambda xs, sign=sign: np.where(xs[:, 0] > 0, bad, sign * many_by_numpy(xs)))
        assert opt.result.x[0] <= 0
        assert np.isfinite(opt.result.fun)


def test_dtypes():
    assert optimizer().ask().dtype == np.float64
    assert gesmr.Optimizer([1, 2, 3]).ask().dtype == np.float64
    assert gesmr.Optimizer(np.zeros(3, np.float32)).ask().dtype == np.float32
    assert gesmr.Optimizer(jnp.zeros(3)).ask().dtype == np.float32
    assert optimizer(dtype=np.float32).ask().dtype == np.float32
    assert gesmr.Optimizer(2.0).ask().shape == (101, 1)
    assert not jax.config.read("jax_enable_x64")


def test_double_precision_where_single_has_none_left():
    """Values that differ in the tenth digit are told apart."""
    opt = optimizer()
    ask_and_tell(opt, 60, lambda xs: 1e6 + many_by_numpy(xs))
    assert opt.result.fun - 1e6 < 1e-4


def test_pytrees_are_handed_out_as_they_came():
    opt = gesmr.Optimizer(TREE, popsize=5, rng=0)
    xs = opt.ask()
    assert len(xs) == 5
    jax.tree.map(np.testing.assert_array_equal, xs[0], TREE)
    assert isinstance(xs[1]["w"], np.ndarray)
    assert isinstance(xs[1]["b"][0], jax.Array)
    assert jax.tree.map(np.shape, xs[1]) == jax.tree.map(np.shape, TREE)
    values = [float(np.sum(x["w"] ** 2)) for x in xs]
    opt.tell(xs, values)
    assert len(opt.ask()) == 4
    assert opt.result.fun == min(values)
    jax.tree.map(np.testing.assert_array_equal, opt.result.x, xs[int(np.argmin(values))])
    assert opt.result.population["w"].shape == (5, 2, 2)
    changed = [jax.tree.map(lambda leaf: leaf + 1, x) for x in opt.ask()]
    with pytest.raises(ValueError, match="got another at position 0"):
        opt.tell(changed, values[1:])
    with pytest.raises(ValueError, match="like x0"):
        opt.tell([{"w": 1.0}] * 4, values[1:])
    opt.tell([jax.tree.map(np.array, x) for x in opt.ask()], values[1:])


def test_a_starting_population():
    members = np.arange(12.0).reshape(4, 3)
    opt = optimizer(init=members)
    asked = opt.ask()
    np.testing.assert_array_equal(asked[:4], members)
    np.testing.assert_array_equal(asked[4], np.zeros(D))
    assert len(np.unique(asked, axis=0)) == N + 1


def test_a_starting_population_with_values_is_not_evaluated_again():
    members = np.arange(12.0).reshape(4, 3)
    opt = optimizer(init=(members, many_by_numpy(members)))
    xs = opt.ask()
    assert xs.shape == (N + 1 - 4, D)
    opt.tell(xs, many_by_numpy(xs))
    assert opt.result.nfev == N + 1 - 4
    np.testing.assert_allclose(np.sort(opt.result.population_fitness)[-1], many_by_numpy(members).max())
    whole = optimizer(init=(opt.result.population, opt.result.population_fitness))
    assert whole.ask().shape == (N, D)
    assert whole.result.nfev == 0
    assert whole.result.fun == opt.result.fun


def test_the_result_before_anything_is_known():
    result = optimizer().result
    assert result.fun == np.inf
    assert not result.success
    assert result.nfev == result.nit == 0
    np.testing.assert_array_equal(result.x, np.zeros(D))


@pytest.mark.parametrize("name", ["SAMR", "15MR", "UCB/3", "FMR", "GESMR-AVG"])
def test_controllers_by_name(name):
    assert check(np.zeros(D), {"controller": name, "popsize": MEMBERS}).ga(0).controller == gesmr.controller(name, N)


BAD = {
    "no start": (lambda: gesmr.Optimizer(None), TypeError, ["x0", "None"]),
    "text": (lambda: gesmr.Optimizer("abc"), TypeError, ["x0", "'abc'"]),
    "an empty vector": (lambda: gesmr.Optimizer([]), ValueError, ["x0", "at least one"]),
    "NaN": (lambda: gesmr.Optimizer([1.0, np.nan]), ValueError, ["x0", "finite", "1"]),
    "complex": (lambda: gesmr.Optimizer(np.ones(2) * 1j), TypeError, ["x0", "complex"]),
    "integers in a pytree": (lambda: gesmr.Optimizer({"a": np.ones(2, int)}), TypeError, ["x0", "int64", "['a']"]),
    "functions in a pytree": (lambda: gesmr.Optimizer({"a": print}), TypeError, ["x0", "'a'", "partition"]),
    "beyond single precision": (lambda: gesmr.Optimizer([1e300], dtype="float32"), ValueError, ["x0", "float32"]),
    "half precision": (lambda: optimizer(dtype="float16"), ValueError, ["dtype", "float32", "float16"]),
    "a population of one": (lambda: optimizer(popsize=1), ValueError, ["popsize", "from 2", "1"]),
    "a population of halves": (lambda: optimizer(popsize=2.5), TypeError, ["popsize", "2.5"]),
    "sideways": (lambda: optimizer(direction="sideways"), ValueError, ["direction", "'maximize'", "'sideways'"]),
    "two seeds": (lambda: optimizer(seed=1), ValueError, ["rng", "seed"]),
    "a seed of text": (lambda: optimizer(rng="1"), TypeError, ["rng", "'1'"]),
    "a negative seed": (lambda: optimizer(rng=-1), ValueError, ["rng", "-1"]),
    "no spread": (lambda: optimizer(init_std=0.0), ValueError, ["init_std", "above 0"]),
    "a spread of another size": (lambda: optimizer(init_std=[1.0, 2.0]), ValueError, ["init_std", "x0"]),
    "init of another size": (lambda: optimizer(init=np.zeros((3, 2))), ValueError, ["init", "(3, 2)"]),
    "too much init": (lambda: optimizer(init=np.zeros((20, D))), ValueError, ["init", "13", "20"]),
    "init with NaN": (lambda: optimizer(init=np.full((2, D), np.nan)), ValueError, ["init", "finite", "2"]),
    "init with bad values": (lambda: optimizer(init=(np.zeros((2, D)), [1.0])), ValueError, ["init", "(2,)", "(1,)"]),
    "an unknown method": (lambda: optimizer(controller="GESMRR"), ValueError, ["GESMRR", "SAMR"]),
    "a class": (lambda: optimizer(controller=gesmr.GESMR), TypeError, ["controller", "GESMR()"]),
    "more groups than children": (lambda: optimizer(controller=gesmr.GESMR(groups=50)), ValueError, ["groups", "50"]),
    "half a generation": (lambda: optimizer(maxiter=0.5), TypeError, ["maxiter", "0.5"]),
    "less than a population": (lambda: optimizer(maxfun=5), ValueError, ["maxfun", "13", "5"]),
    "time backwards": (lambda: optimizer(maxtime=-1.0), ValueError, ["maxtime", "above 0", "-1.0"]),
    "no target": (lambda: optimizer(target=np.nan), ValueError, ["target", "finite", "nan"]),
    "no patience": (lambda: optimizer(patience=0), ValueError, ["patience", "at least 1", "0"]),
    "restarts without patience": (lambda: optimizer(restarts=1, maxiter=9), ValueError, ["restarts", "patience"]),
    "restarts with half a population": (
        lambda: optimizer(restarts=1, patience=3, restart_popsize="half"),
        ValueError,
        ["restart_popsize", "'half'", "'double'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_named(name):
    assert_refused(*BAD[name])
