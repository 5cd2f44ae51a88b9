"""What fixes a run, apart from its budget: every option once, with its type, default and check."""

import dataclasses
import inspect
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np

from .. import _checks, controllers, noise
from ..bounds import Bounds
from ..controllers import Controller
from ..ga import GA
from ..workers import crew_of, is_serial
from . import layout as layouts
from .bounds import FARTHEST, is_bounded_everywhere, leaps_of, resolve, within
from .constraints import Constraints
from .layout import Layout, real_values
from .stopping import LimitOptions, Limits

# How rates and parents are chosen, unless told. Better than the paper's 0.5 and 0.5 on most functions: docs/why.md
_COPYING = controllers.GESMR(truncation=0.1), 0.2
# Better still, with so many children and variables that are all numbers: docs/recombination.md
_RECOMBINING, _RECOMBINING_FROM = (controllers.GESMR(truncation=0.3, recombine=0.4), 0.3), 50
_SMALLEST = 9  # population that is chosen for a budget
_NO_LIMITS = Limits()


class SearchOptions(LimitOptions, total=False):
    """Keyword arguments of `Optimizer`, in its order, and of `minimize`, which explains them."""

    bounds: Any
    popsize: int | None
    controller: Any
    truncation: float | None
    rng: Any
    seed: Any
    init: Any
    init_std: Any
    direction: str
    dtype: Any
    restarts: int
    restart_popsize: str
    integrality: Any
    constrained: bool
    tol: float | None


class Option(NamedTuple):
    """An option that is a number or a text, which a checkpoint holds as it is."""

    default: Any
    check: Callable[[str, Any], Any]  # of its name and what was given: the value, or an error


def _option(default: Any, check: Callable, *accepted: Any) -> Any:
    return field(metadata={"option": Option(default, lambda name, value: check(name, value, *accepted))})


def _popsize(name: str, value: Any) -> int:
    return _checks.integer(name, value, 2, _checks.MOST)


def default_popsize(budget: int | None, *, discrete: bool = False) -> int:
    """The paper's 101; fewer for a small budget, so that there are generations to learn from, but not so few where some
    variables are `discrete`: docs/budgets.md."""
    most = GA().num_children + 1
    if budget is None:
        return most
    chosen = round(math.sqrt(min(budget, most**4)) * (0.75 if discrete else 0.5))
    return max(2, min(max(chosen, _SMALLEST), most, budget))


def _count(name: str, value: Any, low: int) -> int:
    return _checks.integer(name, value, low, most=_checks.MOST)


