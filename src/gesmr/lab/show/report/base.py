"""What a study gives to the report: a chapter with its claims, its sections and where its numbers come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..claims import Claim


@dataclass(frozen=True)
class Section:
    """A part of the page: a template of this package, and what it and its script are given."""

    name: str  # the id of its element
    title: str
    template: str  # sees `section`
    context: Mapping[str, Any] = field(default_factory=dict)
    script: str | None = None  # a file of this package, once on the page however many sections name it
    data: Any = None  # plain data for the script, in the JSON element `data-NAME`


@dataclass(frozen=True)
class Outcome:
    """A claim decided on one set of runs."""

    runs: str  # which runs, where a study has several sets; else empty
    claim: Claim


@dataclass(frozen=True)
class Chapter:
    """A study's part of the report."""

    title: str
    summary: str  # what was run, in a line
    outcomes: Sequence[Outcome]
    caution: str  # why its verdicts may not be final; empty if they are
    sections: Sequence[Section]
    provenance: Sequence[Mapping[str, Any]]  # of every stored group
    runs: int
    commands: Sequence[str]  # that make the results
