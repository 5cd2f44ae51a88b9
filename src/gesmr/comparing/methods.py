"""The methods there are: gesmr's own, and adapters to other people's optimisers, by name.

A method is any callable of an `Objective` and a `Problem`: it searches until it ends by itself or the objective raises
`Spent`. Whether it is begun again is not its business.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _checks, controllers
from ..controllers.base import check_controller
from . import adapters
from .objective import Objective
from .problem import Problem, qualified

Method = Callable[[Objective, Problem], Any]


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
        call, needs, requires = _NAMED[name]
        if requires:
            adapters.package(name, requires)
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
    return Adapter(name, adapters.by_gesmr, {"controller": controller, **options}, adapters.gesmr_needs)


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


_NAMED: dict[str, tuple[Callable, Callable, str]] = {
    "gesmr": (adapters.by_gesmr, adapters.gesmr_needs, ""),
    "CMA-ES": (adapters.cma_es, adapters.cma_needs, "cma"),
    "sep-CMA-ES": (functools.partial(adapters.cma_es, separable=True), adapters.cma_needs, "cma"),
    "DE": (adapters.differential_evolution, adapters.bounds_needed, ""),
    "random": (adapters.random_search, adapters.no_needs, ""),
}
_FAMILIES: dict[str, Callable[[str], tuple[Callable, Callable]]] = {
    "evosax": adapters.of_evosax,
    "optuna": adapters.of_optuna,
}
