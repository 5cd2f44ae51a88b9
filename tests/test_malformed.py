"""Calls that make no sense end in TypeError or ValueError (or, for files, OSError), whatever they are (hypothesis)."""

import inspect
import json
import math
import re
import resource
import signal
import tempfile
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, NonlinearConstraint  # noqa: F401  in texts

import gesmr
from gesmr.problems import control, datasets, functions, gym, images, networks
from gesmr.workers import crew_of
from helpers.optimizing import ask_and_tell, optimizer


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
            gesmr.Space(a=gesmr.Int(0, 3), b=gesmr.Choice("x", None)),
            gesmr.Float(0, 1),
            {"type": "ineq", "fun": fun},
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
         "restarts", "restart_popsize", "integrality", "constrained", "maxiter", "maxfun", "maxtime", "target",
         "patience", "tol", "ftol", "xtol")  # fmt: skip
MORE = ("args", "callback", "workers", "vectorized", "checkpoint", "resume", "batch_size", "jit", "keyed", "chunk",
        "on_error", "repeats", "reevaluate", "constraints", "eq_tol", "devices", "nonsense")  # fmt: skip


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


def is_empty(given):
    try:
        return len(given) == 0
    except TypeError:
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
        if not right and is_empty(xs) and is_empty(values):
            return  # nothing is told
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
        ask_and_tell(OPTIMIZER, 1)
    examples(number)(given(JUNK, JUNK, st.booleans())(Malformed().tell))()


# The whole public API, in the long tier: the same calls on every machine


class TheirError(Exception):
    """Raised by a user's own function or object."""


class UnspeakableError(Exception):
    """Raised by a repr, which must not keep a message from being given."""


class Hostile:
    """Whatever is asked of it, it refuses."""

    def _refuse(self, *_, **__):
        raise TheirError

    __len__ = __iter__ = __array__ = __bool__ = __float__ = __index__ = __call__ = __getitem__ = _refuse


class Unspeakable:
    def __repr__(self):
        raise UnspeakableError


def nested(depth):
    found = [0.0]
    for _ in range(depth):
        found = [found]
    return found


