"""A run as lines of JSON, while it runs. Other trackers are callbacks of the same shape: see docs/watching.md."""

import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .. import _checks

_NAMES = ("fun", "mutation_rate", "nfev", "diversity")


class JSONLines:
    """A callback that adds a line for every generation: nit, fun, mutation_rate (geometric mean), nfev, diversity, and
    with `x=True` on the last line of every call the best solution so far, arrays as lists.

    Lines are written at once, so a program that is killed leaves its lines. A run that is resumed after that
    repeats the generations since its last checkpoint: of two lines with one `nit` the later counts.
    """

    def __init__(self, path: str | Path, *, x: bool = False):
        self._path, self._with_x = _checks.file("path", path), _checks.flag("x", x)
        self._path.open("a", encoding="utf-8").close()  # complains now, not after the first generation

    def __call__(self, intermediate_result: Any) -> None:
        recent = intermediate_result.recent
        first = intermediate_result.nit - len(recent.elite) + 1
        columns = (recent.elite, np.exp(recent.log_rate), recent.evaluations, recent.diversity)
        with self._path.open("a", encoding="utf-8") as file:
            for nit, numbers in enumerate(zip(*columns, strict=True), first):
                line = {"nit": nit, **dict(zip(_NAMES, map(_plain, numbers), strict=True))}
                if self._with_x and nit == intermediate_result.nit:
                    line["x"] = _plain(intermediate_result.x)
                file.write(json.dumps(line) + "\n")


def _plain(value: Any) -> Any:
    """What JSON can hold; it has no infinity. Dictionaries keep their order."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        value = np.asarray(value).tolist()
    if not isinstance(value, str | bool | int | float | None):  # another pytree
        return jax.tree.map(_plain, jax.tree.leaves(value)) if not isinstance(value, list) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
