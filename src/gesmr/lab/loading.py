"""Functions of users, by name."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import LabError


def load_callable(name: str) -> Callable:
    """The function that "module:function" names; modules of the working directory are found too."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise LabError(f"objective must be written module:function, got {name!r}")
    with working_directory_importable():
        try:
            found: Any = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise LabError(f"{module_name} cannot be imported: {error}") from error
            raise LabError(f"there is no module {error.name!r} here or among what is installed") from error
        except Exception as error:
            raise LabError(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise LabError(f"{module_name} has no {attribute!r}")
        found = getattr(found, part)
    if not callable(found):
        raise LabError(f"{name} must be a function, got {type(found).__name__}")
    return found


@contextmanager
def working_directory_importable() -> Iterator[None]:
    """A block in which modules of the working directory are found, also by workers."""
    before = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path[:] = before
