"""Compare optimisers on a function of one's own: same starts, same evaluations, honest statistics."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from .. import _checks, _provenance
from .._locks import alone
from .comparison import Best, Comparison, Row, Run
from .methods import Method, described, method, named
from .objective import Objective, Spent
from .problem import MOST_SEED, Problem, Task

__all__ = ["Best", "Comparison", "Objective", "Problem", "Row", "Run", "Spent", "compare", "method"]

_PER_VARIABLE = 200  # evaluations, if nothing is said


def compare(
    fun: Callable,
    x0: Any,
    methods: Any = None,
    seeds: int | Sequence[int] = 10,
    maxfun: int | None = None,
    *,
    args: Any = (),
    bounds: Any = None,
    constraints: Any = None,
    eq_tol: float = 1e-4,
    integrality: Any = None,
    direction: str = "minimize",
    init_std: Any = None,
    vectorized: bool = False,
    targets: Any = (),
    save: str | Path | None = None,
    disp: bool = False,
) -> Comparison:
    """Compare methods on `fun`, with the same starts and the same number of evaluations. `print` the result.

    fun, args, bounds, constraints, eq_tol, integrality, direction, init_std, vectorized: as in `gesmr.minimize`.
        `fun` is called in Python, even if it is a JAX function.
    x0: where every run begins: a vector or a pytree; a function of a NumPy Generator that draws one for each seed; or
        a `gesmr.Space`, from which starts are drawn.
    methods: names, controllers and callables, or a dictionary that gives them names of your own.
        "gesmr" is `gesmr.minimize` with its defaults; "GESMR", "SAMR", "15MR" … are the paper's; "DE" is scipy's
        differential evolution; "CMA-ES" and "sep-CMA-ES" are pycma's; "optuna:TPE" and "evosax:SNES" are examples of
        Optuna's samplers and evosax's strategies; "random" is random search. `gesmr.comparing.method(name, ...)` gives
        a method other options. A callable gets an `Objective` and a `Problem`. The default is gesmr, random search,
        and CMA-ES and DE if they are installed and can be used.
    seeds: their number, counted from 0, or the seeds themselves.
    maxfun: evaluations of every run; by default 200 for each variable. A method that ends early starts again, from a
        new random start, with the evaluations that are left, so that all methods have the same number.
    targets: values; the table says how many runs reached each of them, and when.
    save: a file that keeps every finished run; the same call continues from it.
    disp: print a line for every run.

    If a method fails, its line says so; errors of `fun` itself are raised.
    """
    given = {"bounds": bounds, "integrality": integrality, "init_std": init_std}
    task = Task(
        fun, x0, args, given=given, constraints=constraints, eq_tol=eq_tol, direction=direction, vectorized=vectorized
    )
    maxfun = _PER_VARIABLE * task.dim if maxfun is None else _checks.integer("maxfun", maxfun, 1)
    chosen = _seeds(seeds)
    found = named(methods, task.problem(chosen[0], maxfun))
    goals = tuple(
        _checks.number("targets", target)
        for target in np.atleast_1d(_checks.array("targets", targets, "numbers")).tolist()
    )
    nothing = Comparison(
        {name: described(one) for name, one in found.items()},
        chosen,
        maxfun,
        task.described(),
        goals,
        (),
        _provenance.machine(),
    )
    disp = _checks.flag("disp", disp)
    with nullcontext() if save is None else _held(_checks.file("save", save)):
        return _Comparing(task, nothing, None if save is None else Path(save), disp)(found)


class _Comparing:
    """Runs what is not there yet, one method and seed after the other, and keeps it."""

    def __init__(self, task: Task, asked: Comparison, path: Path | None, disp: bool):
        self._task, self._asked, self._path, self._disp = task, asked, path, disp
        self._others: Comparison | None = None
        self._runs: dict[tuple[str, int], Run] = {}
        if path is not None and path.exists():
            self._others = Comparison.load(path)
            _check_same(self._others, asked, path)
            self._runs = {(run.method, run.seed): run for run in self._others.runs if not run.error}
            self._check_function()

    def __call__(self, methods: dict[str, Method]) -> Comparison:
        asked = [(name, seed) for seed in self._asked.seeds for name in methods]  # a part is a comparison too
        for done, (name, seed) in enumerate(asked, 1):
            known = self._runs.get((name, seed))
            run = known or _run(self._task, name, methods[name], seed, self._asked.maxfun)
            self._runs[name, seed] = run
            if known is None:
                self._keep()
            if self._disp:
                print(f"{done}/{len(asked)}  {_line(run, self._asked.worst)}{' (kept)' if known else ''}", flush=True)
        return _with_runs(self._asked, {key: self._runs[key] for key in asked})

    def _keep(self) -> None:
        if self._path is None:
            return
        names, seeds = self._asked.methods, self._asked.seeds
        if self._others is not None:
            names, seeds = {**self._others.methods, **names}, tuple(dict.fromkeys((*self._others.seeds, *seeds)))
        whole = Comparison(
            names, seeds, self._asked.maxfun, self._asked.problem, self._asked.targets, (), self._asked.versions
        )
        _with_runs(whole, self._runs).save(self._path)

    def _check_function(self) -> None:
        """Refuse to go on with a function that has another value where a stored run has its best. It is not counted."""
        run = next((run for run in self._runs.values() if run.x is not None), None)
        if run is None:
            return
        row = np.array([run.x])
        now, again = (self._task.sign * self._task.measure(row)[0][0] for _ in range(2))
        if now == again and not np.isclose(now, run.values[-1], rtol=1e-6, atol=1e-9):
            raise ValueError(
                f"{self._path} is of another problem: fun has {now:g} where it had {run.values[-1]:g}, at the best "
                f"solution of {run.method} with seed {run.seed}"
            )


def _with_runs(comparison: Comparison, runs: dict[tuple[str, int], Run]) -> Comparison:
    """In the order of methods, then seeds."""
    order = [(name, seed) for name in comparison.methods for seed in comparison.seeds]
    return Comparison(
        comparison.methods, comparison.seeds, comparison.maxfun, comparison.problem, comparison.targets,
        tuple(runs[key] for key in order if key in runs), comparison.versions,
    )  # fmt: skip


def _run(task: Task, name: str, call: Method, seed: int, maxfun: int) -> Run:
    """One run: the method, begun again as often as it ends before its evaluations do."""
    objective, attempts, error = Objective(task, maxfun), 0, ""
    begin = time.perf_counter()
    while objective.left > 0 and not error:
        before = objective.evaluations
        try:
            call(objective, task.problem(seed, objective.left, attempts))
        except Spent:
            pass
        except Exception as raised:
            if objective.error is None:
                error = f"{type(raised).__name__}: {raised}"
        if objective.error is not None:
            raise objective.error
        attempts += 1
        if objective.evaluations == before and not error:
            error = "it ended without a single evaluation"
    return Run(
        name,
        seed,
        objective.evaluations,
        time.perf_counter() - begin,
        attempts,
        tuple(objective.improved_at),
        tuple(objective.values),
        None if objective.x is None else tuple(objective.x.tolist()),
        error,
    )


def _line(run: Run, worst: float) -> str:
    found = run.error or f"{run.values[-1] if run.values else worst:.6g}"
    return f"{run.method}, seed {run.seed}: {found} after {run.evaluations} evaluations, {run.seconds:.2f} s"


def _seeds(given: Any) -> tuple[int, ...]:
    if isinstance(given, int | np.integer):
        return tuple(range(_checks.integer("seeds", given, 1, most=MOST_SEED)))
    try:
        found = tuple(_checks.integer("seeds", seed, 0, MOST_SEED) for seed in given)
    except TypeError as error:
        raise TypeError(f"seeds must be a number of seeds or a list of them, got {_checks.described(given)}") from error
    if not found or len(set(found)) < len(found):
        raise ValueError(f"seeds must be one or more, each given once, got {_checks.show(given)}")
    return found


def _check_same(there: Comparison, here: Comparison, path: Path) -> None:
    """Refuse a file of another problem, other evaluations or other methods of the same names."""
    pairs = {"maxfun": (there.maxfun, here.maxfun)}
    pairs |= {name: (there.problem.get(name), here.problem.get(name)) for name in {**there.problem, **here.problem}}
    pairs |= {name: (there.methods[name], here.methods[name]) for name in here.methods if name in there.methods}
    for name, (was, now) in pairs.items():
        if was != now:
            raise ValueError(
                f"{path} is of another comparison: {name} was {_checks.show(was)}, now {_checks.show(now)}"
            )


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """A block in which nobody else writes the file."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"save must be in a directory that exists, got {path}")
    with alone(path.with_name(f"{path.name}.lock"), ValueError(f"{path} is in use: another comparison writes it")):
        yield
