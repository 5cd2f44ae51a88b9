"""Files that are there whole or not at all."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PARTIAL = r"\.\d+-\d+\.partial"  # what the names of unfinished files end with, as a pattern


@contextmanager
def whole_file(path: Path, previous: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write and read back; at `path` only once the block has ended well, even if the machine stops.

    What was there before is then at `previous`, if that is given.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        with temporary.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if previous is not None:
            with suppress(FileNotFoundError):
                path.replace(previous)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    with whole_file(path) as file:
        file.write(data)
