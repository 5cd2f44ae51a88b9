"""What moves a run: a generation evaluated in Python, or a chunk of compiled ones."""

import dataclasses
import time
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import noise
from .._signals import uninterrupted
from ..devices import broadcast
from ..evolution import batch_sizes
from ..generation import first_state
from . import compiled
from . import objective as evaluate
from .objective import Compiled, JaxFunction
from .optimizer import Optimizer
from .options import parents
from .run import First, Ran, Told
from .space import cast, precision

_USUAL_CHUNK, LONGEST_CHUNK = 1024, 2**20  # generations, at most; all of a chunk are recorded on the device
_CHUNK_SECONDS = 0.2
_NEVER = np.iinfo(np.int32).max


class PlainStep:
    """One generation at a time, evaluated in Python."""

    short = False

    def __init__(self, optimizer: Optimizer, values: evaluate.Values):
        self._optimizer, self._values = optimizer, values
        self._warned = False

    def __call__(self) -> None:
        optimizer, values = self._optimizer, self._values
        checked = optimizer._setup
        errors = values.errors
        rows = optimizer._rows()
        found = self._internal(values(rows))
        parents, elite, count = self._again()
        evaluations = checked.repeats * (len(rows) + count)
        optimizer._progress.errors += values.errors - errors
        if values.first_error is not None and not self._warned:
            self._warned = True
            message = f"fun raised {values.first_error}; such candidates count as the worst"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
        optimizer._accept(found, evaluations=evaluations, parent_values=parents, elite_value=elite)

    def value(self, row: np.ndarray) -> float:
        return float(self._internal(self._values(row[None]))[0])

    def _again(self) -> tuple[np.ndarray | None, float | None, int]:
        """Fresh values of the parents and of the elite, of those that are to be evaluated again, and how many."""
        phase, reevaluate = self._optimizer._phase, self._optimizer._setup.reevaluate
        if not isinstance(phase, Told) or reevaluate == "none":
            return None, None, 0
        wide = self._optimizer._wide
        elite = float(self._internal(self._values(wide(np.asarray(phase.proposal.population)[:1])))[0])
        if reevaluate == "elite":
            return None, elite, 1
        distinct, which = np.unique(np.asarray(phase.proposal.parents), return_inverse=True)
        parents = self._internal(self._values(wide(np.asarray(phase.state.population)[distinct])))[which]
        return parents, elite, 1 + len(distinct)

    def _internal(self, values: np.ndarray) -> np.ndarray:
        checked = self._optimizer._setup
        return cast(checked.sign * values, checked.space.wide)


@jax.jit
def _taken(population: jax.Array, members: np.ndarray) -> jax.Array:
    return population[members]


