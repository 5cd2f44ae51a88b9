"""A run's state as a plain value, and what can be done to it: give it values, look at it, begin it again."""

import time
import warnings
from array import array
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _provenance
from .._signals import uninterrupted
from ..devices import Shards, broadcast
from ..evolution import History
from ..ga import GA
from ..generation import Values
from . import phases, stopping
from .layout import precision
from .options import Setup
from .phases import Before, First, Phase, Ran, Told
from .stopping import Counts, Limits, Progress


class Record:
    """The history of a run while it grows."""

    def __init__(self):
        self._columns = array("d"), array("d"), array("q")

    def add(self, *columns: Any) -> None:
        """Elite values, mean log rates and evaluations so far, of one generation or of many."""
        for column, entries in zip(self._columns, columns, strict=True):
            column.frombytes(np.atleast_1d(np.asarray(entries, column.typecode)).tobytes())

    def since(self, generation: int) -> History:
        parts = (np.frombuffer(column[generation:], column.typecode) for column in self._columns)
        return History(*parts)  # type: ignore[arg-type]


@dataclass
class Run:
    """All there is to a run between two generations. Values are as minimised inside, but for those of the record."""

    setup: Setup
    limits: Limits
    phase: Phase
    shards: Shards | None = None  # over many devices, if compiled generations are
    compiled: bool = False  # whether fun is compiled with the search
    path: str = "ask/tell"  # how fun is evaluated, for the result
    progress: Progress = field(default_factory=Progress)
    record: Record = field(default_factory=Record)
    champion: tuple[float, np.ndarray] | None = None  # the best of earlier runs, before a restart
    warned: bool = False  # that no value is finite

    ga: GA = field(init=False)
    marks: dict[str, Any] = field(init=False)  # what counts are compared with
    clock: float = field(init=False)  # when it would have begun, had it not been interrupted

    def __post_init__(self):
        self.setup.check_limits(self.limits)
        self.ga = self.setup.ga(self.progress.run)
        self.marks = self.limits.marks(self.setup.sign, self.setup.layout.wide)
        self.clock = time.monotonic() - self.progress.seconds

    # moving

    def rows(self) -> np.ndarray:
        """The candidates `f[n, d]` to evaluate, read-only."""
        phase = self.phase
        if isinstance(phase, First):
            rows = np.asarray(phase.population)
            return self.wide(rows[~phase.known] if phase.known.any() else rows)
        if isinstance(phase, Ran):
            with precision(self.setup.layout.dtype):
                self.phase = phase = phases.asked(self.ga, phase.state)
        return self.wide(np.asarray(phase.proposal.population)[1:])

    def wide(self, rows: np.ndarray) -> np.ndarray:
        """Members as users see them: not in bfloat16, and read-only."""
        rows = rows.astype(self.setup.layout.wide, copy=False)
        rows.flags.writeable = False
        return rows

    def accept(self, values: Values, evaluations: int, *, ask: bool = True) -> None:
        """Make the step that the values of the candidates allow. `ask` is for a first population: see `valued`."""
        phase, progress, setup = self.phase, self.progress, self.setup
        with precision(setup.layout.dtype), uninterrupted():
            if isinstance(phase, First):
                fitness = phase.values.copy()
                fitness[~phase.known] = values.children
                key = phases.key(setup, progress.run)
                self.phase = phases.valued(self.ga, setup, key, phase.population, fitness, ask=ask)
                progress.best, progress.elite_count = float(np.min(np.asarray(self.phase.state.fitness))), 1
                progress.nfev += evaluations
            else:
                assert isinstance(phase, Told)
                made = phase.state._replace(population=None), phase.proposal._replace(population=None)  # type: ignore[arg-type]
                before = Before(*made, values, np.int32(progress.elite_count))
                self.phase, progress.elite_count, best = phases.told(self.ga, phase.proposal.population, before)
                progress.take(self.counts().after(best, evaluations))
                self.record.add(setup.sign * best, float(phase.log_rate), progress.nfev)
        self.look_around()

    def look_around(self) -> None:
        """After a generation: say so if nothing is finite, restart if nothing moves."""
        progress = self.progress
        if not np.isfinite(progress.best) and not self.warned:
            self.warned = True
            patience = self.limits.blind_patience
            message = f"no candidate has had a finite value yet; the search goes on blindly for {patience} generations"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        if progress.run < self.setup.restarts and progress.stale >= (self.limits.patience or np.inf):
            self._restart()

    def _restart(self) -> None:
        """Begin again with another first population, if the budget has room for it."""
        progress, maxfun = self.progress, self.limits.maxfun
        room = self.setup.repeats * self.setup.members(progress.run + 1)
        if self.stop().keys() - {"patience", "nonfinite"} or (maxfun is not None and progress.nfev + room > maxfun):
            return
        self.champion = self.best()
        progress.run, progress.best, progress.stale, progress.blind = progress.run + 1, np.inf, 0, 0
        self.ga = self.setup.ga(progress.run)
        self.phase = phases.first(self.setup, progress.run, self.shards)

    # looking

    def counts(self) -> Counts:
        """What has been counted so far; another generation costs nothing while the first population has no values."""
        return self.progress.counts(0 if isinstance(self.phase, First) else self.setup.generation_cost(self.ga))

    def stop(self) -> dict[str, Any]:
        """Reasons to stop, by name: empty while there are none. Reads the clock."""
        progress = self.progress
        progress.seconds = broadcast(time.monotonic() - self.clock, self.shards)
        if isinstance(self.phase, First) and progress.run == 0:  # nothing is known before the first population is
            return dict(progress.events)
        return stopping.reasons(self.limits, self.marks, self.counts()) | progress.events

    def best(self) -> tuple[float, np.ndarray]:
        """The lowest value and its row."""
        phase = self.phase
        if isinstance(phase, First):
            if not phase.known.any():
                return self.champion or (np.inf, self.setup.x0)
            values = np.where(phase.known & np.isfinite(phase.values), phase.values, np.inf)
            population, at = phase.population, int(np.argmin(values))
        else:
            values, population = np.asarray(phase.state.fitness), phase.state.population
            # Of values that are noise in part the lowest is the luckiest: the elite's is the mean of several.
            elite = self.setup.reevaluate != "none" and int(phase.state.generation) > 0
            at = 0 if elite else int(np.argmin(values))
        row = np.array(population[at]) if self.shards is None else self.shards.row(population, at)
        found = float(values[at]), row.astype(self.setup.layout.wide, copy=False)
        return min(found, self.champion, key=lambda pair: pair[0]) if self.champion else found

    def members(self) -> np.ndarray | None:
        """All members `f[N+1, d]`; of a run in several processes only the first gets them."""
        population = self.phase.population if isinstance(self.phase, First) else self.phase.state.population
        return np.asarray(population) if self.shards is None else self.shards.rows(population)

    def glance(self, stop: dict[str, Any]) -> Any:
        """What is cheap to know: what a callback gets."""
        from scipy.optimize import OptimizeResult  # noqa: PLC0415  half a second, and not needed to begin

        setup = self.setup
        value, row = self.best()
        success, status, message = stopping.verdict(stop, self.limits, value)
        with precision(setup.layout.dtype):
            x = setup.layout.solution(row.copy())  # the user's: what is kept must not change with it
        return OptimizeResult(
            x=x,
            fun=setup.sign * value,
            success=success,
            status=status,
            message=message,
            nit=self.progress.nit,
            nfev=self.progress.nfev,
            stop=stop,
        )

    def result(self) -> Any:
        """The best so far as a `scipy.optimize.OptimizeResult`."""
        setup, progress, phase = self.setup, self.progress, self.phase
        result = self.glance(self.stop())
        with precision(setup.layout.dtype):
            if isinstance(phase, First):
                fitness, rates = np.where(phase.known, phase.values, np.nan), np.empty(0)
            else:
                fitness, controller = np.asarray(phase.state.fitness), phase.state.controller
                if self.shards is not None:  # here, where arithmetic is simple
                    controller = jax.tree.map(jnp.asarray, jax.device_get(controller))
                rates = np.exp(np.asarray(self.ga.controller.log_rates(controller)))
            members = None if self.shards is not None and self.shards.processes > 1 else self.members()
            result.update(
                population=None if members is None else setup.layout.stacked(members),
                population_fitness=setup.sign * fitness,
                mutation_rates=rates,
                history=self.record.since(0),
                restarts=progress.run,
                errors=progress.errors,
                seconds=progress.seconds,
                seed=setup.seed,
                versions=_provenance.machine(),
                path=self.path,
            )
        return result


def begin(setup: Setup, limits: Limits, shards: Shards | None = None, *, compiled: bool = False) -> Run:
    """A run whose first population is drawn, and has been accepted if all of its values are known."""
    first = phases.first(setup, 0, shards)
    run = Run(setup, limits, first, shards, compiled)
    if first.known.all():
        run.accept(Values(np.empty(0, setup.layout.wide)), evaluations=0, ask=not compiled)  # type: ignore[arg-type]
    return run
