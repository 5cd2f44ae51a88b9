"""What a person sees while a study runs: a live display in a terminal, plain lines elsewhere."""

import threading
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text


class Display:
    """A line whenever a job is finished: of so many runs in all, with so much `work`, in whatever unit that is."""

    def __init__(self, console: Console, runs: int, work: float):
        self._console, self._runs, self._work = console, runs, work
        self._done, self._worked, self._evaluations, self._start = 0, 0.0, 0.0, time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_: object) -> None: ...

    def started(self, label: str) -> None: ...

    def worked(self, work: float, evaluations: float) -> None:
        with self._lock:
            self._worked += work
            self._evaluations += evaluations

    def finished(self, label: str, runs: int, seconds: float) -> None:
        with self._lock:
            self._done += runs
            rest = f"about {self._left} left" if self._done < self._runs else f"{duration(self._elapsed)} in all"
            line = f"[{self._done}/{self._runs} runs] {label}: {seconds:.1f} s; {self._rate}, {rest}"
        self._print(line)

    def skipped(self, label: str, runs: int, work: float) -> None:
        """Another process computed it."""
        label = f"{label}, by another process"
        self.started(label)
        self.worked(work, 0.0)
        self.finished(label, runs, 0.0)

    def lost(self, label: str) -> None:
        """The node that computed it is gone. It will be started again."""
        self._print(f"{label}: its node was lost, and another one will compute it")

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    @property
    def _left(self) -> str:
        """As long as the rest will take at the pace so far."""
        return duration(max(self._elapsed * (self._work / self._worked - 1), 0.0)) if self._worked > 0 else "…"

    @property
    def _rate(self) -> str:
        return f"{count(max(self._evaluations, 0.0) / max(self._elapsed, 1e-9))} evaluations/s"

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveDisplay(Display):
    """A bar, and what has been running for longest."""

    def __init__(self, console: Console, runs: int, work: float):
        super().__init__(console, runs, work)
        self._running: list[str] = []
        self._progress = Progress(
            TextColumn("{task.fields[runs]}"),
            BarColumn(bar_width=max(min(console.width - 70, 24), 8)),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("[dim]{task.fields[rest]}", markup=True),
            console=console,
        )
        self._task = self._progress.add_task("", total=max(work, 1.0), runs=self._count, rest="compiling")

    def __enter__(self) -> "LiveDisplay":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, label: str) -> None:
        with self._lock:
            self._running.append(label)
            self._show()

    def worked(self, work: float, evaluations: float) -> None:
        super().worked(work, evaluations)
        with self._lock:
            self._show()

    def finished(self, label: str, runs: int, seconds: float) -> None:
        with self._lock:
            self._done += runs
        self.lost(label)

    def lost(self, label: str) -> None:
        with self._lock:
            self._running.remove(label)
            self._show()

    @property
    def _count(self) -> str:
        return f"{self._done:,}/{self._runs:,} runs"

    def _show(self) -> None:
        rest = Text("compiling")
        if self._worked > 0:
            rest = Text("  ".join([f"{self._rate}, {self._left} left", *self._running[:1]]))
        bar = self._progress.columns[1]
        used = len(self._count) + (bar.bar_width or 0 if isinstance(bar, BarColumn) else 0) + len(" 100%  ")
        rest.truncate(max(self._console.width - used, 0), overflow="ellipsis")  # a line, in however few columns
        self._progress.update(self._task, completed=self._worked, runs=self._count, rest=rest.markup)


def count(number: float) -> str:
    """Two digits and a word: "850", "12,000", "3.1 million"."""
    for size, word in ((1e9, " billion"), (1e6, " million")):
        if number >= size:
            return f"{number / size:.2g}{word}" if number < 100 * size else f"{number / size:,.0f}{word}"
    return f"{float(f'{number:.2g}'):,.0f}" if number >= 10 else f"{number:.2g}"


def duration(seconds: float) -> str:
    """ "40 s", "3 min 5 s", "2 h 10 min"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
