"""Ctrl-C at a moment that suits."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A block that Ctrl-C does not cut in two: what it would have done happens after it."""
    before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if before is None:  # signals arrive elsewhere
        yield
        return
    arrived: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *details: arrived.append(details))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if arrived and callable(before):
            before(*arrived[-1])
