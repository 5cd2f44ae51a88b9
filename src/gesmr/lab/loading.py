"""Functions of users, by name."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import LabError


def load_callable(name: str) -> Callable:
    """The function that "module:function" or "file.py:function" names; modules of the working directory are found."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise LabError(f"objective must be written module:function or file.py:function, got {name!r}")
    found: Any = _from_file(Path(place)) if place.endswith(".py") else _imported(place)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise LabError(f"{place} has no {attribute!r}")
        found = getattr(found, part)
    if not callable(found):
        raise LabError(f"{name} must be a function, got {type(found).__name__}")
    return found


def _from_file(path: Path) -> ModuleType:
    """A file as the module it would be in its directory, where workers find it too."""
    if not path.is_file():
        raise LabError(f"there is no file {path}")
    home = str(path.resolve().parent)
    if home not in sys.path:
        sys.path.insert(0, home)  # for good, as Python does for a script
    found = _imported(path.stem, str(path))
    if found.__file__ is None or not path.samefile(found.__file__):
        raise LabError(f"{path} has the name of another module, {found.__file__ or found.__name__}: rename it")
    return found


def _imported(module: str, shown: str | None = None) -> ModuleType:
    shown = shown or module
    with working_directory_importable():
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise LabError(f"{shown} cannot be imported: {error}") from error
            raise LabError(f"there is no module {error.name!r} here or among what is installed") from error
        except Exception as error:
            raise LabError(f"{shown} cannot be imported: {type(error).__name__}: {error}") from error


@contextmanager
def working_directory_importable() -> Iterator[None]:
    """A block in which modules of the working directory are found, also by workers."""
    before = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path[:] = before
