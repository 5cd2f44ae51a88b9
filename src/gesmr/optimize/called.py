"""Python functions: their values, called here, by workers or for a whole population at once, and a run by them."""

import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import _checks
from ..generation import Values
from ..workers import crew_of, map_of
from ..workers.sending import described, sendable
from .layout import Layout, cast, real_values
from .options import Objective
from .phases import Told
from .run import Run

Outcome = tuple[float, str | None]  # a value, or NaN and what was raised


class PlainValues:
    """A plain Python function of one solution or, `vectorized`, of many, called here or by workers."""

    def __init__(
        self,
        objective: Objective,
        layout: Layout,
        *,
        repeats: int = 1,
        known: tuple[np.ndarray, Outcome] | None = None,  # a row for which it has been called already
        why: str = "",  # it is not compiled, for the result
    ):
        self._objective, self._repeats, self._known = objective, repeats, known
        self._layout = layout
        self._call = _Call(objective.fun, objective.args, layout, objective.on_error)
        self._crew = crew_of(objective.workers)
        if self._crew is None:
            self._map = map_of(objective.workers)
        else:
            self._packed = self._crew.pack(self._call)
        self.errors, self.first_error = 0, None
        where = "vectorized" if objective.vectorized else f"{self._crew}" if self._crew else "mapped"
        how = "python" if objective.is_serial and not objective.vectorized else f"python, {where}"
        self.path = f"{how} ({why})" if why else how

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Values `f64[n]` and, if there are constraints, violations `f64[n]`; what violates them has no value."""
        if not self._objective.constraints:
            return self._mean(rows), None
        violations = np.array([self._violation(x) for x in self._layout.solutions(rows.copy())])
        values, feasible = np.full(len(rows), np.inf), violations == 0
        values[feasible] = self._mean(rows[feasible])
        return values, violations

    def _violation(self, x: Any) -> float:
        try:
            return self._objective.constraints.violation(x)
        except Exception as error:
            if self._objective.on_error == "raise":
                raise
            self._note([described(error)])
            return np.inf

    def _mean(self, rows: np.ndarray) -> np.ndarray:
        total = np.zeros(len(rows))
        for _ in range(self._repeats if len(rows) else 0):
            total += self._once(rows)
        return total / self._repeats

    def close(self) -> None:
        """End workers that were started for this alone."""
        if self._crew is not None and not self._crew.held:
            self._crew.close()

    def _once(self, rows: np.ndarray) -> np.ndarray:
        values = np.full(len(rows), np.nan)
        missing = np.ones(len(rows), bool)
        if self._known is not None:
            row, (value, error) = self._known
            at = np.flatnonzero((rows == row).all(axis=1))[:1]
            values[at], missing[at] = value, False
            self._known = None
            self._note([error] if error is not None and len(at) else [])
        wanted = rows if missing.all() else rows[missing]
        values[missing] = self._in_batches(wanted) if self._objective.vectorized else self._one_by_one(wanted)
        return values

    def _one_by_one(self, rows: np.ndarray) -> np.ndarray:
        if self._crew is not None:
            found = self._crew.evaluate(self._packed, rows, forgiving=self._call.on_error == "worst")
            self._note([found.errors[row] for row in sorted(found.errors)])
            return found.values
        if self._layout.space is not None and self._objective.is_serial:  # decoded together it is much faster
            outcomes = list(map(self._call.of, self._layout.solutions(rows)))
        else:
            outcomes = list(self._map(self._call, rows))
        if len(outcomes) != len(rows):
            raise ValueError(f"workers must return one value per candidate, got {len(outcomes)} for {len(rows)}")
        self._note([error for _, error in outcomes if error is not None])
        return np.array([value for value, _ in outcomes], np.float64)

    def _in_batches(self, rows: np.ndarray) -> np.ndarray:
        size = self._objective.batch_size or max(len(rows), 1)
        parts = [self._call.many(rows[start : start + size]) for start in range(0, len(rows), size)]
        for values, error in parts:
            self._note([error] * len(values) if error is not None else [])
        return np.concatenate([values for values, _ in parts])

    def _note(self, errors: list[str]) -> None:
        self.errors += len(errors)
        self.first_error = self.first_error or (errors[0] if errors else None)


class CalledStep:
    """One generation at a time, evaluated in Python."""

    short = False  # whether it ends soon, so that Ctrl-C can wait for it

    def __init__(self, run: Run, values: PlainValues):
        self._run, self._values = run, values
        self._warned = False

    def __call__(self) -> None:
        run, by = self._run, self._values
        errors, rows = by.errors, run.rows()
        children, violations = self._internal(rows)
        parents, elite, again = self._again()
        run.progress.errors += by.errors - errors
        if by.first_error is not None and not self._warned:
            self._warned = True
            message = f"fun failed: {by.first_error}; such candidates count as the worst"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
        values: Any = Values(children, parents, elite, violations)  # type: ignore[arg-type]
        run.accept(values, run.setup.repeats * (len(rows) + again))

    def value(self, row: np.ndarray) -> float:
        """The objective at a solution, as minimised inside. It is not counted."""
        return float(self._internal(row[None])[0][0])

    def _again(self) -> tuple[np.ndarray | None, np.ndarray | None, int]:
        """Fresh values of the parents and of the elite, of those that are to be evaluated again, and how many."""
        run, phase, reevaluate = self._run, self._run.phase, self._run.setup.reevaluate
        if not isinstance(phase, Told) or reevaluate == "none":
            return None, None, 0
        elite = self._internal(run.wide(np.asarray(phase.proposal.population)[:1]))[0][0]
        if reevaluate == "elite":
            return None, np.asarray(elite), 1
        distinct, which = np.unique(np.asarray(phase.proposal.parents), return_inverse=True)
        parents = self._internal(run.wide(np.asarray(phase.state.population)[distinct]))[0][which]
        return parents, np.asarray(elite), 1 + len(distinct)

    def _internal(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Values of candidates as minimised inside, and their violations if there are constraints."""
        setup = self._run.setup
        values, violations = self._values(rows)
        dtype = setup.layout.wide
        return cast(setup.sign * values, dtype), None if violations is None else cast(violations, dtype)


