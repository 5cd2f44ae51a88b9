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
DEFAULT_FTOL = 1e-12  # likewise
STALL_PATIENCE = 50  # generations that `ftol` looks at, if `patience` does not say
BLIND_PATIENCE = 100  # generations without a single finite value, if `patience` does not say
_NEVER = np.iinfo(np.int32).max
_HUGE = 1e38  # in the place of infinity, of which there are no differences


class Counts(NamedTuple):
    """What rules look at: plain numbers between generations, traced inside a compiled loop."""

    nit: Any  # generations
    nfev: Any  # evaluations
    cost: Any  # evaluations of another generation
    seconds: Any
    found: "Found"
    stale: Any  # generations of this run since something better was found
    blind: Any  # generations of this run without any finite value

    @property
    def best(self) -> Any:
        return self.found.best

    @classmethod
    def of_a_chunk(cls, found: "Found", stale: Any, blind: Any) -> "Counts":
        """As a compiled loop counts, in 32 bits: generations and evaluations since it began, the latter in units of a
        generation's; the clock stands."""
        zero, one = jnp.int32(0), jnp.int32(1)
        return cls(zero, zero, one, zero, found, stale, blind)

    def after(self, seen: "Seen", evaluations: Any, ftol: Any, xp: Any = np) -> "Counts":
        """Those after another generation. `xp` is numpy, or jax.numpy where traced."""
        found, is_better = self.found.after(seen, ftol, xp)
        stale = xp.where(is_better, 0, self.stale + 1)
        is_known = xp.isfinite(found.best) | ((found.violation > 0) & xp.isfinite(found.violation))
        blind = xp.where(is_known, 0, self.blind + 1)
        return self._replace(nit=self.nit + 1, nfev=self.nfev + evaluations, found=found, stale=stale, blind=blind)

    def at_worst(self, more: int) -> "Counts":
        """As near to every limit as `more` generations can bring them, whatever they find. Traced."""
        found = self.found._replace(best=jnp.finfo(self.best.dtype).min, diversity=jnp.zeros_like(self.best))
        counted = {"nit": self.nit + more, "nfev": self.nfev + more * self.cost}
        return self._replace(**counted, found=found, stale=self.stale + more, blind=self.blind + more)


class Seen(NamedTuple):
    """What a generation shows, as it is minimised inside."""

    best: Any  # the lowest value of all members
    violation: Any  # the least; 0 without constraints
    diversity: Any  # of the members


class Found(NamedTuple):
    """What a run has found so far, as it is minimised inside. All are numbers of the precision of values."""

    best: Any = np.inf  # the lowest value
    violation: Any = 0.0  # the least; 0 without constraints
    diversity: Any = np.inf  # of the last generation
    first: Any = np.inf  # the lowest value of the first population
    stalled: Any = np.inf  # the lowest value when something better was last found

    @classmethod
    def at_first(cls, best: float, violation: float) -> "Found":
        return cls(best, violation, np.inf, best, best)

    def after(self, seen: Seen, ftol: Any, xp: Any) -> tuple["Found", Any]:
        """That after another generation, and whether it is better: less infeasible, or lower by more than `ftol` of
        what has been gained, or of the value if that is less."""
        is_less = seen.violation < self.violation
        best = xp.where(is_less | (seen.best < self.best), seen.best, self.best)
        violation = xp.minimum(seen.violation, self.violation)
        gained = xp.minimum(self.first, _HUGE) - best
        size = xp.clip(xp.minimum(gained, xp.maximum(xp.abs(best), 1)), 0, _HUGE)
        is_better = is_less | (best < self.stalled - ftol * size)
        stalled = xp.where(is_better, best, self.stalled)
        first = xp.where(xp.isfinite(self.first), self.first, best)
        return Found(best, violation, seen.diversity, first, stalled), is_better


class Rule(NamedTuple):
    """A reason to stop."""

    status: int  # scipy's number for it
    sentence: str
    of: str = ""  # the count that its limit is one of
    reached: Callable[[Counts, Any], Any] | None = None  # of counts and limit, traced or not; None: from outside


