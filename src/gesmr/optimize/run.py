"""What an optimiser holds between two calls."""

from array import array
from typing import Any, NamedTuple

import numpy as np
from jax import Array

from ..evolution import History
from ..ga import Proposal, State


class First(NamedTuple):
    """The first population of a run, not all of its values known yet."""

    population: Array  # f[N+1, d]
    values: np.ndarray  # f[N+1], where known
    known: np.ndarray  # bool[N+1]


class Told(NamedTuple):
    """A generation whose values are known. `before` and the rest are what the step was made from: a checkpoint holds
    those and repeats the step, because only the same program gives the same bits."""

    before: tuple | None  # arguments of the step, without the population; None if it was compiled
    state: State  # after it, population included
    proposal: Proposal  # the next population
    log_rate: Array  # of its children


class Ran(NamedTuple):
    """The state after compiled generations."""

    state: State


class Record:
    """The history of a run while it grows."""

    def __init__(self):
        self._columns = array("d"), array("d"), array("q")

    def add(self, *columns: Any) -> None:
        """Elite values, mean log rates and evaluations so far, of one generation or of many."""
        for column, entries in zip(self._columns, columns, strict=True):
            column.frombytes(np.atleast_1d(np.asarray(entries, column.typecode)).tobytes())

    def since(self, generation: int) -> History:
        parts = (np.frombuffer(column[generation:], column.typecode) for column in self._columns)
        return History(*parts)  # type: ignore[arg-type]
