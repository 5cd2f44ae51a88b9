"""What the page may ask for, and within which bounds."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ... import _checks
from ..run.reading import PAPER_FUNCTIONS

METHODS = ("GESMR", "SAMR", "15MR", "FMR", "1CMR", "UCB/5", "UCB/10", "GESMR-AVG", "GESMR-FIX", "GESMR-X")
FUNCTIONS = PAPER_FUNCTIONS
ZOOMS = (1, 4, 16)
# The bounds of the numbers, which the page's fields have too.
DIM, CHILDREN, GROUPS, GENERATIONS, SEED = (2, 100), (4, 400), (1, 100), (1, 500), (0, 2**31 - 1)
STD = (0.01, 100.0)
MOST_MEMBERS = 60_000  # children × generations: an answer has at most about a megabyte


@dataclass(frozen=True)
class Setting:
    """One run: a method on a function. `std` is the spread of the first population, which is around the origin."""

    method: str = "GESMR"
    function: str = "rastrigin"
    dim: int = 2
    std: float = 4.0
    children: int = 100  # N
    groups: int = 10  # K, of the methods that have groups
    seed: int = 0
    generations: int = 120
    moved: bool = True  # whether the optimum is away from the middle of the first population

    def __post_init__(self):
        _checks.choice("method", self.method, METHODS)
        _checks.choice("function", self.function, FUNCTIONS)
        _checks.integer("dim", self.dim, *DIM)
        _std(self.std)
        _checks.integer("children", self.children, *CHILDREN)
        _checks.integer("groups", self.groups, *GROUPS)
        _checks.integer("seed", self.seed, *SEED)
        _checks.integer("generations", self.generations, *GENERATIONS)
        _boolean("moved", self.moved)
        if self.method.startswith("GESMR") and self.groups > self.children:
            raise ValueError(f"groups must be at most children ({self.children}), got {self.groups}")
        if self.children * self.generations > MOST_MEMBERS:
            raise ValueError(
                f"children × generations must be at most {MOST_MEMBERS:,}, "
                f"got {self.children} × {self.generations} = {self.children * self.generations:,}"
            )


@dataclass(frozen=True)
class Place:
    """A part of a function's landscape: all that the first population covers, or a `zoom` of it at the optimum."""

    function: str = "rastrigin"
    dim: int = 2
    std: float = 4.0
    moved: bool = True
    zoom: int = 1

    def __post_init__(self):
        _checks.choice("function", self.function, FUNCTIONS)
        _checks.integer("dim", self.dim, *DIM)
        _std(self.std)
        _boolean("moved", self.moved)
        if isinstance(self.zoom, bool) or self.zoom not in ZOOMS:
            raise ValueError(f"zoom must be one of {', '.join(map(str, ZOOMS))}, got {_checks.show(self.zoom)}")


def read(kind: type, given: Any) -> Any:
    """`given`, from JSON, as a `Setting` or a `Place`. A TypeError or ValueError says what is wrong with it."""
    if not isinstance(given, Mapping):
        raise TypeError(f"a request must be a JSON object, got {type(given).__name__}")
    known = [field.name for field in fields(kind)]
    for name in given:
        if name not in known:
            raise ValueError(f"parameters must be among {', '.join(known)}, got {_checks.show(name)}")
    return kind(**given)


def _std(value: Any) -> None:
    low, high = STD
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"std must be a number from {low:g} to {high:g}, got {_checks.show(value)}")


def _boolean(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false, got {_checks.show(value)}")
