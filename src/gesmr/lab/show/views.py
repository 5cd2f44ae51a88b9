"""What a study can be asked to show."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol, runtime_checkable

from rich.console import Console

from ..run.store import Store
from .claims import Claim
from .report.base import Chapter


@dataclass(frozen=True)
class Options:
    """What a user asked for, beyond the study."""

    shifted: bool = False
    rows: tuple[str, ...] = ()
    as_text: bool = False
    seeds: range | None = None  # None: all there are

    @property
    def asked(self) -> list[str]:
        """The names of those that differ from the defaults."""
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]

    @property
    def suffix(self) -> str:
        """What sets the directories of these apart."""
        of_seeds = f"-seeds-{self.seeds.start}-{self.seeds.stop - 1}" if self.seeds else ""
        return "-shifted" * self.shifted + "-as-text" * self.as_text + of_seeds


class View(Protocol):
    """Shows a study's results from its store alone."""

    @property
    def options(self) -> tuple[str, ...]:
        """Those of `Options` that mean something to it."""
        ...

    def tables(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Print the tables and write them as files."""
        ...

    def figures(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Write the figures as PDF, SVG and PNG."""
        ...

    def claims(self, store: Store, options: Options) -> list[Claim]: ...

    def export(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Write the summaries that are worth keeping."""
        ...

    def chapter(self, directory: Path) -> Chapter:
        """The study's part of the report."""
        ...


@runtime_checkable
class Comparable(Protocol):
    """A view with a printed table to compare with."""

    def compare(
        self, store: Store, options: Options, against: Path, table: int | None, to: Path, console: Console
    ) -> None: ...
