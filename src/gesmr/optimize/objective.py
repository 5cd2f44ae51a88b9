"""How a user's function is evaluated: compiled with the search if it computes with JAX, else called."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _checks
from ..workers import crew_of, described, is_serial
from . import options
from . import space as spaces
from .called import Outcome, PlainValues, number, returned
from .options import Setup
from .space import precision
from .traced import JaxFunction, Jitted


@dataclasses.dataclass
class Objective:
    """A function and what was said about it, checked."""

    fun: Callable
    args: Any  # a tuple, once checked
    vectorized: bool
    workers: Any
    batch_size: int | None
    on_error: str
    jit: bool | None
    keyed: bool

    def __post_init__(self):
        _checks.function("fun", self.fun)
        _checks.choice("on_error", self.on_error, ("raise", "worst"))
        if self.batch_size is not None:
            _checks.integer("batch_size", self.batch_size, 1)
        self.args = self.args if isinstance(self.args, tuple) else (self.args,)
        self.keyed, self.vectorized = _checks.flag("keyed", self.keyed), _checks.flag("vectorized", self.vectorized)
        if self.jit is not None:
            self.jit = _checks.flag("jit", self.jit)
        crew_of(self.workers)
        if self.jit and not is_serial(self.workers):
            raise ValueError("jit and workers exclude each other: a compiled function is called for all at once")


def decide(objective: Objective, x0: Any, given: dict[str, Any]) -> tuple[Setup, JaxFunction | PlainValues]:
    """The setup of the options that were given, and what evaluates."""
    setup = options.check(x0, given)
    serial, outcome, why = is_serial(objective.workers), None, ""
    if objective.jit is None and serial and not objective.keyed:
        on_jax, outcome = _probe(objective, x0, setup, given["dtype"])
    else:
        on_jax = serial and objective.jit is not False
    if on_jax:
        again = options.check(x0, {**given, "rng": setup.seed, "seed": None}, compiled=True)
        try:
            return again, _jax_function(objective, again)
        except ValueError as error:
            if objective.jit or objective.keyed:
                raise
            why = f"JAX cannot compile it: {type(error.__cause__ or error).__name__}"
    if objective.keyed:
        raise ValueError("keyed needs a compiled JAX function: leave out workers and jit=False")
    return setup, PlainValues(
        objective.fun,
        objective.args,
        setup.space,
        vectorized=objective.vectorized,
        workers=objective.workers,
        batch_size=objective.batch_size,
        on_error=objective.on_error,
        repeats=setup.repeats,
        known=None if outcome is None else (setup.x0, outcome),
        why=why,
    )


def _jax_function(objective: Objective, setup: Setup) -> JaxFunction:
    function = JaxFunction(
        objective.fun,
        objective.args,
        setup.space,
        vectorized=objective.vectorized,
        keyed=objective.keyed,
        repeats=setup.repeats,
        sign=setup.sign,
    )
    function.check(setup.popsize)
    if not objective.keyed and (setup.repeats > 1 or setup.reevaluate != "none"):
        raise TypeError(
            "repeats and reevaluate are for noisy functions; a compiled one is noisy only if keyed=True gives it a "
            "random key (or call it in Python, with jit=False)"
        )
    return function


def _probe(objective: Objective, x0: Any, setup: Setup, dtype: Any) -> tuple[bool, Outcome | None]:
    """Whether a function computes with JAX, and what came of calling it at x0; None if it was not called.

    A function that is jitted already is not called: it can only be JAX's. Any other is, with numbers and not while JAX
    is tracing: what it makes on its first call and keeps are then numbers too.
    """
    if isinstance(objective.fun, Jitted):
        return True, None
    with precision(setup.space.dtype):
        x: Any = setup.x0.copy()
        if not setup.space.is_vector:
            x = setup.space.solution(setup.x0)
        elif isinstance(x0, jax.Array):
            x = jnp.asarray(x)
    there = spaces.of(x0, dtype, compiled=True)[0].dtype  # what fun keeps fits where it is compiled
    try:
        with precision(there), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Explicitly requested dtype")  # JAX's, where a function of it gets x0
            given = jax.tree.map(lambda leaf: leaf[None], x) if objective.vectorized else x
            value = objective.fun(given, *objective.args)
            found = float(returned(value, 1)[0]) if objective.vectorized else number(value)
    except Exception as error:
        if objective.on_error == "raise":
            raise
        return False, (np.nan, described(error))
    return isinstance(value, jax.Array), (found, None)