def _is_stale(now: Counts, generations: Any) -> Any:
    return (now.stale >= generations) & (now.blind < generations)


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
        1, Rule(2, "No better value in {} generations.", "stale", _is_stale)
    )
    ftol: float | None = _limit(0.0, Rule(8, "The best value hardly falls any more (ftol={}).", "stale", _is_stale))
    xtol: float | None = _limit(
        0.0, Rule(9, "The population has shrunk (xtol={}).", "diversity", lambda now, x: now.found.diversity <= x)
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

    @property
    def stall_patience(self) -> float:
        """Generations without anything better after which a run has stalled."""
        return self.patience or (STALL_PATIENCE if "ftol" in self.in_force else np.inf)

    @functools.cached_property
    def in_force(self) -> dict[str, Any]:
        """By the names of rules, with what stands in where nothing would end a run. With `ftol` there is no other rule
        for `patience`."""
        given = {name: limit for name, limit in asdict(self).items() if limit is not None}
        if not given.keys() & {"maxiter", "maxfun", "maxtime"}:
            ends = bool(given.keys() & {"patience", "ftol", "xtol"})
            given |= {"maxiter": DEFAULT_GENERATIONS} | ({} if ends else {"ftol": DEFAULT_FTOL})
        if "ftol" in given:
            given.pop("patience", None)
        return given | {"nonfinite": self.blind_patience}

    @property
    def tolerance(self) -> float:
        """The `ftol` in force: 0 if every lower value is better."""
        return self.in_force.get("ftol", 0.0)

    def marks(self, sign: int, dtype: Any) -> dict[str, Any]:
        """What counts are compared with: the target as minimised inside, in the precision of the values and rounded so
        that reached is reached, of `ftol` the generations, and all others as they are."""
        marks = dict(self.in_force)
        if "ftol" in marks:
            marks["ftol"] = self.stall_patience
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
    ftol: float | None
    xtol: float | None


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
    found: Found = Found()
    stale: int = 0
    blind: int = 0
    elite_count: int = 1  # evaluations behind the value in slot 0
    errors: int = 0  # evaluations that raised and counted as the worst
    events: dict[str, Any] = field(default_factory=dict)  # reasons that come from outside: callback, interrupted

    @property
    def best(self) -> float:
        return self.found.best

    def counts(self, cost: int) -> Counts:
        return Counts(self.nit, self.nfev, cost, self.seconds, self.found, self.stale, self.blind)

    def take(self, now: Counts) -> None:
        """Go on from these."""
        self.nit, self.nfev, self.found = int(now.nit), int(now.nfev), Found(*map(float, now.found))
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
        if of in ("best", "diversity"):
            return np.asarray(-np.inf if mark is None else mark, dtype)
        if mark is None or of == "seconds":
            return np.int32(_NEVER)
        left = {"nit": mark - now.nit, "nfev": (mark - now.nfev) // now.cost}.get(of, mark)
        return np.int32(max(0, min(left, _NEVER)))

    return {name: written(name) for name in _TESTS}


def any_reached(now: Counts, marks: dict[str, Any]) -> Any:
    """Whether there is a reason to stop, in a compiled loop."""
    return functools.reduce(operator.or_, (reached(now, marks[name]) for name, reached in _TESTS.items()))


def verdict(stop: dict[str, Any], limits: Limits, best: float, violation: float = 0.0) -> tuple[bool, int, str]:
    """scipy's `success`, `status` and `message`.

    A run is a success if it found something finite (with constraints: something feasible), was not interrupted and,
    where a target was set, reached it. `status` is that of the first reason among target, nonfinite, patience, maxiter,
    maxfun, maxtime, callback, interrupted, ftol, xtol; −1 while there is none.
    """
    success = bool(np.isfinite(best)) and bool(stop) and not any(name in stop for name in _FAILURES)
    success &= limits.target is None or "target" in stop
    message = " ".join(RULES[name].sentence.format(value) for name, value in stop.items()) or "Not finished."
    if violation > 0:
        message += f" Nothing satisfies the constraints: the nearest violates them by {violation:.3g}."
    return success, min((RULES[name].status for name in stop), default=-1), message