@dataclass
class Objective:
    """A function and what was said about it, checked."""

    fun: Callable
    args: Any = ()  # a tuple, once checked
    vectorized: bool = False
    workers: Any = None
    batch_size: int | None = None
    on_error: str = "raise"
    jit: bool | None = None
    keyed: bool = False
    constraints: Constraints = field(default_factory=lambda: Constraints((), is_vector=True, dim=1))  # none

    def __post_init__(self):
        _checks.function("fun", self.fun)
        _checks.choice("on_error", self.on_error, ("raise", "worst"))
        if self.batch_size is not None:
            _checks.integer("batch_size", self.batch_size, 1)
        self.args = self.args if isinstance(self.args, tuple) else (self.args,)
        self.keyed, self.vectorized = _checks.flag("keyed", self.keyed), _checks.flag("vectorized", self.vectorized)
        self.jit = None if self.jit is None else _checks.flag("jit", self.jit)
        crew_of(self.workers)
        if self.jit and not self.is_serial:
            raise ValueError("jit and workers exclude each other: a compiled function is called for all at once")
        if self.vectorized and not self.is_serial:
            raise ValueError("workers and vectorized exclude each other: fun gets the whole population at once")

    @property
    def is_serial(self) -> bool:
        return is_serial(self.workers)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Options as they were checked, in the order and under the names in which checkpoints hold them."""

    layout: Layout
    x0: np.ndarray  # f[d]
    popsize: int = _option(None, _popsize)  # N + 1, of the first run
    controller: Controller | str
    truncation: float = _option(None, _checks.number, 0.0, 1.0)  # the share of members that may become parents
    seed: int
    init: np.ndarray | None  # f[n, d], members of the first population
    init_values: np.ndarray | None  # f[n], theirs, if they are known; as minimised inside
    init_std: np.ndarray | None  # f[] or f[d]
    bounds: Bounds | None
    direction: str = _option("minimize", _checks.choice, ("minimize", "maximize"))
    repeats: int = _option(1, _count, 1)  # evaluations of which a value is the mean
    reevaluate: str = _option("none", _checks.choice, ("none", "elite", "parents"))
    restarts: int = _option(0, _checks.integer, 0)
    restart_popsize: str = _option("keep", _checks.choice, ("keep", "double"))
    constrained: bool = _option(False, _checks.flag)  # whether candidates have violations beside their values

    @property
    def sign(self) -> int:
        return -1 if self.direction == "maximize" else 1

    def members(self, run: int) -> int:
        return self.popsize * 2**run if self.restart_popsize == "double" else self.popsize

    def ga(self, run: int) -> GA:
        children, controller = self.members(run) - 1, self.controller
        if isinstance(controller, str):
            controller = controllers.controller(controller, children)
        if is_bounded_everywhere(self.bounds):
            controller = within(controller)
        # A share that is a whole number of parents: it gives that number in any precision
        return GA(controller, children, parents(self.truncation, children) / children, self.bounds)

    def generation_cost(self, ga: GA) -> int:
        """Evaluations of a generation, at most."""
        again = {"none": 0, "elite": 1, "parents": parents(ga.truncation, ga.num_children) + 1}[self.reevaluate]
        return self.repeats * (ga.num_children + again)

    def check_limits(self, limits: Limits) -> None:
        """Refuse limits that are too narrow to begin, or that do not say when to restart."""
        least = self.repeats * self.popsize
        if limits.maxfun is not None and limits.maxfun < least:
            raise ValueError(f"maxfun must be at least {least}, the first population, got {limits.maxfun}")
        if self.restarts and limits.stall_patience == np.inf:
            raise ValueError("restarts need patience: the generations without a better value after which to restart")


def parents(truncation: Any, children: int) -> int:
    """From how many members parents are drawn: `selection.pool_size` as a number."""
    return max(1, min(int(float(truncation) * children + 0.5), children))


_PLAIN: dict[str, Option] = {one.name: one.metadata["option"] for one in fields(Setup) if "option" in one.metadata}
_LIMITS = [limit.name for limit in fields(Limits)]
_SEARCH = [name for name in get_type_hints(SearchOptions) if name not in _LIMITS]
NAMES = {*_SEARCH, *_PLAIN}  # of all that `check` takes beside x0


def _signature() -> inspect.Signature:
    kind, hints = inspect.Parameter, get_type_hints(SearchOptions)
    x0 = kind("self", kind.POSITIONAL_OR_KEYWORD), kind("x0", kind.POSITIONAL_OR_KEYWORD, annotation=Any)
    defaults = {name: _PLAIN[name].default if name in _PLAIN else None for name in (*_SEARCH, *_LIMITS)}
    rest = [kind(n, kind.KEYWORD_ONLY, default=value, annotation=hints[n]) for n, value in defaults.items()]
    return inspect.Signature([*x0, *rest])


SIGNATURE = _signature()  # of `Optimizer.__init__`, as `help` shows it


def split(options: Any) -> tuple[dict[str, Any], Limits]:
    """Keyword arguments as those of `check` and as limits."""
    search = {name: value for name, value in options.items() if name in NAMES}
    limits = {name: value for name, value in options.items() if name in _LIMITS}
    if options.get("tol") is not None:
        tol = _checks.number("tol", options["tol"], 0.0)
        limits |= {name: tol for name in ("ftol", "xtol") if limits.get(name) is None}
    return search, Limits(**limits)


def check(x0: Any, given: dict[str, Any], limits: Limits = _NO_LIMITS, *, compiled: bool = False) -> Setup:
    """The setup that options of `Optimizer` and `minimize` describe, or an error that names the one at fault.

    For an objective that is `compiled` x0 has another precision, if no dtype is given.
    """
    controller, seed = given.get("controller"), seed_of(given.get("rng"), given.get("seed"))
    layout, row, bounds, std = _where(x0, given, seed, compiled)
    plain = {name: given.get(name, option.default) for name, option in _PLAIN.items()}
    if plain["popsize"] is None:
        repeats = _PLAIN["repeats"].check("repeats", plain["repeats"])
        budget = None if limits.maxfun is None else limits.maxfun // repeats
        chosen = default_popsize(budget, discrete=layout.is_discrete)
        plain["popsize"] = max(chosen, _known_members(given.get("init")))
    children = _PLAIN["popsize"].check("popsize", plain["popsize"]) - 1
    recombines = not layout.is_discrete and children >= _RECOMBINING_FROM
    default, truncation = _RECOMBINING if recombines else _COPYING
    if plain["truncation"] is None:
        plain["truncation"] = truncation if controller is None else GA().truncation
    plain = {name: _PLAIN[name].check(name, value) for name, value in plain.items()}
    if plain["constrained"] and plain["reevaluate"] != "none":
        raise ValueError("reevaluate and constraints exclude each other: give repeats, if values are noisy")
    members, values = _init(given.get("init"), layout, plain["popsize"], -1 if plain["direction"] == "maximize" else 1)
    if plain["constrained"] and values is not None:
        raise ValueError("init must be solutions alone if there are constraints, which values say nothing of, got both")
    setup = Setup(
        layout=layout,
        x0=within_bounds("x0", row[None], bounds, layout)[0],
        bounds=bounds,
        controller=default if controller is None else controller,
        seed=seed,
        init=None if members is None else within_bounds("init", members, bounds, layout),
        init_values=values,
        init_std=std,
        **plain,
    )
    ga = setup.ga(0)  # complains about the controller
    word = jax.ShapeDtypeStruct((), jnp.uint32)
    jax.eval_shape(lambda key: ga.controller.init(key, ga.num_children, layout.dim), noise.Key(word, word))  # type: ignore[arg-type]
    return setup


def _where(
    x0: Any, given: dict[str, Any], seed: int, compiled: bool
) -> tuple[Layout, np.ndarray, Bounds | None, np.ndarray | None]:
    """What solutions look like, the first of them, and the bounds and the spread of their genes."""
    layout, row = layouts.of(x0, given.get("dtype"), compiled=compiled)
    bounds, init_std, integrality = given.get("bounds"), given.get("init_std"), given.get("integrality")
    if layout.space is None:
        std = None if init_std is None else _init_std(init_std, layout)
        unit = 1.0 if std is None or std.ndim == 0 else std
        integral = None if integrality is None else _integral(integrality, layout)
        bounds = resolve(bounds, layout, unit, integral)
        if integral is not None:
            layout = dataclasses.replace(layout, integral=tuple(integral.tolist()))
        return layout, row, bounds, std
    for name in ("bounds", "init_std", "integrality"):
        if given.get(name) is not None:
            raise ValueError(
                f"{name} must not be given beside a Space, whose variables say it, got {_checks.show(given[name])}"
            )
    space = layout.space
    row = layout.row(np.random.default_rng(seed).uniform(space.low, space.high))
    of_genes = Bounds(space.low, space.high, leaps=leaps_of(space.discrete), unordered=space.unordered)
    return layout, row, resolve(of_genes, layout), None


def _integral(integrality: Any, layout: Layout) -> np.ndarray:
    """Which variables are integers, `bool[d]`, from scipy's 0 and 1 or from truth values."""
    accepted = f"0 or 1, {layout.dim} of them, or shaped like x0"
    try:
        flags = np.asarray(integrality)
        if flags.dtype == object or flags.shape not in ((), (1,), (layout.dim,)):
            flags = layout.flatten(integrality)
        if not np.isin(flags, (0, 1)).all():
            raise ValueError
    except (TypeError, ValueError) as error:
        raise ValueError(f"integrality must be {accepted}, got {_checks.show(integrality)}") from error
    return np.broadcast_to(flags.astype(bool), (layout.dim,))


