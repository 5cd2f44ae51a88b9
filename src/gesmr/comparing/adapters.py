"""How each optimiser is called: gesmr's own, scipy's, pycma's, evosax's, Optuna's; and what each of them needs."""

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from .. import _checks
from ..optimize.optimizer import Optimizer
from .objective import Objective
from .problem import Problem


def package(name: str, package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        needed = package.partition(".")[0]
        raise ModuleNotFoundError(f"{name} needs the package {needed}: pip install {needed}") from error


def no_needs(problem: Problem, **options: Any) -> str:
    return ""


def bounds_needed(problem: Problem, **options: Any) -> str:
    return "" if problem.is_bounded else "bounds on both sides of every variable"


def by_gesmr(objective: Objective, problem: Problem, **options: Any) -> None:
    """As ask and tell; its last generation is cut short where the evaluations end."""
    optimizer, layout = _optimizer(problem, options), problem.layout
    while not optimizer.stop().keys() - {"maxfun"}:
        xs = optimizer.ask()
        rows = xs if layout.is_vector else np.stack([layout.flatten(x) for x in xs])
        if problem.is_constrained:
            optimizer.tell(xs, *objective.measure(rows))
        else:
            optimizer.tell(xs, objective.many(rows))


def _optimizer(problem: Problem, options: Mapping[str, Any]) -> Optimizer:
    layout = problem.layout
    given: dict[str, Any] = {"rng": problem.seed, "dtype": "float64", "maxfun": problem.maxfun, **problem.given}
    if problem.is_constrained:
        given["constrained"] = True
    given |= options
    if problem.attempt:  # however little is left
        given["maxfun"] = max(problem.maxfun, given.get("popsize", 101))
    return Optimizer(layout.solution(problem.x0) if layout.space is None else layout.space, **given)


def gesmr_needs(problem: Problem, **options: Any) -> str:
    _optimizer(problem, options)  # complains itself
    return ""


def differential_evolution(objective: Objective, problem: Problem, **options: Any) -> None:
    """scipy's. With constraints, a candidate is evaluated when scipy asks for its violation."""
    from scipy import optimize  # noqa: PLC0415 - slow to import

    paid: dict[bytes, float] = {}

    def violation(x: np.ndarray) -> float:
        values, violations = objective.measure(x[None])
        paid[x.tobytes()] = float(values[0])
        return float(violations[0])

    def value(x: np.ndarray) -> float:
        known = paid.pop(x.tobytes(), None)
        return objective(x) if known is None else known

    given: dict[str, Any] = {"rng": problem.rng(), "x0": problem.x0}
    if problem.whole.any():
        given["integrality"] = problem.whole
    if problem.is_constrained:
        given |= {"polish": False, "constraints": optimize.NonlinearConstraint(violation, -np.inf, 0.0)}
    optimize.differential_evolution(value, list(zip(problem.low, problem.high, strict=True)), **given | options)


def cma_es(objective: Objective, problem: Problem, separable: bool = False, **options: Any) -> None:
    """pycma's, in units of the first step; every time it is begun again its population is twice as large."""
    cma = package("CMA-ES", "cma")
    scale, offset = np.where(problem.whole, 1.0, problem.step), np.where(problem.whole, 0.0, problem.offset)
    sides = [((side - offset) / scale).tolist() for side in (problem.low, problem.high)]
    given: dict[str, Any] = {
        "popsize": 4 + int(3 * np.log(problem.dim)),
        "CMA_diagonal": separable,
        "CMA_stds": problem.step / scale,
        "bounds": [[None if np.isinf(x) else x for x in side] for side in sides],
        "integer_variables": np.flatnonzero(problem.whole).tolist(),
        "seed": np.nan,
        "verbose": -10,
        **options,
    }
    given["popsize"] *= 2**problem.attempt
    with _numpy_seeded(problem.seed), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="cma")
        strategy = cma.CMAEvolutionStrategy((problem.x0 - offset) / scale, 1.0, given)
        while not strategy.stop():
            candidates = strategy.ask()
            values = objective.many(offset + scale * np.asarray(candidates))
            strategy.tell(candidates, values.tolist())


