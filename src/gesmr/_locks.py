"""Files that one process holds at a time. A dead one holds nothing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not a Unix: nobody is kept out
    fcntl = None


def is_locked(file: IO, *, wait: bool = False) -> bool:
    """Whether the lock on an open file is its opener's now; after waiting for it, if asked."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # a file system without locks keeps nobody out
        return not isinstance(error, BlockingIOError)
    return True


@contextmanager
def alone(path: Path, refusal: Exception) -> Iterator[None]:
    """A block that no other process, and no other thread, is in with the same `path`; `refusal` if one is.

    The file is removed afterwards: a process that opened it just before finds that its lock is on nothing, and tries
    again.
    """
    while True:
        with path.open("w") as file:
            if not is_locked(file):
                raise refusal
            if not _is_at(file, path):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(file: IO, path: Path) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