class CompiledStep:
    """A chunk of generations at a time, in one compiled program."""

    short = True

    def __init__(
        self, optimizer: Optimizer, function: JaxFunction, batch_size: int | None, chunk: int | None, kept: Any
    ):
        self._optimizer, self._function, self._batch_size = optimizer, function, batch_size
        self._ready: tuple[int, Compiled, compiled.Programs] | None = None  # for so many children
        self._chunk = chunk
        self._every = kept.every if kept is not None else None
        self._shards, self._bounds = optimizer._shards, None
        if self._shards is not None:
            with precision(optimizer._setup.space.dtype):
                self._bounds = self._shards.shard_genes(optimizer._setup.bounds)
        self._length = max(_USUAL_CHUNK, self._chunk or 0)  # of the record: one program for shorter chunks too
        self._next = 8  # generations of the next chunk; more once we know how long they take

    def _program(self, children: int, pool: int, reevaluate: str) -> tuple[Compiled, compiled.Programs]:
        """The objective for so many children, and what is compiled for it."""
        if self._ready is None or self._ready[0] != children:
            again = {"none": (), "elite": (1,), "parents": (1, pool)}[reevaluate]
            objective = self._compiled(children, *again)
            self._ready = children, objective, compiled.programs(objective.code)
        return self._ready[1:]

    def _compiled(self, rows: int, *others: int) -> Compiled:
        """The objective for so many `rows` in batches, and for so many `others` at once."""
        if self._shards is None:
            return self._function.compiled(batch_sizes(rows, self._batch(rows)) | {*others})
        sizes = batch_sizes(rows, self._shards.batch(self._batch_size, rows)) | {*others}
        return self._shards.replicate(self._function.compiled(map(self._shards.share, sizes)))

    def _batch(self, rows: int) -> int | None:
        return None if self._batch_size is None else min(self._batch_size, rows)

    def __call__(self) -> None:
        optimizer = self._optimizer
        with precision(optimizer._setup.space.dtype):
            if isinstance(optimizer._phase, First):
                self._first(optimizer._phase)
            else:
                self._generations()
        optimizer._look_around()

    def _first(self, phase: First) -> None:
        optimizer = self._optimizer
        checked, key = optimizer._setup, optimizer._setup.key(optimizer._progress.run)
        rows = phase.population if not phase.known.any() else _taken(phase.population, np.flatnonzero(~phase.known))
        fitness = phase.values.copy()
        fitness[~phase.known] = self._values(rows, key)
        with uninterrupted():
            state, _ = first_state(optimizer._ga, key, fitness, checked.space.dim)
            optimizer._phase = Ran(state._replace(population=phase.population))
            progress = optimizer._progress
            progress.nfev += len(rows) * checked.repeats
            progress.best, progress.elite_count = float(np.min(np.asarray(state.fitness))), 1

    def value(self, row: np.ndarray) -> float:
        checked = self._optimizer._setup
        with precision(checked.space.dtype):
            rows = jnp.asarray(row[None], checked.space.dtype)
            there = rows if self._shards is None else self._shards.shard(rows)
            return float(self._values(there, checked.key(0))[0])

    def _values(self, rows: jax.Array, key: noise.Key) -> np.ndarray:
        """Of rows `f[n, d]` that are no children."""
        objective = self._compiled(rows.shape[0])
        first_values = compiled.programs(objective.code).first_values
        there = key if self._shards is None else self._shards.replicate(key)
        return np.asarray(first_values(objective, rows, there, self._batch_size, self._shards))

    def _generations(self) -> None:
        optimizer, limits = self._optimizer, self._optimizer._limits
        checked, progress, phase = optimizer._setup, optimizer._progress, optimizer._phase
        cost = checked.generation_cost(optimizer._ga)
        rules = compiled.Rules(
            np.int32(self._room(cost)),
            np.asarray(-np.inf if optimizer._target is None else optimizer._target, checked.space.wide),
            np.int32(min(limits.patience or _NEVER, _NEVER)),
            np.int32(min(limits.blind_patience, _NEVER)),
        )
        counts = compiled.Counts(
            np.asarray(progress.best, checked.space.wide),  # type: ignore[arg-type]
            *(np.int32(n) for n in (progress.stale, progress.blind, progress.elite_count)),  # type: ignore[arg-type]
        )
        state, children = phase.state, optimizer._ga.num_children  # type: ignore[union-attr]
        pool = parents(optimizer._ga.truncation, children)
        objective, programs = self._program(children, pool, checked.reevaluate)
        start = time.monotonic()
        rest = state._replace(population=None)  # type: ignore[arg-type]
        options = checked.reevaluate, pool, self._batch(children), self._length
        with uninterrupted():
            if self._shards is None:
                ran = programs.run(optimizer._ga, objective, state.population, rest, counts, rules, *options)
            else:
                ga, rest = self._shards.replicate((dataclasses.replace(optimizer._ga, bounds=None), rest))
                data = objective, state.population, rest, counts, rules
                ran = programs.run_sharded(ga, self._bounds, *data, *options, self._shards)
            optimizer._phase = Ran(ran.state)
            (best, stale, blind, elite_count), n, elite, log_rate = jax.device_get(ran[1:])
            n = int(n)
            evaluations = progress.nfev + cost * np.arange(1, n + 1)
            optimizer._record.add(checked.sign * elite[:n], log_rate[:n], evaluations)
            progress.nit, progress.nfev = progress.nit + n, progress.nfev + cost * n
            progress.best, progress.stale, progress.blind = float(best), int(stale), int(blind)
            progress.elite_count = int(elite_count)
        self._adapt(n, broadcast(time.monotonic() - start, self._shards))

    def _room(self, cost: int) -> int:
        """How many generations the next chunk may have."""
        progress, limits = self._optimizer._progress, self._optimizer._limits
        room = [self._chunk or self._next, self._length]
        if limits.generations is not None:
            room.append(limits.generations - progress.nit)
        if limits.maxfun is not None:
            room.append((limits.maxfun - progress.nfev) // cost)
        if self._every is not None:
            room.append(self._every - progress.nit % self._every)
        return max(min(room), 0)

    def _adapt(self, generations: int, seconds: float) -> None:
        wanted = int(generations * _CHUNK_SECONDS / max(seconds, 1e-6))
        limits = self._optimizer._limits
        if limits.maxtime is not None:  # the last chunks are short, so that the time is kept
            left = limits.maxtime - self._optimizer._progress.seconds
            wanted = min(wanted, int(generations * max(left, 0.0) / max(seconds, 1e-6)))
        self._next = int(np.clip(wanted, 1, min(4 * self._next, self._length)))
