"""Workers that are actors of a Ray cluster, on this machine or on many."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _checks, _ray
from .crew import Answered, Crew, Event, Lost, Ready, Refused, Transport, Unstarted
from .remote import Evaluator
from .sending import pack

_GRAIN = 0.02
_START_SECONDS = 60.0  # for the first worker of a cluster


class Ray(Crew):
    """Actors of a Ray cluster, one for each of its CPUs by default.

    address: None, "ray" or "auto" for the cluster of this machine, or one that is started for as long as it is needed;
        "ray://host:10001" or "host:6379" for another. If this process is connected to one already, that is used.
    actors: how many.
    cpus: of each. Fractions are allowed.
    timeout, tries, chunk: as for `Pool`.
    options: of `ray.init`, for a cluster that is started.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        actors: int | None = None,
        cpus: float = 1,
        timeout: float | None = None,
        tries: int = 3,
        chunk: int | None = None,
        **options: Any,
    ):
        super().__init__(timeout, tries, chunk)
        if address is not None and not _ray.is_address(address):
            raise ValueError(f'address must be None, "ray", "auto", "ray://host:10001" or "host:6379", got {address!r}')
        _checks.real("cpus", cpus, 0.0)
        self.address, self.cpus, self.options = address, cpus, options
        self.actors = None if actors is None else _checks.integer("actors", actors, 1)

    def __str__(self) -> str:
        return "actors of Ray" if self.actors is None else f"{self.actors} actors of Ray"

    def pack(self, call: Any) -> bytes:
        _ray.load()
        from ray import cloudpickle  # noqa: PLC0415

        return pack(call, cloudpickle)

    def _connect(self) -> Transport:
        return _Actors(self)


class _Worker:
    """One actor, seen from here."""

    def __init__(self, handle: Any):
        self.handle = handle
        self.node: str | None = None  # where it is, once that is known
        self.task = 0  # the number of the one it has


class _Actors:
    grain = _GRAIN

    def __init__(self, options: Ray):
        self._connection = _ray.connected(options.address, **options.options)
        self._ray = ray = self._connection.__enter__()
        try:
            cluster = int(ray.cluster_resources().get("CPU", 0) / options.cpus)
            self.size = options.actors or max(cluster, 1)
            self._class = ray.remote(num_cpus=options.cpus, max_restarts=0, max_task_retries=0)(_Actor)
            self._objective: Any = None
            self._workers: list[_Worker] = []
            self._waiting: dict[Any, _Worker] = {}  # for what, from whom
            self._since = time.monotonic()  # without any worker
        except BaseException:
            self.close()
            raise

    def load(self, objective: bytes) -> None:
        self._end_all()
        self._objective = self._ray.put(objective)
        for _ in range(self.size):
            self._start()

    def send(self, worker: _Worker, number: int, rows: np.ndarray) -> None:
        worker.task = number
        self._waiting[worker.handle.evaluate.remote(np.ascontiguousarray(rows))] = worker

    def wait(self, seconds: float) -> list[Event]:
        if not self._waiting:
            time.sleep(seconds)
            return []
        pending = list(self._waiting)
        found, _ = self._ray.wait(pending, num_returns=1, timeout=seconds)
        if found:  # and all others that are there
            found, _ = self._ray.wait(pending, num_returns=len(pending), timeout=0)
        events = [event for reference in found for event in self._event(reference)]
        return events or self._none_started()

    def end(self, worker: _Worker) -> None:
        self._forget(worker)
        self._start()

    def close(self) -> None:
        try:
            self._end_all()
        finally:
            self._connection.__exit__(None, None, None)

    def _start(self) -> None:
        worker = _Worker(self._class.remote(self._objective))
        self._workers.append(worker)
        self._waiting[worker.handle.ready.remote()] = worker

    def _event(self, reference: Any) -> Iterator[Event]:
        worker = self._waiting.pop(reference)
        errors = self._ray.exceptions
        try:
            found = self._ray.get(reference)
        except (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
        ) as error:
            started = worker.node is not None
            why = f"its actor died ({str(error).strip().splitlines()[0]})"
            blame = self._is_alive(worker.node)
            self.end(worker)
            yield Lost(worker, why, blame) if started else Unstarted(worker, why)
            return
        except errors.RayError as error:  # its start failed
            yield Unstarted(worker, str(error).strip(), final=True)
            return
        if worker.node is None:
            worker.node, failure = found
            yield Ready(worker) if failure is None else Refused(worker, failure)
        else:
            yield Answered(worker, worker.task, found)

    def _is_alive(self, node: str | None) -> bool:
        return any(known["NodeID"] == node and known["Alive"] for known in self._ray.nodes())

    def _none_started(self) -> list[Event]:
        if any(worker.node is not None for worker in self._workers):
            self._since = time.monotonic()
        elif time.monotonic() - self._since > _START_SECONDS:
            free = self._ray.available_resources().get("CPU", 0)
            why = f"Ray has had none for {_START_SECONDS:g} s; {free:g} CPUs of its cluster are free"
            return [Unstarted(self._workers[0], why, final=True)]
        return []

    def _forget(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._waiting = {reference: other for reference, other in self._waiting.items() if other is not worker}
        self._ray.kill(worker.handle)

    def _end_all(self) -> None:
        for worker in list(self._workers):
            self._forget(worker)
        self._since = time.monotonic()


class _Actor:
    """At the other end."""

    def __init__(self, objective: bytes):
        self._evaluator = Evaluator(objective)

    def ready(self) -> tuple[str, bytes | None]:
        import ray  # noqa: PLC0415

        return ray.get_runtime_context().get_node_id(), self._evaluator.failure

    def evaluate(self, rows: np.ndarray) -> Any:
        return self._evaluator(rows)
