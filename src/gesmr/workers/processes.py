"""Workers that are processes of this machine."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from .. import _checks
from .._signals import uninterrupted
from .crew import Answered, Crew, Event, Lost, Ready, Refused, Transport, Unstarted
from .remote import Evaluator

_NAME = "gesmr worker"
_GRAIN = 0.002
_CLOSING_SECONDS = 2.0  # for workers to end by themselves
_MOST = 1024
_UNGUARDED = 77  # exit status of a worker that was about to start workers
_GUARD = (
    "every worker runs the script that uses workers up to there, and must not start workers itself; put what the "
    'script does below `if __name__ == "__main__":`'
)


class Pool(Crew):
    """Processes of this machine, as many as there are CPUs by default.

    timeout: seconds a candidate may take; then its process is ended.
    tries: how often a candidate is tried that processes die of, or that takes too long.
    chunk: candidates sent at a time, by default found out from how long they take.
    """

    def __init__(
        self, processes: int | None = None, *, timeout: float | None = None, tries: int = 3, chunk: int | None = None
    ):
        super().__init__(timeout, tries, chunk)
        self.processes = cpus() if processes is None else _checks.integer("processes", processes, 1, _MOST)

    def __str__(self) -> str:
        return f"{self.processes} processes"

    def _connect(self) -> Transport:
        return _Processes(self.processes)


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """One process, seen from here."""

    def __init__(self, context: Any):
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), name=_NAME)
        with _without_interrupts():
            self.process.start()
        theirs.close()
        self.state = "starting"  # then "loading", "idle" and "busy"

    def kill(self) -> None:
        """End it and what it has started, whatever they do."""
        _kill_group(self.process)
        self.process.join()
        self.connection.close()


class _Processes:
    grain = _GRAIN

    def __init__(self, size: int):
        here = multiprocessing.current_process()
        if here.name == _NAME and getattr(here, "_inheriting", False):
            sys.exit(_UNGUARDED)  # a worker, in the middle of importing the script
        self.size = size
        self._context = multiprocessing.get_context("spawn")
        self._objective: tuple[int, bytes] | None = None
        self._workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, _close, self._workers)  # if nobody closes it
        try:
            for _ in range(size):
                self._start()
        except BaseException:
            self.close()
            raise

    def load(self, objective: bytes) -> None:
        number = 1 if self._objective is None else self._objective[0] + 1
        self._objective = (number, objective)
        for worker in self._workers:
            if worker.state != "starting":
                self._send(worker, self._objective)

    def send(self, worker: _Worker, number: int, rows: np.ndarray) -> None:
        rows = np.ascontiguousarray(rows)
        worker.state = "busy"
        with suppress(OSError):  # it has died: `wait` says so
            worker.connection.send((number, rows.shape, rows.dtype.str))
            worker.connection.send_bytes(rows.reshape(-1).view(np.uint8).data)

    def wait(self, seconds: float) -> list[Event]:
        by_handle = {}
        for worker in self._workers:
            by_handle[worker.connection] = by_handle[worker.process.sentinel] = worker
        found = {id(by_handle[handle]): by_handle[handle] for handle in wait(list(by_handle), seconds)}
        return [event for worker in found.values() for event in self._events(worker)]

    def end(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.kill()
        self._start()

    def close(self) -> None:
        self._finalizer.detach()
        _close(self._workers)

    def _start(self) -> None:
        with uninterrupted():
            self._workers.append(_Worker(self._context))

    def _events(self, worker: _Worker) -> Iterator[Event]:
        try:
            while worker.connection.poll():
                yield from self._received(worker, *worker.connection.recv())
            gone = bool(wait([worker.process.sentinel], 0))
        except (EOFError, OSError):
            gone = True
        if gone:
            yield self._died(worker)

    def _received(self, worker: _Worker, kind: str, *content: Any) -> Iterator[Event]:
        match kind:
            case "started":
                worker.state = "loading"
                if self._objective is not None:
                    self._send(worker, self._objective)
            case "loaded":
                number, failure = content
                if self._objective is not None and number == self._objective[0]:
                    worker.state = "idle"
                    yield Ready(worker) if failure is None else Refused(worker, failure)
            case "answer":
                worker.state = "idle"
                yield Answered(worker, *content)

    def _died(self, worker: _Worker) -> Event:
        started = worker.state != "starting"
        self._workers.remove(worker)
        wait([worker.process.sentinel], _CLOSING_SECONDS)  # so that its status is its own
        worker.kill()
        status = worker.process.exitcode
        if status == _UNGUARDED and not started:
            return Unstarted(worker, _GUARD, final=True)
        self._start()
        why = f"its process {_ended(status)}"
        return Lost(worker, why) if started else Unstarted(worker, why)

    def _send(self, worker: _Worker, message: Any) -> None:
        with suppress(OSError):
            worker.connection.send(message)


def _ended(status: int | None) -> str:
    if status is None or status >= 0:
        return f"exited with status {status}"
    return f"was killed by {signal.Signals(-status).name}" if -status in list(signal.Signals) else f"ended by {-status}"


def _close(workers: list[_Worker]) -> None:
    """Idle workers end by themselves, the others are ended."""
    for worker in workers:
        with suppress(OSError):
            worker.connection.close()
    until = time.monotonic() + _CLOSING_SECONDS
    for worker in workers:
        if worker.state == "idle":
            wait([worker.process.sentinel], max(until - time.monotonic(), 0.0))
        worker.kill()
    workers.clear()


def _kill_group(process: Any) -> None:
    """Before it is waited for: its number is its own that long."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process that is started in the block has Ctrl-C blocked: it is for the one that waits for it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In the other process


def _work(connection: Connection) -> None:
    """Load objectives, evaluate what comes, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":
        os.setpgid(0, 0)  # so that what fun starts can be ended with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    evaluator = None
    try:
        connection.send(("started",))
        while True:
            match connection.recv():
                case (int(number), bytes(objective)):
                    evaluator = Evaluator(objective)
                    connection.send(("loaded", number, evaluator.failure))
                case (int(number), tuple(shape), str(dtype)) if evaluator is not None:
                    rows = np.frombuffer(connection.recv_bytes(), dtype).reshape(shape)
                    connection.send(("answer", number, evaluator(rows)))
    except (EOFError, OSError):  # closed
        pass


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    if os.name == "posix":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
