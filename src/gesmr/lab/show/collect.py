"""Stored runs brought together: by row, by what is compared in it, and by seed."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..run.specs import Spec

Arrays = dict[str, np.ndarray]  # of a run, by name


class Seeded(Spec, Protocol):
    @property
    def seed(self) -> int: ...


S = TypeVar("S", bound=Spec)
Run = TypeVar("Run", bound=Seeded)
Column = TypeVar("Column", bound=Hashable)
Place = TypeVar("Place", bound=Hashable)


def by_seed(
    runs: Iterable[tuple[Run, Arrays]], row: Callable[..., Place], column: Callable[[Run], Column]
) -> dict[Place, dict[Column, dict[int, Arrays]]]:
    """Arrays by row, column and seed. `row` is a NamedTuple of some attributes of a run."""
    found: dict[Place, dict[Column, dict[int, Arrays]]] = {}
    for run, arrays in runs:
        place = row(*(getattr(run, name) for name in row._fields))  # type: ignore[attr-defined]
        found.setdefault(place, {}).setdefault(column(run), {})[run.seed] = arrays
    return found


def on_shared_seeds(
    columns: Mapping[Column, Mapping[int, Arrays]], order: Sequence[Column]
) -> tuple[list[int], dict[Column, Arrays]]:
    """The seeds that all columns have, and their arrays with these as the first axis; columns are put in an order."""
    present = [column for column in order if column in columns]
    seeds = sorted(set.intersection(*(set(columns[column]) for column in present))) if present else []
    return seeds, {column: stacked(columns[column], seeds) for column in present} if seeds else {}


def stacked(runs: Mapping[int, Arrays], seeds: Sequence[int]) -> Arrays:
    """The arrays of these seeds, with them as the first axis."""
    return {name: np.stack([runs[seed][name] for seed in seeds]) for name in runs[seeds[0]]}


def largest(
    runs: Iterable[tuple[S, Arrays]], place: Callable[[S], Place], size: Callable[[S], Any]
) -> dict[Place, tuple[S, Arrays]]:
    """Of what was computed several times in a place, the largest; of equal ones the first."""
    found: dict[Place, tuple[S, Arrays]] = {}
    for spec, arrays in runs:
        where = place(spec)
        if where not in found or size(spec) > size(found[where][0]):
            found[where] = spec, arrays
    return found
