"""What a person sees while groups run: a live display in a terminal, plain lines elsewhere."""

import threading
import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text


class Display(Protocol):
    def __enter__(self) -> "Display": ...
    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
    def started(self, label: str) -> None: ...
    def worked(self, work: float) -> None: ...
    def finished(self, label: str, seconds: float) -> None: ...
    def skipped(self, label: str, work: float) -> None: ...  # another process computed it
    def lost(self, label: str) -> None: ...  # the node that computed it; it will be started again


def display(console: Console, groups: int, work: float) -> Display:
    """`groups` groups with `work` in all: gene-generations, that is, dimension times generations times runs."""
    return LiveDisplay(console, groups, work) if console.is_terminal else PlainDisplay(console, groups, work)


class LiveDisplay:
    def __init__(self, console: Console, groups: int, work: float):
        self._running: list[str] = []
        self._lock = threading.Lock()
        self._progress = Progress(
            TextColumn("{task.fields[done]}/{task.fields[groups]} groups"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            _Rate(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.description}", markup=True),
            console=console,
        )
        self._task = self._progress.add_task("compiling", total=max(work, 1.0), groups=groups, done=0)

    def __enter__(self) -> "LiveDisplay":
        self._progress.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def started(self, label: str) -> None:
        with self._lock:
            self._running.append(label)
            self._progress.update(self._task, description=self._running[0])

    def worked(self, work: float) -> None:
        self._progress.advance(self._task, work)

    def finished(self, label: str, seconds: float) -> None:
        self._ended(label, 1)

    def skipped(self, label: str, work: float) -> None:
        self.started(label)
        self.worked(work)
        self.finished(label, 0.0)

    def lost(self, label: str) -> None:
        self._ended(label, 0)

    def _ended(self, label: str, done: int) -> None:
        with self._lock:
            self._running.remove(label)
            waiting = self._running[0] if self._running else ""
            done += self._progress.tasks[self._task].fields["done"]
            self._progress.update(self._task, description=waiting, done=done)


class PlainDisplay:
    def __init__(self, console: Console, groups: int, work: float):
        self._console, self._groups, self._work = console, groups, work
        self._done, self._worked, self._start = 0, 0.0, time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> "PlainDisplay":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def started(self, label: str) -> None: ...

    def worked(self, work: float) -> None:
        with self._lock:
            self._worked += work

    def finished(self, label: str, seconds: float) -> None:
        with self._lock:
            self._done += 1
            elapsed = time.monotonic() - self._start
            left = elapsed * (self._work / self._worked - 1) if self._worked else 0.0
            line = f"[{self._done}/{self._groups}] {label}: {seconds:.1f} s; {self._worked / elapsed:.2g} genes/s"
            line += f", about {max(left, 0):.0f} s left" if self._done < self._groups else f", {elapsed:.0f} s in all"
        self._print(line)

    def skipped(self, label: str, work: float) -> None:
        self.worked(work)
        self.finished(f"{label}, by another process", 0.0)

    def lost(self, label: str) -> None:
        self._print(f"{label}: its node was lost, and another one will compute it")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:.2g} genes/s", style="progress.data.speed")
