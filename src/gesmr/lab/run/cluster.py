"""Computes jobs on the nodes of a Ray cluster.

Every node has one actor, which takes the whole node and keeps compiled programs. The store stays on this machine:
arrays come back to it.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from ..._ray import connected
from ..._version import __version__
from ..errors import LabError
from .machine import Computed, Machine, Plan, Stopped
from .specs import Job, Spec, Study

_PLANS = 3  # nodes that may be lost before one has said what is to be done
_POLL = 1.0  # seconds between questions about progress, and about new nodes


class LostError(Exception):
    """A node was lost while it computed a job."""


@dataclass(eq=False)
class _Node:
    """A node's actor as it is seen from here."""

    name: str
    actor: Any
    described: Any  # the promise of what it says about itself; None when it is kept
    gone: bool = False


class Cluster:
    """All nodes that are alive, `threads` jobs at a time on each device; by default one per CPU, or two per GPU.

    A node that is busy with other things, or is added, joins when it is free.
    """

    def __init__(self, address: str, threads: int | None, console: Console):
        self._address, self._threads, self._console = address, threads, console
        self.ray: Any = None  # the module, once it is connected
        self._open = ExitStack()
        self._nodes: dict[str, _Node] = {}
        self._useless: set[str] = set()
        self._looked = -_POLL
        self._new: list[NodePlace] = []

    def plan(self, study: Study, specs: Sequence[Spec], memory: int | None) -> Plan:
        """What is to be done, as the first node that is ready says."""
        for _ in range(_PLANS):
            node = self._any_node()
            try:
                return self.ray.get(node.actor.plan.remote(study, specs, memory))
            except self.ray.exceptions.RayTaskError as error:
                raise _cause(error) from error
            except self.ray.exceptions.RayError:
                self.drop(node)
        raise LabError(f"{_PLANS} nodes of the Ray cluster were lost, one after the other, before they had begun")

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Nodes compile what they are given."""

    def places(self) -> list["NodePlace"]:
        """Those of nodes that have joined since the last call."""
        self._look_around()
        new, self._new = self._new, []
        return new

    def _look_around(self, seconds: float = 0.0) -> bool:
        """Start actors on nodes that have none, and wait so long for what new ones say; whether one said anything."""
        if time.monotonic() > self._looked + _POLL:
            self._looked = time.monotonic()
            for node in self.ray.nodes():
                if node["Alive"] and node["NodeID"] not in {*self._nodes, *self._useless}:
                    self._start(node["NodeID"], node["NodeManagerHostname"], node["Resources"])
        promises = {node.described: node for node in list(self._nodes.values()) if node.described is not None}
        if not promises:
            time.sleep(min(seconds, _POLL))
            return False
        done, _ = self.ray.wait(list(promises), timeout=seconds)
        for promise in done:
            self._describe(promises[promise])
        return bool(done)

    def _start(self, name: str, host: str, resources: dict[str, float]) -> None:
        cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
        if not cpus:
            return
        affinity = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(name, soft=False)
        threads = self._threads or (None if gpus else cpus)
        at_once = (threads or 2) * max(gpus, 1)
        actor = self.ray.remote(_Actor).options(
            num_cpus=cpus, num_gpus=gpus, scheduling_strategy=affinity, max_concurrency=at_once + 1
        )
        actor = actor.remote(f"{host} (Ray node {name[:8]})", threads)
        self._nodes[name] = _Node(name, actor, actor.describe.remote())

    def _describe(self, node: _Node) -> None:
        """Take note of what an actor says about itself, or do without it."""
        promise, node.described = node.described, None
        try:
            places, version = self.ray.get(promise)
        except self.ray.exceptions.RayError as error:
            self.drop(node)
            if any(known["Alive"] and known["NodeID"] == node.name for known in self.ray.nodes()):
                self._refuse(node, str(error).strip().splitlines()[-1])
            return
        if version != __version__:
            self.drop(node)
            self._refuse(node, f"it has gesmr {version}, and this is {__version__}")
            return
        self._new += [NodePlace(self, node, number) for number in range(places)]

    def _refuse(self, node: _Node, why: str) -> None:
        self._useless.add(node.name)
        self._console.print(
            f"Ray node {node.name[:8]} is not used: {why}", style="yellow", markup=False, soft_wrap=True
        )
        if not self._nodes:
            raise LabError(f"no node of the Ray cluster can compute; the last one: {why}")

    def _any_node(self) -> _Node:
        """The first that is ready."""
        said = False
        while True:
            ready = [node for node in self._nodes.values() if node.described is None]
            if ready:
                return ready[0]
            if not self._look_around(10 * _POLL) and not said:
                self._console.print("waiting for a node of the Ray cluster that is free", highlight=False)
                said = True

    def drop(self, node: _Node) -> None:
        """End the actor of a node. If the node is alive it gets another."""
        if not node.gone:
            node.gone = True
            del self._nodes[node.name]
            self.ray.kill(node.actor)

    def __enter__(self) -> "Cluster":
        self.ray = self._open.enter_context(connected(self._address))
        return self

    def __exit__(self, *_) -> None:
        try:
            for node in list(self._nodes.values()):
                self.drop(node)
        finally:
            self._open.close()


class NodePlace:
    """One of the places of a node's machine."""

    def __init__(self, cluster: Cluster, node: _Node, number: int):
        self._cluster, self._node, self._number = cluster, node, number

    @property
    def gone(self) -> bool:
        return self._node.gone

    def compute(
        self, job: Job, stop: threading.Event, started: Callable[[], None], worked: Callable[[float], None]
    ) -> Computed:
        """Ends with `Stopped` soon after `stop` is set, and with `LostError` if the node is gone."""
        ray, actor, done = self._cluster.ray, self._node.actor, 0.0
        started()
        try:
            result = actor.compute.remote(self._number, job)
            while not ray.wait([result], timeout=_POLL)[0]:
                if stop.is_set():
                    raise Stopped
                asked = actor.progress.remote(self._number)
                if ray.wait([asked], timeout=_POLL)[0]:
                    before, done = done, ray.get(asked)
                    worked(done - before)
            return ray.get(result)
        except ray.exceptions.RayTaskError as error:  # raised by the job itself
            cause = _cause(error)
            cause.add_note(f"in {job.label}, on a node of the Ray cluster")
            raise cause from error
        except ray.exceptions.RayError as error:  # the node has gone, or its actor
            self._cluster.drop(self._node)
            raise LostError(str(error)) from error


def _cause(error: Any) -> Exception:
    """What was raised on a node, if it could be sent."""
    return getattr(error, "cause", None) or error


class _Actor:
    """The machine of a node. Its methods run in threads."""

    def __init__(self, where: str, threads: int | None):
        self._where = where
        self._machine = Machine(threads=threads).__enter__()  # until the actor is ended
        self._places = self._machine.places()
        self._worked = [0.0] * len(self._places)
        self._never = threading.Event()

    def describe(self) -> tuple[int, str]:
        """How many places there are, and the version of gesmr."""
        return len(self._places), __version__

    def plan(self, study: Study, specs: Sequence[Spec], memory: int | None) -> Plan:
        """Made here, because jobs and their work depend on the kind of device."""
        return self._machine.plan(study, specs, memory)

    def compute(self, number: int, job: Job) -> Computed:
        def worked(work: float) -> None:
            self._worked[number] += work

        self._worked[number] = 0.0
        computed = self._places[number].compute(job, self._never, lambda: None, worked)
        computed.record["on"] = f"{self._where} {computed.record['on']}"
        return computed

    def progress(self, number: int) -> float:
        """The work done of the job at a place."""
        return self._worked[number]
