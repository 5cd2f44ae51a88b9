"""What a study is: specifications of runs, and groups of them that are computed together."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np


class Spec(Protocol):
    """A run, or another piece of work: a frozen dataclass of plain data. `kind` names the dataclass in the store."""

    kind: str


def as_json(spec: Spec) -> dict[str, Any]:
    return {"kind": spec.kind, **dataclasses.asdict(spec)}  # type: ignore[call-overload]


def content_hash(data: Any) -> str:
    """64 hexadecimal digits that depend on the content of plain data alone."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Program(Hashable, Protocol):
    """Something to compile, named by its fields: equal programs are compiled once."""

    def compile(self) -> Callable: ...


Compiled = Callable[[Any], Callable]  # a program to its compiled form, waiting for it if need be
Tick = Callable[[float], None]  # called with the work done since the last call


class Group(Protocol):
    """Runs that are computed together and stored in one file."""

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

    @property
    def alone(self) -> bool:
        """Whether nothing else may run at the same time, because it measures time."""
        ...

    def run(self, compiled: Compiled, tick: Tick) -> dict[str, np.ndarray]:
        """Arrays whose first axis follows `specs`."""
        ...


@dataclasses.dataclass(frozen=True)
class Selection:
    """What a user asked of a study. None: what the profile says."""

    profile: str = "quick"
    seeds: int | None = None
    dims: tuple[int, ...] | None = None
    functions: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    shifted: bool = False


class Study(Protocol):
    name: str
    title: str
    profiles: Sequence[str]

    def specs(self, selection: Selection) -> list[Spec]:
        """Every run asked for, in an order that is always the same."""
        ...

    def groups(self, specs: Sequence[Spec], memory: int) -> list[Group]:
        """The runs in groups that each need at most about `memory` bytes."""
        ...