# As text, so that a call can be shown as it was made. No integer is so large that it could be meant, and costs memory
_JUNK = r"""
    None True False 0 1 -1 3 0.0 0.5 -0.5 1e308 5e-324 math.nan math.inf -math.inf 1j
    2**31 2**32 2**63 2**64 -(2**31) -(2**63) -(2**80) 10**400 10**5000
    np.float64("nan") np.float16(0.5) np.longdouble(1) np.int8(3) np.uint64(2**63) np.bool_(True) np.datetime64(0,"D")
    "" "a" "." "all" "GESMR" "UCB/3" "UCB/99999999999999999999" "LAMR-5" "mean" "float16" "bfloat16" "x"*20_000
    "a\0b" "\ud800" "nowhere/at/all" np.str_("a") b"" b"ab" bytearray(2) memoryview(b"ab")
    () [] {} set() {1,2} frozenset("a") {"a":1.0} [1.0] [None] [None,None] [0.0,math.nan] [(0,1),(1,)] [(1,0),(0,1)]
    (0,1) (1,0) (None,None) ("a","b") [[1.0],[1.0,2.0]] [1j,2j] ["1","2"] [10**400,1] [True,False] [[0,1],[0,1]]
    [np.zeros(2),np.zeros(3)] [Unspeakable()] nested(50) nested(5000)
    range(2) (lambda:(yield))() iter([1,2]) slice(2) ... object object() int type len math ValueError("a")
    lambda:0.0 lambda*a:None lambda*a,**k:"a" Hostile Hostile() Unspeakable()
    np.zeros(0) np.zeros((0,2)) np.zeros((2,0)) np.zeros(3) np.zeros((2,2)) np.zeros((5,2)) np.zeros((5,2,1))
    np.zeros(5) np.ones((),int) np.zeros(2,complex) np.zeros(2,bool) np.zeros(2,np.float16) np.zeros(2,np.longdouble)
    np.zeros(2,">f8") np.zeros(2,"S2") np.zeros(2,"M8[s]") np.zeros(2,[("a",float)]) np.full(2,np.nan)
    np.full((5,2),np.inf) np.array(["a","b"]) np.array([None,1],object) np.array([[1],[1,2]],object)
    np.ma.masked_array([1.0,2.0],[True,False])
    jnp.zeros(2) jnp.zeros(0) jnp.zeros((2,3)) jnp.zeros(2,jnp.bfloat16) jnp.zeros(2,jnp.int8) jnp.zeros(2,bool)
    jnp.zeros(2,complex) jnp.zeros(4,jnp.uint32) jnp.float32(math.nan) jnp.int32(2) jax.random.key(0)
    jax.random.split(jax.random.key(0)) jax.random.key(0,impl="rbg") jax.ShapeDtypeStruct((2,),float) jax.devices()
    jax.devices()[0] np.random.default_rng(0) np.random.RandomState(0) Path("a") Path("/")
    gesmr gesmr.GESMR gesmr.GESMR() gesmr.GESMR(groups=9) gesmr.UCB(2) gesmr.GA() gesmr.Checkpoint("kept") gesmr.Pool
    gesmr.Bounds(0,1) gesmr.Bounds("a",None) gesmr.Bounds(2,1) gesmr.Bounds(Hostile(),[[1],[]])
    gesmr.Space(a=gesmr.Int(0,3)) gesmr.Space(a=gesmr.Choice("x",None)) gesmr.Space gesmr.Float(0,1) gesmr.Choice(1,2)
    {"type":"ineq","fun":raising} {"type":"eq","fun":len} {"type":"le"} [{"type":"ineq","fun":lambda*a:"a"}]
    LinearConstraint([[1.0,1.0]],0,1) LinearConstraint(np.zeros((1,3))) NonlinearConstraint(lambda*a:a,0,[1,2,3])
    {"x":1.0,"n":3} [{"x":1.0,"n":3}] {"x":{"type":"float","low":0,"high":1}} {"x":{"type":"int"}}
    gesmr.State(*[None]*5) gesmr.Proposal(*[None]*4) gesmr.noise.Key(1,2) gesmr.noise.Key("a",None)
"""
JUNK_TEXTS = _JUNK.split()
LONG = ("10**6", "10**9")  # for arguments that need no more memory because of it
ENDLESS = ("maxiter", "maxfun", "maxtime", "patience", "chunk", "batch_size", "every", "seconds", "tries", "timeout")
# What would be right, and take the memory or start the processes that are asked for
UNGIVEN = {
    "workers": ("3", "-1", "np.int8(3)"),
    **dict.fromkeys(("n", "images", "episodes", "samples", "available"), ("2**31", "2**32")),
}


def junk(text):
    return eval(text, globals())


def quadratic():
    """Refuses to be called for ever."""
    calls = iter(range(500))

    def fun(x, *_):
        if next(calls, None) is None:
            raise TheirError("often enough")
        return float(np.sum(np.square(x)))

    return fun


def raising(x, *_):
    raise TheirError


def rows_squared(xs, *_):
    return np.sum(np.square(xs), axis=-1)


def jax_squared(x, *_):
    return jnp.sum(x * x, axis=-1)


class Target(NamedTuple):
    """What is called, how often, and what it is called with where that is not replaced."""

    calls: int
    function: Callable
    base: Callable[[], dict]
    sound: Callable = lambda result, given, replaced: True  # whether what it returns can be what was meant
    others: tuple = ()  # names of arguments that the signature does not have


def names_of(target):
    parameters = inspect.signature(target.function).parameters.values()
    return [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)] + list(target.others)


