"""Candidates between asking and telling: in any order, in parts, late, or from elsewhere.

A generation has a slot for every candidate. A slot takes the first value it gets: of the candidate that was proposed
for it, or of a sibling of that, which has the same parent and the same rate. What is told for a slot that has its
value, or after its generation, is late: it arrives. Arrivals take the places of the worst candidates of the generation
in progress, if they are better. Nothing is learned about rates from those places. What was made before a restart does
not arrive, or it would end where the run has been: it can be the best so far, and no more.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .layout import Layout

_REMEMBERED = 10_000  # candidates of earlier generations that may still be told
LATE, GONE = -1, -2  # in the place of a slot: of an earlier generation, of a run before a restart

Valued = tuple[float, float, np.ndarray]  # violation, value and row


@dataclass
class Pending:
    """What is on its way. All of it is in a checkpoint."""

    rows: np.ndarray  # f[m, d]  candidates of the slots, then siblings, then those of earlier generations
    slot: np.ndarray  # i64[m]  which slot each is for, or LATE, or GONE
    handed: np.ndarray  # bool[m]
    told: np.ndarray  # bool[m]
    values: np.ndarray  # f[n]  of slots, as minimised inside; NaN where there is none
    violations: np.ndarray  # f[n]
    filled: np.ndarray  # bool[n]  whether a slot has its value
    chosen: np.ndarray  # i64[n]  of which candidate
    foreign: np.ndarray  # bool[n]  whether a slot's candidate comes from elsewhere
    arrived: np.ndarray  # f[k, d]  late or injected, with their values
    arrived_values: np.ndarray  # f[k]
    arrived_violations: np.ndarray  # f[k]
    queued: np.ndarray  # f[q, d]  injected without values, for the next generation
    rounds: int = 0  # of siblings
    evaluations: int = 0  # told so far, of this generation or late
    _places: dict[bytes, list[int]] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, rows: np.ndarray, before: "Pending | None" = None, *, restarted: bool = False) -> "Pending":
        """For a generation of these candidates `f[n, d]`, after another, or after a restart."""
        n, nothing = len(rows), np.empty((0, rows.shape[1]), rows.dtype)
        out, slots = nothing, np.arange(0)
        if before is not None:
            left = np.flatnonzero(before.handed & ~before.told)
            is_older = before.slot[left] < 0
            remembered = np.r_[left[~is_older][::-1], left[is_older]][:_REMEMBERED]  # the latest first
            out = before.rows[remembered]
            slots = np.where(restarted | (before.slot[remembered] == GONE), GONE, LATE)
        flags, values = np.zeros(n + len(out), bool), np.full(n, np.nan, rows.dtype)
        pending = cls(
            rows=np.concatenate([rows, out]),
            slot=np.r_[np.arange(n), slots],
            handed=np.r_[np.zeros(n, bool), np.ones(len(out), bool)],
            told=flags,
            values=values,
            violations=np.zeros_like(values),
            filled=np.zeros(n, bool),
            chosen=np.arange(n),
            foreign=np.zeros(n, bool),
            arrived=nothing,
            arrived_values=values[:0],
            arrived_violations=values[:0],
            queued=nothing,
        )
        if before is not None:
            pending.propose(before.queued)
        return pending

    # asking

    def next(self, n: int) -> np.ndarray:
        """The numbers of up to n candidates that have not been handed out, those from elsewhere first."""
        free = np.flatnonzero(~self.handed & (self.slot >= 0))
        free = free[~self.filled[self.slot[free]]]
        first = (free < len(self.filled)) & self.foreign[self.slot[free]]
        return np.r_[free[first], free[~first]][:n]

    def add_siblings(self, rows: np.ndarray) -> None:
        """Another candidate `f[n, d]` for every slot, of which those without a value can be handed out."""
        slots = np.flatnonzero(~self.filled & ~self.foreign)
        slots = slots if len(slots) else np.flatnonzero(~self.filled)
        self._append(rows[slots], slots)
        self.rounds += 1

    def _append(self, rows: np.ndarray, slots: np.ndarray) -> None:
        self.rows, self.slot = np.concatenate([self.rows, rows]), np.r_[self.slot, slots]
        self.handed, self.told = (np.r_[flags, np.zeros(len(rows), bool)] for flags in (self.handed, self.told))
        self._places = None

    # telling

    def find(self, xs: list[bytes], layout: Layout) -> list[int]:
        """The number of each candidate, by what `keys` makes of it; those that are out first.

        KeyError with the position in xs of one that is not known, or has been told.
        """
        if self._places is None:
            self._places = {}
            for number, key in enumerate(keys(self.rows, layout)):
                self._places.setdefault(key, []).append(number)
        found: dict[int, None] = {}  # in order, and looked up fast
        for position, key in enumerate(xs):
            free = [number for number in self._places.get(key, []) if not self.told[number] and number not in found]
            if not free:
                raise KeyError(position)
            found[min(free, key=lambda number: (not self.handed[number], self._is_late(number), number))] = None
        return list(found)

    def _is_late(self, number: int) -> bool:
        return self.slot[number] < 0 or bool(self.filled[self.slot[number]])

    def take(self, numbers: list[int], values: np.ndarray, violations: np.ndarray) -> list[Valued]:
        """Values of candidates by their numbers. Returns those that were made before a restart."""
        gone: list[Valued] = []
        for number, value, violation in zip(numbers, values, violations, strict=True):
            slot = self.slot[number]
            self.told[number] = True
            if slot == GONE:
                gone.append((float(violation), float(_value(value)), self.rows[number].copy()))
                continue
            if self._is_late(number):
                self.arrive(self.rows[number : number + 1], values=np.array([value]), violations=np.array([violation]))
                continue
            self.values[slot], self.violations[slot] = value, violation
            self.filled[slot], self.chosen[slot] = True, number
        self.evaluations += len(numbers)
        return gone

    # candidates from elsewhere

    def arrive(self, rows: np.ndarray, values: np.ndarray, violations: np.ndarray) -> None:
        kind = self.rows.dtype
        self.arrived = np.concatenate([self.arrived, rows]).astype(kind)
        self.arrived_values = np.r_[self.arrived_values, values].astype(kind)
        self.arrived_violations = np.r_[self.arrived_violations, violations].astype(kind)

    def propose(self, rows: np.ndarray) -> None:
        """Put candidates into the last slots of which none has been handed out; those that find none are queued."""
        n = len(self.filled)
        free = np.flatnonzero(~self.handed[:n] & ~self.filled & ~self.foreign)[::-1][: len(rows)]
        self.rows[free], self.foreign[free], self._places = rows[: len(free)], True, None
        self.queued = np.concatenate([self.queued, rows[len(free) :]])

    # when all slots are filled

    def closed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Candidates `f[n, d]`, values and violations `f[n]` as they enter the population, and whether each is the one
        that was proposed, or its sibling, `bool[n]`."""
        rows, values, violations, judged = (
            self.rows[self.chosen],
            self.values.copy(),
            self.violations.copy(),
            ~self.foreign,
        )
        arrived, worst = (
            _best_first(self.arrived_values, self.arrived_violations),
            _best_first(values, violations)[::-1],
        )
        for new, old in zip(arrived, worst, strict=False):
            better = self.arrived_violations[new], _value(self.arrived_values[new])
            if better < (violations[old], _value(values[old])):
                rows[old], judged[old] = self.arrived[new], False
                values[old], violations[old] = self.arrived_values[new], self.arrived_violations[new]
        return rows, values, violations, judged

    def best(self) -> Valued | None:
        """Violation, value and row of the best that has a value and is not in a population yet."""
        values = np.r_[self.values[self.filled], self.arrived_values]
        violations = np.r_[self.violations[self.filled], self.arrived_violations]
        if not len(values):
            return None
        at = _best_first(values, violations)[0]
        rows = np.concatenate([self.rows[self.chosen[self.filled]], self.arrived])
        return float(violations[at]), float(_value(values[at])), rows[at]


def keys(rows: np.ndarray, layout: Layout) -> Iterator[bytes]:
    """What candidates are recognised by: what users get for a row, as a row."""
    if layout.is_vector:
        return ((row + 0.0).tobytes() for row in layout.used(rows))
    return ((layout.flatten(x) + 0.0).tobytes() for x in layout.solutions(rows))


def _value(value: Any) -> Any:
    return np.where(np.isfinite(value), value, np.inf)


def _best_first(values: np.ndarray, violations: np.ndarray) -> np.ndarray:
    return np.lexsort((np.where(violations > 0, np.inf, _value(values)), violations))
