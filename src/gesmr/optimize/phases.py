"""Where a run stands between two generations, and how it gets there: a first population, and values from outside."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import noise, storage
from ..bounds import Bounds
from ..devices import REPLICATED, Shards
from ..diversity import diversity
from ..ga import GA, Proposal, State
from ..generation import Values, learn, rates_in_use
from . import exact
from .layout import precision
from .options import Setup
from .stopping import Seen

_RESTARTS = np.uint32(2**29)  # the keys of restarts are at (this, number), apart from all places a run draws from
_SIBLINGS = np.uint32(2**29 + 3)  # and those of siblings, by the number of their round


class First(NamedTuple):
    """The first population of a run, not all of its values known yet."""

    population: Array  # f[N+1, d]
    values: np.ndarray  # f[N+1], NaN where they are not known
    known: np.ndarray  # bool[N+1]
    violations: np.ndarray | None  # f[N+1], likewise, if there are constraints

    def filled(self, values: Values) -> "First":
        """It, with the values of those that were not known."""
        fitness, violations = self.values.copy(), self.violations
        fitness[~self.known] = values.children
        if violations is not None:
            violations = violations.copy()
            violations[~self.known] = values.violations
        return First(self.population, fitness, np.ones_like(self.known), violations)


class Before(NamedTuple):
    """What a generation was made from, without populations: a checkpoint holds this and repeats the step, because only
    the same program gives the same bits."""

    state: State
    proposal: Proposal
    values: Values
    elite_count: Any  # i32[]


class Told(NamedTuple):
    """A generation whose values are known, and the next one."""

    before: Before | First | None  # a first population, valued; None if generations were compiled
    state: State  # after it, population included
    proposal: Proposal  # the next population
    rates: Array  # of its children: `Rates` as f[4]


class Ran(NamedTuple):
    """The state after compiled generations."""

    state: State


Phase = First | Told | Ran


def first(setup: Setup, run: int, shards: Shards | None = None) -> First:
    """The first population of the run after so many restarts: only the first of all has x0 and `init` in it."""
    members = setup.members(run)
    given = [] if run else [rows for rows in (setup.init, setup.x0[None]) if rows is not None]
    head = np.concatenate(given)[:members] if given else np.empty((0, setup.layout.dim), setup.x0.dtype)
    with precision(setup.layout.dtype):
        around, size = (setup.x0, setup.init_std, setup.bounds), (members, setup.layout.dtype)
        if shards is None:
            population = _draw(begun(setup, run), head, *around, *size)
        else:
            population = _draw_sharded(begun(setup, run), head, around, *size, shards)
    values, known = np.full(members, np.nan, setup.layout.wide), np.zeros(members, bool)
    if run == 0 and setup.init_values is not None:
        known[: len(setup.init_values)] = True
        values[known] = setup.init_values
    return First(population, values, known, np.zeros_like(values) if setup.constrained else None)


def siblings(ga: GA, setup: Setup, run: int, phase: "First | Told", number: int) -> np.ndarray:
    """Other candidates `f[n, d]` for the slots of a generation, as the population holds them: drawn like the first
    population, or children of the same parents with the same rates."""
    with precision(setup.layout.dtype):
        if isinstance(phase, Told):
            return np.asarray(_siblings(ga, phase.state, phase.proposal, np.uint32(number)))
        around, size = (setup.x0, setup.init_std, setup.bounds), (setup.members(run), setup.layout.dtype)
        head = np.empty((0, setup.layout.dim), setup.x0.dtype)
        siblings = _sibling_key(begun(setup, run), np.uint32(number))
        return np.asarray(_draw(siblings, head, *around, *size))[~phase.known]


class Begun(NamedTuple):
    """A run after so many restarts."""

    low: Any  # u32[]  of the seed
    high: Any  # u32[]
    restarts: Any  # u32[]


def begun(setup: Setup, run: int) -> Begun:
    return Begun(np.uint32(setup.seed & 0xFFFFFFFF), np.uint32(setup.seed >> 32), np.uint32(run))


@jax.jit
def key(begun: Begun) -> noise.Key:
    """That of the seed, as `noise.key` makes it, and below it those of the restarts.

    Programs that draw call it themselves: the host has no use for the key, and compiling takes time.
    """
    low, high, restarts = begun
    key = noise.fold_in(noise.Key(jnp.uint32(0), jnp.uint32(0)), low, high)
    below = noise.fold_in(key, _RESTARTS, restarts)
    return noise.Key(*(jnp.where(restarts == 0, first, other) for first, other in zip(key, below, strict=True)))


def valued(ga: GA, setup: Setup, begun: Begun, first: First, *, ask: bool) -> Told | Ran:
    """After a first population has all its values. It need not `ask` if compiled generations follow."""
    population, fitness, _, violations = first
    state, rates = _first_state(ga, begun, fitness, violations, setup.layout.dim)
    if not ask:
        return Ran(state._replace(population=population))
    # The same program as for any other step, told to learn nothing
    nothing: Any = np.zeros(ga.num_children, fitness.dtype)
    proposal = Proposal(None, np.int32(0), np.zeros(ga.num_children, np.int32), rates)  # type: ignore[arg-type]
    parents = nothing if setup.reevaluate == "parents" else None
    elite = None if setup.reevaluate == "none" else np.zeros((), fitness.dtype)
    values = Values(nothing, parents, elite, None if violations is None else nothing)  # type: ignore[arg-type]
    _, proposal, rates, _ = _advance(ga, population, Before(state, proposal, values, np.int32(1)), True)
    return Told(first, state._replace(population=population), proposal, rates)


def told(ga: GA, population: Array, before: Before) -> tuple[Told, int, Seen]:
    """After a generation has its values; also the evaluations behind the elite's, and what is to be seen."""
    state, proposal, rates, numbers = _advance(ga, population, before, False)
    count, *seen = np.asarray(numbers).tolist()
    return Told(before, state._replace(population=population), proposal, rates), int(count), Seen(*seen)


