"""What a person sees while jobs run: a live display in a terminal, plain lines elsewhere."""

import threading
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text


class Display:
    """A line for every job that is finished, of so many with `work` in all: dimension times generations times runs."""

    def __init__(self, console: Console, jobs: int, work: float):
        self._console, self._jobs, self._work = console, jobs, work
        self._done, self._worked, self._start = 0, 0.0, time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_: object) -> None: ...

    def started(self, label: str) -> None: ...

    def worked(self, work: float) -> None:
        with self._lock:
            self._worked += work

    def finished(self, label: str, seconds: float) -> None:
        with self._lock:
            self._done += 1
            elapsed = time.monotonic() - self._start
            left = elapsed * (self._work / self._worked - 1) if self._worked else 0.0
            line = f"[{self._done}/{self._jobs}] {label}: {seconds:.1f} s; {self._worked / elapsed:.2g} genes/s"
            line += f", about {max(left, 0):.0f} s left" if self._done < self._jobs else f", {elapsed:.0f} s in all"
        self._print(line)

    def skipped(self, label: str, work: float) -> None:
        """Another process computed it."""
        label = f"{label}, by another process"
        self.started(label)
        self.worked(work)
        self.finished(label, 0.0)

    def lost(self, label: str) -> None:
        """The node that computed it is gone. It will be started again."""
        self._print(f"{label}: its node was lost, and another one will compute it")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveDisplay(Display):
    """A bar, and what has been running for longest."""

    def __init__(self, console: Console, jobs: int, work: float):
        super().__init__(console, jobs, work)
        self._running: list[str] = []
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
        self._task = self._progress.add_task("compiling", total=max(work, 1.0), groups=jobs, done=0)

    def __enter__(self) -> "LiveDisplay":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, label: str) -> None:
        with self._lock:
            self._running.append(label)
            self._progress.update(self._task, description=self._running[0])

    def worked(self, work: float) -> None:
        self._progress.advance(self._task, work)

    def finished(self, label: str, seconds: float) -> None:
        with self._lock:
            self._done += 1
        self.lost(label)

    def lost(self, label: str) -> None:
        with self._lock:
            self._running.remove(label)
            waiting = self._running[0] if self._running else ""
            self._progress.update(self._task, description=waiting, done=self._done)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:.2g} genes/s", style="progress.data.speed")
