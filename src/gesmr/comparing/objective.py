"""What a method calls: it counts, notes every improvement, and gives nobody more than the others."""

from typing import Any

import numpy as np

from .problem import Task


class Spent(BaseException):
    """No evaluations are left. Not an `Exception`, so that a method which forgives errors still ends."""


class Objective:
    """The function as every method sees it: lower is better, and what is not finite counts as the worst, +inf.

    Candidates outside the bounds are moved to the nearest that is inside. Where constraints are violated the function
    is not called: the value is then the worst feasible one so far plus the violation, so that what is nearer to
    feasible is better; `measure` is for methods that have a way of their own with constraints.
    """

    def __init__(self, task: Task, maxfun: int):
        self._task, self._maxfun = task, maxfun
        self._worst: float | None = None  # feasible value so far
        self.evaluations = 0
        self.improved_at: list[int] = []
        self.values: list[float] = []  # after these evaluations, in the user's sign
        self.x: np.ndarray | None = None  # the best feasible row
        self.error: Exception | None = None  # of the user's function

    @property
    def left(self) -> int:
        return self._maxfun - self.evaluations

    def __call__(self, x: Any) -> float:
        """The value of one candidate `f[d]`."""
        return float(self.many(np.asarray(x)[None])[0])

    def many(self, rows: Any) -> np.ndarray:
        """Values `f[n]` of candidates `f[n, d]`."""
        values, violations = self.measure(rows)
        known = [*values[np.isfinite(values)].tolist(), *([] if self._worst is None else [self._worst])]
        self._worst = max(known, default=None)
        return np.where(violations > 0, (self._worst or 0.0) + violations, values)

    def measure(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Values, infinite where a constraint is violated, and how far candidates are from keeping all of them."""
        rows = np.asarray(rows, np.float64)
        if rows.ndim != 2 or rows.shape[1] != self._task.dim:
            raise ValueError(f"candidates must have {self._task.dim} numbers each, got an array of shape {rows.shape}")
        if self.left <= 0:
            raise Spent
        count = len(rows)
        rows = rows[: self.left]
        values, violations = np.full(len(rows), np.inf), np.full(len(rows), np.inf)
        usable = np.isfinite(rows).all(axis=1)
        rows = self._task.layout.used(np.clip(rows, self._task.low, self._task.high))
        try:
            values[usable], violations[usable] = self._task.measure(rows[usable])
        except Exception as error:
            self.error = error
            raise
        self._note(rows, values)
        if len(rows) < count:
            raise Spent
        return values, violations

    def _note(self, rows: np.ndarray, values: np.ndarray) -> None:
        best = self._task.sign * self.values[-1] if self.values else np.inf
        for place in np.flatnonzero(values < best):
            if values[place] < best:
                best = float(values[place])
                self.improved_at.append(self.evaluations + int(place) + 1)
                self.values.append(self._task.sign * best)
                self.x = rows[place].copy()
        self.evaluations += len(rows)
