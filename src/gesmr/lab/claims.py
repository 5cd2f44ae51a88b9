"""A claim of the paper, decided by a rule."""

from dataclasses import dataclass
from enum import StrEnum


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
    claim: str  # what the paper says
    rule: str  # what must be true of our numbers for it to hold
    found: str  # our numbers
    verdict: Verdict
