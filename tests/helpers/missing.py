"""A process in which packages are not installed, though the environment has them."""

import sys
from typing import Any


class _Without:
    """A finder of modules that does not find some."""

    def __init__(self, finder: Any, packages: tuple[str, ...]):
        self.finder, self.packages = finder, packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return None if name.partition(".")[0] in self.packages else self.finder.find_spec(name, path, target)


def without(*packages: str) -> None:
    """From here on this process cannot import these packages, nor find that they are there."""
    loaded = {name.partition(".")[0] for name in sys.modules} & set(packages)
    assert not loaded, f"imported already: {loaded}"
    sys.meta_path[:] = [_Without(finder, packages) for finder in sys.meta_path]
