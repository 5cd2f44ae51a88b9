"""Workers that are actors of a Ray cluster, on this machine or on many."""

import time
from typing import Any

import numpy as np

from .. import _checks, _ray
from .crew import Crew, Worker
from .remote import Evaluator
from .sending import pack

_START_SECONDS = 60.0  # for the first worker of a cluster


class Ray(Crew):
    """Actors of a Ray cluster, one for each of its CPUs by default.

    address: None, "ray" or "auto" for the cluster of this machine, or, if there is none, one that is started for as
        long as it is needed; "ray://host:10001" or "host:6379" for another. If this process is already connected to a
        cluster, that one is used.
    actors: their number.
    cpus: the CPUs of each actor. Fractions are allowed.
    timeout, tries, chunk: as for `Pool`.
    options: of `ray.init`, such as num_cpus for a cluster that is started, or runtime_env for any.
    """

    _grain = 0.02

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
        return pack(call, _ray.load().cloudpickle)

    def _connect(self) -> int:
        self._connection = _ray.connected(self.address, **self.options)
        self._ray = ray = self._connection.__enter__()
        self._waiting: dict[Any, tuple[_Worker, int]] = {}  # for what, from whom, and the number of the assignment
        self._since = time.monotonic()  # without any worker
        share = {"num_cpus": self.cpus, "scheduling_strategy": "SPREAD"}
        self._class = ray.remote(**share, max_restarts=0, max_task_retries=0)(_Actor)
        return self.actors or max(int(ray.cluster_resources().get("CPU", 0) / self.cpus), 1)

    def _start(self) -> None:
        worker = _Worker(self._class.remote())
        self._workers.append(worker)
        self._waiting[worker.handle.node.remote()] = (worker, 0)

    def _forget(self, worker: "_Worker") -> None:
        self._workers.remove(worker)
        self._waiting = {reference: what for reference, what in self._waiting.items() if what[0] is not worker}
        self._ray.kill(worker.handle)

    def _publish(self, objective: bytes) -> None:
        self._sent = self._ray.put(objective)
        self._waiting = {reference: what for reference, what in self._waiting.items() if what[0].state == "starting"}
        self._since = time.monotonic()

    def _tell_objective(self, worker: "_Worker") -> None:
        self._waiting[worker.handle.load.remote(self._sent)] = (worker, 0)

    def _tell_rows(self, worker: "_Worker", number: int, rows: np.ndarray) -> None:
        self._waiting[worker.handle.evaluate.remote(np.ascontiguousarray(rows))] = (worker, number)

    def _hear(self, seconds: float) -> None:
        pending = list(self._waiting)
        found, _ = self._ray.wait(pending, num_returns=1, timeout=seconds)
        if found and len(pending) > 1:  # and all others that are there
            found, _ = self._ray.wait(pending, num_returns=len(pending), timeout=0)
        for reference in found:
            self._received(reference)
        if any(worker.state != "starting" for worker in self._workers):
            self._since = time.monotonic()
        elif time.monotonic() - self._since > _START_SECONDS:
            free = self._ray.available_resources().get("CPU", 0)
            why = f"there has been none for {_START_SECONDS:g} s, and {free:g} CPUs of the cluster are free"
            self._unstarted(why, final=True)

    def _received(self, reference: Any) -> None:
        worker, number = self._waiting.pop(reference)
        errors = self._ray.exceptions
        deaths = errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError
        try:
            found = self._ray.get(reference)
        except deaths as error:
            self._died(worker, _first_line(error))
        except errors.RayError as error:
            self._unstarted(_first_line(error), final=True)
        else:
            match worker.state:
                case "starting":
                    worker.node = found
                    self._started(worker)
                case "loading":
                    self._loaded(worker, found)
                case _:
                    self._answered(worker, number, found)

    def _died(self, worker: "_Worker", why: str) -> None:
        blame = any(node["NodeID"] == worker.node and node["Alive"] for node in self._ray.nodes())
        self._replace(worker)
        if worker.state == "starting":
            self._unstarted(f"its actor died: {why}")
        elif worker.state == "loading" and blame:
            self._unstarted(f"its actor died while it was loading fun: {why}")
        else:
            self._schedule.lost(worker, f"its actor died: {why}", blame=blame)

    def _disconnect(self) -> None:
        try:
            for worker in list(self._workers):
                self._forget(worker)
        finally:
            self._connection.__exit__(None, None, None)


class _Worker(Worker):
    """Is one actor."""

    def __init__(self, handle: Any):
        self.handle = handle
        self.node: str | None = None  # where it is, once that is known


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