LIMITS = ("maxiter", "maxfun", "maxtime", "target", "patience", "ftol", "xtol")
SHORT = {"popsize": 5, "maxiter": 1, "maxfun": 9, "maxtime": 5.0, "rng": 0}
BOX = [(-5.0, 5.0), (-5.0, 5.0)]
SPACE = gesmr.Space(x=gesmr.Float(0, 1, log=False), n=gesmr.Int(1, 9, log=True), kind=gesmr.Choice("a", None, 3))
INSIDE = [{"type": "ineq", "fun": lambda x: 9 - np.sum(np.square(x))}, LinearConstraint(np.eye(2), -4, 4)]
SMALL_GA = gesmr.GA(gesmr.GESMR(groups=2), 4)
SMALL_POPULATION = np.zeros((5, 2), np.float32)


def small_state():
    """A new one: `evolve` may be told to use up its memory."""
    return SMALL_GA.init(0, SMALL_POPULATION, SMALL_POPULATION[:, 0])


def is_found(result, given, replaced):
    leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(result.x)]
    inside = "bounds" in replaced or "bounds" not in given or all((np.abs(leaf) <= 5).all() for leaf in leaves)
    shape = "x0" in replaced or [leaf.shape for leaf in leaves] == [(2,)]
    return inside and shape and all(np.isfinite(leaf).all() for leaf in leaves)


def is_optimizer(result, given, replaced):
    return all(np.isfinite(np.asarray(leaf, float)).all() for leaf in jax.tree.leaves(list(result.ask())))


def with_names_of(function):
    """A decorator: what it makes has another's signature, where arguments are looked up."""

    def named(wrapper):
        wrapper.__signature__ = inspect.signature(function)
        return wrapper

    return named


def is_in_space(result, given, replaced):
    """Whether it is a solution of it, which is refused otherwise."""
    return not isinstance(given["x0"], gesmr.Space) or given["x0"].encode(result.x).size > 0


def told(xs=None, values=None, violations=None, constrained=True):
    opt = gesmr.Optimizer(np.zeros(2), **SHORT, constrained=constrained)
    opt.tell(opt.ask() if xs is None else xs, values, violations)
    return opt


def injected(xs, values=None, violations=None, n=1):
    opt = gesmr.Optimizer(np.zeros(2), **SHORT)
    opt.inject(xs, values, violations)
    opt.ask(n)
    assert np.isfinite(opt.best.x).all()
    return opt


def of_space(x, *_):
    return x["x"] + x["n"] + (x["kind"] == "a")


@with_names_of(gesmr.Bounds)
def in_bounds(**given):
    gesmr.GA(bounds=gesmr.Bounds(**given))
    bounds = gesmr.Bounds(**{"low": -5.0, "high": 5.0, **given})
    return gesmr.Optimizer(np.full(2, 0.5), bounds=bounds, **SHORT)


def space_file():
    Path("space.json").write_text(json.dumps(SPACE.as_dict()))
    return "space.json"


def choice(options, shape):
    return gesmr.Choice(options, "another", shape=shape)


def returning(value, vectorized=False, on_error="raise", workers=None):
    """A run of a function that returns it."""
    how = {"vectorized": vectorized, "on_error": on_error, "workers": workers}
    return gesmr.minimize(lambda *_: value, np.zeros(2), **SHORT, **how)


@with_names_of(gesmr.minimize)
def again(**given):
    """A run that goes on from a checkpoint."""
    Path("run").unlink(missing_ok=True)
    gesmr.minimize(**start(maxiter=0, checkpoint="run"))
    return gesmr.minimize(**given)


def load(path, x0=None, controller=None, **limits):
    gesmr.Optimizer(np.zeros(2), **SHORT).save("run")
    return gesmr.Optimizer.load(path, x0=x0, controller=controller, **limits)


def start(**more):
    return {"fun": quadratic(), "x0": np.zeros(2), "bounds": BOX, **SHORT, **more}


def evolution(**more):
    return {"ga": SMALL_GA, "objective": jax_squared, "state": small_state(), "generations": 1, **more}


