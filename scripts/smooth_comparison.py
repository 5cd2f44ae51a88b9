"""Writes the table in docs/minimize.md: scipy, pycma and gesmr on three smooth functions with the same evaluations.

python scripts/smooth_comparison.py [--write docs/minimize.md]
"""

import argparse
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import cma
import numpy as np
import scipy.optimize

import gesmr

DIM, BUDGET, STARTS = 20, 20_000, 11
START, END = "<!-- smooth -->", "<!-- /smooth -->"
Function = Callable[[np.ndarray], float]


def sphere(x: np.ndarray) -> float:
    return float(np.sum(x**2))


def ellipsoid(x: np.ndarray) -> float:
    return float(np.sum(10.0 ** (6 * np.arange(x.size) / (x.size - 1)) * x**2))


def rosenbrock(x: np.ndarray) -> float:
    return float(scipy.optimize.rosen(x + 1))


FUNCTIONS: dict[str, Function] = {
    "Sphere": sphere,
    "Ellipsoid, condition 10⁶": ellipsoid,
    "Rosenbrock": rosenbrock,
}


class Counted:
    """A function with its optimum moved, that knows its best value and refuses to be called too often."""

    def __init__(self, function: Function, optimum: np.ndarray):
        self._function, self._optimum = function, optimum
        self.calls, self.best = 0, np.inf

    def __call__(self, x: np.ndarray) -> float:
        if self.calls >= BUDGET:
            raise BudgetSpentError
        self.calls += 1
        value = self._function(np.asarray(x) - self._optimum)
        self.best = min(self.best, value)
        return value


class BudgetSpentError(Exception):
    pass


def scipy_bfgs(fun: Counted, x0: np.ndarray, seed: int) -> None:
    scipy.optimize.minimize(fun, x0)


def scipy_nelder_mead(fun: Counted, x0: np.ndarray, seed: int) -> None:
    scipy.optimize.minimize(fun, x0, method="Nelder-Mead", options={"maxfev": BUDGET, "adaptive": True})


def scipy_differential_evolution(fun: Counted, x0: np.ndarray, seed: int) -> None:
    scipy.optimize.differential_evolution(fun, [(-5, 5)] * DIM, x0=x0, rng=seed, maxiter=BUDGET, polish=False)


def pycma(fun: Counted, x0: np.ndarray, seed: int) -> None:
    options = {"maxfevals": BUDGET, "seed": seed + 1, "verbose": -9, "tolfun": 0, "tolfunhist": 0, "tolx": 0}
    cma.fmin2(fun, x0, 1.0, options)


def ours(fun: Counted, x0: np.ndarray, seed: int) -> None:
    gesmr.minimize(fun, x0, maxfun=BUDGET, rng=seed)


METHODS = {
    "scipy BFGS": scipy_bfgs,
    "scipy Nelder–Mead": scipy_nelder_mead,
    "scipy differential_evolution": scipy_differential_evolution,
    "pycma": pycma,
    "gesmr": ours,
}


class Outcome(NamedTuple):
    value: float  # medians over starts
    calls: float


def outcome(function: Function, method: Callable) -> Outcome:
    found = []
    for seed in range(STARTS):
        generator = np.random.default_rng(seed)
        fun = Counted(function, generator.uniform(-3, 3, DIM))
        with suppress(BudgetSpentError):
            method(fun, generator.uniform(-5, 5, DIM), seed)
        found.append((fun.best, fun.calls))
    return Outcome(*np.median(found, axis=0))


def table() -> str:
    lines = [f"| | {' | '.join(METHODS)} |", f"|:--|{'--:|' * len(METHODS)}"]
    for name, function in FUNCTIONS.items():
        outcomes = [outcome(function, method) for method in METHODS.values()]
        cells = [f"{o.value:.1e} ({o.calls:,.0f})" for o in outcomes]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    versions = ", ".join(f"{name} {version(name)}" for name in ("scipy", "cma", "jax"))
    lines += ["", f"gesmr {gesmr.__version__}, {versions}."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace what is between {START} and {END}")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of line searches that fail and steps that are too small
    made = table()
    print(made)
    if args.write:
        before, _, rest = args.write.read_text("utf-8").partition(START)
        _, _, after = rest.partition(END)
        args.write.write_text(f"{before}{START}\n{made}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
