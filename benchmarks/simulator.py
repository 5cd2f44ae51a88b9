"""A generation evaluated by many workers, as a discrete-event simulation.

One driver does one thing at a time: it makes the candidates (`serial` seconds), takes in an answer (`receive`) or gives
the next range of candidates to an idle worker (`send`); answers go first. A range reaches its worker after `latency`,
lasts as long as its candidates together, and its answer takes `latency` again. The generation ends when the driver has
every value. When it is `noticed` that a worker has died, its candidates are handed out again, and another worker takes
its place `recovery` later.
"""

import heapq
import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from gesmr.workers.schedule import range_length

_SENT, _ARRIVED, _RECEIVED, _LATE, _DEAD, _REPLACED = range(6)


@dataclass(frozen=True)
class Cluster:
    """Times are in seconds."""

    workers: int
    candidates: int  # of a generation
    evaluation: float  # mean time of a candidate
    spread: float = 0.0  # of the logarithm of that time: a lognormal with this σ and the same mean
    chunk: int | None = None  # candidates handed out together; smaller and smaller ranges if it is not given
    grain: float = 0.0  # seconds such a range should last at least
    serial: float = 0.0  # the driver's ask and tell
    send: float = 0.0  # the driver's work for a range: pickling, writing to a pipe or a cluster
    receive: float = 0.0
    latency: float = 0.0
    stall: float = 0.0  # the probability that a worker is slow with a range, whatever is in it
    stall_factor: float = 10.0
    deaths: float = 0.0  # of a worker, per second of its work
    noticed: float = 0.0
    recovery: float = 0.0
    late: float = math.inf  # times the expected, then an idle worker repeats the range; the first answer counts

    def length(self, left: int) -> int:
        """How many of the candidates that are left go to the next worker."""
        if self.chunk is not None:
            return min(self.chunk, left)
        return min(range_length(left, self.candidates, self.workers, max(self.evaluation, 1e-9), self.grain), left)


@dataclass(frozen=True)
class Generation:
    seconds: float
    valued: int  # candidates with a value
    busy: float  # worker seconds spent on evaluations, those in vain included
    useful: float  # worker seconds a single perfect worker would have needed
    ranges: int  # handed out
    copies: int  # of them begun again because they were late
    deaths: int

    def efficiency(self, cluster: Cluster) -> float:
        """Useful worker time as a share of all there was."""
        return self.useful / (self.seconds * cluster.workers)


def durations(cluster: Cluster, rng: np.random.Generator) -> np.ndarray:
    """The time of each candidate."""
    normal = rng.standard_normal(cluster.candidates)
    return cluster.evaluation * np.exp(cluster.spread * normal - cluster.spread**2 / 2)


def simulate(cluster: Cluster, rng: np.random.Generator, times: np.ndarray | None = None) -> Generation:
    """One generation, with the candidates' `times` if they are known."""
    return _Simulation(cluster, rng, durations(cluster, rng) if times is None else times).run()


class _Simulation:
    def __init__(self, cluster: Cluster, rng: np.random.Generator, times: np.ndarray):
        self.cluster, self.rng, self.times = cluster, rng, times
        self.events: list[tuple[float, int, int, range, int]] = []  # (when, order, kind, rows, worker)
        self.order = 0
        self.next = 0  # the first candidate that was not handed out
        self.again: deque[range] = deque()  # lost or late
        self.answers: deque[tuple[range, int]] = deque()  # that the driver has not looked at
        self.idle = deque(range(cluster.workers))
        self.driver_busy = False
        self.done = np.zeros(len(times), bool)
        self.missing = len(times)
        self.busy = 0.0
        self.ranges = self.copies = self.deaths = 0

    def run(self) -> Generation:
        now = self.cluster.serial
        self._drive(now)
        while self.missing:
            now, _, kind, rows, worker = heapq.heappop(self.events)
            if kind == _SENT:
                self.driver_busy = False
                self._begin(now, rows, worker)
            elif kind == _ARRIVED:
                self.answers.append((rows, worker))
            elif kind == _RECEIVED:
                self.driver_busy = False
                self.idle.append(worker)
                self.missing -= int((~self.done[rows.start : rows.stop]).sum())
                self.done[rows.start : rows.stop] = True
            elif kind == _DEAD:
                self.deaths += 1
                self.again.append(rows)
                self._at(now + self.cluster.recovery, _REPLACED, rows, worker)
            elif kind == _REPLACED:
                self.idle.append(worker)
            elif not self._is_done(rows):
                self.copies += 1
                self.again.append(rows)
            self._drive(now)
        useful = float(self.times.sum())
        return Generation(now, int(self.done.sum()), self.busy, useful, self.ranges, self.copies, self.deaths)

    def _at(self, when: float, kind: int, rows: range, worker: int) -> None:
        self.order += 1
        heapq.heappush(self.events, (when, self.order, kind, rows, worker))

    def _is_done(self, rows: range) -> bool:
        return bool(self.done[rows.start : rows.stop].all())

    def _drive(self, now: float) -> None:
        """What the driver does next, if it has nothing to do."""
        if self.driver_busy:
            return
        if self.answers:
            rows, worker = self.answers.popleft()
            self.driver_busy = True
            self._at(now + self.cluster.receive, _RECEIVED, rows, worker)
        elif self.idle and (rows := self._range()):
            self.driver_busy = True
            self._at(now + self.cluster.send, _SENT, rows, self.idle.popleft())

    def _range(self) -> range | None:
        while self.again:
            rows = self.again.popleft()
            if not self._is_done(rows):
                return rows
        left = len(self.times) - self.next
        if left == 0:
            return None
        start, self.next = self.next, self.next + self.cluster.length(left)
        return range(start, self.next)

    def _begin(self, now: float, rows: range, worker: int) -> None:
        """Candidates last as long when they are repeated; whether their worker is slow, or dies, is drawn again."""
        cluster = self.cluster
        self.ranges += 1
        needed = float(self.times[rows.start : rows.stop].sum())
        if cluster.stall and self.rng.random() < cluster.stall:
            needed *= cluster.stall_factor
        life = self.rng.exponential(1 / cluster.deaths) if cluster.deaths else math.inf
        self.busy += min(needed, life)
        if life < needed:
            self._at(now + cluster.latency + life + cluster.noticed, _DEAD, rows, worker)
        else:
            self._at(now + cluster.latency + needed + cluster.latency, _ARRIVED, rows, worker)
        if math.isfinite(cluster.late):
            self._at(now + 2 * cluster.latency + cluster.late * cluster.evaluation * len(rows), _LATE, rows, worker)
