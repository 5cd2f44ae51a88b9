"""Spreads the missing groups of a study over the nodes of a Ray cluster.

Every node has one actor, which takes the whole node and keeps compiled programs. The store stays on this machine:
arrays come back to it and are written as those of a local runner, under the same claims.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from ... import _provenance as provenance
from ..._ray import connected
from ..._version import __version__
from ..errors import LabError
from .machine import Computed, Machine
from .progress import Display, display
from .runner import finish, missing_in, session
from .specs import Job, Spec, Study
from .store import Store

_DEATHS = 3  # of nodes that computed a group, after which the group itself is suspected
_POLL = 1.0  # seconds between questions about progress, and about new nodes


def run(
    study: Study,
    specs: Sequence[Spec],
    store: Store,
    *,
    console: Console | None = None,
    threads: int | None = None,
    address: str | None = None,
) -> int:
    """Compute and store every group of `specs` that is missing; how many runs that were.

    `threads` groups run at a time on each device of a node; by default one per CPU, or two per GPU. `address` is that
    of the cluster; see `_ray.connected`. When a node leaves, others compute its groups; one that comes is used.
    """
    start = time.perf_counter()
    console = console or Console(stderr=True)
    missing = missing_in(store, specs)
    if not missing:
        return 0
    with connected(address) as ray, _Cluster(ray, threads, console) as cluster:
        facts, jobs = cluster.plan(study, missing)
        together = [job for job in jobs if not job.group.alone]
        alone = [job for job in jobs if job.group.alone]
        with display(console, len(jobs), sum(job.work for job in jobs)) as shown:
            for batch, at_a_time in ((together, None), (alone, 1)):
                _Run(cluster, store, shown).all(batch, at_a_time)
        store.log(session(facts, len(jobs), len(missing), start))
    return len(missing)


class Worker:
    """All devices of a node, in an actor. Its methods run in threads."""

    def __init__(self, where: str, threads: int | None):
        self._where, self._machine = where, Machine(threads=threads)
        self._never = threading.Event()  # an actor is stopped by ending it
        self._worked: dict[int, float] = {}

    def facts(self) -> tuple[int, dict[str, Any]]:
        """How many groups at a time, and versions and device."""
        return self._machine.slots, provenance.machine()

    def plan(self, study: Study, specs: Sequence[Spec]) -> list[tuple[Job, float]]:
        """Groups and their work, made here: both depend on the kind of device."""
        return [(group, group.work) for group in study.jobs(specs, self._machine.memory)]

    def compute(self, number: int, group: Job) -> Computed:
        def worked(work: float) -> None:
            self._worked[number] += work

        self._worked[number] = 0.0
        computed = self._machine.compute(group, self._never, lambda: None, worked)
        del self._worked[number]
        computed.record["on"] = f"{self._where} {computed.record['on']}"
        return computed

    def progress(self) -> dict[int, float]:
        """The work done of each group under way."""
        return dict(self._worked)


@dataclass(eq=False)
class _Job:
    """A group on its way."""

    group: Job
    work: float
    shown: float = 0.0  # of its work
    deaths: int = 0  # of nodes that computed it
    claim: ExitStack = field(default_factory=ExitStack)


@dataclass(eq=False)
class _Node:
    """A node's actor as it is seen from here."""

    actor: Any
    described: Any  # the promise of `facts`; None when it is kept
    slots: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    running: dict[Any, _Job] = field(default_factory=dict)  # by the promise of a result
    progress: Any = None  # a promise
    asked: float = 0.0  # when


class _Cluster:
    """An actor on every node that is alive. A node that is busy with other things joins when it is free."""

    def __init__(self, ray: Any, threads: int | None, console: Console):
        self.ray, self._threads, self._console = ray, threads, console
        self.nodes: dict[str, _Node] = {}
        self._useless: set[str] = set()
        self._looked = -_POLL

    def look_around(self) -> None:
        """Start actors on nodes that have none."""
        if time.monotonic() < self._looked + _POLL:
            return
        self._looked = time.monotonic()
        for node in self.ray.nodes():
            name, resources = node["NodeID"], node["Resources"]
            cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
            if node["Alive"] and cpus and name not in self.nodes and name not in self._useless:
                where = f"{node['NodeManagerHostname']} (Ray node {name[:8]})"
                self.nodes[name] = self._start(name, where, cpus, gpus)

    def _start(self, name: str, where: str, cpus: int, gpus: int) -> _Node:
        affinity = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(name, soft=False)
        threads = self._threads or (None if gpus else cpus)
        at_once = (threads or 2) * max(gpus, 1)
        actor = self.ray.remote(Worker).options(
            num_cpus=cpus, num_gpus=gpus, scheduling_strategy=affinity, max_concurrency=at_once + 1
        )
        actor = actor.remote(where, threads)
        return _Node(actor, actor.facts.remote())

    def described(self, node: _Node) -> None:
        """Take note of what an actor says about itself, or do without it."""
        promise, node.described = node.described, None
        try:
            node.slots, node.facts = self.ray.get(promise)
        except self.ray.exceptions.RayError as error:
            name = self.drop(node)
            if any(known["Alive"] and known["NodeID"] == name for known in self.ray.nodes()):
                self._refuse(name, str(error).strip().splitlines()[-1])
            return
        if node.facts["gesmr"] != __version__:
            self._refuse(self.drop(node), f"it has gesmr {node.facts['gesmr']}, and this is {__version__}")

    def _refuse(self, name: str, why: str) -> None:
        self._useless.add(name)
        self._console.print(f"Ray node {name[:8]} is not used: {why}", style="yellow", markup=False, soft_wrap=True)
        if not self.nodes:
            raise LabError(f"no node of the Ray cluster can compute; the last one: {why}")

    def plan(self, study: Study, specs: Sequence[Spec]) -> tuple[dict[str, Any], list[_Job]]:
        """What is to be done, and the facts of the machine that says so."""
        for _ in range(_DEATHS):
            node = self._any_node()
            try:
                return node.facts, [_Job(*pair) for pair in self.ray.get(node.actor.plan.remote(study, specs))]
            except self.ray.exceptions.RayTaskError as error:
                raise _cause(error) from error
            except self.ray.exceptions.RayError:
                self.drop(node)
        raise LabError(f"{_DEATHS} nodes of the Ray cluster were lost, one after the other, before they had begun")

    def _any_node(self) -> _Node:
        """The first that is ready."""
        said = False
        while True:
            self.look_around()
            for node in list(self.nodes.values()):
                if node.described is None:
                    return node
            promises = {node.described: node for node in self.nodes.values()}
            done = self.ray.wait(list(promises), timeout=10 * _POLL)[0] if promises else time.sleep(_POLL)
            for promise in done or ():
                self.described(promises[promise])
            if not done and not said:
                self._console.print("waiting for a node of the Ray cluster that is free", highlight=False)
                said = True

    def drop(self, node: _Node) -> str:
        """End the actor of a node; the node's name."""
        name = next(name for name, known in self.nodes.items() if known is node)
        del self.nodes[name]
        self.ray.kill(node.actor)
        return name

    def __enter__(self) -> "_Cluster":
        return self

    def __exit__(self, *_) -> None:
        for node in list(self.nodes.values()):
            self.drop(node)


