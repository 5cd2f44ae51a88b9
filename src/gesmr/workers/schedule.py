"""Who evaluates which candidates, and what is done when somebody is late or gone. No processes, no clock: pure logic.

Candidates are handed out in ranges, large ones first. Those of a worker that was lost are tried again one by one, so
that the one that killed it is found and the others keep their values. While somebody is idle and somebody else is late,
the late one's candidates are evaluated twice, and the first answer counts.
"""

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_ROUNDS = 4  # ranges per worker if all were of the size of the first
_SERVED = 5  # workers that can be sent a range each while one of the shortest lasts: who sends does one at a time
_LATE, _LATE_SECONDS = 3.0, 1.0  # times the expected, and at least: then others help
_GONE, _GONE_SECONDS = 10.0, 10.0  # the same, for a worker whose answer nobody waits for


class Answer(NamedTuple):
    """What a worker says about a range."""

    values: np.ndarray  # f64; fewer than candidates if there was a failure
    errors: list[tuple[int, str]]  # of candidates that count as the worst: where in the range, and what they raised
    seconds: float  # spent in the function
    failure: bytes | None = None  # what the next one raised, packed


@dataclass
class Assignment:
    """A range of candidates and who has it."""

    number: int
    rows: range
    since: float
    expected: float  # seconds; infinite if not known


