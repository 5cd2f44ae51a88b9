"""One generation, wherever it is run: in a compiled loop, or by calls from outside."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from . import noise
from .ga import GA, Proposal, State
from .optimize import exact


@partial(exact.jit, static_argnums=3)
def first_state(ga: GA, key: Any, fitness: Array, num_genes: int) -> tuple[State, Array]:
    """The state of a valued first population, without that, and some rates `f[N]` as the controller gives them."""
    state = ga.start(key, fitness, num_genes)
    return state, ga.controller.rates(state.controller, jnp.zeros(ga.num_children, jnp.int32))


@exact.jit
def advance(
    ga: GA,
    population: Array,
    state: State,
    proposal: Proposal,
    values: Array,
    parent_values: Array | None,
    elite_value: Array | None,
    elite_count: Array,
    first: Array,
) -> tuple[State, Proposal, Array, Array, Array]:
    """A generation: learn from the values, then select and mutate. Populations go in and out apart from the rest.

    If it is the `first`, there is nothing to learn yet: one program, because compiling two takes twice as long.
    """
    proposal = proposal._replace(population=None)
    learned, count = learn(ga, state, proposal, values, parent_values, elite_value, elite_count)
    state = jax.tree.map(lambda old, new: jnp.where(first, old, new), state, learned)._replace(population=population)
    best = state.best_fitness if elite_value is None else state.fitness[0]
    return state._replace(population=None), ga.ask(state), mean_log_rate(ga, state), count, best


@exact.jit
def propose(ga: GA, state: State) -> tuple[Proposal, Array]:
    return ga.ask(state), mean_log_rate(ga, state)


class Values(NamedTuple):
    """What evaluating a proposal gave."""

    children: Array  # f[N]
    parents: Array | None = None  # f[N]  of each child's parent, if they were evaluated again beside them
    elite: Array | None = None  # f[]  of slot 0, if it was evaluated again


class Generation(NamedTuple):
    """What came of a generation."""

    state: State
    elite_count: Any  # i32[]  evaluations behind the value in slot 0
    best: Array  # f[]  the lowest value of all N+1; if the elite is evaluated again, its mean
    log_rate: Array  # f[]  mean log of the rates its children were made with


def generation(
    ga: GA,
    state: State,
    evaluate: Callable[[State, Proposal], Values],
    elite_count: Any = 1,
    genes: noise.Genes | None = None,
) -> Generation:
    """Select, mutate, evaluate, learn. Of a population that holds only some `genes`, those."""
    proposal = ga.ask(state, genes)
    values = evaluate(state, proposal)
    log_rate = mean_log_rate(ga, state)
    state, elite_count = learn(ga, state, proposal, values.children, values.parents, values.elite, elite_count)
    best = state.best_fitness if values.elite is None else state.fitness[0]
    return Generation(state, elite_count, best, log_rate)


def learn(
    ga: GA,
    state: State,
    proposal: Proposal,
    values: Array,
    parent_values: Array | None,
    elite_value: Array | None,
    elite_count: Array,
) -> tuple[State, Array]:
    """`ga.tell`, and the elite's value as the mean of all its evaluations if it was evaluated again."""
    after = ga.tell(state, proposal, values, parent_fitness=parent_values)
    if elite_value is None:
        return after, elite_count
    count = jnp.where(proposal.elite == 0, elite_count, 1) + 1
    mean = after.fitness[0] + (elite_value - after.fitness[0]) / count
    mean = jnp.where(jnp.isfinite(elite_value), mean, jnp.inf).astype(after.fitness.dtype)
    return after._replace(fitness=after.fitness.at[0].set(mean)), count


def mean_log_rate(ga: GA, state: State) -> Array:
    return jnp.mean(ga.controller.log_rates(state.controller))
