"""What a study is: specifications of runs, and jobs, in which some of them are computed together."""

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from ... import _checks
from .compilation import Program
from .reading import Reading


class Spec(Protocol):
    """A run, or another piece of work: a frozen dataclass of plain data. `kind` names the dataclass in the store."""

    kind: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


S = TypeVar("S", bound=Spec)
T = TypeVar("T")


def as_json(spec: Spec) -> dict[str, Any]:
    return {"kind": spec.kind, **dataclasses.asdict(spec)}


def content_hash(data: Any) -> str:
    """64 hexadecimal digits that depend on the content of plain data alone."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


GetProgram = Callable[[Program], Callable]  # a program to its compiled form, waiting for it if need be
Tick = Callable[[float], None]  # called with the work done since the last call


@dataclasses.dataclass(frozen=True)
class Job(ABC, Generic[S]):
    """Runs that are computed together and stored in one file."""

    specs: tuple[S, ...]
    alone: ClassVar[bool] = False  # whether nothing else may run at the same time, because it measures time

    @property
    def one(self) -> S:
        """Any of the runs, for what they have in common."""
        return self.specs[0]

    @property
    @abstractmethod
    def label(self) -> str: ...

    @property
    @abstractmethod
    def programs(self) -> Sequence[Program]:
        """What `run` will ask for."""

    @property
    @abstractmethod
    def work(self) -> float:
        """What `tick` adds up to, in a unit that takes about the same time in all jobs of a study."""

    @property
    def evaluation(self) -> float:
        """How much of the work one evaluation of a solution is."""
        return 1.0

    @abstractmethod
    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """Arrays whose first axis follows `specs`."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """What a user asked of a study. None: what the profile says."""

    profile: str = "quick"
    seeds: int | range | None = None  # a number n: seeds 0 … n−1
    dims: tuple[int, ...] | None = None
    functions: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    shifted: bool = False
    tasks: tuple[str, ...] | None = None
    images: int | None = None
    init: str | None = None
    as_text: bool = False

    @property
    def quick(self) -> bool:
        return self.profile == "quick"

    @property
    def reading(self) -> Reading:
        return Reading.TEXT if self.as_text else Reading.PRINT

    def seeds_or(self, default: int) -> range:
        """The seeds asked for, or the first `default`."""
        if isinstance(self.seeds, range):
            _checks.integer("seeds", self.seeds[-1], 0, 2**31 - 1)
            return self.seeds
        return range(default if self.seeds is None else _checks.integer("seeds", self.seeds, 1, 2**31 - 1))

    def chosen(self, name: str, known: Iterable[T], default: Sequence[T] | None = None) -> tuple[T, ...]:
        """What was asked for of the field `name`, in the order of `known`, if all of it is; or `default`, or all."""
        known, asked = tuple(known), getattr(self, name)
        if asked is None:
            return known if default is None else tuple(default)
        for item in asked:
            _checks.choice(name, item, known)
        return tuple(item for item in known if item in asked)

    def check(self, study: "Study") -> None:
        """Refuse what was asked for but means nothing to the study."""
        for field in dataclasses.fields(self):
            if field.name not in ("profile", *study.takes) and getattr(self, field.name) != field.default:
                offers = ", ".join(f"--{_option(name)}" for name in study.takes) or "nothing of the kind"
                raise ValueError(f"{_option(field.name)} means nothing to the study {study.name}, which takes {offers}")
        _checks.choice("profile", self.profile, study.profiles)


def _option(name: str) -> str:
    """As the command line spells it."""
    return name.replace("_", "-")


class Study(ABC, Generic[S]):
    """A deterministic generator of specifications, and how they are computed."""

    name: ClassVar[str]
    title: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()  # fields of a selection, beside the profile
    profiles: ClassVar[tuple[str, ...]] = ("quick", "paper")

    def specs(self, selection: Selection) -> Sequence[S]:
        """Every run asked for, in an order that is always the same."""
        selection.check(self)
        return self.plan(selection)

    @abstractmethod
    def plan(self, selection: Selection) -> Sequence[S]:
        """Those of a selection that has been checked."""

    @abstractmethod
    def jobs(self, specs: Sequence[S], memory: int) -> Sequence[Job]:
        """The runs in jobs that each need at most about `memory` bytes."""


K = TypeVar("K", bound=Hashable)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, tuple[T, ...]]:
    """Items that have the same key, all in the order in which they come."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return {of: tuple(members) for of, members in found.items()}


def parts(items: Sequence[T], most: int) -> list[tuple[T, ...]]:
    """`items` in parts of at most `most`, as even as can be."""
    count = -(-len(items) // most)
    size = -(-len(items) // count)
    return [tuple(items[i : i + size]) for i in range(0, len(items), size)]
