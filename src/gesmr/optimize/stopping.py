"""When a run ends, and what is said about it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _checks

DEFAULT_GENERATIONS = 1000  # if nothing else limits a run
BLIND_PATIENCE = 100  # generations without a single finite value, if `patience` does not say


@dataclass(frozen=True)
class Limits:
    """Any combination of limits; a run ends at the first that is reached."""

    maxiter: int | None = None  # generations
    maxfun: int | None = None  # evaluations, never exceeded
    maxtime: float | None = None  # seconds
    target: float | None = None  # a value that is good enough
    patience: int | None = None  # generations without a better value

    def __post_init__(self):
        """Plain numbers, whatever they came as: they are written to checkpoints."""
        for name, low in (("maxiter", 0), ("maxfun", 1), ("patience", 1)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _checks.integer(name, getattr(self, name), low))
        for name in ("maxtime", "target"):
            if getattr(self, name) is not None:
                low = 0.0 if name == "maxtime" else -np.inf
                object.__setattr__(self, name, _checks.number(name, getattr(self, name), low))

    @property
    def generations(self) -> int | None:
        """`maxiter`, or what stands in for it where nothing would end a run."""
        unlimited = self.maxiter is None and self.maxfun is None and self.maxtime is None
        return DEFAULT_GENERATIONS if unlimited else self.maxiter

    @property
    def blind_patience(self) -> int:
        return self.patience or BLIND_PATIENCE


@dataclass
class Progress:
    """What has been counted so far. All of it is in a checkpoint."""

    nit: int = 0  # generations
    nfev: int = 0  # evaluations
    seconds: float = 0.0
    run: int = 0  # restarts so far
    best: float = np.inf  # the lowest value of this run, as it is minimised inside
    stale: int = 0  # generations of this run since it fell
    blind: int = 0  # generations of this run without any finite value
    elite_count: int = 1  # evaluations behind the value in slot 0
    errors: int = 0  # evaluations that raised and counted as the worst
    events: dict[str, Any] = field(default_factory=dict)  # reasons that come from outside: callback, interrupted

    def after_generation(self, value: float) -> None:
        """Count a generation whose best value is `value`. The compiled loop does the same."""
        self.nit += 1
        self.stale = 0 if value < self.best else self.stale + 1
        self.best = min(self.best, value)
        self.blind = 0 if np.isfinite(self.best) else self.blind + 1


def reasons(limits: Limits, progress: Progress, target: float | None, next_cost: int) -> dict[str, Any]:
    """Why to stop now, by name, with the limit that was reached; empty while there is no reason.

    `target` is as it is minimised inside; `next_cost` the evaluations of another generation.
    """
    found: dict[str, Any] = {}
    if target is not None and progress.best <= target:
        found["target"] = limits.target
    if progress.blind >= limits.blind_patience:
        found["nonfinite"] = limits.blind_patience
    elif limits.patience is not None and progress.stale >= limits.patience:
        found["patience"] = limits.patience
    if limits.generations is not None and progress.nit >= limits.generations:
        found["maxiter"] = limits.generations
    if limits.maxfun is not None and progress.nfev + next_cost > limits.maxfun:
        found["maxfun"] = limits.maxfun
    if limits.maxtime is not None and progress.seconds >= limits.maxtime:
        found["maxtime"] = limits.maxtime
    return {**found, **progress.events}


_SENTENCES = {
    "target": "The target {} was reached.",
    "nonfinite": "No value was finite in {} generations.",
    "patience": "No better value in {} generations.",
    "maxiter": "All {} generations were run.",
    "maxfun": "Another generation would exceed {} evaluations.",
    "maxtime": "The time of {} s is up.",
    "callback": "The callback asked to stop.",
    "interrupted": "Interrupted; this is the best so far.",
}
_STATUS = {name: number for number, name in enumerate(_SENTENCES)}
_FAILURES = ("nonfinite", "interrupted")


def verdict(stop: dict[str, Any], limits: Limits, best: float) -> tuple[bool, int, str]:
    """scipy's `success`, `status` and `message`.

    A run is a success if it found something finite, was not interrupted and, where a target was set, reached it.
    `status` is the position of the first reason among target, nonfinite, patience, maxiter, maxfun, maxtime, callback,
    interrupted; −1 while there is none.
    """
    success = bool(np.isfinite(best)) and bool(stop) and not any(name in stop for name in _FAILURES)
    success &= limits.target is None or "target" in stop
    message = " ".join(_SENTENCES[name].format(value) for name, value in stop.items()) or "Not finished."
    return success, min((_STATUS[name] for name in stop), default=-1), message
