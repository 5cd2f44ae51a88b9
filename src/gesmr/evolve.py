"""Many generations as one compiled loop."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import Partial

from . import _checks
from .ga import GA, State

Objective = Callable[[Array], Array]  # f[N, d] → f[N], to be minimised


class History(NamedTuple):
    """One entry per generation, never a solution."""

    elite: Array  # f[T]  the best value among all N+1 after the generation
    log_rate: Array  # f[T]  mean natural log of the rates its children were made with (SAMR: of all it carries)
    evaluations: Array  # i32[T]  evaluations so far, those of the first population included
    extra: Any = None  # what `record` returned, stacked


def evolve(
    ga: GA,
    objective: Objective,
    state: State,
    generations: int,
    *,
    record: Callable[[State], Any] | None = None,
    batch_size: int | None = None,
    donate: bool = False,
) -> tuple[State, History]:
    """Run `generations` generations of `ga` on `objective`, which maps candidates `f[N, d]` to values `f[N]`.

    Compiled once per shape: calls that differ in data only (the state, the floats of `ga`, the arrays of a
    problem) share one program, if `objective` is the same function or a pytree such as the problems of
    `gesmr.problems`. Seeds and hyperparameters are batched by `jax.vmap` around this function.

    `record(state)` is called after every generation; what it returns is stacked in `history.extra`.
    `batch_size` evaluates that many candidates at a time, for objectives that need much memory.
    `donate=True` lets the loop reuse the memory of `state.population`, which must not be used afterwards.
    """
    generations = _checks.integer("generations", generations, 0)
    if not isinstance(ga, GA):
        raise TypeError(f"ga must be a gesmr.GA, got {ga!r}")
    if not isinstance(state, State):
        raise TypeError(f"state must be the State that ga.init returns, got {type(state).__name__}")
    if not callable(objective):
        raise TypeError(f"objective must be callable, got {objective!r}")
    members = ga.num_children + 1
    if state.fitness.shape[-1:] != (members,):
        raise ValueError(f"state must hold num_children + 1 = {members} members, got {state.fitness.shape[-1]}")
    if batch_size is not None:
        batch_size = min(_checks.integer("batch_size", batch_size, 1), ga.num_children)
    run = _evolve_donating if donate else _evolve
    rest = state._replace(population=None)
    return run(ga, as_pytree(objective), state.population, rest, generations, record, batch_size)


def as_pytree(function: Callable) -> Callable:
    """`function` in a form that can be passed to a compiled program: a pytree is data, a plain function is code."""
    is_leaf = jax.tree_util.all_leaves([function])
    return Partial(function) if is_leaf else function


def _run(
    ga: GA, objective: Objective, population: Array, rest: State, generations: int, record, batch_size: int | None
) -> tuple[State, History]:
    def generation(state: State, _) -> tuple[State, History]:
        proposal = ga.ask(state)
        log_rate = jnp.mean(ga.controller.log_rates(state.controller))
        state = ga.tell(state, proposal, evaluate_children(objective, proposal.population, batch_size))
        evaluations = ga.num_children * (state.generation + 1) + 1
        extra = None if record is None else record(state)
        return state, History(state.best_fitness, log_rate, evaluations, extra)

    # Two generations per step let a GPU swap two buffers instead of copying the population back; a CPU gains nothing.
    unroll = 1 if jax.default_backend() == "cpu" else 2
    return lax.scan(generation, rest._replace(population=population), None, length=generations, unroll=unroll)


def evaluate_children(objective: Objective, population: Array, batch_size: int | None, first: int = 1) -> Array:
    """Values of the members from `first` on, in batches cut from the population itself: slicing it would copy it."""
    if batch_size is None:
        return objective(population[first:])
    children = population.shape[0] - first
    starts = first + batch_size * jnp.arange(children // batch_size)

    def batch(_, start: Array) -> tuple[None, Array]:
        return None, objective(lax.dynamic_slice_in_dim(population, start, batch_size))

    values = [lax.scan(batch, None, starts)[1].reshape(-1)]
    if left := children % batch_size:
        values.append(objective(population[-left:]))
    return jnp.concatenate(values)


_evolve = partial(jax.jit, static_argnums=(4, 5, 6))(_run)
_evolve_donating = partial(jax.jit, static_argnums=(4, 5, 6), donate_argnums=2)(_run)
