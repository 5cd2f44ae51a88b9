"""One self-contained page, `report.html`, for the results of the studies in a directory."""

from collections.abc import Callable, Mapping
from pathlib import Path

from ...._files import write_atomically
from ...errors import LabError, StorageError
from .base import Chapter
from .page import render


def write(directory: Path | str, chapters: Mapping[str, Callable[[Path], Chapter]]) -> Path:
    """Write `directory/report.html` from the stores in its sub-directories, one for each study, and return its path.

    `chapters` says, by name of sub-directory, what makes a study's part of the page. The page makes no request to
    anything outside itself.
    """
    directory = Path(directory)
    present = [name for name in chapters if (directory / name).is_dir()]
    if not present:
        raise LabError(
            f"{directory} holds no results: it must have a sub-directory for a study ({', '.join(chapters)}); "
            "`gesmr study run` makes one"
        )
    page = render([chapters[name](directory / name) for name in present], directory)
    path = directory / "report.html"
    try:
        write_atomically(path, page.encode())
    except OSError as error:
        raise StorageError(f"could not write {path}: {error.strerror}") from error
    return path