def seed_of(rng: Any = None, seed: Any = None) -> int:
    """A number from 0 to 2⁶⁴ − 1 from which everything can be repeated."""
    if rng is not None and seed is not None:
        raise ValueError("rng and seed are two names of one argument: give one of them")
    rng = seed if rng is None else rng
    if rng is None:
        return secrets.randbits(63)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, jax.Array) and jnp.issubdtype(rng.dtype, jax.dtypes.prng_key) and rng.ndim == 0:
        high, low = np.asarray(jax.random.bits(rng, (2,), np.uint32)).tolist()
        return high << 32 | low
    if isinstance(rng, bool | np.bool_) or not isinstance(rng, int | np.integer):
        raise TypeError(f"rng must be an integer, a numpy Generator or a jax.random.key, got {_checks.show(rng)}")
    return _checks.integer("rng", rng, 0, 2**64 - 1)


def _init_std(init_std: Any, layout: Layout) -> np.ndarray:
    std, most = init_std, float(np.finfo(layout.wide).max) / FARTHEST  # or draws would overflow
    if not isinstance(std, dict) and _checks.array("init_std", std, "a number or shaped like x0").ndim == 0:
        _checks.number("init_std", std, 0.0, most)
        return np.asarray(std, layout.wide)
    try:
        std = layout.flatten(std)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init_std must be a number or shaped like x0, got {_checks.show(init_std)}") from error
    _checks.real("init_std", std, 0.0, most)
    return std


