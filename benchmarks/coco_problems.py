"""COCO's problems as optimisers get them: counted, inside their bounds, and with their optimum."""

import contextlib
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import cocoex
import numpy as np
from coco_tasks import PRECISION

import gesmr

MOST_VARIABLES = 40  # of `bbob`
# What `minimize` was set to before it recombined, and is in small populations: every child copies one parent
COPYING = {"controller": gesmr.GESMR(truncation=0.1), "truncation": 0.2}
_BEST = "._bbob_problem_best_parameter.txt"  # where COCO writes a problem's optimum


class Spent(Exception):
    """No evaluations are left, or none are needed."""


class Recorder:
    """A problem that counts, notes improvements, and accepts none from outside its bounds or beyond the budget."""

    def __init__(self, problem: cocoex.Problem, optimum: float, budget: int):
        self.problem, self.optimum, self.budget = problem, optimum, budget
        self.low, self.high = problem.lower_bounds, problem.upper_bounds
        self.integers = problem.number_of_integer_variables  # they come first
        self.evaluations, self.gap = 0, float("inf")
        self.points: list[tuple[int, float]] = []  # (evaluations, best − optimum)

    def __call__(self, x: np.ndarray) -> float:
        if self.evaluations >= self.budget or self.gap <= PRECISION:
            raise Spent
        value = self.problem(x)
        self.evaluations += 1
        gap = value - self.optimum
        if gap < self.gap:
            self._check(x)  # looked at where it would matter: it takes as long as a cheap problem
            self.gap = gap
            self.points.append((self.evaluations, gap))
        return value

    def _check(self, x: np.ndarray) -> None:
        if (x < self.low).any() or (x > self.high).any():
            raise ValueError(f"outside [{self.low}, {self.high}]: {x}")
        if (x[: self.integers] % 1).any():
            raise ValueError(f"the first {self.integers} must be integers: {x}")


class Passing:
    """A problem of one or many rows that counts, and notes the best value at each budget it passes."""

    def __init__(self, function: int, dim: int, instance: int, budgets: Iterable[int]):
        self.problem, self.optimum = _of_rows(function, dim, instance)
        self.evaluations, self.gap = 0, np.inf
        self.gaps = dict.fromkeys(budgets, np.inf)  # best − optimum of what was evaluated by calls within the budget

    def __call__(self, x: np.ndarray) -> np.ndarray:
        if self.evaluations >= max(self.gaps) or self.gap <= PRECISION:
            raise Spent
        values = self.problem(x)
        self.evaluations += np.size(values)
        self.gap = min(self.gap, float(np.min(values)) - self.optimum)
        for budget in self.gaps:
            if self.evaluations <= budget:
                self.gaps[budget] = self.gap
        return values


def _of_rows(function: int, dim: int, instance: int) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
    """A problem of `bbob`, or of `bbob-largescale` in more variables than `bbob` has, and its optimum."""
    if dim <= MOST_VARIABLES:
        problem = cocoex.BareProblem("bbob", function, dim, instance)
        return problem, problem.best_value()
    large = problem_of("bbob-largescale", function, dim, instance)
    return lambda x: np.apply_along_axis(large, -1, x), optimum(large)


class Constrained(Recorder):
    """A problem with constraints, all of which must be at most 0: a candidate counts when they are evaluated.

    Optimisers evaluate them first, and the function where they hold.
    """

    def __init__(self, problem: cocoex.Problem, optimum: float, budget: int):
        super().__init__(problem, optimum, budget)
        self.candidates, self.violation = 0, float("inf")  # the least of all candidates: the sum of what exceeds 0

    def constraint(self, x: np.ndarray) -> np.ndarray:
        if self.candidates >= self.budget or self.gap <= PRECISION:
            raise Spent
        self.candidates += 1
        values = self.problem.constraint(x)
        self.violation = min(self.violation, float(values.clip(0).sum()))
        return values

    def __call__(self, x: np.ndarray) -> float:
        self.evaluations += 1
        value = self.problem(x)
        gap = value - self.optimum
        if gap < self.gap and (self.problem.constraint(x) <= 0).all():
            self._check(x)
            self.gap = gap
            self.points.append((self.candidates, gap))
        return value


def problem_of(suite: str, function: int, dim: int, instance: int) -> cocoex.Problem:
    found = cocoex.Suite(suite, f"instances: {instance}", f"dimensions: {dim} function_indices: {function}")
    return found.get_problem_by_function_dimension_instance(function, dim, instance)


def optimum(problem: cocoex.Problem) -> float:
    """Its value where COCO itself says that the optimum is."""
    with tempfile.TemporaryDirectory() as here, contextlib.chdir(here):
        problem._best_parameter("print")  # the one way to learn it
        best = np.loadtxt(Path(_BEST))
    return problem(best)
