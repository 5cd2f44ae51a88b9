"""Generations in chunks: one compiled program, however many generations a chunk has and whatever ends it."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .. import noise
from ..devices import REPLICATED, Shards
from ..evolution import OBJECTIVE, evaluate_children
from ..ga import GA, Proposal, State
from ..generation import Values, generation
from ..storage import packed, unpacked
from . import exact
from .stopping import Counts, any_reached
from .traced import Code, TracedObjective

_BEFORE_THE_FIRST = np.uint32(2**29 + 2)
_BLOCK = 16  # generations that a GPU runs without asking whether to go on


class Shape(NamedTuple):
    """What shapes the program of a chunk."""

    reevaluate: str
    pool: int  # members that may become parents
    batch_size: int | None  # rows, on all devices together
    length: int  # of the record: the most generations of a chunk
    shards: Shards | None


class Chunk(NamedTuple):
    state: State  # without its population
    now: Counts  # as `stopping.in_a_chunk` has them
    elite_count: Array  # i32[]
    elite: Array  # f[length], of which so many hold something as generations were run
    log_rate: Array  # f[length]


def _run(
    ga: GA,
    population: Array,
    objective: TracedObjective,
    rest: State,
    now: Counts,
    elite_count: Array,
    marks: dict[str, Any],
    room: Array,
    shape: Shape,
) -> tuple[Array, Chunk]:
    """At most `room` generations from the state `rest` with `population`, whose memory is reused."""
    if shape.shards is None:
        return _loop(ga, population, objective, rest, now, elite_count, marks, room, shape)
    part = partial(_loop, shape=shape)
    return shape.shards.run(part, ga, population, objective, rest, now, elite_count, marks, room)


def _loop(
    ga: GA,
    population: Array,
    objective: TracedObjective,
    rest: State,
    now: Counts,
    elite_count: Array,
    marks: dict[str, Any],
    room: Array,
    shape: Shape,
) -> tuple[Array, Chunk]:
    """The loop; on many devices every one of them runs it, on the genes it holds."""
    shards, dtype = shape.shards, population.dtype
    genes = None if shards is None else shards.genes

    def evaluate(state: State, proposal: Proposal) -> Values:
        valued = _valued(objective, _random_key(objective, state.key, OBJECTIVE, state.generation), shards)
        children = evaluate_children(valued, proposal.population, shape.batch_size)
        return Values(children, *_again(valued, state, proposal, shape))

    def one(chunk: Chunk) -> Chunk:
        state, count, best, log_rate = generation(ga, chunk.state, evaluate, chunk.elite_count, genes)
        elite = chunk.elite.at[chunk.now.nit].set(best)
        log_rates = chunk.log_rate.at[chunk.now.nit].set(log_rate.astype(chunk.log_rate.dtype))
        return Chunk(state, chunk.now.after(best, chunk.now.cost, jnp), count, elite, log_rates)

    def block(chunk: Chunk) -> Chunk:
        # A GPU asks the host before every turn of a loop of unknown length, and copies the population back after each
        # turn of one generation: a known length and two generations per turn spare it both, as in `evolve`.
        return lax.fori_loop(0, _BLOCK, lambda _, chunk: one(chunk), chunk, unroll=2)

    def is_sure(chunk: Chunk) -> Array:
        """Whether a block of generations will be run, whatever they find."""
        worst = chunk.now.at_worst(_BLOCK - 1)
        return (worst.nit < room) & ~any_reached(worst, marks)

    def unfinished(chunk: Chunk) -> Array:
        return (chunk.now.nit < room) & ~any_reached(chunk.now, marks)

    empty = jnp.zeros(shape.length, rest.fitness.dtype)
    chunk = Chunk(rest._replace(population=packed(population)), now, elite_count, empty, empty)
    if jax.default_backend() != "cpu":
        chunk = lax.while_loop(is_sure, block, chunk)
    chunk = lax.while_loop(unfinished, one, chunk)
    last = unpacked(chunk.state.population, dtype)
    return last, chunk._replace(state=chunk.state._replace(population=None))  # type: ignore[arg-type]


def _first_values(
    objective: TracedObjective, rows: Array, key: noise.Key, batch_size: int | None, shards: Shards | None
) -> Array:
    """Values of a first population `f[n, d]`."""

    def part(objective: TracedObjective, rows: Array, key: Array | None) -> Array:
        return evaluate_children(_valued(objective, key, shards), packed(rows), batch_size, first=0)

    draws = _random_key(objective, key, _BEFORE_THE_FIRST, 0)
    if shards is None:
        return part(objective, rows, draws)
    return shards.map(part, (REPLICATED, shards.by_gene, REPLICATED), REPLICATED)(objective, rows, draws)


class Programs:
    """What is compiled for one objective, and lives as long as this does."""

    def __init__(self):
        self.run = _jit(_run, static_argnums=8, donate_argnums=1)
        self.first_values = _jit(_first_values, static_argnums=(3, 4))


def _jit(function: Callable, **options: Any) -> Any:
    """`function` compiled apart from all others that are: what JAX keeps for it can go."""
    return exact.jit(partial(function), **options)


_kept = lru_cache(maxsize=16)(lambda code: Programs())


def programs(code: Code) -> Programs:
    """Those of an objective's code, from an earlier run if they are still there."""
    return _kept(code) if code.is_known else Programs()


def _valued(objective: TracedObjective, key: Array | None, shards: Shards | None) -> Callable[[Array], Array]:
    valued = partial(objective, key=key)
    return valued if shards is None else shards.sharded(valued)


def _again(valued: Any, state: State, proposal: Proposal, shape: Shape) -> tuple[Array | None, Array | None]:
    """Fresh values `f[N]` of the parents and `f[]` of the elite, of those that are to be evaluated again."""
    if shape.reevaluate == "none":
        return None, None
    elite = valued(proposal.population[:1])[0]
    if shape.reevaluate == "elite":
        return None, elite
    distinct, which = jnp.unique(proposal.parents, size=shape.pool, fill_value=proposal.parents[0], return_inverse=True)
    return valued(state.population[distinct])[which], elite


def _random_key(objective: TracedObjective, key: noise.Key, place: np.uint32, generation: Any) -> Array | None:
    """One key for all candidates of a generation: they are compared on the same draw."""
    if not objective.keyed:
        return None
    return jax.random.wrap_key_data(jnp.stack(noise.fold_in(key, place, generation)))