def _known_members(init: Any) -> int:
    """How many `init` holds, as far as that can be seen; `_init` complains about what is none."""
    members = init[0] if isinstance(init, tuple) and len(init) == 2 else init
    is_many = isinstance(members, list | tuple | np.ndarray | jax.Array) and getattr(members, "ndim", 1) > 0
    return len(members) if is_many else 0


def _init(init: Any, layout: Layout, popsize: int, sign: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Members `f[n, d]` and, if `init` is a pair, their values `f[n]` as minimised inside."""
    if init is None:
        return None, None
    evaluated = isinstance(init, tuple) and len(init) == 2
    members, values = init if evaluated else (init, None)
    accepted = f"1 to {popsize} solutions, or a pair of such and their values"
    try:
        if layout.is_vector:
            rows: np.ndarray = np.asarray(members)
            real = rows.dtype.kind in "iuf" or jnp.issubdtype(rows.dtype, jnp.floating)
            if rows.shape[1:] != (layout.dim,) or not real:
                raise ValueError(f"shape {rows.shape} and dtype {rows.dtype}")
            rows = layout.row(rows)
        else:
            rows = np.stack([layout.flatten(member) for member in members])
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be {accepted}, got {error}") from error
    if not 1 <= len(rows) <= popsize:
        raise ValueError(f"init must be {accepted}, got {len(rows)} solutions")
    if not np.isfinite(rows).all():
        raise ValueError(f"init must be finite, got NaN or infinity in {int((~np.isfinite(rows)).any(1).sum())} rows")
    return rows, None if values is None else sign * real_values("init's values", values, len(rows), layout.wide)


def within_bounds(name: str, rows: np.ndarray, bounds: Bounds | None, layout: Layout) -> np.ndarray:
    """`rows` inside the bounds; refuses what is outside by more than rounding to the population's precision."""
    if bounds is None:
        return rows
    low, high = np.asarray(bounds.low), np.asarray(bounds.high)
    with np.errstate(over="ignore"):
        below, above = (
            np.nextafter(side.astype(layout.dtype), np.asarray(far, layout.dtype)).astype(layout.wide)
            for side, far in ((low, -np.inf), (high, np.inf))
        )
    outside = (rows < below) | (rows > above)
    if outside.any():
        row, gene = (int(i) for i in np.argwhere(outside)[0])
        where = f"variable {gene}" if name == "x0" else f"variable {gene} of solution {row}"
        raise ValueError(f"{name} must be within bounds [{low[gene]}, {high[gene]}], got {rows[row, gene]} in {where}")
    return np.clip(rows, bounds.low, bounds.high)