def targets():
    state, curves = small_state(), gesmr.analysis.Curves(np.array([0.1, 1.0]), 2, *np.zeros((8, 2)))
    proposal, sphere = SMALL_GA.ask(state), functions.get("sphere", 2)
    return {
        "minimize": Target(430, gesmr.minimize, start, is_found),
        "minimize, vectorized": Target(
            120, gesmr.minimize, lambda: start(fun=rows_squared, vectorized=True, batch_size=2), is_found
        ),
        "minimize, raising": Target(80, gesmr.minimize, lambda: start(fun=raising, on_error="worst"), is_found),
        "minimize, JAX": Target(60, gesmr.minimize, lambda: start(fun=jax_squared, jit=True), is_found),
        "minimize, devices": Target(40, gesmr.minimize, lambda: start(fun=jax_squared, devices=1), is_found),
        "minimize, returning": Target(150, returning, lambda: {"value": 1.0}, is_found),
        "minimize, again": Target(60, again, lambda: start(checkpoint="run", resume=True), is_found),
        "minimize, space": Target(
            120,
            gesmr.minimize,
            lambda: {"fun": of_space, "x0": SPACE, "init": [SPACE.decode(SPACE.low)], **SHORT},
            is_in_space,
        ),
        "minimize, constraints": Target(
            120, gesmr.minimize, lambda: start(constraints=INSIDE, integrality=[1, 0], eq_tol=0.1), is_found
        ),
        "scipy_method": Target(
            80, gesmr.scipy_method, start, is_found, (*LIMITS, "maxfev", "constraints", "jac", "tol")
        ),
        "Optimizer": Target(230, gesmr.Optimizer, lambda: {"x0": np.zeros(2), "bounds": BOX, **SHORT}, is_optimizer),
        "Optimizer.tell": Target(150, told, lambda: {"values": np.zeros(5), "violations": np.zeros(5)}, is_optimizer),
        "Optimizer.inject": Target(100, injected, lambda: {"xs": np.ones((2, 2)), "values": [1.0, 2.0]}, is_optimizer),
        "Optimizer.save": Target(20, gesmr.Optimizer(np.zeros(2), **SHORT).save, lambda: {"path": "run"}),
        "Optimizer.load": Target(60, load, lambda: {"path": "run"}, is_optimizer, (*LIMITS, "nonsense")),
        "GA": Target(60, gesmr.GA, dict),
        "GA.init": Target(
            80, SMALL_GA.init, lambda: {"key": 0, "population": np.zeros((5, 2)), "fitness": np.zeros(5)}
        ),
        "GA.ask": Target(20, SMALL_GA.ask, lambda: {"state": state}),
        "GA.tell": Target(80, SMALL_GA.tell, lambda: {"state": state, "proposal": proposal, "fitness": np.zeros(4)}),
        "evolve": Target(80, gesmr.evolve, evolution),
        "OFMR": Target(30, gesmr.OFMR, dict),
        "OFMR.evolve": Target(20, gesmr.OFMR(2).evolve, evolution),
        "LAMR": Target(30, gesmr.LAMR, dict),
        "LAMR.evolve": Target(20, gesmr.LAMR(1, 2).evolve, evolution),
        "Fixed": Target(30, gesmr.Fixed, dict),
        "OneFifth": Target(40, gesmr.OneFifth, dict),
        "UCB": Target(50, gesmr.UCB, dict),
        "SAMR": Target(40, gesmr.SAMR, dict),
        "GESMR": Target(60, gesmr.GESMR, dict),
        "Clip": Target(40, gesmr.Clip, lambda: {"controller": gesmr.GESMR()}),
        "controller": Target(40, gesmr.controller, lambda: {"name": "GESMR"}),
        "Bounds": Target(60, in_bounds, dict, is_optimizer),
        "Float": Target(40, gesmr.Float, lambda: {"low": 1, "high": 2}),
        "Int": Target(40, gesmr.Int, lambda: {"low": 1, "high": 2}),
        "Choice": Target(40, choice, lambda: {"options": "a", "shape": ()}),
        "Space": Target(40, gesmr.Space.from_dict, lambda: {"description": SPACE.as_dict()}),
        "Space.read": Target(20, gesmr.Space.read, lambda: {"path": space_file()}),
        "Space.encode": Target(40, SPACE.encode, lambda: {"solution": {"x": 0.5, "n": 3, "kind": None}}),
        "Checkpoint": Target(30, gesmr.Checkpoint, lambda: {"path": "run"}),
        "JSONLines": Target(15, gesmr.JSONLines, lambda: {"path": "lines"}),
        "Pool": Target(30, gesmr.Pool, dict),
        "Ray": Target(40, gesmr.Ray, dict),
        "pytree": Target(10, gesmr.pytree, lambda: {"cls": Hostile}),
        "noise.key": Target(25, gesmr.noise.key, lambda: {"seed": 0}),
        "noise.fold_in": Target(35, gesmr.noise.fold_in, lambda: {"key": gesmr.noise.key(0), "first": 1}),
        "noise.bits": Target(35, gesmr.noise.bits, lambda: {"key": gesmr.noise.key(0), "n": 2}),
        "noise.uniform": Target(10, gesmr.noise.uniform, lambda: {"word": jnp.uint32(1)}),
        "noise.normal": Target(10, gesmr.noise.normal, lambda: {"word": jnp.uint32(1)}),
        "noise.another": Target(10, gesmr.noise.another, lambda: {"word": jnp.uint32(1)}),
        "noise.integer": Target(15, gesmr.noise.integer, lambda: {"word": jnp.uint32(1), "upper": 3}),
        "functions.get": Target(60, functions.get, lambda: {"name": "linear", "dim": 2}),
        "Function.init": Target(20, sphere.init, lambda: {"key": 0, "n": 2}),
        "Function()": Target(20, sphere.__call__, lambda: {"population": np.zeros((3, 2))}),
        "control.get": Target(50, control.get, lambda: {"name": "cartpole", "episodes": 2, "steps": 2}),
        "images.get": Target(50, images.get, lambda: {"name": "mnist", "images": 5}),
        "images.problem_of": Target(
            25, images.problem_of, lambda: {"data": datasets.load("mnist", "test"), "images": 5}
        ),
        "images.subset": Target(15, images.subset, lambda: {"key": 0, "images": 2, "available": 5}),
        "images.Images": Target(
            25, images.Images, lambda: {"images": np.zeros((22, 22, 2)), "labels": np.zeros(2, int)}
        ),
        "networks.Policy": Target(20, networks.Policy, lambda: {"inputs": 2, "outputs": 2}),
        "Policy.init": Target(20, networks.Policy(2, 2, 3).init, lambda: {"key": 0, "n": 2}),
        "Policy()": Target(
            15,
            networks.Policy(2, 2, 3).__call__,
            lambda: {"parameters": np.zeros((4, 17)), "observation": np.zeros((4, 2))},
        ),
        "networks.seen": Target(15, networks.seen, lambda: {"images": np.zeros((2, 28, 28), np.uint8)}),
        "datasets.load": Target(20, datasets.load, lambda: {"name": "mnist", "part": "test"}),
        "datasets.parse_idx": Target(10, datasets.parse_idx, lambda: {"content": b"\0\0\x08\1\0\0\0\1a"}),
        "gym.get": Target(30, gym.get, lambda: {"name": "CartPole-v1", "episodes": 1}),
        "analysis.delta_samples": Target(
            30,
            gesmr.analysis.delta_samples,
            lambda: {"objective": jax_squared, "x": np.zeros(2), "rate": 0.1, "n": 2, "key": 0},
        ),
        "analysis.objective_curves": Target(
            40,
            gesmr.analysis.objective_curves,
            lambda: {
                "objective": jax_squared,
                "draw_point": sphere.init,
                "rates": [0.1, 1.0],
                "samples": 8,
                "group": 2,
                "key": 0,
            },
        ),
        "analysis.best_rates": Target(10, gesmr.analysis.best_rates, lambda: {"curves": curves}),
        "analysis.bins_for": Target(20, gesmr.analysis.bins_for, lambda: {"changes": np.ones((2, 3)), "count": 2}),
        "analysis.Bins": Target(20, gesmr.analysis.Bins, lambda: {"near": 1.0, "linear": [0, 1], "symlog": [0, 1]}),
        "analysis.check_objective": Target(
            20, gesmr.analysis.check_objective, lambda: {"objective": jax_squared, "dim": 2}
        ),
    }


