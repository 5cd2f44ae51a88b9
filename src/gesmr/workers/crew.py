"""Workers that evaluate populations, whatever they are: started once, given the objective once, closed at the end."""

import math
import threading
import time
import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from .. import _checks
from .._signals import uninterrupted
from .schedule import Answer, Schedule
from .sending import WorkerError, described, pack, unpack_exception

_LOOK = 0.25  # seconds between looks at who is late
_JUDGED = 10  # populations after which workers may be found slower than none
_STARTS = 3  # times a worker may fail to start in a row
_LOADING_SECONDS = 60.0  # for loading an objective, or `timeout` if that is longer


class Evaluated(NamedTuple):
    values: np.ndarray  # f64[n]; NaN where there is an error
    errors: dict[int, str]


class Worker:
    """One worker, seen from here."""

    state = "starting"  # then "idle" until there is an objective, "loading", "ready" and, now and then, "busy"
    since = 0.0  # when it last took something


class Crew(ABC):
    """Workers, and the loop that keeps them at work. How they are reached is up to each kind.

    Shared by several calls of `minimize` in a `with` block; otherwise started and closed by each. A worker that is
    lost, refuses, does not start or is ended is replaced at once.
    """

    _grain: float  # seconds an assignment should last for sending it to cost little

    def __init__(self, timeout: float | None = None, tries: int = 3, chunk: int | None = None):
        self.timeout = None if timeout is None else _checks.number("timeout", timeout, 0.0)
        self.tries = _checks.integer("tries", tries, 1)
        self.chunk = None if chunk is None else _checks.integer("chunk", chunk, 1)
        self.held = False  # by a `with` block
        self._is_open = False
        self._busy = threading.Lock()

    @property
    def patience(self) -> float:
        """Seconds that loading the objective may take."""
        return math.inf if self.timeout is None else max(self.timeout, _LOADING_SECONDS)

    def pack(self, call: Any) -> bytes:
        """The objective as it is sent; TypeError if it cannot be."""
        return pack(call)

    def __enter__(self) -> Self:
        self._open()
        self.held = True
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, also those in the middle of something."""
        self.held = False
        self._end_all()

    def evaluate(self, objective: bytes, rows: np.ndarray, *, forgiving: bool) -> Evaluated:
        """Values of candidates by a packed objective. Raises what the first candidate that fails has raised.

        If `forgiving`, candidates that workers die of count as the worst, as do those whose errors the objective
        itself catches.
        """
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(f"these workers are in use: another call needs a {type(self).__name__} of its own")
        try:
            self._open()
            try:
                return self._evaluate(objective, rows, forgiving)
            finally:
                if not self._sound:  # cut off in the middle of something, by Ctrl-C for instance
                    self._end_all()
        finally:
            self._busy.release()

    def _open(self) -> None:
        if self._is_open:
            return
        self._is_open = True
        self._sound = True  # whether workers can be asked for more
        self._workers: list[Any] = []
        self._objective: bytes | None = None
        self._failed_starts = 0
        try:
            size, limits = self._connect(), {"tries": self.tries, "timeout": self.timeout, "chunk": self.chunk}
            self._schedule = Schedule(size, **limits, grain=self._grain)
            for _ in range(size):
                self._start()
        except BaseException:
            self._end_all()
            raise

    def _end_all(self) -> None:
        with uninterrupted():
            if self._is_open:
                self._is_open = False
                self._disconnect()

    # What a kind has to do

    @classmethod
    @abstractmethod
    def meant_by(cls, workers: Any, timeout: float | None) -> Self | None:
        """The crew that `workers`, which is none, stands for, if it is one of this kind."""

    @abstractmethod
    def _connect(self) -> int:
        """Prepare for workers; how many there are to be."""

    @abstractmethod
    def _start(self) -> None:
        """Start one more. It has `_started` when it can load an objective."""

    @abstractmethod
    def _forget(self, worker: Any) -> None:
        """End a worker, whatever it does."""

    @abstractmethod
    def _publish(self, objective: bytes) -> None:
        """Another objective: nobody waits for what has to do with the one before."""

    @abstractmethod
    def _tell_objective(self, worker: Any) -> None:
        """Have a worker load what was published. It has `_loaded` that."""

    @abstractmethod
    def _tell_rows(self, worker: Any, number: int, rows: np.ndarray) -> None:
        """Have a worker evaluate candidates. It has `_answered`."""

    @abstractmethod
    def _hear(self, seconds: float) -> None:
        """Pass on what has happened, as soon as something has, at most so many seconds from now."""

    @abstractmethod
    def _disconnect(self) -> None:
        """End all workers."""

    # What a kind has heard of a worker

    def _started(self, worker: Worker) -> None:
        worker.state = "idle"
        if self._objective is not None:
            self._load_at(worker)

    def _loaded(self, worker: Worker, failure: bytes | None) -> None:
        if failure is not None:
            worker.state, self._sound, self._objective = "idle", True, None
            error = unpack_exception(failure)
            raise WorkerError(
                f"a worker cannot load fun: {described(error)}; what it needs must be importable there (in a "
                "session without a file, pip install cloudpickle sends it along)"
            ) from error
        worker.state = "ready"
        self._failed_starts = 0

    def _answered(self, worker: Worker, number: int, answer: Answer) -> None:
        worker.state = "ready"
        self._schedule.answered(worker, number, answer)

    def _unstarted(self, why: str, *, final: bool = False) -> None:
        """A worker is not there, or died or took too long while it was loading; no use trying again if `final`."""
        self._failed_starts += 1
        if final or self._failed_starts >= _STARTS:
            often = "" if final else f", {self._failed_starts} times in a row"
            raise WorkerError(f"a worker could not be started{often}: {why}")

    # The loop

    def _evaluate(self, objective: bytes, rows: np.ndarray, forgiving: bool) -> Evaluated:
        self._sound = False
        if objective is not self._objective:
            self._load(objective)
        while not self._at_work():
            self._listen(_LOOK)
        schedule, complete = self._schedule, self._at_work() == len(self._workers)
        start = time.monotonic()
        schedule.begin(len(rows), forgiving=forgiving)
        while not schedule.done:
            self._hand_out(rows)
            until = min(schedule.next_deadline() - time.monotonic(), _LOOK)
            self._listen(max(until, 0.0))
            for worker, why in schedule.overdue(time.monotonic()):
                self._end(worker, why)
        self._sound = True
        if schedule.failure is not None:
            row, why = schedule.failure
            raise unpack_exception(why) if isinstance(why, bytes) else WorkerError(f"candidate {row}: {why}")
        if complete and len(rows) > 1:
            self._judge(time.monotonic() - start)
        return Evaluated(schedule.values, schedule.errors)

    def _at_work(self) -> int:
        """How many have loaded the objective."""
        return sum(worker.state in ("ready", "busy") for worker in self._workers)

    def _load(self, objective: bytes) -> None:
        for worker in [worker for worker in self._workers if worker.state == "busy"]:
            self._end(worker, "it was busy with another function")
        self._objective = objective
        self._populations, self._wall, self._spent = 0, 0.0, 0.0
        self._publish(objective)
        for worker in self._workers:
            if worker.state != "starting":
                self._load_at(worker)

    def _load_at(self, worker: Worker) -> None:
        worker.state, worker.since = "loading", time.monotonic()
        self._tell_objective(worker)

    def _hand_out(self, rows: np.ndarray) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.state == "ready":
                assignment = self._schedule.hand_out(worker, now)
                if assignment is None:
                    return
                worker.state = "busy"
                self._tell_rows(worker, assignment.number, rows[assignment.rows.start : assignment.rows.stop])

    def _listen(self, seconds: float) -> None:
        self._hear(seconds)
        until = time.monotonic() - self.patience
        for worker in [worker for worker in self._workers if worker.state == "loading" and worker.since < until]:
            self._replace(worker)
            limit = f"within {self.patience:g} s (a longer timeout gives it as long as that)"
            self._unstarted(f"it has not loaded fun {limit}")

    def _end(self, worker: Any, why: str) -> None:
        self._schedule.lost(worker, why)
        self._replace(worker)

    def _replace(self, worker: Any) -> None:
        self._forget(worker)
        self._start()

    def _judge(self, seconds: float) -> None:
        """Say so, once, if nothing is gained."""
        self._populations += 1
        self._wall, self._spent = self._wall + seconds, self._spent + self._schedule.spent
        if self._populations == _JUDGED and self._wall > self._spent:
            warnings.warn(
                f"{self} are slower than none: {_JUDGED} generations took {self._wall:.3g} s, of which fun "
                f"itself needs {self._spent:.3g} s; leave out workers",
                RuntimeWarning,
                stacklevel=2,
            )
