"""JAX functions: a run by chunks of generations, compiled with them in one program, whatever the length of a chunk."""

import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .. import noise
from .._signals import uninterrupted
from ..devices import REPLICATED, Shards, broadcast
from ..evolution import OBJECTIVE, batch_sizes, evaluate_children
from ..ga import GA, Proposal, State
from ..generation import Rates, Values, generation
from ..storage import packed, unpacked
from . import exact, phases
from .layout import precision
from .options import parents
from .phases import First, Ran
from .run import Run
from .stopping import Counts, Found, any_reached, marks_of_a_chunk
from .traced import Code, JaxFunction, TracedObjective

_USUAL_CHUNK, LONGEST_CHUNK = 1024, 2**20  # generations, at most; all of a chunk are recorded on the device
_CHUNK_SECONDS = 0.2
_BLOCK = 16  # generations that a GPU runs without asking whether to go on
_BEFORE_THE_FIRST = np.uint32(2**29 + 2)  # keys of a random objective for first populations, apart from `OBJECTIVE`'s


class _Shape(NamedTuple):
    """What shapes the program of a chunk."""

    reevaluate: str
    pool: int  # members that may become parents
    batch_size: int | None  # rows, on all devices together
    length: int  # of the record: the most generations of a chunk
    shards: Shards | None


class _Given(NamedTuple):
    """What a chunk begins with, beside the GA and the population."""

    objective: TracedObjective
    rest: State  # without its population
    counted: tuple  # what was found, stale i32[], blind i32[]
    elite_count: Any  # i32[]
    marks: dict[str, Any]
    ftol: Any  # f[]
    room: Any  # i32[]  generations, at most


class _Chunk(NamedTuple):
    """What the loop carries."""

    state: State
    now: Counts
    elite_count: Any
    record: Array  # f[length, 6]  best, rates and diversity; so many rows hold something as generations were run


def _run(ga: GA, population: Array, given: _Given, shape: _Shape) -> tuple[Array, tuple]:
    """The population, whose memory is reused, and after it the state without that, and what was counted: generations,
    found, stale, blind, elite_count, record."""
    if shape.shards is None:
        return _loop(ga, population, given, shape)
    return shape.shards.run(partial(_loop, shape=shape), ga, population, given)


def _loop(ga: GA, population: Array, given: _Given, shape: _Shape) -> tuple[Array, tuple]:
    """`_run`; on many devices every one of them does it, on the genes it holds."""
    objective, rest, counted, elite_count, marks, ftol, room = given
    shards, dtype = shape.shards, population.dtype
    genes = None if shards is None else shards.genes

    def evaluate(state: State, proposal: Proposal) -> Values:
        valued = _valued(objective, _random_key(objective, state.key, OBJECTIVE, state.generation), shards)
        children, violations = evaluate_children(valued, proposal.population, shape.batch_size)
        return Values(children, *_again(valued, state, proposal, shape), violations)

    def one(chunk: _Chunk) -> _Chunk:
        state, count, best, rates = generation(ga, chunk.state, evaluate, chunk.elite_count, genes)
        seen = phases.seen_of(ga, state, best, shards)
        row = jnp.stack([part.astype(best.dtype) for part in (best, *rates, seen.diversity)])
        record = chunk.record.at[chunk.now.nit].set(row)
        return _Chunk(state, chunk.now.after(seen, chunk.now.cost, ftol, jnp), count, record)

    def block(chunk: _Chunk) -> _Chunk:
        # A GPU asks the host before every turn of a loop of unknown length, and copies the population back after each
        # turn of one generation: a known length and two generations per turn spare it both, as in `evolve`.
        return lax.fori_loop(0, _BLOCK, lambda _, chunk: one(chunk), chunk, unroll=2)

    def is_sure(chunk: _Chunk) -> Array:
        """Whether a block of generations will be run, whatever they find."""
        worst = chunk.now.at_worst(_BLOCK - 1)
        return (worst.nit < room) & ~any_reached(worst, marks)

    def unfinished(chunk: _Chunk) -> Array:
        return (chunk.now.nit < room) & ~any_reached(chunk.now, marks)

    empty = jnp.zeros((shape.length, 2 + len(Rates._fields)), rest.fitness.dtype)
    chunk = _Chunk(rest._replace(population=packed(population)), Counts.of_a_chunk(*counted), elite_count, empty)
    if jax.default_backend() != "cpu":
        chunk = lax.while_loop(is_sure, block, chunk)
    chunk = lax.while_loop(unfinished, one, chunk)
    rest, now = chunk.state._replace(population=None), chunk.now  # type: ignore[arg-type]
    counted = now.nit, now.found, now.stale, now.blind, chunk.elite_count
    return unpacked(chunk.state.population, dtype), (rest, *counted, chunk.record)


