"""What methods are compared on: numbers in a box for all of them, and what these are worth."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .. import _checks
from ..optimize import options
from ..optimize.called import number, returned
from ..optimize.constraints import Constraints
from ..optimize.layout import Layout
from ..optimize.stopping import Limits
from ..spaces import Choice, Int, Space

MOST_SEED = 2**32 - 1  # the largest that every method takes


@dataclass(frozen=True, eq=False)
class Problem:
    """What a method is told. It searches `dim` numbers between `low` and `high`.

    For a `gesmr.Space` these are its genes, for a pytree its numbers in a row; the objective makes solutions of them.
    """

    x0: np.ndarray  # f[d]  where to begin
    low: np.ndarray  # f[d]  -inf where open; half a unit below the lowest integer of a whole variable
    high: np.ndarray  # f[d]
    unit: np.ndarray  # f[d]  the range, or init_std where there is none
    whole: np.ndarray  # bool[d]  which are rounded to integers where they are used
    unordered: np.ndarray  # bool[d]  which of these are numbers of options
    is_constrained: bool
    maxfun: int  # evaluations that are left
    seed: int
    attempt: int  # how often the method has ended early in this run
    given: dict[str, Any]  # bounds, integrality and init_std as they were
    layout: Layout  # what solutions look like

    @property
    def dim(self) -> int:
        return len(self.x0)

    @property
    def is_bounded(self) -> bool:
        """Whether every variable has a range."""
        return bool(self.has_range.all())

    @cached_property
    def has_range(self) -> np.ndarray:
        return np.isfinite(self.low) & np.isfinite(self.high)

    @cached_property
    def offset(self) -> np.ndarray:
        """`f[d]`: `low`, or 0 where there is no range."""
        return np.where(self.has_range, self.low, 0.0)

    @cached_property
    def step(self) -> np.ndarray:
        """How far to go at first, `f[d]`: a quarter of the range, or init_std."""
        return np.where(self.has_range, 0.25, 1.0) * self.unit

    def rng(self) -> np.random.Generator:
        """Always the same numbers."""
        return np.random.default_rng(self.seed)

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Candidates `f[count, d]` all over the range, or around x0 where a variable has none."""
        over = self.offset + self.unit * rng.random((count, self.dim))
        around = self.x0 + self.unit * rng.standard_normal((count, self.dim))
        return np.clip(np.where(self.has_range, over, around), self.low, self.high)


class Task:
    """A user's function and what was said about it, checked; for all methods and seeds."""

    def __init__(
        self,
        fun: Callable,
        x0: Any,
        args: Any,
        *,
        given: dict[str, Any],  # bounds, integrality, init_std
        constraints: Any,
        eq_tol: Any,
        direction: str,
        vectorized: bool,
    ):
        _checks.function("fun", fun)
        self.fun, self.args = fun, args if isinstance(args, tuple) else (args,)
        self.sign = -1 if _checks.choice("direction", direction, ("minimize", "maximize")) == "maximize" else 1
        self.direction, self.vectorized = direction, _checks.flag("vectorized", vectorized)
        self._given = {name: value for name, value in given.items() if value is not None}
        self._draws = x0 if callable(x0) and not isinstance(x0, Space) else None
        self._setup = self._checked(x0 if self._draws is None else self._draws(np.random.default_rng(0)))
        layout, bounds = self._setup.layout, self._setup.bounds
        self.dim, self.layout = layout.dim, layout
        open_side = np.full(self.dim, np.inf)
        self.low, self.high = (-open_side, open_side) if bounds is None else (bounds.low, bounds.high)
        self.whole = _whole(layout)
        self.constraints = Constraints(constraints, is_vector=layout.is_vector, dim=self.dim, eq_tol=eq_tol)
        self.eq_tol = float(eq_tol)

    def _checked(self, x0: Any) -> options.Setup:
        return options.check(x0, {**self._given, "dtype": "float64", "rng": 0}, Limits())

    def problem(self, seed: int, maxfun: int, attempt: int = 0) -> Problem:
        """What a method is told the first time in a run, or after so many attempts: the same start for the same seed,
        and other starts and seeds for later attempts."""
        low, high, std = self.low, self.high, self._setup.init_std
        with np.errstate(invalid="ignore", over="ignore"):
            span = np.where(high > low, high - low, 1.0)
        problem = Problem(
            x0=self._setup.x0,
            low=low,
            high=high,
            unit=np.where(np.isfinite(span), span, 1.0 if std is None else std),
            whole=self.whole,
            unordered=np.zeros(self.dim, bool) if self.layout.space is None else self.layout.space.unordered,
            is_constrained=len(self.constraints) > 0,
            maxfun=maxfun,
            seed=seed if attempt == 0 else int(np.random.SeedSequence([seed, attempt]).generate_state(1)[0]),
            attempt=attempt,
            given=self._given,
            layout=self.layout,
        )
        if self.layout.space is not None:  # as an optimiser of gesmr draws it
            return replace(problem, x0=problem.rng().uniform(low, high))
        if self._draws is not None:
            return replace(problem, x0=self._checked(self._draws(problem.rng())).x0)
        return problem if attempt == 0 else replace(problem, x0=problem.draw(problem.rng(), 1)[0])

    def measure(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values `f[n]` as minimised, infinite where constraints are violated or it is not finite, and violations."""
        values, violations = np.full(len(rows), np.inf), np.zeros(len(rows))
        if len(self.constraints):
            violations = np.array([self.constraints.violation(self.layout.solution(row.copy())) for row in rows])
        allowed = violations == 0
        values[allowed] = self.sign * self._called(rows[allowed])
        return np.where(np.isfinite(values), values, np.inf), violations

    def _called(self, rows: np.ndarray) -> np.ndarray:
        if self.vectorized and len(rows):
            return returned(self.fun(self.layout.stacked(rows.copy()), *self.args), len(rows))
        solutions = (self.layout.solution(row.copy()) for row in rows)
        return np.array([number(self.fun(x, *self.args)) for x in solutions], np.float64)

    def described(self) -> dict[str, Any]:
        """What must be the same for runs to be compared, as JSON has it."""
        sides = {
            name: [None if np.isinf(x) else x for x in side.tolist()]
            for name, side in (("low", self.low), ("high", self.high))
        }
        std = self._setup.init_std
        return {
            "fun": qualified(self.fun),
            "space": None if self.layout.space is None else self.layout.space.as_dict(),
            "x0": self._setup.x0.tolist(),
            "x0_drawn": self._draws is not None,
            **sides,
            "integrality": self.whole.tolist(),
            "constraints": len(self.constraints),
            "eq_tol": self.eq_tol,
            "init_std": None if std is None else std.tolist(),
            "direction": self.direction,
        }


def qualified(function: Callable) -> str:
    """Where a function is defined, by which files know it again."""
    whole = function.func if isinstance(function, partial) else function
    return f"{getattr(whole, '__module__', '')}:{getattr(whole, '__qualname__', type(whole).__name__)}"


def _whole(layout: Layout) -> np.ndarray:
    """Which genes are integers once they are rounded. Not those whose logarithm is searched."""
    if layout.space is None:
        return np.array(layout.integral, bool) if layout.integral else np.zeros(layout.dim, bool)
    steps = [isinstance(one, Choice) or (isinstance(one, Int) and not one.log) for one in layout.space.variables]
    return np.repeat(steps, [one.size for one in layout.space.variables])
