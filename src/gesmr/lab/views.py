"""How each study's results are shown."""

from pathlib import Path
from typing import Protocol

from rich.console import Console

from .claims import Claim
from .functions.view import FunctionsView
from .store import Store


class View(Protocol):
    def tables(self, store: Store, shifted: bool, to: Path, console: Console) -> None: ...
    def compare(
        self, store: Store, shifted: bool, against: Path, table: int | None, to: Path, console: Console
    ) -> None: ...
    def claims(self, store: Store) -> list[Claim]: ...
    def figures(self, store: Store, shifted: bool, rows: list[str], to: Path, console: Console) -> None: ...
    def export(self, store: Store, shifted: bool, to: Path, console: Console) -> None: ...


VIEWS: dict[str, View] = {"functions": FunctionsView()}
