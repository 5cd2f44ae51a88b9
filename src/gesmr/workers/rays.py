"""Workers that are actors of a Ray cluster, on this machine or on many."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _checks, _ray
from .crew import Answered, Crew, Event, Lost, Ready, Refused, Transport, Unstarted, unloaded
from .remote import Evaluator
from .sending import pack

_GRAIN = 0.02
_STARTING, _LOADING = -1, 0  # not the numbers of assignments
_START_SECONDS = 60.0  # for the first worker of a cluster


class Ray(Crew):
    """Actors of a Ray cluster, one for each of its CPUs by default.

    address: None, "ray" or "auto" for the cluster of this machine, or one that is started for as long as it is needed;
        "ray://host:10001" or "host:6379" for another. If this process is connected to one already, that is used.
    actors: how many.
    cpus: of each. Fractions are allowed.
    timeout, tries, chunk: as for `Pool`.
    options: of `ray.init`, such as num_cpus for a cluster that is started or runtime_env for any.
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
            raise ValueError(
                f'address must be None, "ray", "auto", "ray://host:10001" or "host:6379", got {_checks.show(address)}'
            )
        _checks.real("cpus", cpus, 0.0)
        self.address, self.cpus, self.options = address, cpus, options
        self.actors = None if actors is None else _checks.integer("actors", actors, 1)

    @classmethod
    def meant_by(cls, workers: Any, timeout: float | None) -> "Ray | None":
        return cls(workers, timeout=timeout) if isinstance(workers, str) and _ray.is_address(workers) else None

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
        self.since = 0.0  # when it was last given something to load


class _Actors:
    grain = _GRAIN

    def __init__(self, options: Ray):
        self._connection = _ray.connected(options.address, **options.options)
        self._ray = ray = self._connection.__enter__()
        self._objective, self._patience = None, options.patience
        self._workers: list[_Worker] = []
        self._waiting: dict[Any, tuple[_Worker, int]] = {}  # for what, from whom, and the number of the assignment
        self._since = time.monotonic()  # without any worker
        try:
            self.size = options.actors or max(int(ray.cluster_resources().get("CPU", 0) / options.cpus), 1)
            share = {"num_cpus": options.cpus, "scheduling_strategy": "SPREAD"}
            self._class = ray.remote(**share, max_restarts=0, max_task_retries=0)(_Actor)
            for _ in range(self.size):
                self._start()
        except BaseException:
            self.close()
            raise

    def load(self, objective: bytes) -> None:
        self._objective = self._ray.put(objective)
        self._waiting = {reference: what for reference, what in self._waiting.items() if what[1] == _STARTING}
        self._since = time.monotonic()
        for worker in self._workers:
            if worker.node is not None:
                self._load(worker)

    def send(self, worker: _Worker, number: int, rows: np.ndarray) -> None:
        self._waiting[worker.handle.evaluate.remote(np.ascontiguousarray(rows))] = (worker, number)

    def wait(self, seconds: float) -> list[Event]:
        pending = list(self._waiting)
        found, _ = self._ray.wait(pending, num_returns=1, timeout=seconds)
        if found and len(pending) > 1:  # and all others that are there
            found, _ = self._ray.wait(pending, num_returns=len(pending), timeout=0)
        events = [event for reference in found for event in self._events(reference)]
        return [*events, *self._late()] or self._none_started()

    def end(self, worker: _Worker) -> None:
        self._forget(worker)
        self._start()

    def close(self) -> None:
        try:
            for worker in list(self._workers):
                self._forget(worker)
        finally:
            self._connection.__exit__(None, None, None)

    def _start(self) -> None:
        worker = _Worker(self._class.remote())
        self._workers.append(worker)
        self._waiting[worker.handle.node.remote()] = (worker, _STARTING)

    def _load(self, worker: _Worker) -> None:
        if self._objective is not None:
            worker.since = time.monotonic()
            self._waiting[worker.handle.load.remote(self._objective)] = (worker, _LOADING)

    def _events(self, reference: Any) -> Iterator[Event]:
        worker, number = self._waiting.pop(reference)
        errors = self._ray.exceptions
        try:
            found = self._ray.get(reference)
        except (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
        ) as error:
            blame = self._is_alive(worker.node)
            self.end(worker)
            yield _died(worker, number, _first_line(error), blame)
            return
        except errors.RayError as error:
            yield Unstarted(worker, _first_line(error), final=True)
            return
        if number == _STARTING:
            worker.node = found
            self._load(worker)
        elif number == _LOADING:
            yield Ready(worker) if found is None else Refused(worker, found)
        else:
            yield Answered(worker, number, found)

    def _late(self) -> Iterator[Event]:
        until = time.monotonic() - self._patience
        loading = [worker for worker, number in self._waiting.values() if number == _LOADING]
        for worker in [worker for worker in loading if worker.since < until]:
            self.end(worker)
            yield Unstarted(worker, unloaded(self._patience))

    def _is_alive(self, node: str | None) -> bool:
        return any(known["NodeID"] == node and known["Alive"] for known in self._ray.nodes())

    def _none_started(self) -> list[Event]:
        if any(worker.node is not None for worker in self._workers):
            self._since = time.monotonic()
        elif time.monotonic() - self._since > _START_SECONDS:
            free = self._ray.available_resources().get("CPU", 0)
            why = f"there has been none for {_START_SECONDS:g} s, and {free:g} CPUs of the cluster are free"
            return [Unstarted(self._workers[0], why, final=True)]
        return []

    def _forget(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._waiting = {reference: what for reference, what in self._waiting.items() if what[0] is not worker}
        self._ray.kill(worker.handle)


def _died(worker: _Worker, number: int, why: str, blame: bool) -> Event:
    """What an actor's death means, by what it had been asked for."""
    if number == _STARTING:
        return Unstarted(worker, f"its actor died: {why}")
    if number == _LOADING and blame:
        return Unstarted(worker, f"its actor died while it was loading fun: {why}")
    return Lost(worker, f"its actor died: {why}", blame)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


class _Actor:
    """At the other end."""

    _evaluator: Any = None

    def node(self) -> str:
        import ray  # noqa: PLC0415

        return ray.get_runtime_context().get_node_id()

    def load(self, objective: bytes) -> bytes | None:
        self._evaluator = Evaluator(objective)
        return self._evaluator.failure

    def evaluate(self, rows: np.ndarray) -> Any:
        return self._evaluator(rows)