class _Call:
    """One evaluation and what it raised. A class, so that it can be sent to other processes."""

    def __init__(self, fun: Callable, args: tuple, layout: Layout, on_error: str):
        self.fun, self.args, self.layout, self.on_error = fun, args, layout, on_error
        self._sent = False

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, _sent=True)

    def __call__(self, row: np.ndarray) -> Outcome:
        return self.of(self.layout.solution(row.copy()))

    def of(self, x: Any) -> Outcome:
        try:
            return number(self.fun(x, *self.args)), None
        except Exception as error:
            if self.on_error == "raise":
                if self._sent and (other := sendable(error)) is not error:
                    raise other from error
                raise
            return np.nan, described(error)

    def many(self, rows: np.ndarray) -> tuple[np.ndarray, str | None]:
        try:
            values = self.fun(self.layout.stacked(rows.copy()), *self.args)
            return returned(values, len(rows)), None
        except Exception as error:
            if self.on_error == "raise":
                raise
            return np.full(len(rows), np.nan), described(error)


def returned(values: Any, n: int) -> np.ndarray:
    """What a vectorized function gave for n candidates, as `f64[n]`."""
    return real_values("what fun returns", values, n, "float64")


def number(value: Any) -> float:
    if isinstance(value, float):
        return value
    array = _checks.array("what fun returns", value, "one real number")
    real = array.dtype.kind in "iuf" or jnp.issubdtype(array.dtype, jnp.floating)  # bfloat16 and the like
    if array.size != 1 or isinstance(value, bool) or not real:
        raise TypeError(f"fun must return one real number, got {_checks.described(value)}")
    return float(array.reshape(()))