DOCUMENTED = (TypeError, ValueError, OSError, ModuleNotFoundError, datasets.DatasetError, TheirError)
# Ours, and NumPy's about masked arrays
EXPECTED_WARNINGS = "no candidate has had a finite|fun failed|a checkpoint was not|Warning: converting a masked"
# What is called otherwise where it is given
OTHER_NAMES = ("rng", "fun", "maxfun", "checkpoint", "key", "init", "low", "space", "Space", "variable", "bounds")
SECONDS, MEGABYTES = 60, 1000  # that one call may take


class HangError(BaseException):
    """A call has not ended."""


@contextmanager
def ended_in_time():
    def give_up(*_):
        raise HangError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def replacements(random, target):
    """Names of arguments and the junk they get, as text; None where one is left out."""
    names = names_of(target)
    chosen = random.sample(names, min(len(names), random.choice((1, 1, 1, 1, 2, 3))))
    found = {}
    for name in chosen:
        texts = [text for text in JUNK_TEXTS if text not in UNGIVEN.get(name, ())]
        found[name] = random.choice(texts + list(LONG) * 3 if name in ENDLESS else texts)
    if random.random() < 0.01:
        found["nonsense"] = "1"
    return found


def complaint(target, replaced):
    """What is wrong with how the call ends; nothing if it ends as it should."""
    given = target.base() | {name: junk(text) for name, text in replaced.items()}
    try:
        result = target.function(**given)
    except DOCUMENTED as error:
        return complaint_about(error, given, replaced)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if target.sound(result, given, replaced) else f"returned {result!r}"