def _first_values(
    objective: TracedObjective, rows: Array, begun: phases.Begun, batch_size: int | None, shards: Shards | None
) -> tuple[Array, Array | None]:
    """Values and violations of a first population `f[n, d]`."""

    def part(objective: TracedObjective, rows: Array, key: Array | None) -> tuple[Array, Array | None]:
        return evaluate_children(_valued(objective, key, shards), packed(rows), batch_size, first=0)

    draws = _random_key(objective, phases.key(begun), _BEFORE_THE_FIRST, 0)
    if shards is None:
        return part(objective, rows, draws)
    return shards.map(part, (REPLICATED, shards.by_gene, REPLICATED), REPLICATED)(objective, rows, draws)


class _Programs:
    """What is compiled for one objective, and lives as long as this does."""

    def __init__(self):
        self.run = _jit(_run, static_argnums=3, donate_argnums=1)
        self.first_values = _jit(_first_values, static_argnums=(3, 4))


def _jit(function: Callable, **options: Any) -> Any:
    """`function` compiled apart from all others that are: what JAX keeps for it can go."""
    return exact.jit(partial(function), **options)


_kept = lru_cache(maxsize=16)(lambda code: _Programs())


def _programs(code: Code) -> _Programs:
    """Those of an objective's code, from an earlier run if they are still there."""
    return _kept(code) if code.is_known else _Programs()


def _valued(objective: TracedObjective, key: Array | None, shards: Shards | None) -> Callable[[Array], Any]:
    valued = partial(objective, key=key)
    return valued if shards is None else shards.sharded(valued)


def _again(valued: Any, state: State, proposal: Proposal, shape: _Shape) -> tuple[Array | None, Array | None]:
    """Fresh values `f[N]` of the parents and `f[]` of the elite, of those that are to be evaluated again."""
    if shape.reevaluate == "none":
        return None, None
    elite = valued(proposal.population[:1])[0][0]
    if shape.reevaluate == "elite":
        return None, elite
    distinct, which = jnp.unique(proposal.parents, size=shape.pool, fill_value=proposal.parents[0], return_inverse=True)
    return valued(state.population[distinct])[0][which], elite


def _random_key(objective: TracedObjective, key: noise.Key, place: np.uint32, generation: Any) -> Array | None:
    """One key for all candidates of a generation: they are compared on the same draw."""
    if not objective.keyed:
        return None
    return jax.random.wrap_key_data(jnp.stack(noise.fold_in(key, place, generation)))


@jax.jit
def _taken(population: Array, members: np.ndarray) -> Array:
    return population[members]