class _Run:
    """Jobs handed out to nodes, and what comes back."""

    def __init__(self, cluster: _Cluster, store: Store, shown: Display):
        self._cluster, self._ray, self._store, self._shown = cluster, cluster.ray, store, shown
        self._waiting: deque[_Job] = deque()

    def all(self, jobs: Sequence[_Job], at_a_time: int | None) -> None:
        """Compute all jobs, at most `at_a_time` of them at the same time in the whole cluster."""
        self._waiting.extend(jobs)
        try:
            while self._waiting or self._running:
                self._cluster.look_around()
                self._hand_out(at_a_time)
                self._ask_for_progress()
                self._take()
        finally:
            for job in jobs:
                job.claim.close()

    @property
    def _running(self) -> int:
        return sum(len(node.running) for node in self._cluster.nodes.values())

    def _hand_out(self, at_a_time: int | None) -> None:
        for node in self._cluster.nodes.values():
            while len(node.running) < node.slots and (at_a_time is None or self._running < at_a_time):
                if (job := self._next()) is None:
                    return
                node.running[node.actor.compute.remote(id(job), job.group)] = job
                self._shown.started(job.group.label)

    def _next(self) -> _Job | None:
        """A job that is ours now. Those that another process computes stay until it is done with them."""
        for _ in range(len(self._waiting)):
            job = self._waiting.popleft()
            if self._store.has(job.group.specs):
                self._shown.skipped(job.group.label, job.work)
            elif job.claim.enter_context(self._store.claim(job.group.specs)):
                if not self._store.has(job.group.specs):  # finished just before the claim
                    return job
                job.claim.close()
                self._shown.skipped(job.group.label, job.work)
            else:
                job.claim.close()
                self._waiting.append(job)
        return None

    def _ask_for_progress(self) -> None:
        now = time.monotonic()
        for node in self._cluster.nodes.values():
            if node.running and node.progress is None and now > node.asked + _POLL:
                node.progress, node.asked = node.actor.progress.remote(), now

    def _take(self) -> None:
        """Wait a moment for anything to come back."""
        promised = {}
        for node in self._cluster.nodes.values():
            promised |= dict.fromkeys(node.running, node)
            promised |= {promise: node for promise in (node.described, node.progress) if promise is not None}
        if not promised:
            time.sleep(_POLL)
            return
        done, _ = self._ray.wait(list(promised), num_returns=len(promised), timeout=0)
        if not done:
            done, _ = self._ray.wait(list(promised), timeout=_POLL)
        for promise in done:
            node = promised[promise]
            if promise == node.described:
                self._cluster.described(node)
            elif node in self._cluster.nodes.values():  # not dropped just now
                self._receive(promise, node)

    def _receive(self, promise: Any, node: _Node) -> None:
        errors = self._ray.exceptions
        try:
            received = self._ray.get(promise)
        except errors.RayTaskError as error:  # raised by the group itself
            cause = _cause(error)
            if promise in node.running:
                cause.add_note(f"in {node.running[promise].group.label}, on a node of the Ray cluster")
            raise cause from error
        except errors.RayError as error:  # the node has gone, or its actor
            self._lost(node, error)
            return
        if promise == node.progress:
            node.progress = None
            for job in node.running.values():
                self._show(job, received.get(id(job), job.shown))
            return
        job = node.running.pop(promise)
        self._show(job, job.work)
        finish(job.group, received, self._store, self._shown)
        job.claim.close()

    def _show(self, job: _Job, work: float) -> None:
        self._shown.worked(work - job.shown)
        job.shown = work

    def _lost(self, node: _Node, error: Exception) -> None:
        """What a node was computing is computed again, first of all."""
        self._cluster.drop(node)
        for job in node.running.values():
            job.claim.close()
            job.deaths += 1
            if job.deaths == _DEATHS:
                raise LabError(
                    f"{job.group.label}: {_DEATHS} nodes of the Ray cluster were lost while they computed it (has it "
                    f"enough memory?); finished groups are kept. The last one: {error}"
                ) from error
            self._show(job, 0.0)
            self._shown.lost(job.group.label)
            self._waiting.appendleft(job)


def _cause(error: Any) -> Exception:
    """What was raised on a node, if it could be sent."""
    return getattr(error, "cause", None) or error
