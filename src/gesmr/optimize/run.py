"""A run's state as a plain value, and what can be done to it: give it values, look at it, begin it again."""

import time
import warnings
from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import _provenance
from .._signals import uninterrupted
from ..devices import Shards, broadcast
from ..ga import GA
from ..generation import Rates, Values
from . import phases, stopping
from .layout import precision
from .options import Setup
from .pending import Pending
from .phases import Before, First, Phase, Ran, Told
from .stopping import Counts, Found, Limits, Progress


class History(NamedTuple):
    """One entry per generation `f64[T]`, never a solution."""

    elite: np.ndarray  # the best value among all N+1 after the generation
    log_rate: np.ndarray  # mean natural log of the rates its children were made with (SAMR: of all it carries)
    evaluations: np.ndarray  # i64[T]  so far, with those of the first population
    log_rate_low: np.ndarray
    log_rate_high: np.ndarray
    log_rate_elite: np.ndarray  # of the rate that was kept unaltered: GESMR's group elite, the elite's own of SAMR
    diversity: np.ndarray  # how far members are from their mean, in units of a variable


class Record:
    """The history of a run while it grows."""

    def __init__(self):
        self._columns = History(*(array("q" if name == "evaluations" else "d") for name in History._fields))  # type: ignore[arg-type]

    def add(self, elite: Any, evaluations: Any, rates: Rates, diversity: Any) -> None:
        """One generation, or many."""
        self.extend(History(elite, rates.mean, evaluations, rates.low, rates.high, rates.elite, diversity))  # type: ignore[arg-type]

    def extend(self, more: History) -> None:
        for column, entries in zip(self._columns, more, strict=True):
            column.frombytes(np.atleast_1d(np.asarray(entries, column.typecode)).tobytes())  # type: ignore[attr-defined]

    def since(self, generation: int) -> History:
        return History(*(np.frombuffer(column[generation:], column.typecode) for column in self._columns))  # type: ignore[attr-defined]


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
    champion: "Best | None" = None  # of earlier runs, before a restart
    warned: bool = False  # that no value is finite
    pending: Pending | None = None  # candidates between asking and telling, if they come and go one by one
    handed: bool = False  # whether all of a generation are out, and none has come back

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
        phase, progress, setup, self.handed = self.phase, self.progress, self.setup, False
        with precision(setup.layout.dtype), uninterrupted():
            if isinstance(phase, First):
                begun = phases.begun(setup, progress.run)
                self.phase = phases.valued(self.ga, setup, begun, phase.filled(values), ask=ask)
                progress.elite_count = 1
                progress.nfev += evaluations
                found = self._best_member()
                progress.found = Found.at_first(found.value, found.violation)
            else:
                assert isinstance(phase, Told)
                made = phase.state._replace(population=None), phase.proposal._replace(population=None)  # type: ignore[arg-type]
                before = Before(*made, values, np.int32(progress.elite_count))
                self.phase, progress.elite_count, seen = phases.told(self.ga, phase.proposal.population, before)
                progress.take(self.counts().after(seen, evaluations, self.limits.tolerance))
                self.record.add(setup.sign * seen.best, progress.nfev, Rates(*np.asarray(phase.rates)), seen.diversity)
        self.look_around()

    # candidates that come and go one by one

    def out(self) -> Pending:
        """What is on its way in the generation in progress."""
        rows = self.rows()
        if self.pending is None:
            self.pending = Pending.of(rows)
            self.pending.handed[:] = self.handed
        return self.pending

    def more_candidates(self) -> None:
        """Siblings of those that are out."""
        pending, phase = self.out(), self.phase
        assert not isinstance(phase, Ran)
        rows = phases.siblings(self.ga, self.setup, self.progress.run, phase, pending.rounds)
        pending.add_siblings(self.wide(rows))

    def take(self, numbers: list[int], values: np.ndarray, violations: np.ndarray) -> None:
        """The values of candidates that are out, and the step if they are the last."""
        pending = self.out()
        for gone in pending.take(numbers, values, violations):
            if self.champion is None or gone[:2] < self.champion[:2]:
                self.champion = Best(*gone)
        if pending.filled.all():
            self._close(pending)

    def _close(self, pending: Pending) -> None:
        """Make the step, now that every slot has its value."""
        before = self.progress.run
        rows, values, violations, judged = pending.closed()
        self._exchange(rows)
        judgements = None if isinstance(self.phase, First) or judged.all() else judged
        self.pending = None
        self.accept(
            Values(values, violations=violations if self.setup.constrained else None, judged=judgements),  # type: ignore[arg-type]
            pending.evaluations,
        )
        if (pending.handed & ~pending.told).any() or len(pending.queued):
            self.pending = Pending.of(self.rows(), pending, restarted=self.progress.run > before)

    def _exchange(self, rows: np.ndarray) -> None:
        """Put `rows f[n, d]` into the population that is being valued, as it holds them."""
        phase = self.phase
        is_first = isinstance(phase, First)
        population = np.array(phase.population if is_first else phase.proposal.population)  # type: ignore[union-attr]
        at = np.flatnonzero(~phase.known) if is_first else np.arange(1, len(population))
        if (self.wide(population[at]) == rows).all():
            return
        population[at] = rows.astype(population.dtype)
        with precision(self.setup.layout.dtype):
            there = jnp.asarray(population)
        if isinstance(phase, First):
            self.phase = phase._replace(population=there)
        else:
            assert isinstance(phase, Told)
            self.phase = phase._replace(proposal=phase.proposal._replace(population=there))

    def look_around(self) -> None:
        """After a generation: say so if nothing is finite, restart if nothing moves."""
        progress = self.progress
        found = progress.found
        if not np.isfinite(found.best) and not 0 < found.violation < np.inf and not self.warned:
            self.warned = True
            patience = self.limits.blind_patience
            message = f"no candidate has had a finite value yet; the search goes on blindly for {patience} generations"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        if progress.run < self.setup.restarts and progress.stale >= self.limits.stall_patience:
            self._restart()

    def _restart(self) -> None:
        """Begin again with another first population, if the budget has room for it."""
        progress, maxfun = self.progress, self.limits.maxfun
        room = self.setup.repeats * self.setup.members(progress.run + 1)
        stalled = {"patience", "ftol", "nonfinite"}
        if self.stop().keys() - stalled or (maxfun is not None and progress.nfev + room > maxfun):
            return
        self.champion = self.best()
        progress.run, progress.found, progress.stale, progress.blind = progress.run + 1, Found(), 0, 0
        self.ga = self.setup.ga(progress.run)
        self.phase = phases.first(self.setup, progress.run, self.shards)

    # looking

    def counts(self) -> Counts:
        """What has been counted so far; another generation costs nothing while the first population has no values, and
        what is missing of one that is under way."""
        now = self.progress.counts(0 if isinstance(self.phase, First) else self.setup.generation_cost(self.ga))
        if self.pending is None:
            return now
        missing = int((~self.pending.filled).sum())
        return now._replace(nfev=now.nfev + self.pending.evaluations, cost=min(now.cost, missing))

    def stop(self) -> dict[str, Any]:
        """Reasons to stop, by name: empty while there are none. Reads the clock."""
        progress = self.progress
        progress.seconds = broadcast(time.monotonic() - self.clock, self.shards)
        if isinstance(self.phase, First) and progress.run == 0:  # nothing is known before the first population is
            return dict(progress.events)
        return stopping.reasons(self.limits, self.marks, self.counts()) | progress.events

    def best(self) -> "Best":
        """The best of this run, of those before a restart, and of what is told but not in the population yet."""
        found = self._best_in_populations()
        told = None if self.pending is None else self.pending.best()
        return found if told is None or found[:2] <= told[:2] else Best(*told)

    def _best_in_populations(self) -> "Best":
        if isinstance(self.phase, First) and not self.phase.known.any():
            return self.champion or Best(np.inf if self.setup.constrained else 0.0, np.inf, self.setup.x0)
        found = [self._best_member(), *([] if self.champion is None else [self.champion])]
        return min(found, key=lambda best: best[:2])

    def _best_member(self) -> "Best":
        phase = self.phase
        if isinstance(phase, First):
            known, population = phase.known, phase.population
            values = np.where(known & np.isfinite(phase.values), phase.values, np.inf)
            violations = None if phase.violations is None else np.where(known, phase.violations, np.inf)
        else:
            values, population = np.asarray(phase.state.fitness), phase.state.population
            violations = None if phase.state.violation is None else np.asarray(phase.state.violation)
        violations = np.zeros_like(values) if violations is None else violations
        # Of values that are noise in part the lowest is the luckiest: the elite's is the mean of several.
        is_mean = self.setup.reevaluate != "none" and not isinstance(phase, First) and int(phase.state.generation) > 0
        at = 0 if is_mean else int(np.lexsort((values, violations))[0])
        row = _row(population, at) if self.shards is None else self.shards.row(population, at)
        return Best(float(violations[at]), float(values[at]), row.astype(self.setup.layout.wide, copy=False))

    def members(self) -> np.ndarray | None:
        """All members `f[N+1, d]`; of a run in several processes only the first gets them."""
        population = self.phase.population if isinstance(self.phase, First) else self.phase.state.population
        return np.asarray(population) if self.shards is None else self.shards.rows(population)

    def glance(self, stop: dict[str, Any]) -> Any:
        """What is cheap to know: what a callback gets."""
        from .result import Result  # noqa: PLC0415  half a second for scipy's, and not needed to begin

        setup = self.setup
        violation, value, row = self.best()
        success, status, message = stopping.verdict(stop, self.limits, value, violation)
        with precision(setup.layout.dtype):
            x = setup.layout.solution(row.copy())  # the user's: what is kept must not change with it
        result = Result(
            x=x,
            fun=setup.sign * value,
            success=success,
            status=status,
            message=message,
            nit=self.progress.nit,
            nfev=self.progress.nfev + (0 if self.pending is None else self.pending.evaluations),
            stop=stop,
            seconds=self.progress.seconds,
        )
        if setup.constrained:
            result.constr_violation = violation
        return result

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
                seed=setup.seed,
                versions=_provenance.machine(),
                path=self.path,
            )
        return result


def _row(population: jax.Array, at: int) -> np.ndarray:
    """A copy of one member. Where the host can see all of them no program is compiled for it."""
    is_here = all(device.platform == "cpu" for device in population.devices())
    return np.array(np.asarray(population)[at] if is_here else population[at])


class Best(NamedTuple):
    """The best of a run, as minimised inside."""

    violation: float  # 0 without constraints
    value: float
    row: np.ndarray  # f[d]


def begin(setup: Setup, limits: Limits, shards: Shards | None = None, *, compiled: bool = False) -> Run:
    """A run whose first population is drawn, and has been accepted if all of its values are known."""
    first = phases.first(setup, 0, shards)
    run = Run(setup, limits, first, shards, compiled)
    if first.known.all():
        run.accept(Values(np.empty(0, setup.layout.wide)), evaluations=0, ask=not compiled)  # type: ignore[arg-type]
    return run
