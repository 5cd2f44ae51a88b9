"""What a study is: specifications of runs, and groups of them that are computed together."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from ... import _checks
from .reading import Reading


class Spec(Protocol):
    """A run, or another piece of work: a frozen dataclass of plain data. `kind` names the dataclass in the store."""

    kind: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


def as_json(spec: Spec) -> dict[str, Any]:
    return {"kind": spec.kind, **dataclasses.asdict(spec)}


def content_hash(data: Any) -> str:
    """64 hexadecimal digits that depend on the content of plain data alone."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Program(Hashable, Protocol):
    """Something to compile, named by its fields: equal programs are compiled once."""

    def compile(self) -> Callable: ...


Compiled = Callable[[Any], Callable]  # a program to its compiled form, waiting for it if need be
Tick = Callable[[float], None]  # called with the work done since the last call


class Job(Protocol):
    """Runs that are computed together and stored in one file."""

    alone: ClassVar[bool]  # whether nothing else may run at the same time, because it measures time

    @property
    def label(self) -> str: ...

    @property
    def specs(self) -> Sequence[Spec]: ...

    @property
    def programs(self) -> Sequence[Program]:
        """What `run` will ask for."""
        ...

    @property
    def work(self) -> float:
        """Generations times runs: what `tick` adds up to."""
        ...

    def run(self, compiled: Compiled, tick: Tick) -> dict[str, np.ndarray]:
        """Arrays whose first axis follows `specs`."""
        ...


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

    def seeds_or(self, default: int) -> range:
        """The seeds asked for, or the first `default`."""
        if isinstance(self.seeds, range):
            _checks.integer("seeds", self.seeds[-1], 0, 2**31 - 1)
            return self.seeds
        return range(default if self.seeds is None else _checks.integer("seeds", self.seeds, 1, 2**31 - 1))

    @property
    def reading(self) -> Reading:
        return Reading.TEXT if self.as_text else Reading.PRINT

    def check(self, study: str, accepted: Sequence[str]) -> None:
        """Refuse what was asked for but means nothing to the study."""
        for field in dataclasses.fields(self):
            if field.name not in ("profile", *accepted) and getattr(self, field.name) != field.default:
                offers = ", ".join(f"--{_option(name)}" for name in accepted) or "nothing of the kind"
                raise ValueError(f"{_option(field.name)} means nothing to the study {study}, which takes {offers}")


def _option(name: str) -> str:
    """As the command line spells it."""
    return name.replace("_", "-")


class Study(Protocol):
    name: ClassVar[str]
    title: ClassVar[str]
    profiles: ClassVar[tuple[str, ...]]

    def specs(self, selection: Selection) -> Sequence[Spec]:
        """Every run asked for, in an order that is always the same."""
        ...

    def jobs(self, specs: Sequence[Spec], memory: int) -> Sequence[Job]:
        """The runs in groups that each need at most about `memory` bytes."""
        ...
