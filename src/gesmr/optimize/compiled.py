"""Generations in chunks: one compiled program, however many generations a chunk has."""

import dataclasses
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
from ..generation import learn, mean_log_rate
from ..storage import packed, unpacked
from . import exact
from .objective import Code, Compiled

_BEFORE_THE_FIRST = np.uint32(2**29 + 2)
_BLOCK = 16  # generations that a GPU runs without asking whether to go on


class Counts(NamedTuple):
    """`stopping.Progress` as the loop carries it."""

    best: Array  # f[]
    stale: Array  # i32[]
    blind: Array  # i32[]
    elite_count: Array  # i32[]


class Rules(NamedTuple):
    """When the loop ends before its time. Data, not code."""

    generations: Any  # i32[], at most the length of the record
    target: Any  # f[]
    patience: Any  # i32[]
    blind_patience: Any  # i32[]


class Chunk(NamedTuple):
    state: State
    counts: Counts
    generations: Array  # i32[], how many were run
    elite: Array  # f[length], of which so many hold something
    log_rate: Array  # f[length]


def _run(
    ga: GA,
    objective: Compiled,
    population: Array,
    rest: State,
    counts: Counts,
    rules: Rules,
    reevaluate: str,
    pool: int,
    batch_size: int | None,
    length: int,
    shards: Shards | None = None,
) -> Chunk:
    """Up to `rules.generations` generations from the state `rest` with `population`, whose memory is reused.

    On many devices every one of them runs this on the genes it holds (`_run_sharded`).
    """
    genes = None if shards is None else shards.genes

    def unfinished(chunk: Chunk, ahead: int = 1) -> Array:
        """Whether another `ahead` generations will be run, whatever they find; but for the target."""
        counts, more = chunk.counts, ahead - 1
        going_on = (counts.best > rules.target) & (counts.stale + more < rules.patience)
        return going_on & (counts.blind + more < rules.blind_patience) & (chunk.generations + more < rules.generations)

    def generation(chunk: Chunk) -> Chunk:
        state, counts, done = chunk.state, chunk.counts, chunk.generations
        proposal = ga.ask(state, genes)
        key = _random_key(objective, state.key, OBJECTIVE, state.generation)
        valued = _valued(objective, key, shards)
        values = evaluate_children(valued, proposal.population, batch_size)
        parents, elite = _again(valued, state, proposal, reevaluate, pool)
        log_rate = mean_log_rate(ga, state)
        state, elite_count = learn(ga, state, proposal, values, parents, elite, counts.elite_count)
        best = state.best_fitness if elite is None else state.fitness[0]
        stale = jnp.where(best < counts.best, 0, counts.stale + 1)
        lowest = jnp.minimum(best, counts.best)
        blind = jnp.where(jnp.isfinite(lowest), 0, counts.blind + 1)
        record = chunk.elite.at[done].set(best), chunk.log_rate.at[done].set(log_rate.astype(chunk.log_rate.dtype))
        return Chunk(state, Counts(lowest, stale, blind, elite_count), done + 1, *record)

    def block(chunk: Chunk) -> Chunk:
        # A GPU asks the host before every turn of a loop of unknown length, and copies the population back after each
        # turn of one generation: a known length and two generations per turn spare it both, as in `evolve`.
        return lax.fori_loop(0, _BLOCK, lambda _, chunk: generation(chunk), chunk, unroll=2)

    empty = jnp.zeros(length, rest.fitness.dtype)
    chunk = Chunk(rest._replace(population=packed(population)), counts, jnp.int32(0), empty, empty)
    if jax.default_backend() != "cpu":
        chunk = lax.while_loop(lambda chunk: (rules.target == -jnp.inf) & unfinished(chunk, _BLOCK), block, chunk)
    chunk = lax.while_loop(unfinished, generation, chunk)
    last = unpacked(chunk.state.population, population.dtype)
    return chunk._replace(state=chunk.state._replace(population=last))


