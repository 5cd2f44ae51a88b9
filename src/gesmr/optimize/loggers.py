"""A run as lines of JSON while it goes on. Other trackers are callbacks of the same shape: see docs/minimize.md."""

import json
import math
from pathlib import Path
from typing import Any

from .. import _checks


class JSONLines:
    """A callback that adds a line for every generation: nit, fun, mutation_rate (geometric mean), nfev.

    Lines are written at once, so that a program that is killed leaves what it had. A run that goes on after that
    repeats the generations since its last checkpoint: of two lines with one `nit` the later counts.
    """

    def __init__(self, path: str | Path):
        self._path = _checks.file("path", path)
        self._path.open("a", encoding="utf-8").close()  # complains now, not after the first generation

    def __call__(self, intermediate_result: Any) -> None:
        recent = intermediate_result.recent
        first = intermediate_result.nit - len(recent.elite) + 1
        rows = zip(recent.elite.tolist(), recent.log_rate.tolist(), recent.evaluations.tolist(), strict=True)
        with self._path.open("a", encoding="utf-8") as file:
            for nit, (value, log_rate, nfev) in enumerate(rows, first):
                fun = value if math.isfinite(value) else None  # JSON has no infinity
                file.write(
                    json.dumps({"nit": nit, "fun": fun, "mutation_rate": math.exp(log_rate), "nfev": nfev}) + "\n"
                )
