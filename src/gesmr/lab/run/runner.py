"""Computes what a study asks for and the store does not have yet, on this machine or on a cluster."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from rich.console import Console

from ..errors import LabError
from .cluster import Cluster, LostError, NodePlace
from .machine import DevicePlace, Machine, Stopped
from .progress import Display, LiveDisplay
from .specs import Job, Spec, Study, as_json, content_hash
from .store import Store

Place = DevicePlace | NodePlace  # where one job at a time is computed
_LOSSES = 3  # of places that computed a job, after which the job itself is suspected
_POLL = 0.2  # seconds between looks for new places, and for what other processes have finished


def run(
    study: Study,
    specs: Sequence[Spec],
    store: Store,
    *,
    console: Console | None = None,
    devices: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    cluster: str | None = None,
    command: str | None = None,
) -> int:
    """Compute and store every job of `specs` that is missing; how many runs that were.

    On the first `devices` devices, or all, `threads` jobs run at a time on each; `memory` bytes is what one may use.
    `cluster` is the address of a Ray cluster to compute on instead, on all devices of its nodes. None of these changes
    a random draw. `command` is what a user gave, for the store's log.
    """
    start = time.perf_counter()
    console = console or Console(stderr=True)
    where = Machine(devices, threads) if cluster is None else Cluster(cluster, threads, console)
    done = store.done()
    missing = [spec for spec in specs if content_hash(as_json(spec)) not in done]
    if not missing:
        return 0
    with where:
        plan = where.plan(study, missing, memory)
        jobs = [_Job(*pair) for pair in sorted(plan.jobs, key=lambda pair: pair[0].alone)]
        display = LiveDisplay if console.is_terminal else Display
        with display(console, sum(len(job.job.specs) for job in jobs), sum(job.work for job in jobs)) as shown:
            where.prepare([job.job for job in jobs])
            try:
                _Run(jobs, store, shown).finish(where)
            finally:  # also when interrupted: the log says what made all that is stored
                stored = [job.job for job in jobs if store.has(job.job.specs)]
                seconds = round(time.perf_counter() - start, 1)
                counts = {"groups": len(stored), "runs": sum(len(job.specs) for job in stored)}
                asked = {} if command is None else {"command": command}
                if stored:
                    store.log({**plan.facts, **counts, "wall_seconds": seconds, **asked})
    return len(missing)


@dataclass(eq=False)
class _Job:
    """A job on its way."""

    job: Job
    work: float
    shown: float = 0.0  # of its work
    losses: int = 0  # of places that computed it
    claim: ExitStack = field(default_factory=ExitStack)


class _Run:
    """Every place has a thread, which takes the first job that nobody else computes, until there is none left.

    Jobs that must be alone come last, one at a time.
    """

    def __init__(self, jobs: Sequence[_Job], store: Store, shown: Display):
        self._waiting, self._running = deque(jobs), 0
        self._store, self._shown = store, shown
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def finish(self, where: Machine | Cluster) -> None:
        """Compute all jobs, or raise what the first that failed has raised."""
        threads: list[threading.Thread] = []
        try:
            while self._left and self._error is None:
                for place in where.places():
                    threads.append(threading.Thread(target=self._serve, args=(place,), name="run"))
                    threads[-1].start()
                with self._changed:
                    if self._left and self._error is None:
                        self._changed.wait(_POLL)
        finally:  # also when interrupted: what is under way ends at its next tick
            self._stop.set()
            for thread in threads:
                thread.join()
        if self._error is not None:
            raise self._error

    @property
    def _left(self) -> int:
        return len(self._waiting) + self._running

    def _serve(self, place: Place) -> None:
        try:
            while (job := self._next(place)) is not None:
                with job.claim:
                    finished = self._compute(job, place)
                with self._changed:
                    self._running -= 1
                    if not finished:
                        self._waiting.appendleft(job)
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                if self._error is None and not isinstance(error, Stopped):
                    self._error = error
                self._stop.set()
                self._changed.notify_all()

    def _next(self, place: Place) -> _Job | None:
        """A job that is ours now, as soon as there is one; None if there will be none for this place."""
        with self._changed:
            while self._left and not place.gone and not self._stop.is_set():
                if (job := self._claimed()) is not None:
                    self._waiting.remove(job)
                    self._running += 1
                    return job
                self._changed.wait(_POLL)
        return None

    def _claimed(self) -> _Job | None:
        """The first that may be computed now. Those that another process computes wait until it is done with them."""
        together = [job for job in self._waiting if not job.job.alone]
        for job in together if together or self._running else list(self._waiting):
            if self._store.has(job.job.specs):
                self._waiting.remove(job)
                self._shown.skipped(job.job.label, len(job.job.specs), job.work)
            elif job.claim.enter_context(self._store.claim(job.job.specs)) and not self._store.has(job.job.specs):
                return job
            else:  # another's, or finished by another just before the claim
                job.claim.close()
        return None

    def _compute(self, job: _Job, place: Place) -> bool:
        """Whether it was finished and stored, rather than lost with its place."""

        def worked(work: float) -> None:
            job.shown += work
            self._shown.worked(work, work / job.job.evaluation)

        label = job.job.label
        try:
            computed = place.compute(job.job, self._stop, lambda: self._shown.started(label), worked)
        except LostError as error:
            job.losses += 1
            if job.losses == _LOSSES:
                raise LabError(
                    f"{label}: {_LOSSES} nodes of the Ray cluster were lost while they computed it (has it enough "
                    f"memory?); finished runs are kept. The last one: {error}"
                ) from error
            worked(-job.shown)
            self._shown.lost(label)
            return False
        worked(job.work - job.shown)
        self._store.write(job.job.specs, computed.arrays, computed.record)
        self._shown.finished(label, len(job.job.specs), computed.seconds)
        return True
