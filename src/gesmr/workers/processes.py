"""Workers that are processes of this machine."""

import multiprocessing
import os
import pickle
import selectors
import signal
import socket
import struct
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from .. import _checks
from .._signals import uninterrupted
from .crew import Crew, Worker
from .remote import Evaluator

_NAME = "gesmr worker"
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
_CLOSING_SECONDS = 2.0  # for workers to end by themselves
MOST = 1024
_LENGTH = struct.Struct("!Q")  # before each thing that a worker says
_PART = 1 << 16  # bytes read at a time
_UNGUARDED = 77  # exit status of a worker that was about to start workers
_GUARD = (
    "every worker runs the script that uses workers up to there, and must not start workers itself; put what the "
    'script does below `if __name__ == "__main__":`'
)


class Pool(Crew):
    """Processes of this machine; by default one for each CPU.

    timeout: seconds a candidate may take, including sending it; then its process is ended. A process that takes longer
        than this, and longer than a minute, to load the function is ended too.
    tries: how often to try a candidate that takes too long or whose process dies.
    chunk: candidates sent at a time; by default measured from how long they take.
    """

    _grain = 0.002

    def __init__(
        self, processes: int | None = None, *, timeout: float | None = None, tries: int = 3, chunk: int | None = None
    ):
        super().__init__(timeout, tries, chunk)
        self.processes = cpus() if processes is None else _checks.integer("processes", processes, 1, MOST)

    @classmethod
    def meant_by(cls, workers: Any, timeout: float | None) -> "Pool | None":
        if not is_integer(workers) or workers == 1 or (workers < 1 and workers != -1):
            return None
        number = None if workers == -1 else _checks.integer("workers, a number of processes,", workers, 1, MOST)
        return cls(number, timeout=timeout)

    def __str__(self) -> str:
        return f"{self.processes} processes"

    def _connect(self) -> int:
        self._finalizer = weakref.finalize(self, _close, self._workers)  # if nobody closes it
        here = multiprocessing.current_process()
        if here.name == _NAME and getattr(here, "_inheriting", False):
            sys.exit(_UNGUARDED)  # a worker, in the middle of importing the script
        self._context = multiprocessing.get_context("spawn")
        self._loads, self._message = 0, b""  # how many objectives there were, and the last with its number
        return self.processes

    def _start(self) -> None:
        with uninterrupted():
            self._workers.append(_Worker(self._context))

    def _forget(self, worker: "_Worker") -> None:
        self._workers.remove(worker)
        worker.kill()

    def _publish(self, objective: bytes) -> None:
        self._loads += 1
        self._message = pickle.dumps((self._loads, objective))

    def _tell_objective(self, worker: "_Worker") -> None:
        worker.tell(self._message)

    def _tell_rows(self, worker: "_Worker", number: int, rows: np.ndarray) -> None:
        worker.tell(pickle.dumps((number, rows), pickle.HIGHEST_PROTOCOL))

    def _hear(self, seconds: float) -> None:
        with _Selector() as selector:
            for worker in self._workers:
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.unsent else 0)
                selector.register(worker.socket, wanted, worker)
            found = [key.data for key, _ in selector.select(seconds)]
        for worker in found:
            worker.send_on()
            messages, alive = worker.hear()
            for message in messages:
                self._received(worker, message)
            if not alive:
                self._died(worker)

    def _received(self, worker: "_Worker", message: tuple) -> None:
        match message:
            case ("started",):
                self._started(worker)
            case ("loaded", number, failure) if number == self._loads:
                self._loaded(worker, failure)
            case ("answer", number, answer):
                self._answered(worker, number, answer)

    def _died(self, worker: "_Worker") -> None:
        worker.process.join(_CLOSING_SECONDS)  # so that its status is its own
        self._forget(worker)
        status = worker.process.exitcode
        if status == _UNGUARDED and worker.state == "starting":
            self._unstarted(_GUARD, final=True)
        self._start()
        why = f"its process {_ended(status)}"
        match worker.state:
            case "starting":
                self._unstarted(f"{why} while it was starting")
            case "loading":
                self._unstarted(f"{why} while it was loading fun")
            case _:
                self._schedule.lost(worker, why)

    def _disconnect(self) -> None:
        self._finalizer.detach()
        _close(self._workers)


def is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker(Worker):
    """Is one process. Nothing waits for it: it may be stopped in the middle of a message."""

    def __init__(self, context: Any):
        self.socket, theirs = socket.socketpair()
        self.socket.setblocking(False)
        self.process = context.Process(target=_work, args=(theirs,), name=_NAME)
        with _without_interrupts():
            self.process.start()
        theirs.close()
        self.unsent: deque[memoryview] = deque()
        self._heard = bytearray()

    def tell(self, message: bytes) -> None:
        self.unsent.append(memoryview(message))
        self.send_on()

    def send_on(self) -> None:
        """As much as it takes by now."""
        with suppress(OSError):  # it takes no more, or has died, which `hear` says
            while self.unsent:
                rest = self.unsent[0][self.socket.send(self.unsent[0]) :]
                self.since = time.monotonic()
                if rest:
                    self.unsent[0] = rest
                else:
                    self.unsent.popleft()

    def hear(self) -> tuple[list[tuple], bool]:
        """What it has said by now, as far as it is complete, and whether it is there to say more."""
        messages, alive = [], False
        try:
            while part := self.socket.recv(_PART):
                self._heard += part
        except BlockingIOError:
            alive = True
        except OSError:
            pass
        while len(self._heard) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._heard)[0]
            if len(self._heard) < end:
                break
            messages.append(pickle.loads(self._heard[_LENGTH.size : end]))
            del self._heard[:end]
        return messages, alive

    def kill(self) -> None:
        """End it and what it has started, whatever they do: before it is waited for, while its number is its own."""
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.socket.close()


def _ended(status: int | None) -> str:
    if status is None or status >= 0:
        return f"exited with status {status}"
    return f"was killed by {signal.Signals(-status).name}" if -status in list(signal.Signals) else f"ended by {-status}"


def _close(workers: list[_Worker]) -> None:
    """Idle workers end by themselves, the others are ended."""
    for worker in workers:
        with suppress(OSError):
            worker.socket.close()
    until = time.monotonic() + _CLOSING_SECONDS
    for worker in workers:
        if worker.state in ("idle", "ready"):
            worker.process.join(max(until - time.monotonic(), 0.0))
        worker.kill()
    workers.clear()


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


def _work(connection: socket.socket) -> None:
    """Load objectives, evaluate what comes, until the other end is closed."""
    connection.setblocking(True)  # whatever the script has set for all
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":
        os.setpgid(0, 0)  # so that what fun starts can be ended with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    evaluator = None
    try:
        _say(connection, "started")
        heard = connection.makefile("rb")
        while True:
            match pickle.load(heard):
                case (int(number), bytes(objective)):
                    evaluator = Evaluator(objective)
                    _say(connection, "loaded", number, evaluator.failure)
                case (int(number), np.ndarray() as rows) if evaluator is not None:
                    _say(connection, "answer", number, evaluator(rows))
    except (EOFError, OSError, pickle.UnpicklingError):  # closed, in the middle of a message perhaps
        pass


def _say(connection: socket.socket, *message: Any) -> None:
    packed = pickle.dumps(message)
    connection.sendall(_LENGTH.pack(len(packed)) + packed)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    if os.name == "posix":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