class CompiledStep:
    """A chunk of generations at a time, in one compiled program."""

    short = True

    def __init__(self, run: Run, function: JaxFunction, batch_size: int | None, chunk: int | None, every: int | None):
        self._run, self._function, self._batch_size = run, function, batch_size
        self._chunk, self._every = chunk, every  # generations of a chunk, and between checkpoints
        self._ready: tuple[GA, TracedObjective, _Shape, _Programs] | None = None
        self._length = max(_USUAL_CHUNK, chunk or 0)  # of the record: one program for shorter chunks too
        self._next = 8  # generations of the next chunk; more once we know how long they take

    def __call__(self) -> None:
        with precision(self._run.setup.layout.dtype):
            if isinstance(self._run.phase, First):
                self._first(self._run.phase)
            else:
                self._generations()
                self._run.look_around()

    def value(self, row: np.ndarray) -> float:
        """The objective at a solution, as minimised inside. It is not counted."""
        setup, shards = self._run.setup, self._run.shards
        with precision(setup.layout.dtype):
            rows = jnp.asarray(row[None], setup.layout.dtype)
            there = rows if shards is None else shards.shard(rows)
            values, violations = self._values(there, phases.begun(setup, 0))
            return float(values[0]) if violations is None or violations[0] == 0 else np.inf

    def _first(self, phase: First) -> None:
        setup, begun = self._run.setup, phases.begun(self._run.setup, self._run.progress.run)
        rows = phase.population if not phase.known.any() else _taken(phase.population, np.flatnonzero(~phase.known))
        children, violations = self._values(rows, begun)
        values: Any = Values(children, violations=violations)  # type: ignore[arg-type]
        self._run.accept(values, len(rows) * setup.repeats, ask=False)

    def _values(self, rows: jax.Array, begun: phases.Begun) -> tuple[np.ndarray, np.ndarray | None]:
        """Of rows `f[n, d]` that are no children, with their violations if there are constraints."""
        n, shards = rows.shape[0], self._run.shards
        objective = self._traced(n)
        return jax.device_get(_programs(objective.code).first_values(objective, rows, begun, self._batch(n), shards))

    def _traced(self, rows: int, *others: int) -> TracedObjective:
        """The objective for so many `rows` in batches, and for so many `others` at once."""
        sizes, shards = batch_sizes(rows, self._batch(rows)) | {*others}, self._run.shards
        if shards is None:
            return self._function.traced(sizes)
        return shards.replicate(self._function.traced(map(shards.share, sizes)))

    def _batch(self, rows: int) -> int | None:
        """How many of so many `rows` are evaluated at a time, on all devices together."""
        size, shards = self._batch_size, self._run.shards
        return shards.batch(size, rows) if shards is not None else None if size is None else min(size, rows)

    def _program(self) -> tuple[GA, TracedObjective, _Shape, _Programs]:
        """The run's GA where it is computed, the objective for as many children, and what is compiled for both."""
        run, ga = self._run, self._run.ga
        if self._ready is None or self._ready[0].num_children != ga.num_children:
            pool = parents(ga.truncation, ga.num_children)
            again = {"none": (), "elite": (1,), "parents": (1, pool)}[run.setup.reevaluate]
            objective = self._traced(ga.num_children, *again)
            shape = _Shape(run.setup.reevaluate, pool, self._batch(ga.num_children), self._length, run.shards)
            placed = ga if run.shards is None else run.shards.place(ga)
            self._ready = placed, objective, shape, _programs(objective.code)
        return self._ready

    def _generations(self) -> None:
        run, progress, setup = self._run, self._run.progress, self._run.setup
        state, before = run.phase.state, run.counts()  # type: ignore[union-attr]
        ga, objective, shape, programs = self._program()
        marks = marks_of_a_chunk(run.marks, before, setup.layout.wide)
        found = Found(*(np.asarray(number, setup.layout.wide) for number in before.found))
        counted = found, np.int32(before.stale), np.int32(before.blind)
        rest = state._replace(population=None)  # type: ignore[arg-type]
        rest = rest if run.shards is None else run.shards.replicate(rest)
        ftol = np.asarray(run.limits.tolerance, setup.layout.wide)
        given = _Given(objective, rest, counted, np.int32(progress.elite_count), marks, ftol, np.int32(self._room()))
        began = time.monotonic()
        with uninterrupted():
            population, (rest, *counted) = programs.run(ga, state.population, given, shape)
            run.phase = Ran(rest._replace(population=population))
            n, found, stale, blind, elite_count, record = jax.device_get(counted)
            n = int(n)
            evaluations = before.nfev + before.cost * np.arange(1, n + 1)
            elite, *rates, diversity = record[:n].T
            run.record.add(setup.sign * elite, evaluations, Rates(*rates), diversity)
            nit, nfev, progress.elite_count = before.nit + n, before.nfev + before.cost * n, int(elite_count)
            progress.take(before._replace(nit=nit, nfev=nfev, found=found, stale=stale, blind=blind))
        self._adapt(n, broadcast(time.monotonic() - began, run.shards))

    def _room(self) -> int:
        """How many generations the next chunk may have; its program heeds the limits of the run."""
        room = min(self._chunk or self._next, self._length)
        return room if self._every is None else min(room, self._every - self._run.progress.nit % self._every)

    def _adapt(self, generations: int, seconds: float) -> None:
        """Say how long the next chunk is."""
        wanted = int(generations * _CHUNK_SECONDS / max(seconds, 1e-6))
        maxtime = self._run.limits.maxtime
        if maxtime is not None:  # the last chunks are short, so that the time is kept
            left = maxtime - self._run.progress.seconds
            wanted = min(wanted, int(generations * max(left, 0.0) / max(seconds, 1e-6)))
        self._next = int(np.clip(wanted, 1, min(4 * self._next, self._length)))