@contextmanager
def _numpy_seeded(seed: int) -> Iterator[None]:
    """A block in which NumPy's global generator, which pycma draws from, begins with `seed`; as it was afterwards."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def cma_needs(problem: Problem, **options: Any) -> str:
    return "" if problem.dim > 1 else "at least two variables"


def random_search(objective: Objective, problem: Problem) -> None:
    rng = problem.rng()
    objective(problem.x0)
    while True:
        objective.many(problem.draw(rng, 256))


def of_evosax(name: str) -> tuple[Callable, Callable]:
    evosax = package(f"evosax:{name}", "evosax.algorithms")
    there = {kind.__name__ for kind in evosax.algorithms.values()}
    if name not in there:
        raise ValueError(f"evosax has {', '.join(sorted(there))}, got {_checks.show(name)}")
    return functools.partial(_by_evosax, getattr(evosax, name)), no_needs


def _by_evosax(
    kind: type, objective: Objective, problem: Problem, popsize: int | None = None, **parameters: Any
) -> None:
    """In units of the first step, candidates clipped to the bounds, for the objective and for the strategy; until all
    are one."""
    from evosax.algorithms.population_based.base import PopulationBasedAlgorithm  # type: ignore  # noqa: PLC0415

    offset, step = problem.offset, problem.step
    holds_members = issubclass(kind, PopulationBasedAlgorithm)
    if popsize is None:
        few = 4 + int(3 * np.log(problem.dim))
        popsize = max(4, min(100, problem.maxfun // 10)) if holds_members else few
        popsize = _fitting(kind, popsize + popsize % 2)
    with jax.enable_x64(True):
        taken = [name for name in parameters if name in inspect.signature(kind.__init__).parameters]
        strategy = _strategy(kind, popsize, problem.dim, **{name: parameters.pop(name) for name in taken})
        params = strategy.default_params.replace(**parameters)
        key = jax.random.key(problem.seed)
        if holds_members:
            first = np.concatenate([problem.x0[None], problem.draw(problem.rng(), popsize - 1)])
            state = strategy.init(key, (first - offset) / step, objective.many(first), params)
        else:
            state = strategy.init(key, (problem.x0 - offset) / step, params)
        while True:
            key, for_ask, for_tell = jax.random.split(key, 3)
            asked, state = strategy.ask(for_ask, state, params)
            rows = np.clip(offset + step * np.asarray(asked), problem.low, problem.high)
            values = objective.many(rows)
            if not np.isfinite(rows).all() or (np.ptp(rows, axis=0) <= 1e-15 * step).all():
                return
            state, _ = strategy.tell(for_tell, (rows - offset) / step, values, state, params)


def _fitting(kind: type, popsize: int) -> int:
    """A size that the strategy takes: GESMR_GA wants one and a number of groups of ten."""
    return max(1, popsize // 10) * 10 + 1 if kind.__name__ == "GESMR_GA" else popsize


@functools.lru_cache(maxsize=64)
def _strategy(kind: type, popsize: int, dim: int, **arguments: Any) -> Any:
    """One for all seeds, or it would be compiled anew for each."""
    return kind(population_size=popsize, solution=np.zeros(dim), **arguments)


def of_optuna(name: str) -> tuple[Callable, Callable]:
    optuna = package(f"optuna:{name}", "optuna")
    kind = getattr(optuna.samplers, name, None) or getattr(optuna.samplers, f"{name}Sampler", None)
    if not isinstance(kind, type) or not issubclass(kind, optuna.samplers.BaseSampler):
        there = [each.removesuffix("Sampler") for each in dir(optuna.samplers) if each.endswith("Sampler")]
        there = [each for each in there if not each.startswith("Base")]
        raise ValueError(f"Optuna has the samplers {', '.join(there)}, got {_checks.show(name)}")
    return functools.partial(_by_optuna, optuna, kind), bounds_needed


def _by_optuna(optuna: Any, kind: type, objective: Objective, problem: Problem, **options: Any) -> None:
    """One trial after the other, x0 the first; integers and choices as Optuna has them."""
    space = {f"x{i:06}": _distribution(optuna.distributions, problem, i) for i in range(problem.dim)}
    start = np.where(problem.whole, np.round(problem.x0), problem.x0)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study = optuna.create_study(sampler=kind(**{"seed": problem.seed, **options}))
            study.enqueue_trial(
                {name: int(x) if w else float(x) for name, x, w in zip(space, start, problem.whole, strict=True)}
            )
            while True:
                trial = study.ask(space)
                value = objective([trial.params[name] for name in space])
                study.tell(trial, value)
    finally:
        optuna.logging.set_verbosity(before)


def _distribution(kinds: Any, problem: Problem, i: int) -> Any:
    low, high = float(problem.low[i]), float(problem.high[i])
    if problem.unordered[i]:
        return kinds.CategoricalDistribution(range(round(high + 0.5)))
    if problem.whole[i]:
        return kinds.IntDistribution(round(low + 0.5), round(high - 0.5))
    return kinds.FloatDistribution(low, high)
