"""One generation for values that come from outside: learn from them, select, mutate, in one compiled call."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

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
