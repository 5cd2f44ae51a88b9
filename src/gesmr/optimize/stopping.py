"""When a run ends, and what is said about it: every rule once, with its limit, its test and its sentence."""

import functools
import operator
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, TypedDict

import jax.numpy as jnp
import numpy as np

from .. import _checks

DEFAULT_GENERATIONS = 1000  # if nothing else limits a run
BLIND_PATIENCE = 100  # generations without a single finite value, if `patience` does not say
_NEVER = np.iinfo(np.int32).max


class Counts(NamedTuple):
    """What rules look at: plain numbers between generations, traced inside a compiled loop."""

    nit: Any  # generations
    nfev: Any  # evaluations
    cost: Any  # evaluations of another generation
    seconds: Any
    best: Any  # the lowest value of this run, as it is minimised inside
    stale: Any  # generations of this run since it fell
    blind: Any  # generations of this run without any finite value

    @classmethod
    def of_a_chunk(cls, best: Any, stale: Any, blind: Any) -> "Counts":
        """As a compiled loop counts, in 32 bits: generations and evaluations since it began, the latter in units of a
        generation's; the clock stands."""
        zero, one = jnp.int32(0), jnp.int32(1)
        return cls(zero, zero, one, zero, best, stale, blind)

    def after(self, value: Any, evaluations: Any, xp: Any = np) -> "Counts":
        """Those after another generation, whose best value is `value`. `xp` is numpy, or jax.numpy where traced."""
        best = xp.where(value < self.best, value, self.best)
        stale = xp.where(value < self.best, 0, self.stale + 1)
        blind = xp.where(xp.isfinite(best), 0, self.blind + 1)
        return self._replace(nit=self.nit + 1, nfev=self.nfev + evaluations, best=best, stale=stale, blind=blind)

    def at_worst(self, more: int) -> "Counts":
        """As near to every limit as `more` generations can bring them, whatever they find. Traced."""
        lowest, nfev = jnp.finfo(self.best.dtype).min, self.nfev + more * self.cost
        stale, blind = self.stale + more, self.blind + more
        return self._replace(nit=self.nit + more, nfev=nfev, best=lowest, stale=stale, blind=blind)


class Rule(NamedTuple):
    """A reason to stop."""

    status: int  # scipy's number for it
    sentence: str
    of: str = ""  # the count that its limit is one of
    reached: Callable[[Counts, Any], Any] | None = None  # of counts and limit, traced or not; None: from outside


def _limit(low: float, rule: Rule) -> Any:
    """A field of `Limits`: an integer of at least `low`, or a number above it if that is a float."""
    check = _checks.number if isinstance(low, float) else _checks.integer
    return field(default=None, metadata={"check": functools.partial(check, low=low), "rule": rule})


@dataclass(frozen=True)
class Limits:
    """Any combination of limits; a run ends at the first that is reached. Each is declared with its rule."""

    maxiter: int | None = _limit(0, Rule(3, "All {} generations were run.", "nit", lambda now, n: now.nit >= n))
    maxfun: int | None = _limit(  # never exceeded
        1, Rule(4, "Another generation would exceed {} evaluations.", "nfev", lambda now, n: now.nfev + now.cost > n)
    )
    maxtime: float | None = _limit(0.0, Rule(5, "The time of {} s is up.", "seconds", lambda now, s: now.seconds >= s))
    target: float | None = _limit(-np.inf, Rule(0, "The target {} was reached.", "best", lambda now, x: now.best <= x))
    patience: int | None = _limit(  # where nothing is finite at all, that is the reason: `nonfinite`
        1, Rule(2, "No better value in {} generations.", "stale", lambda now, n: (now.stale >= n) & (now.blind < n))
    )

    def __post_init__(self):
        """Plain numbers, whatever they came as: they are written to checkpoints."""
        for limit in fields(self):
            given = getattr(self, limit.name)
            if given is not None:
                object.__setattr__(self, limit.name, limit.metadata["check"](limit.name, given))

    @property
    def blind_patience(self) -> int:
        return self.patience or BLIND_PATIENCE

    @functools.cached_property
    def in_force(self) -> dict[str, Any]:
        """By the names of rules, with what stands in where nothing would end a run."""
        unlimited = self.maxiter is None and self.maxfun is None and self.maxtime is None
        given = {name: limit for name, limit in asdict(self).items() if limit is not None}
        return given | ({"maxiter": DEFAULT_GENERATIONS} if unlimited else {}) | {"nonfinite": self.blind_patience}

    def marks(self, sign: int, dtype: Any) -> dict[str, Any]:
        """What counts are compared with: the target as minimised inside, in the precision of the values and rounded so
        that reached is reached, and all others as they are."""
        marks = dict(self.in_force)
        if self.target is not None:
            exact = sign * float(self.target)
            rounded = np.asarray(exact, dtype)
            lower = rounded if rounded <= exact else np.nextafter(rounded, -np.inf, dtype=rounded.dtype)
            marks["target"] = float(lower)
        return marks