def complaint_about(error, given, replaced):
    """Errors are of Python or ours, and their messages short enough to be read and about an argument."""
    message, module = str(error), type(error).__module__
    if isinstance(error, TheirError | OSError):
        return ""
    if module.partition(".")[0] not in ("builtins", "gesmr"):
        return f"{module}.{type(error).__name__}: {message}"
    if len(message) > 2000:
        return f"{type(error).__name__} of {len(message)} characters: {message[:200]}"
    theirs = isinstance(error, datasets.DatasetError) or any(callable(given[name]) for name in replaced)
    if not theirs and not any(re.search(rf"\b{name}\b", message) for name in (*given, *OTHER_NAMES)):
        return f"no argument in {type(error).__name__}: {message}"
    return ""


def most_memory():
    """Megabytes this process has had at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@pytest.mark.slow
def test_thousands_of_calls_end_as_documented(sample, tmp_path, monkeypatch):
    """In an exception that is documented and says what it is about, or in a result that can be what was meant."""
    monkeypatch.chdir(tmp_path)
    warnings.filterwarnings("ignore", EXPECTED_WARNINGS)
    calls, random, complaints = targets(), Random(0), []
    for name, target in calls.items():
        assert not complaint(target, {}), f"{name} as it should be called"
        for _ in range(target.calls):
            replaced, before = replacements(random, target), most_memory()
            with ended_in_time():
                wrong = complaint(target, replaced)
            if most_memory() > before + MEGABYTES:
                wrong = f"took {most_memory() - before} MB; {wrong}"
            if wrong:
                complaints.append(f"{name}({', '.join(f'{n}={text}' for n, text in replaced.items())}): {wrong}")
    assert sum(target.calls for target in calls.values()) == 3620
    assert not complaints, "\n".join([f"{len(complaints)} calls end otherwise:", *complaints])
