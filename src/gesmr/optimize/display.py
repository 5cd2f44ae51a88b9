"""A run as a line: rewritten in place in a terminal, elsewhere printed now and then."""

import math
import os
import shutil
import sys
import time
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Any, TextIO

_ECHO = "^C"  # what terminals write after the line
_LIVE_SECONDS, _PLAIN_SECONDS = 0.1, 5.0  # between lines, in a terminal and elsewhere
_COUNTS = {"maxiter": "nit", "maxfun": "nfev", "maxtime": "seconds"}  # what a bar can move with, and its limits
_SPARED = ("rate", "nfev", "seconds", "nit")  # where a terminal is narrow, the first of them first
_BAR_FROM, _LONGEST_BAR = 40, 24  # columns: of a terminal that has room for one, and of the bar


class Display:
    """A callback that shows a run, within a `with` block, which leaves nothing of the line behind.

    The bar moves with whichever of `limits` comes first. What others print meanwhile stands above the line.
    """

    def __init__(self, stream: TextIO, limits: dict[str, float | None]):
        self._stream = stream
        self._limits = {of: limit for name, of in _COUNTS.items() if (limit := limits.get(name))}
        self._is_live = stream.isatty()
        self._marks = _marks(stream)
        self._start = time.monotonic()
        self._next = self._start + (0.0 if self._is_live else _PLAIN_SECONDS)
        self._drawn = 0  # characters of the line that are there now
        self._begun = False  # whether somebody else's is, without an end
        self._redirected = ExitStack()

    def __enter__(self) -> "Display":
        if self._is_live:
            for redirect, stream in ((redirect_stdout, sys.stdout), (redirect_stderr, sys.stderr)):
                if stream is not None and stream.isatty():
                    self._redirected.enter_context(redirect(_Above(stream, self)))  # type: ignore[arg-type]
            self._draw({"": "starting"}, dict.fromkeys(self._limits, 0.0))
        return self

    def __exit__(self, *_: object) -> None:
        self._redirected.close()
        self.clear()

    @property
    def is_due(self) -> bool:
        """Whether a call would show anything."""
        return time.monotonic() >= self._next

    def __call__(self, intermediate_result: Any) -> None:
        if not self.is_due:
            return
        now = time.monotonic()
        self._next = now + (_LIVE_SECONDS if self._is_live else _PLAIN_SECONDS)
        seconds = intermediate_result.get("seconds", now - self._start)
        parts = _parts(intermediate_result, seconds)
        if self._is_live:
            self._draw(parts, {"nit": intermediate_result.nit, "nfev": intermediate_result.nfev, "seconds": seconds})
        else:
            print(", ".join(parts.values()), file=self._stream, flush=True)

    def finish(self, result: Any) -> None:
        """Say how it ended."""
        self.clear()
        found = "After" if result.get("constr_violation") else f"Best value {result.fun:.6g} after"
        line = f"{result.message} {found} {result.nit} generations and {result.nfev} evaluations."
        print(line, file=self._stream, flush=True)

    def clear(self) -> None:
        if self._drawn:
            self._stream.write("\r" + " " * (self._drawn + len(_ECHO)) + "\r")
            self._stream.flush()
        self._drawn = 0

    def above(self, text: str) -> None:
        """Make room for what somebody else is about to write."""
        if text:
            self.clear()
            self._begun = not text.endswith("\n")

    def _draw(self, parts: dict[str, str], counts: dict[str, float]) -> None:
        columns, bar = self._columns(), ""
        if self._limits and columns >= _BAR_FROM:
            size = min(columns // 8, _LONGEST_BAR)
            done = int(size * max(min(counts[of] / limit, 1.0) for of, limit in self._limits.items()))
            bar = f"{self._marks[0] * done}{self._marks[1] * (size - done)} "
        for name in _SPARED:
            if len(bar + ", ".join(parts.values())) > columns:
                parts.pop(name, None)
        line = (bar + ", ".join(parts.values()))[:columns]
        rest = max(self._drawn - len(line), 0)
        self._stream.write(("\n" if self._begun else "\r") + line + " " * rest + "\b" * rest)
        self._stream.flush()
        self._drawn, self._begun = len(line), False

    def _columns(self) -> int:
        """Those of the terminal that the line may fill: in the last some begin another, and ^C must not."""
        try:
            own = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):  # not a real terminal
            own = os.terminal_size((80, 24))
        return max(shutil.get_terminal_size(own).columns - 1 - len(_ECHO), 0)


class _Above:
    """A stream to which others write while a line is shown."""

    def __init__(self, stream: TextIO, display: Display):
        self._stream, self._display = stream, display

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._display.above(text)
        return self._stream.write(text)


def _marks(stream: TextIO) -> str:
    """What a bar is made of: done, and to do."""
    try:
        "█░".encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return "#."
    return "█░"


def _parts(result: Any, seconds: float) -> dict[str, str]:
    """What there is to say, by name, in order."""
    violation, rates = result.get("constr_violation", 0.0), result.recent.log_rate
    best = f"violation {violation:.6g}" if violation else f"best {result.fun:.6g}"
    rate = {"rate": f"rate {math.exp(rates[-1]):.2g}"} if len(rates) else {}
    nfev, nit = f"{result.nfev} evaluations", f"generation {result.nit}"
    return {"nit": nit, "best": best, **rate, "nfev": nfev, "seconds": _clock(seconds)}


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}" if minutes else f"{rest} s"
