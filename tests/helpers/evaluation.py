"""Candidates whose values are known, and a small run, for those who evaluate: processes, actors of Ray, nobody else."""

import re
from typing import Any

import jax
import numpy as np

import gesmr
from gesmr.optimize import layout
from gesmr.optimize.called import PlainValues
from gesmr.optimize.options import Objective

from . import ROOT
from .misbehaving import BAD, sphere

ROWS = np.arange(40.0).reshape(20, 2)  # the bad one is the eighth
SPHERES = np.sum(ROWS**2, axis=1)
INNOCENT = ROWS[:, 0] != BAD


def values(
    workers: Any, fun: Any, *args: Any, rows: np.ndarray = ROWS, **options: Any
) -> tuple[PlainValues, np.ndarray]:
    """What evaluates, and the values of candidates."""
    by = PlainValues(Objective(fun, args, workers=workers, **options), layout.of(rows[0])[0])
    return by, by(rows)[0]


def minimize(fun: Any = sphere, x0: Any = (1.0, 2.0, 3.0), **options: Any) -> Any:
    return gesmr.minimize(fun, x0, **{"maxiter": 3, "popsize": 13, "rng": 0, "jit": False, **options})


def assert_same(result: Any, other: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, result.population, other.population)
    np.testing.assert_array_equal(result.population_fitness, other.population_fitness)
    assert (result.fun, result.nfev, result.errors) == (other.fun, other.nfev, other.errors)


def lines_to_copy() -> list[str]:
    """What the ways of docs/workers.md start with."""
    page = ROOT / "docs" / "workers.md"
    return re.findall(r"^```py\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
