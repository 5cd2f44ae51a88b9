"""Bad input: the error names the argument, what was given and what is accepted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr.problems import functions
from helpers.runs import start


def sphere(x):
    return jnp.sum(x * x, axis=-1)


GA, _, STATE = start(gesmr.Fixed())
POPULATION = np.zeros((13, 2), np.float32)
VALUES = np.zeros(13, np.float32)

# what is called, the exception, and words the message must hold
CASES = {
    "N of zero": (lambda: gesmr.GA(num_children=0), ValueError, ["num_children", "at least 1", "0"]),
    "N as a float": (lambda: gesmr.GA(num_children=10.0), TypeError, ["num_children", "integer", "10.0"]),
    "N as a bool": (lambda: gesmr.GA(num_children=True), TypeError, ["num_children", "integer", "True"]),
    "a name for a controller": (lambda: gesmr.GA("GESMR"), TypeError, ["controller", "'GESMR'"]),
    "a class for a controller": (lambda: gesmr.GA(gesmr.GESMR), TypeError, ["controller", "GESMR()"]),
    "truncation of zero": (lambda: gesmr.GA(truncation=0.0), ValueError, ["truncation", "above 0", "0.0"]),
    "truncation above one": (lambda: gesmr.GA(truncation=1.5), ValueError, ["truncation", "at most 1", "1.5"]),
    "truncation as text": (lambda: gesmr.GA(truncation="half"), TypeError, ["truncation", "'half'"]),
    "truncation of nothing": (lambda: gesmr.GA(truncation=None), TypeError, ["truncation", "None"]),
    "a bad value in a sweep": (lambda: gesmr.GA(truncation=np.array([0.5, 2.0])), ValueError, ["truncation", "2.0"]),
    "K of zero": (lambda: gesmr.GESMR(groups=0), ValueError, ["groups", "at least 1", "0"]),
    "K above N": (lambda: gesmr.GESMR(groups=13).init(gesmr.noise.key(0), 12, 2), ValueError, ["groups", "12", "13"]),
    "K as a float": (lambda: gesmr.GESMR(groups=2.5), TypeError, ["groups", "2.5"]),
    "R of zero": (lambda: gesmr.UCB(arms=0), ValueError, ["arms", "0"]),
    "R of zero by name": (lambda: gesmr.controller("UCB/0"), ValueError, ["UCB/0", "GESMR-AVG"]),
    "a negative rate": (lambda: gesmr.Fixed(-0.1), ValueError, ["rate", "above 0", "-0.1"]),
    "a NaN rate": (lambda: gesmr.Fixed(float("nan")), ValueError, ["rate", "finite", "nan"]),
    "a shrinking meta rate": (lambda: gesmr.GESMR(meta_rate=0.5), ValueError, ["meta_rate", "at least 1", "0.5"]),
    "an infinite meta rate": (lambda: gesmr.SAMR(meta_rate=np.inf), ValueError, ["meta_rate", "finite", "inf"]),
    "a score of its own": (lambda: gesmr.GESMR(score="median"), ValueError, ["score", "'min'", "'mean'", "'median'"]),
    "a start rate of zero": (lambda: gesmr.GESMR(low=0.0), ValueError, ["low", "above 0"]),
    "a range upside down": (lambda: gesmr.GESMR(low=1.0, high=0.1), ValueError, ["low", "high", "1.0", "0.1"]),
    "clip upside down": (lambda: gesmr.Clip(gesmr.GESMR(), 2.0, 1.0), ValueError, ["low", "2.0", "1.0"]),
    "clip around a name": (lambda: gesmr.Clip("GESMR"), TypeError, ["controller", "'GESMR'"]),
    "an empty sweep": (lambda: gesmr.Fixed(np.array([])), ValueError, ["rate", "empty array"]),
    "a GA's bounds upside down": (lambda: gesmr.GA(bounds=gesmr.Bounds(2, 1)), ValueError, ["low=2", "high=1"]),
    "told of another state": (lambda: GA.tell(VALUES, GA.ask(STATE), VALUES[:12]), TypeError, ["state", "ndarray"]),
    "told of no proposal": (lambda: GA.tell(STATE, STATE, VALUES[:12]), TypeError, ["proposal", "State"]),
    "a success target above one": (lambda: gesmr.OneFifth(target=2.0), ValueError, ["target", "2.0"]),
    "an unknown method": (lambda: gesmr.controller("GESMRR"), ValueError, ["GESMRR", *gesmr.PAPER_NAMES]),
    "a method that is no text": (lambda: gesmr.controller(15), TypeError, ["name", "15"]),
    "an oracle as a controller": (lambda: gesmr.controller("LAMR-100"), ValueError, ["LAMR-100", "gesmr.LAMR"]),
    "an empty look-ahead": (lambda: gesmr.LAMR(window=0), ValueError, ["window", "0"]),
    "an empty grid": (lambda: gesmr.OFMR(grid=0), ValueError, ["grid", "0"]),
    "too few members": (
        lambda: GA.init(0, POPULATION[:5], VALUES[:5]),
        ValueError,
        ["population", "(13, d)", "(5, 2)"],
    ),
    "a flat population": (lambda: GA.init(0, POPULATION[:, 0], VALUES), ValueError, ["population", "(13,)"]),
    "a population of no genes": (lambda: GA.init(0, POPULATION[:, :0], VALUES), ValueError, ["population", "(13, 0)"]),
    "a population of integers": (
        lambda: GA.init(0, POPULATION.astype(int), VALUES),
        TypeError,
        ["population", "float", "int"],
    ),
    "NaN in the population": (
        lambda: GA.init(0, np.where(np.arange(13)[:, None] == 3, np.nan, POPULATION), VALUES),
        ValueError,
        ["population", "finite", "1 of 13"],
    ),
    "fitness of the wrong shape": (lambda: GA.init(0, POPULATION, VALUES[:, None]), ValueError, ["(13,)", "(13, 1)"]),
    "fitness of the wrong dtype": (lambda: GA.init(0, POPULATION, VALUES > 0), TypeError, ["fitness", "bool"]),
    "fitness as text": (lambda: GA.init(0, POPULATION, ["a"] * 13), TypeError, ["fitness", "real"]),
    "a key that is text": (lambda: GA.init("0", POPULATION, VALUES), TypeError, ["key", "'0'"]),
    "a negative seed": (lambda: GA.init(-1, POPULATION, VALUES), ValueError, ["key", "-1"]),
    "many keys at once": (
        lambda: GA.init(jax.random.split(jax.random.key(0), 3), POPULATION, VALUES),
        TypeError,
        ["key", "vmap"],
    ),
    "told too few values": (lambda: GA.tell(STATE, GA.ask(STATE), VALUES), ValueError, ["fitness", "(12,)", "(13,)"]),
    "told complex values": (
        lambda: GA.tell(STATE, GA.ask(STATE), VALUES[:12] * 1j),
        TypeError,
        ["fitness", "real", "complex"],
    ),
    "told bad parents": (
        lambda: GA.tell(STATE, GA.ask(STATE), VALUES[:12], parent_fitness=VALUES),
        ValueError,
        ["parent_fitness", "(12,)"],
    ),
    "negative generations": (lambda: gesmr.evolve(GA, sphere, STATE, -1), ValueError, ["generations", "-1"]),
    "half a generation": (lambda: gesmr.evolve(GA, sphere, STATE, 0.5), TypeError, ["generations", "0.5"]),
    "no objective": (lambda: gesmr.evolve(GA, None, STATE, 1), TypeError, ["objective", "callable", "None"]),
    "no state": (lambda: gesmr.evolve(GA, sphere, POPULATION, 1), TypeError, ["state", "State", "ndarray"]),
    "no GA": (lambda: gesmr.evolve(gesmr.GESMR(), sphere, STATE, 1), TypeError, ["ga", "GESMR"]),
    "another GA's state": (
        lambda: gesmr.evolve(gesmr.GA(gesmr.Fixed(), 5), sphere, STATE, 1),
        ValueError,
        ["state", "6", "13"],
    ),
    "batches of nothing": (
        lambda: gesmr.evolve(GA, sphere, STATE, 1, batch_size=0),
        ValueError,
        ["batch_size", "at least 1"],
    ),
    "an objective of one value": (lambda: gesmr.evolve(GA, jnp.sum, STATE, 1), ValueError, ["fitness", "(12,)", "()"]),
    "an unknown function": (lambda: functions.get("rosenbrok", 2), ValueError, ["rosenbrok", "rosenbrock", "sphere"]),
    "no dimensions": (lambda: functions.get("sphere", 0), ValueError, ["dim", "0"]),
    "a flat valley": (lambda: functions.get("rosenbrock", 1), ValueError, ["dim", "2", "rosenbrock"]),
    "no spread": (lambda: functions.get("sphere", 2, std=0), ValueError, ["std", "above 0"]),
    "a short shift": (lambda: functions.get("sphere", 3, shift=np.zeros(2)), ValueError, ["shift", "(3,)", "(2,)"]),
    "a shear": (lambda: functions.get("sphere", 2, rotation=[[1, 1], [0, 1]]), ValueError, ["rotation", "orthogonal"]),
    "solutions of another size": (lambda: functions.get("sphere", 3)(jnp.zeros((4, 2))), ValueError, ["3", "(4, 2)"]),
    "no members": (lambda: functions.get("sphere", 3).init(0, 0), ValueError, ["n", "0"]),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named(name):
    call, exception, fragments = CASES[name]
    with pytest.raises(exception) as error:
        call()
    missing = [f for f in fragments if f not in str(error.value)]
    assert not missing, f"{missing} not in: {error.value}"


def test_a_refused_tell_leaves_the_state_as_it_was():
    before = jax.tree.map(np.array, STATE)
    with pytest.raises(ValueError, match="fitness"):
        GA.tell(STATE, GA.ask(STATE), VALUES)
    jax.tree.map(np.testing.assert_array_equal, before, STATE)


def test_hyperparameters_are_not_checked_while_traced():
    """Under vmap the values are unknown; under tree_map they may be anything, axis numbers for instance."""
    ga = gesmr.GA(gesmr.GESMR(groups=4), 12)
    axes = jax.tree.map(lambda _: 0, ga)
    assert axes.truncation == 0
    assert axes.controller.meta_rate == 0