class Schedule:
    def __init__(self, size: int, *, tries: int, timeout: float | None, chunk: int | None, grain: float):
        self.size = size  # workers
        self._tries, self._timeout, self._chunk = tries, timeout, chunk
        self._grain = grain  # seconds a range should last
        self._running: dict[Hashable, Assignment] = {}
        self._number = 0  # of the last assignment: answers to those of an earlier population are recognised by it
        self._seconds = self._evaluated = 0.0
        self.begin(0, forgiving=False)

    def begin(self, count: int, *, forgiving: bool) -> None:
        """A new population. If `forgiving`, candidates that are given up have a value of NaN and do no more harm."""
        self.values, self.errors = np.full(count, np.nan), {}
        self.failure: tuple[int, bytes | str] | None = None  # the first candidate that failed, and why
        self.spent = 0.0  # seconds in the function, by all workers
        self._forgiving = forgiving
        self._first = self._number + 1
        self._done, self._copied = np.zeros(count, bool), np.zeros(count, bool)
        self._losses = np.zeros(count, int)
        self._next, self._end = 0, count  # what has not been handed out; candidates from `_end` on do not matter
        self._again: deque[int] = deque()
        self._seconds, self._evaluated = self._seconds / 2, self._evaluated / 2

    @property
    def done(self) -> bool:
        return bool(self._done[: self._end].all())

    def hand_out(self, worker: Hashable, now: float) -> Assignment | None:
        """The next range for an idle worker, if there is anything it can do."""
        rows = self._again_one() or self._range() or self._copy(now)
        if rows is None:
            return None
        self._number += 1
        assignment = Assignment(self._number, rows, now, self._mean * len(rows) if self._evaluated else math.inf)
        self._running[worker] = assignment
        return assignment

    def answered(self, worker: Hashable, number: int, answer: Answer) -> None:
        """A worker is idle again; what it says counts unless somebody else was first."""
        assignment = self._running.get(worker)
        if assignment is None or assignment.number != number:
            return
        del self._running[worker]
        self._seconds, self._evaluated = self._seconds + answer.seconds, self._evaluated + len(answer.values)
        if number < self._first:
            return
        self.spent += answer.seconds
        errors = dict(answer.errors)
        for at, (row, value) in enumerate(zip(assignment.rows, answer.values, strict=False)):
            if not self._done[row]:
                self._done[row], self.values[row] = True, value
                if at in errors:
                    self.errors[row] = errors[at]
        if answer.failure is not None:
            self._fail(assignment.rows[len(answer.values)], answer.failure)

    def lost(self, worker: Hashable, why: str, *, blame: bool = True) -> None:
        """A worker is gone. Its candidates are tried again, those that it may be blamed on only so often."""
        assignment = self._running.pop(worker, None)
        if assignment is None or assignment.number < self._first:
            return
        elsewhere = {row for other in self._current() for row in other.rows}
        for row in assignment.rows:
            if self._done[row]:
                continue
            self._losses[row] += blame
            if self._losses[row] >= self._tries:
                told = f"{why}, in the last of {self._tries} tries" if self._tries > 1 else why
                if self._forgiving:
                    self._done[row], self.errors[row] = True, told
                else:
                    self._fail(row, told)
            elif row not in elsewhere and row not in self._again:
                self._again.append(row)

    def overdue(self, now: float) -> list[tuple[Hashable, str]]:
        """Workers that should be ended, and why: their time is up, or nobody waits for them and they do not return."""
        found = []
        for worker, assignment in self._running.items():
            lasted, known = now - assignment.since, math.isfinite(assignment.expected)
            if assignment.number >= self._first and not self._done[assignment.rows.start : assignment.rows.stop].all():
                more = 2 * assignment.expected if known and len(assignment.rows) > 1 else 0.0
                if self._timeout is not None and lasted > self._timeout + more:
                    found.append((worker, f"no answer within {self._timeout:g} s"))
            elif lasted > max(_GONE * (assignment.expected if known else 0.0), _GONE_SECONDS):
                found.append((worker, "overtaken by another"))
        return found

    def next_deadline(self) -> float:
        """When the first time is up; infinite if it never is."""
        if self._timeout is None:
            return math.inf
        return min((assignment.since + self._timeout for assignment in self._current()), default=math.inf)

    @property
    def _mean(self) -> float:
        return self._seconds / self._evaluated

    def _current(self) -> list[Assignment]:
        return [assignment for assignment in self._running.values() if assignment.number >= self._first]

    def _again_one(self) -> range | None:
        while self._again:
            row = self._again.popleft()
            if not self._done[row] and row < self._end:
                return range(row, row + 1)
        return None

    def _range(self) -> range | None:
        left = self._end - self._next
        if left <= 0:
            return None
        start, self._next = self._next, self._next + min(left, self._length(left))
        return range(start, self._next)

    def _length(self, left: int) -> int:
        if self._chunk is not None:
            return self._chunk
        if not self._evaluated:
            return 1 if self._timeout is not None else range_length(left, len(self._done), self.size, math.inf, 0.0)
        mean = max(self._mean, 1e-9)
        length = range_length(left, len(self._done), self.size, mean, self._grain)
        return length if self._timeout is None else max(1, min(length, int(self._timeout / mean)))

    def _copy(self, now: float) -> range | None:
        """A candidate of somebody who is late."""
        if not self._evaluated:
            return None
        for assignment in self._current():
            expected = self._mean * len(assignment.rows)
            if now - assignment.since > max(_LATE * expected, _LATE_SECONDS):
                for row in assignment.rows:
                    if not self._done[row] and not self._copied[row] and row < self._end:
                        self._copied[row] = True
                        return range(row, row + 1)
        return None

    def _fail(self, row: int, why: bytes | str) -> None:
        """The run ends with this, unless an earlier candidate fails too: as it would one after the other."""
        if row < self._end:
            self._end, self.failure = row, (row, why)


def range_length(left: int, count: int, size: int, mean: float, grain: float) -> int:
    """How many of the `left` of `count` candidates, of `mean` seconds each, the next of `size` workers gets.

    Large ranges cost less, small ones do not keep the others waiting at the end: smaller and smaller ones, but none
    that lasts less than `grain` seconds, or less than it takes to send one to every worker.
    """
    length = math.ceil(left / (_ROUNDS * size))
    if grain > 0:  # as many of the shortest for each worker as last long enough
        lasting = grain * max(1.0, size / _SERVED)
        rounds = max(int(min(count * mean / (size * lasting), count)), 1)
        length = max(length, math.ceil(count / (size * rounds)))
    return length
