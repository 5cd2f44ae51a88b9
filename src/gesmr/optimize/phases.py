"""Where a run stands between two generations, and the steps between, for values that come from outside."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..ga import GA, Proposal, State
from ..generation import Values, learn, mean_log_rate
from ..noise import Key
from . import exact
from .options import Setup
from .start import First


class Before(NamedTuple):
    """What a generation was made from, without populations: a checkpoint holds this and repeats the step, because only
    the same program gives the same bits."""

    state: State
    proposal: Proposal
    values: Values
    elite_count: Any  # i32[]


class Told(NamedTuple):
    """A generation whose values are known, and the next one."""

    before: Before | np.ndarray | None  # of a first population its values f[N+1]; None if generations were compiled
    state: State  # after it, population included
    proposal: Proposal  # the next population
    log_rate: Array  # of its children


class Ran(NamedTuple):
    """The state after compiled generations."""

    state: State


Phase = First | Told | Ran


def valued(ga: GA, setup: Setup, key: Key, population: Array, fitness: np.ndarray, *, ask: bool) -> Told | Ran:
    """After a first population has its values `f[N+1]`. It need not `ask` if compiled generations follow."""
    state, rates = _first_state(ga, key, fitness, setup.space.dim)
    if not ask:
        return Ran(state._replace(population=population))
    # The same program as for any other step, told to learn nothing
    nothing = np.zeros(ga.num_children, fitness.dtype)
    proposal = Proposal(None, np.int32(0), np.zeros(ga.num_children, np.int32), rates)  # type: ignore[arg-type]
    parents = nothing if setup.reevaluate == "parents" else None
    values = Values(nothing, parents, None if setup.reevaluate == "none" else np.zeros((), fitness.dtype))  # type: ignore[arg-type]
    _, proposal, log_rate, _, _ = _advance(ga, population, Before(state, proposal, values, np.int32(1)), True)
    return Told(fitness, state._replace(population=population), proposal, log_rate)


def told(ga: GA, population: Array, before: Before) -> tuple[Told, int, float]:
    """After a generation has its values; also the evaluations behind the elite's, and the generation's best value."""
    state, proposal, log_rate, count, best = _advance(ga, population, before, False)
    return Told(before, state._replace(population=population), proposal, log_rate), int(count), float(best)


def asked(ga: GA, state: State) -> Told:
    """What follows compiled generations if the next is not."""
    return Told(None, state, *_propose(ga, state))


@partial(exact.jit, static_argnums=3)
def _first_state(ga: GA, key: Any, fitness: Array, num_genes: int) -> tuple[State, Array]:
    """The state of a valued first population, without that, and some rates `f[N]` as the controller gives them."""
    state = ga.start(key, fitness, num_genes)
    return state, ga.controller.rates(state.controller, jnp.zeros(ga.num_children, jnp.int32))


@exact.jit
def _advance(ga: GA, population: Array, before: Before, first: Any) -> tuple[State, Proposal, Array, Array, Array]:
    """A generation: learn from the values, then select and mutate. Populations go in and out apart from the rest.

    If it is the `first`, there is nothing to learn yet: one program, because compiling two takes twice as long.
    """
    state, proposal, values, elite_count = before
    learned, count = learn(ga, state, proposal, values.children, values.parents, values.elite, elite_count)
    state = jax.tree.map(lambda old, new: jnp.where(first, old, new), state, learned)._replace(population=population)
    best = state.best_fitness if values.elite is None else state.fitness[0]
    return state._replace(population=None), ga.ask(state), mean_log_rate(ga, state), count, best


@exact.jit
def _propose(ga: GA, state: State) -> tuple[Proposal, Array]:
    return ga.ask(state), mean_log_rate(ga, state)
