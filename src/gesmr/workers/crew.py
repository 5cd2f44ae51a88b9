"""Workers that evaluate populations, whatever they are: started once, given the objective once, closed at the end."""

import math
import threading
import time
import warnings
from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from .. import _checks
from .._signals import uninterrupted
from .schedule import Answer, Schedule
from .sending import WorkerError, described, pack, unpack_exception

_LOOK = 0.25  # seconds between looks at who is late
_JUDGED = 10  # populations after which workers may be found slower than none
_STARTS = 3  # times a worker may fail to start in a row
_LOADING_SECONDS = 60.0  # for loading an objective, or `timeout` if that is longer


class Ready(NamedTuple):
    worker: Hashable


class Answered(NamedTuple):
    worker: Hashable
    number: int
    answer: Answer


class Lost(NamedTuple):
    worker: Hashable
    why: str
    blame: bool = True  # whether the candidate it had may be the cause


class Refused(NamedTuple):
    """A worker could not load the objective."""

    worker: Hashable
    why: bytes


class Unstarted(NamedTuple):
    """A worker is not there, or died or took too long while it was loading the objective."""

    worker: Hashable
    why: str
    final: bool = False  # whether trying again is of no use


Event = Ready | Answered | Lost | Refused | Unstarted


class Transport(Protocol):
    """How workers are reached. A worker that is lost, refuses, does not start or is ended is replaced at once."""

    size: int
    grain: float  # seconds an assignment should last for sending it to cost little

    def load(self, objective: bytes) -> None:
        """Give all workers, and those that replace them, another objective; each says that it is ready for it."""
        ...

    def send(self, worker: Any, number: int, rows: np.ndarray) -> None: ...

    def wait(self, seconds: float) -> list[Event]:
        """What has happened, as soon as something has, at most so many seconds from now."""
        ...

    def end(self, worker: Any) -> None:
        """End a worker, whatever it does, and start another."""
        ...

    def close(self) -> None: ...


def unloaded(seconds: float) -> str:
    """Why a worker was ended that had so many for loading the objective."""
    return f"it has not loaded fun within {seconds:g} s (a longer timeout gives it as long as that)"


class Evaluated(NamedTuple):
    values: np.ndarray  # f64[n]; NaN where there is an error
    errors: dict[int, str]


class Crew:
    """Shared by several calls of `minimize` in a `with` block; otherwise started and closed by each."""

    def __init__(self, timeout: float | None = None, tries: int = 3, chunk: int | None = None):
        if timeout is not None:
            _checks.number("timeout", timeout, 0.0)
        self.timeout = None if timeout is None else float(timeout)
        self.tries = _checks.integer("tries", tries, 1)
        self.chunk = None if chunk is None else _checks.integer("chunk", chunk, 1)
        self.held = False  # by a `with` block
        self._team: _Team | None = None
        self._busy = threading.Lock()

    @property
    def patience(self) -> float:
        """Seconds that loading the objective may take."""
        return math.inf if self.timeout is None else max(self.timeout, _LOADING_SECONDS)

    @classmethod
    def meant_by(cls, workers: Any, timeout: float | None) -> Self | None:
        """The crew that `workers`, which is none, stands for, if it is one of this kind."""
        raise NotImplementedError

    def _connect(self) -> "Transport":
        raise NotImplementedError

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
        self._end_team()

    def evaluate(self, objective: bytes, rows: np.ndarray, *, forgiving: bool) -> Evaluated:
        """Values of candidates by a packed objective. Raises what the first candidate that fails has raised.

        If `forgiving`, candidates that workers die of count as the worst, as do those whose errors the objective
        itself catches.
        """
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(f"these workers are in use: another call needs a {type(self).__name__} of its own")
        try:
            team = self._open()
            try:
                team.evaluate(objective, rows, forgiving)
            finally:
                if not team.sound:  # cut off in the middle of something, by Ctrl-C for instance
                    self._end_team()
            return team.outcome()
        finally:
            self._busy.release()

    def _end_team(self) -> None:
        with uninterrupted():
            team, self._team = self._team, None
            if team is not None:
                team.transport.close()

    def _open(self) -> "_Team":
        if self._team is None:
            self._team = _Team(self._connect(), self)
        return self._team