class LimitOptions(TypedDict, total=False):
    """The limits as keyword arguments, for type checkers."""

    maxiter: int | None
    maxfun: int | None
    maxtime: float | None
    target: float | None
    patience: int | None


_OTHERS = {
    "nonfinite": Rule(1, "No value was finite in {} generations.", "blind", lambda now, n: now.blind >= n),
    "callback": Rule(6, "The callback asked to stop."),
    "interrupted": Rule(7, "Interrupted; this is the best so far."),
}
_ALL = {limit.name: limit.metadata["rule"] for limit in fields(Limits)} | _OTHERS
RULES: dict[str, Rule] = dict(sorted(_ALL.items(), key=lambda named: named[1].status))
_TESTS = {name: rule.reached for name, rule in RULES.items() if rule.reached is not None}
_FAILURES = ("nonfinite", "interrupted")


@dataclass
class Progress:
    """What has been counted so far. All of it is in a checkpoint; `Counts` says what is what."""

    nit: int = 0
    nfev: int = 0
    seconds: float = 0.0
    run: int = 0  # restarts so far
    best: float = np.inf
    stale: int = 0
    blind: int = 0
    elite_count: int = 1  # evaluations behind the value in slot 0
    errors: int = 0  # evaluations that raised and counted as the worst
    events: dict[str, Any] = field(default_factory=dict)  # reasons that come from outside: callback, interrupted

    def counts(self, cost: int) -> Counts:
        return Counts(self.nit, self.nfev, cost, self.seconds, self.best, self.stale, self.blind)

    def take(self, now: Counts) -> None:
        """Go on from these."""
        self.nit, self.nfev, self.best = int(now.nit), int(now.nfev), float(now.best)
        self.stale, self.blind = int(now.stale), int(now.blind)


def reasons(limits: Limits, marks: dict[str, Any], now: Counts) -> dict[str, Any]:
    """Why to stop now, by name, with the limit that was reached; empty while there is no reason."""
    given = limits.in_force
    return {name: given[name] for name, reached in _TESTS.items() if name in marks and reached(now, marks[name])}


def marks_of_a_chunk(marks: dict[str, Any], now: Counts, dtype: Any) -> dict[str, Any]:
    """The marks of all rules for a compiled loop that goes on from `now` and counts as `Counts.of_a_chunk` does.

    They are data, so that it is one program for all limits.
    """

    def written(name: str) -> Any:
        mark, of = marks.get(name), RULES[name].of
        if of == "best":
            return np.asarray(-np.inf if mark is None else mark, dtype)
        if mark is None or of == "seconds":
            return np.int32(_NEVER)
        left = {"nit": mark - now.nit, "nfev": (mark - now.nfev) // now.cost}.get(of, mark)
        return np.int32(max(0, min(left, _NEVER)))

    return {name: written(name) for name in _TESTS}


def any_reached(now: Counts, marks: dict[str, Any]) -> Any:
    """Whether there is a reason to stop, in a compiled loop."""
    return functools.reduce(operator.or_, (reached(now, marks[name]) for name, reached in _TESTS.items()))


def verdict(stop: dict[str, Any], limits: Limits, best: float) -> tuple[bool, int, str]:
    """scipy's `success`, `status` and `message`.

    A run is a success if it found something finite, was not interrupted and, where a target was set, reached it.
    `status` is that of the first reason among target, nonfinite, patience, maxiter, maxfun, maxtime, callback,
    interrupted; −1 while there is none.
    """
    success = bool(np.isfinite(best)) and bool(stop) and not any(name in stop for name in _FAILURES)
    success &= limits.target is None or "target" in stop
    message = " ".join(RULES[name].sentence.format(value) for name, value in stop.items()) or "Not finished."
    return success, min((RULES[name].status for name in stop), default=-1), message