def _run_sharded(
    ga: GA,
    bounds: Any,
    objective: Compiled,
    population: Array,
    rest: State,
    counts: Counts,
    rules: Rules,
    reevaluate: str,
    pool: int,
    batch_size: int | None,
    length: int,
    shards: Shards,
) -> Chunk:
    """`_run` on many devices; `ga` comes without its bounds, which are sharded."""
    options = reevaluate, pool, shards.batch(batch_size, ga.num_children), length, shards

    def part(
        ga: GA, bounds: Any, objective: Compiled, population: Array, rest: State, counts: Counts, rules: Rules
    ) -> Chunk:
        return _run(dataclasses.replace(ga, bounds=bounds), objective, population, rest, counts, rules, *options)

    specs = REPLICATED, shards.per_gene(bounds), REPLICATED, shards.by_gene, REPLICATED, REPLICATED, REPLICATED
    state: Any = State(REPLICATED, REPLICATED, shards.by_gene, REPLICATED, REPLICATED)  # type: ignore[arg-type]
    ended: Any = (state, *[REPLICATED] * (len(Chunk._fields) - 1))
    return shards.map(part, specs, Chunk(*ended))(ga, bounds, objective, population, rest, counts, rules)


def _first_values(
    objective: Compiled, rows: Array, key: noise.Key, batch_size: int | None, shards: Shards | None = None
) -> Array:
    """Values of a first population `f[n, d]`."""
    key_of_draws = _random_key(objective, key, _BEFORE_THE_FIRST, 0)
    n = rows.shape[0]
    if shards is None:
        size = None if batch_size is None else min(batch_size, n)
        return evaluate_children(_valued(objective, key_of_draws, None), packed(rows), size, first=0)

    def part(objective: Compiled, rows: Array, key: Array | None) -> Array:
        valued = _valued(objective, key, shards)
        return evaluate_children(valued, packed(rows), shards.batch(batch_size, n), first=0)

    return shards.map(part, (REPLICATED, shards.by_gene, REPLICATED), REPLICATED)(objective, rows, key_of_draws)


class Programs:
    """What is compiled for one objective, and lives as long as this does."""

    def __init__(self):
        self.run = _jit(_run, static_argnums=(6, 7, 8, 9), donate_argnums=2)
        self.run_sharded = _jit(_run_sharded, static_argnums=(7, 8, 9, 10, 11), donate_argnums=3)
        self.first_values = _jit(_first_values, static_argnums=(3, 4))


def _jit(function: Callable, **options: Any) -> Any:
    """`function` compiled apart from all others that are: what JAX keeps for it can go."""
    return exact.jit(partial(function), **options)


_kept = lru_cache(maxsize=16)(lambda code: Programs())


def programs(code: Code) -> Programs:
    """Those of an objective's code, from an earlier run if they are still there."""
    return _kept(code) if code.is_known else Programs()


def _valued(objective: Compiled, key: Array | None, shards: Shards | None) -> Callable[[Array], Array]:
    valued = partial(objective, key=key)
    return valued if shards is None else shards.sharded(valued)


def _again(
    valued: Any, state: State, proposal: Proposal, reevaluate: str, pool: int
) -> tuple[Array | None, Array | None]:
    """Fresh values `f[N]` of the parents and `f[]` of the elite, of those that are to be evaluated again."""
    if reevaluate == "none":
        return None, None
    elite = valued(proposal.population[:1])[0]
    if reevaluate == "elite":
        return None, elite
    distinct, which = jnp.unique(proposal.parents, size=pool, fill_value=proposal.parents[0], return_inverse=True)
    return valued(state.population[distinct])[which], elite


def _random_key(objective: Compiled, key: noise.Key, place: np.uint32, generation: Any) -> Array | None:
    """One key for all candidates of a generation: they are compared on the same draw."""
    if not objective.keyed:
        return None
    return jax.random.wrap_key_data(jnp.stack(noise.fold_in(key, place, generation)))