def asked(ga: GA, state: State) -> Told:
    """What follows compiled generations if the next is not."""
    return Told(None, state, *_propose(ga, state))


def _rows(
    below: Begun | noise.Key,
    head: Array,
    x0: Array,
    std: Array | None,
    bounds: Bounds | None,
    members: int,
    dtype: str,
    start: Any = 0,
) -> Array:
    """`head` and draws around x0, or over the range of a variable that has one and no spread was asked for.

    `start` is the number of the first variable, where these are only some.
    """
    origin = key(below) if isinstance(below, Begun) else below
    keys = noise.fold_in(origin, jnp.arange(members), noise.BEFORE_THE_FIRST_GENERATION)
    words = noise.bits(keys, x0.shape[0], start)
    spread = jnp.asarray(1.0 if std is None else std, x0.dtype)
    population = (x0 + spread * noise.normal(words)).astype(x0.dtype)
    if bounds is not None:
        span = bounds.high - bounds.low
        if std is None:
            anywhere = bounds.low + jnp.where(jnp.isfinite(span), span, 0) * noise.uniform(words)
            population = jnp.where(jnp.isfinite(span), anywhere.astype(x0.dtype), population)
        population = bounds.repair(population)
    population = storage.rounded(population, dtype, keys, start)
    return population.at[: head.shape[0]].set(head.astype(dtype))


_draw = partial(jax.jit, static_argnums=(5, 6))(_rows)


def _draw_sharded(begun: Begun, head: np.ndarray, around: tuple, members: int, dtype: str, shards: Shards) -> Array:
    """`_rows` on many devices, of the variables that each holds."""

    def part(begun: Begun, head: Array, around: tuple) -> Array:
        x0, std, bounds = around
        return _rows(begun, head, x0, std, bounds, members, dtype, shards.genes.first)

    draw = jax.jit(shards.map(part, (REPLICATED, shards.by_gene, shards.per_gene(around)), shards.by_gene))
    return draw(begun, shards.shard(head), shards.shard_genes(around))


@partial(exact.jit, static_argnums=4)
def _first_state(ga: GA, begun: Begun, fitness: Any, violations: Any, num_genes: int) -> tuple[State, Array]:
    """The state of a valued first population, without that, and some rates `f[N]` as the controller gives them."""
    state = ga.start(key(begun), fitness, num_genes, violations)
    return state, ga.controller.rates(state.controller, jnp.zeros(ga.num_children, jnp.int32))


@exact.jit
def _advance(ga: GA, population: Array, before: Before, first: Any) -> tuple[State, Proposal, Array, Array]:
    """A generation: learn from the values, then select and mutate. Populations go in and out apart from the rest; what
    the host looks at comes in two pieces, the `Rates`, and the elite's count before what is `Seen`.

    If it is the `first`, there is nothing to learn yet: one program, because compiling two takes twice as long.
    """
    state, proposal, values, elite_count = before
    learned, count = learn(ga, state, proposal, values, elite_count)
    state = jax.tree.map(lambda old, new: jnp.where(first, old, new), state, learned)._replace(population=population)
    best = state.best_fitness if values.elite is None else state.fitness[0]
    numbers = jnp.stack([jnp.asarray(count, best.dtype), *seen_of(ga, state, best)])
    return state._replace(population=None), ga.ask(state), _stacked_rates(ga, state), numbers


def seen_of(ga: GA, state: State, best: Array, shards: Shards | None = None) -> Seen:
    """What a generation shows, in the precision of values."""
    violation = jnp.zeros_like(best) if state.violation is None else jnp.min(state.violation)
    return Seen(best, violation, diversity(state.population, ga.bounds, shards).astype(best.dtype))


@jax.jit
def _sibling_key(begun: Begun, number: Array) -> noise.Key:
    return noise.fold_in(key(begun), _SIBLINGS, number)


@exact.jit
def _siblings(ga: GA, state: State, proposal: Proposal, number: Array) -> Array:
    return ga.ask_siblings(state, proposal, noise.fold_in(state.key, _SIBLINGS, number))


@exact.jit
def _propose(ga: GA, state: State) -> tuple[Proposal, Array]:
    return ga.ask(state), _stacked_rates(ga, state)


def _stacked_rates(ga: GA, state: State) -> Array:
    return jnp.stack(rates_in_use(ga, state))
