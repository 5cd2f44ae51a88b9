"""JAX functions: a run by chunks of generations that are compiled with them."""

import time

import jax
import jax.numpy as jnp
import numpy as np

from .. import noise
from .._signals import uninterrupted
from ..devices import broadcast
from ..evolution import batch_sizes
from ..ga import GA
from ..generation import Values
from . import chunks, start
from .chunks import Programs, Shape
from .options import parents
from .phases import Ran
from .run import Run
from .space import precision
from .start import First
from .stopping import in_a_chunk
from .traced import JaxFunction, TracedObjective

_USUAL_CHUNK, LONGEST_CHUNK = 1024, 2**20  # generations, at most; all of a chunk are recorded on the device
_CHUNK_SECONDS = 0.2


@jax.jit
def _taken(population: jax.Array, members: np.ndarray) -> jax.Array:
    return population[members]


class CompiledStep:
    """A chunk of generations at a time, in one compiled program."""

    short = True

    def __init__(self, run: Run, function: JaxFunction, batch_size: int | None, chunk: int | None, every: int | None):
        self._run, self._function, self._batch_size = run, function, batch_size
        self._chunk, self._every = chunk, every  # generations of a chunk, and between checkpoints
        self._ready: tuple[GA, TracedObjective, Shape, Programs] | None = None
        self._length = max(_USUAL_CHUNK, chunk or 0)  # of the record: one program for shorter chunks too
        self._next = 8  # generations of the next chunk; more once we know how long they take

    def __call__(self) -> None:
        with precision(self._run.setup.space.dtype):
            if isinstance(self._run.phase, First):
                self._first(self._run.phase)
            else:
                self._generations()
                self._run.look_around()

    def value(self, row: np.ndarray) -> float:
        setup, shards = self._run.setup, self._run.shards
        with precision(setup.space.dtype):
            rows = jnp.asarray(row[None], setup.space.dtype)
            there = rows if shards is None else shards.shard(rows)
            return float(self._values(there, start.key(setup, 0))[0])

    def _first(self, phase: First) -> None:
        setup, key = self._run.setup, start.key(self._run.setup, self._run.progress.run)
        rows = phase.population if not phase.known.any() else _taken(phase.population, np.flatnonzero(~phase.known))
        values = Values(self._values(rows, key))  # type: ignore[arg-type]
        self._run.accept(values, len(rows) * setup.repeats, ask=False)

    def _values(self, rows: jax.Array, key: noise.Key) -> np.ndarray:
        """Of rows `f[n, d]` that are no children."""
        n, shards = rows.shape[0], self._run.shards
        objective = self._traced(n)
        there = key if shards is None else shards.replicate(key)
        return np.asarray(chunks.programs(objective.code).first_values(objective, rows, there, self._batch(n), shards))

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

    def _program(self) -> tuple[GA, TracedObjective, Shape, Programs]:
        """The run's GA where it is computed, the objective for as many children, and what is compiled for both."""
        run, ga = self._run, self._run.ga
        if self._ready is None or self._ready[0].num_children != ga.num_children:
            pool = parents(ga.truncation, ga.num_children)
            again = {"none": (), "elite": (1,), "parents": (1, pool)}[run.setup.reevaluate]
            objective = self._traced(ga.num_children, *again)
            shape = Shape(run.setup.reevaluate, pool, self._batch(ga.num_children), self._length, run.shards)
            placed = ga if run.shards is None else run.shards.place(ga)
            self._ready = placed, objective, shape, chunks.programs(objective.code)
        return self._ready

    def _generations(self) -> None:
        run, progress, setup = self._run, self._run.progress, self._run.setup
        state, before = run.phase.state, run.counts()  # type: ignore[union-attr]
        ga, objective, shape, programs = self._program()
        begun, marks = in_a_chunk(run.marks, before, setup.space.wide)
        rest = state._replace(population=None)  # type: ignore[arg-type]
        rest = rest if run.shards is None else run.shards.replicate(rest)
        numbers = begun, np.int32(progress.elite_count), marks, np.int32(self._room())
        began = time.monotonic()
        with uninterrupted():
            population, ran = programs.run(ga, state.population, objective, rest, *numbers, shape)
            run.phase = Ran(ran.state._replace(population=population))
            now, elite_count, elite, log_rate = jax.device_get(ran[1:])
            n = int(now.nit)
            evaluations = before.nfev + before.cost * np.arange(1, n + 1)
            run.record.add(setup.sign * elite[:n], log_rate[:n], evaluations)
            progress.take(now._replace(nit=before.nit + n, nfev=before.nfev + before.cost * n))
            progress.elite_count = int(elite_count)
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
