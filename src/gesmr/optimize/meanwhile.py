"""Importing what a run ends with while XLA compiles, which leaves Python idle."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Thread

_RESULT = f"{__package__}.result"  # with scipy's, which takes 0.2 s


@contextmanager
def result_imported() -> Iterator[None]:
    """The module of results is imported beside what is done within, and has been afterwards: user code, which may fork,
    never runs beside it."""
    if _RESULT in sys.modules:
        yield
        return
    thread = Thread(target=import_module, args=(_RESULT,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()
