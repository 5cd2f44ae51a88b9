"""A claim, decided by a rule: the paper's, and a few of this project."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .output import json_text

R = TypeVar("R")
OWN = 19  # claims from this number on are not the paper's


class Verdict(StrEnum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "not decidable"

    @classmethod
    def of(cls, holds: bool | None) -> "Verdict":
        """None: what is needed to decide is missing."""
        return cls.UNDECIDED if holds is None else cls.HOLDS if holds else cls.FAILS


@dataclass(frozen=True)
class Claim:
    number: int  # in the list of claims the project decides
    claim: str  # what is said
    rule: str  # what must be true of our numbers for it to hold
    found: str  # our numbers
    verdict: Verdict
    short: str = ""  # how the runs fall short of the paper's: "5 of 40 seeds, d up to 100"; "": they do not


class Finding(NamedTuple):
    """What results say about a claim."""

    holds: bool | None  # None: neither
    found: str
    short: str = ""

    @property
    def verdict(self) -> Verdict:
        return Verdict.of(self.holds)


@dataclass(frozen=True)
class Rule(Generic[R]):
    """A claim that results `R` decide."""

    number: int
    claim: str
    rule: str
    decide: Callable[[R], Finding | None]  # None: what it needs is not there
    missing: str = "the runs this needs are not all there"

    def decided(self, results: R) -> Claim:
        holds, found, short = self.decide(results) or Finding(None, self.missing)
        return Claim(self.number, self.claim, self.rule, found, Verdict.of(holds), short)


def first_complete(settings: Mapping[str, Finding | None]) -> Finding | None:
    """What was found in each of several settings: the first that has all its runs decides, and all are said."""
    there = {name: finding for name, finding in settings.items() if finding is not None}
    if not there:
        return None
    said = [f"{name}, it {finding.verdict}: {finding.found}" for name, finding in there.items()]
    missing = [f"{name}, not all runs are there" for name in settings if name not in there]
    return next(iter(there.values()))._replace(found=". ".join(said + missing))


def shortfall(**counts: tuple[int, int]) -> str:
    """What `Claim.short` says, given what there is and what the paper has: `seeds=(5, 40)`. Not less is not short."""
    return ", ".join(f"{there:,} of {paper:,} {what}" for what, (there, paper) in counts.items() if there < paper)


def as_json(decided: Sequence[Claim]) -> str:
    return json_text([asdict(claim) for claim in decided])


_STYLES = {Verdict.HOLDS: "bold green", Verdict.FAILS: "bold red", Verdict.UNDECIDED: "yellow"}
_TABLE_FROM = 120  # columns of a terminal; in fewer, three columns of sentences cannot be read


def as_text(decided: Sequence[Claim], width: int) -> Group:
    """For a terminal of so many columns: a table, or one claim below the other."""
    decided = sorted(decided, key=lambda claim: claim.number)
    own = any(claim.number >= OWN for claim in decided)
    title = Text(f"Claims of the paper{f', and from {OWN} on of this project' * own}", style="table.title")
    shown = [_table(decided)] if width >= _TABLE_FROM else [part for claim in decided for part in _below(claim)]
    return Group(title, Text(), *shown)


def _table(decided: Sequence[Claim]) -> Table:
    text = Table(box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False)
    text.add_column("#", justify="right")
    for heading, ratio in (("Claim", 3), ("Rule", 4), ("Found", 3)):
        text.add_column(heading, ratio=ratio)
    text.add_column("Verdict", no_wrap=True)
    for c in decided:
        cells = map(escape, (str(c.number), c.claim, c.rule, _found(c)))
        text.add_row(*cells, Text(c.verdict, style=_STYLES[c.verdict]))
    return text


def _below(c: Claim) -> list[RenderableType]:
    sentences = Table(box=None, show_header=False, pad_edge=False)
    sentences.add_column(style="dim", no_wrap=True)
    sentences.add_column(overflow="fold")
    for name, sentence in (("claim", c.claim), ("rule", c.rule), ("found", _found(c))):
        sentences.add_row(name, escape(sentence))
    return [Text.assemble((f"{c.number}: ", "bold"), (c.verdict, _STYLES[c.verdict])), sentences, Text()]


def _found(c: Claim) -> str:
    return f"{c.found} (decided on less than the paper's runs: {c.short})" if c.short else c.found
