"""The methods there are: gesmr's own, and adapters to other people's optimisers, by name.

A method is any callable of an `Objective` and a `Problem`: it searches until it ends by itself or the objective raises
`Spent`. Whether it is begun again is not its business.
"""

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from .. import _checks, controllers
from ..controllers.base import check_controller
from ..optimize.optimizer import Optimizer
from .objective import Objective
from .problem import Problem, qualified

Method = Callable[[Objective, Problem], Any]
_SIGMA = 0.25  # first step of evolution strategies, in units of the range


@dataclass(frozen=True)
class Adapter:
    """A method by name. `needs` says what is missing on a problem, before anything is run."""

    name: str
    call: Callable[..., Any]  # of objective, problem and options
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: Callable[..., str] = lambda problem, **options: ""

    def __call__(self, objective: Objective, problem: Problem) -> None:
        self.call(objective, problem, **self.options)

    def check(self, problem: Problem) -> None:
        if missing := self.needs(problem, **self.options):
            raise ValueError(f"{self.name} needs {missing}")

    def __str__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"{self.name}{said}"


def method(name: str, **options: Any) -> Adapter:
    """The method of that name, with options of its own: those of `gesmr.minimize` for gesmr's, of scipy's
    `differential_evolution`, of pycma, of an Optuna sampler; `popsize`, arguments and parameters of a strategy."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a method must be a string, got {_checks.described(name)}")
    family, colon, member = name.partition(":")
    if colon and family in _FAMILIES:
        call, needs = _FAMILIES[family](member)
        return Adapter(name, call, options, needs)
    if name in _NAMED:
        call, needs, package = _NAMED[name]
        if package:
            _package(name, package)
        return Adapter(name, call, options, needs)
    try:
        controllers.controller(name)
    except ValueError:
        raise ValueError(
            f"methods must be among {known()}, controllers or callables, got {_checks.show(name)}"
        ) from None
    return of_controller(name, name, **options)


def known() -> str:
    """All names there are, in words."""
    families = "optuna:TPE (or any sampler of Optuna), evosax:SNES (or any strategy of evosax)"
    return f"{', '.join([*_NAMED, *controllers.PAPER_NAMES])}, {families}"


def named(given: Any, problem: Problem) -> dict[str, Method]:
    """What was given as `methods`, by the names they have in a table; refuses what cannot be run on the problem."""
    if given is None:
        given = _default(problem)
    if isinstance(given, str | Adapter) or callable(given) or _is_controller(given):
        given = [given]
    try:
        pairs = list(given.items()) if isinstance(given, Mapping) else [(_label(one), one) for one in given]
    except TypeError as error:
        accepted = "a list of names, controllers and callables, or a dictionary of such"
        raise TypeError(f"methods must be {accepted}, got {_checks.show(given)}") from error
    labels = [label for label, _ in pairs]
    if not pairs:
        raise ValueError("methods must be at least one, got none")
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(f"methods must have different names, got {twice!r} twice; a dictionary gives them names")
    found = {str(label): _method(one) for label, one in pairs}
    for one in found.values():
        if isinstance(one, Adapter):
            one.check(problem)
    return found


def described(one: Method) -> str:
    """A method in words, by which a file knows it again."""
    return str(one) if isinstance(one, Adapter) else qualified(one)


def of_controller(name: str, controller: Any, **options: Any) -> Adapter:
    return Adapter(name, by_gesmr, {"controller": controller, **options}, _gesmr_needs)


def _method(given: Any) -> Method:
    if isinstance(given, str):
        return method(given)
    if _is_controller(given):
        return of_controller(_label(given), given)
    if not callable(given):
        raise TypeError(f"methods must be names, controllers or callables, got {_checks.described(given)}")
    return given


def _is_controller(given: Any) -> bool:
    try:
        check_controller(given)
    except TypeError:
        return False
    return True


def _label(given: Any) -> str:
    if isinstance(given, str | Adapter):
        return str(given)
    if _is_controller(given):
        return type(given).__name__ if len(repr(given)) > 40 else repr(given)
    whole = given.func if isinstance(given, functools.partial) else given
    return getattr(whole, "__name__", type(whole).__name__)


def _default(problem: Problem) -> list[str]:
    """Those that can be run here."""
    return ["gesmr", *(name for name in ("CMA-ES", "DE") if _can(name, problem)), "random"]


def _can(name: str, problem: Problem) -> bool:
    try:
        method(name).check(problem)
    except (ImportError, ValueError):
        return False
    return True


def _package(name: str, package: str, extra: str = "") -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ModuleNotFoundError(f"{name} needs the package {package}: pip install {extra or package}") from error


def _no_needs(problem: Problem, **options: Any) -> str:
    return ""


def _bounds_needed(problem: Problem, **options: Any) -> str:
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


def _gesmr_needs(problem: Problem, **options: Any) -> str:
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
    """pycma's, in units of the range; every time it is begun again its population is twice as large."""
    cma = _package("CMA-ES", "cma")
    scale, offset = np.where(problem.whole, 1.0, problem.unit), np.where(problem.whole, 0.0, problem.offset)
    sides = [((side - offset) / scale).tolist() for side in (problem.low, problem.high)]
    given: dict[str, Any] = {
        "popsize": 4 + int(3 * np.log(problem.dim)),
        "CMA_diagonal": separable,
        "CMA_stds": np.where(problem.has_range, _SIGMA, 1.0) * problem.unit / scale,
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


def _cma_needs(problem: Problem, **options: Any) -> str:
    return "" if problem.dim > 1 else "at least two variables"


def random_search(objective: Objective, problem: Problem) -> None:
    rng = problem.rng()
    objective(problem.x0)
    while True:
        objective.many(problem.draw(rng, 256))


def _of_evosax(name: str) -> tuple[Callable, Callable]:
    evosax = _package(f"evosax:{name}", "evosax.algorithms", "evosax")
    there = {kind.__name__ for kind in evosax.algorithms.values()}
    if name not in there:
        raise ValueError(f"evosax has {', '.join(sorted(there))}, got {_checks.show(name)}")
    return functools.partial(_by_evosax, getattr(evosax, name)), _no_needs


def _by_evosax(
    kind: type, objective: Objective, problem: Problem, popsize: int | None = None, **parameters: Any
) -> None:
    """In units of the range, candidates clipped to it, for the objective and for the strategy; until all are one."""
    from evosax.algorithms.population_based.base import PopulationBasedAlgorithm  # type: ignore  # noqa: PLC0415

    holds_members = issubclass(kind, PopulationBasedAlgorithm)
    if popsize is None:
        few = 4 + int(3 * np.log(problem.dim))
        popsize = max(4, min(100, problem.maxfun // 10)) if holds_members else few
        popsize = _fitting(kind, popsize + popsize % 2)
    low, high = problem.scaled(problem.low), problem.scaled(problem.high)
    with jax.enable_x64(True):
        taken = [name for name in parameters if name in inspect.signature(kind.__init__).parameters]
        strategy = _strategy(kind, popsize, problem.dim, **{name: parameters.pop(name) for name in taken})
        params = strategy.default_params
        if hasattr(params, "std_init") and not holds_members and problem.is_bounded:
            params = params.replace(std_init=_SIGMA)
        params = params.replace(**parameters)
        key = jax.random.key(problem.seed)
        if holds_members:
            first = np.concatenate([problem.x0[None], problem.draw(problem.rng(), popsize - 1)])
            state = strategy.init(key, problem.scaled(first), objective.many(first), params)
        else:
            state = strategy.init(key, problem.scaled(problem.x0), params)
        while True:
            key, for_ask, for_tell = jax.random.split(key, 3)
            asked, state = strategy.ask(for_ask, state, params)
            rows = np.clip(np.asarray(asked), low, high)
            values = objective.many(problem.unscaled(rows))
            if not np.isfinite(rows).all() or np.ptp(rows, axis=0).max() < 1e-15:
                return
            state, _ = strategy.tell(for_tell, rows, values, state, params)


def _fitting(kind: type, popsize: int) -> int:
    """A size that the strategy takes: GESMR_GA wants one and a number of groups of ten."""
    return max(1, popsize // 10) * 10 + 1 if kind.__name__ == "GESMR_GA" else popsize


@functools.lru_cache(maxsize=64)
def _strategy(kind: type, popsize: int, dim: int, **arguments: Any) -> Any:
    """One for all seeds, or it would be compiled anew for each."""
    return kind(population_size=popsize, solution=np.zeros(dim), **arguments)


def _of_optuna(name: str) -> tuple[Callable, Callable]:
    optuna = _package(f"optuna:{name}", "optuna")
    kind = getattr(optuna.samplers, name, None) or getattr(optuna.samplers, f"{name}Sampler", None)
    if not isinstance(kind, type) or not issubclass(kind, optuna.samplers.BaseSampler):
        there = [each.removesuffix("Sampler") for each in dir(optuna.samplers) if each.endswith("Sampler")]
        there = [each for each in there if not each.startswith("Base")]
        raise ValueError(f"Optuna has the samplers {', '.join(there)}, got {_checks.show(name)}")
    return functools.partial(_by_optuna, optuna, kind), _bounds_needed


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


_NAMED: dict[str, tuple[Callable, Callable, str]] = {
    "gesmr": (by_gesmr, _gesmr_needs, ""),
    "CMA-ES": (cma_es, _cma_needs, "cma"),
    "sep-CMA-ES": (functools.partial(cma_es, separable=True), _cma_needs, "cma"),
    "DE": (differential_evolution, _bounds_needed, ""),
    "random": (random_search, _no_needs, ""),
}
_FAMILIES: dict[str, Callable[[str], tuple[Callable, Callable]]] = {"evosax": _of_evosax, "optuna": _of_optuna}
