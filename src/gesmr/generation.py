"""One generation, wherever it is run: in a compiled loop, or by calls from outside."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from . import noise
from .ga import GA, Proposal, State
from .sums import Sums


class Values(NamedTuple):
    """What evaluating a proposal gave."""

    children: Array  # f[N]
    parents: Array | None = None  # f[N]  of each child's parent, if they were evaluated again beside them
    elite: Array | None = None  # f[]  of slot 0, if it was evaluated again
    violations: Array | None = None  # f[N]  of the children, if there are constraints
    judged: Array | None = None  # bool[N]  whether a child is the one that was proposed, if some are not


class Generation(NamedTuple):
    """What came of a generation."""

    state: State
    elite_count: Any  # i32[]  evaluations behind the value in slot 0
    best: Array  # f[]  the lowest value of all N+1; if the elite is evaluated again, its mean
    rates: "Rates"  # with which its children were made


class Rates(NamedTuple):
    """What is recorded of the rates in use, all natural logarithms `f[]`."""

    mean: Array
    low: Array
    high: Array
    elite: Array  # of the one that was kept unaltered, where there is one: the group elite, the elite's own


def generation(
    ga: GA,
    state: State,
    evaluate: Callable[[State, Proposal], Values],
    elite_count: Any = 1,
    genes: noise.Genes | None = None,
    sums: Sums | None = None,
) -> Generation:
    """Select, mutate, evaluate, learn. Of a population that holds only some `genes`, those."""
    proposal = ga.ask(state, genes, sums)
    values = evaluate(state, proposal)
    rates = rates_in_use(ga, state)
    state, elite_count = learn(ga, state, proposal, values, elite_count)
    best = state.best_fitness if values.elite is None else state.fitness[0]
    return Generation(state, elite_count, best, rates)


def learn(ga: GA, state: State, proposal: Proposal, values: Values, elite_count: Any) -> tuple[State, Any]:
    """`ga.tell`, and the elite's value as the mean of all its evaluations if it was evaluated again."""
    children, parents, elite_value, violations, judged = values
    after = ga.tell(state, proposal, children, parent_fitness=parents, violation=violations, judged=judged)
    if elite_value is None:
        return after, elite_count
    count = jnp.where(proposal.elite == 0, elite_count, 1) + 1
    mean = after.fitness[0] + (elite_value - after.fitness[0]) / count
    mean = jnp.where(jnp.isfinite(elite_value), mean, jnp.inf).astype(after.fitness.dtype)
    return after._replace(fitness=after.fitness.at[0].set(mean)), count


def rates_in_use(ga: GA, state: State) -> Rates:
    log_rates = ga.controller.log_rates(state.controller)
    return Rates(jnp.mean(log_rates), jnp.min(log_rates), jnp.max(log_rates), log_rates.reshape(-1)[0])
