"""When Ctrl-C takes effect: counted so that none is lost, or put off until a block has ended."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Counts Ctrl-C within a block, so that none is lost.

    The exception it raises can be: Python drops those that come up in a callback of the garbage collector. If a block
    is `patient`, the first raises nothing: who looks at `seen` now and then ends in good order.
    """

    def __init__(self):
        self.seen = 0
        self.patient = False
        self._before: Any = None

    def __enter__(self) -> "Interrupts":
        self._before = _handler()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, *details: Any) -> None:
        self.seen += 1
        if not self.patient or self.seen > 1:
            self._before(*details)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A block that Ctrl-C does not cut in two: what it would have done happens after it."""
    before = _handler()
    if before is None:
        yield
        return
    arrived: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *details: arrived.append(details))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for details in arrived:
            before(*details)


def _handler() -> Callable | None:
    """What Ctrl-C calls in Python; None if nothing, or if signals arrive in another thread."""
    if threading.current_thread() is not threading.main_thread():
        return None
    found = signal.getsignal(signal.SIGINT)
    return found if callable(found) else None