class _Team:
    """Workers that are running, and the loop that keeps them at work."""

    def __init__(self, transport: Transport, options: Crew):
        self.transport = transport
        self._schedule = Schedule(
            transport.size,
            tries=options.tries,
            timeout=options.timeout,
            chunk=options.chunk,
            grain=transport.grain,
        )
        self._name = str(options)
        self._objective: bytes | None = None
        self._ready: set[Hashable] = set()
        self._failed_starts = 0
        self._populations, self._wall, self._spent = 0, 0.0, 0.0
        self.sound = True  # whether it can be asked for more

    def evaluate(self, objective: bytes, rows: np.ndarray, forgiving: bool) -> None:
        self.sound = False
        if objective is not self._objective:
            self._load(objective)
        while not self._ready:
            self._handle(self.transport.wait(_LOOK))
        schedule, complete = self._schedule, len(self._ready) == self.transport.size
        start = time.monotonic()
        schedule.begin(len(rows), forgiving=forgiving)
        while not schedule.done:
            self._hand_out(rows)
            until = min(schedule.next_deadline() - time.monotonic(), _LOOK)
            self._handle(self.transport.wait(max(until, 0.0)))
            self._end_overdue()
        self.sound = True
        if complete and len(rows) > 1 and schedule.failure is None:
            self._judge(time.monotonic() - start)

    def outcome(self) -> Evaluated:
        schedule = self._schedule
        if schedule.failure is not None:
            row, why = schedule.failure
            raise unpack_exception(why) if isinstance(why, bytes) else WorkerError(f"candidate {row}: {why}")
        return Evaluated(schedule.values, schedule.errors)

    def _load(self, objective: bytes) -> None:
        for worker in [worker for worker in self._ready if not self._schedule.is_idle(worker)]:
            self._end(worker, "it was busy with another function")
        self._ready.clear()
        self._objective = objective
        self._populations, self._wall, self._spent = 0, 0.0, 0.0
        self.transport.load(objective)

    def _hand_out(self, rows: np.ndarray) -> None:
        now = time.monotonic()
        for worker in self._ready:
            if self._schedule.is_idle(worker):
                assignment = self._schedule.hand_out(worker, now)
                if assignment is None:
                    return
                mine = rows[assignment.rows.start : assignment.rows.stop]
                self.transport.send(worker, assignment.number, mine)

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Ready(worker):
                    self._ready.add(worker)
                    self._failed_starts = 0
                case Answered(worker, number, answer):
                    self._schedule.answered(worker, number, answer)
                case Lost(worker, why, blame):
                    self._ready.discard(worker)
                    self._schedule.lost(worker, why, blame=blame)
                case Refused(_, why):
                    self.sound, self._objective = True, None
                    error = unpack_exception(why)
                    raise WorkerError(
                        f"a worker cannot load fun: {described(error)}; what it needs must be importable there (in a "
                        "session without a file, pip install cloudpickle sends it along)"
                    ) from error
                case Unstarted(worker, why, final):
                    self._ready.discard(worker)
                    self._failed_starts += 1
                    if final or self._failed_starts >= _STARTS:
                        often = "" if final else f", {self._failed_starts} times in a row"
                        raise WorkerError(f"a worker could not be started{often}: {why}")

    def _end_overdue(self) -> None:
        for worker, why in self._schedule.overdue(time.monotonic()):
            self._end(worker, why)

    def _end(self, worker: Hashable, why: str) -> None:
        self._ready.discard(worker)
        self._schedule.lost(worker, why)
        self.transport.end(worker)

    def _judge(self, seconds: float) -> None:
        """Say so, once, if nothing is gained."""
        self._populations += 1
        self._wall, self._spent = self._wall + seconds, self._spent + self._schedule.spent
        if self._populations == _JUDGED and self._wall > self._spent:
            warnings.warn(
                f"{self._name} are slower than none: {_JUDGED} generations took {self._wall:.3g} s, of which fun "
                f"itself needs {self._spent:.3g} s; leave out workers",
                RuntimeWarning,
                stacklevel=2,
            )
