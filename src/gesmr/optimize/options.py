"""What fixes a run, apart from its objective and its budget: checked once, and written into every checkpoint."""

import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _checks, controllers, noise, storage
from ..bounds import FARTHEST, Bounds, is_bounded_everywhere, resolve, within
from ..devices import REPLICATED, Shards
from ..ga import GA
from . import space as spaces
from .space import Space, cast, precision

# Better than the paper's 0.5 and 0.5 on most functions, here and in COCO: docs/why.md, docs/benchmarks.md
_CONTROLLER, _TRUNCATION = controllers.GESMR(truncation=0.1), 0.2
REEVALUATE = ("none", "elite", "parents")
_RESTARTS = np.uint32(2**29)  # the keys of restarts are at (this, number), apart from all places a run draws from


@dataclass(frozen=True)
class Setup:
    space: Space
    x0: np.ndarray  # f[d]
    bounds: Bounds | None
    popsize: int  # N + 1, of the first run
    controller: Any  # a Controller, or the name of one
    truncation: float  # the share of members that may become parents
    seed: int
    init: np.ndarray | None  # f[n, d], members of the first population
    init_values: np.ndarray | None  # f[n], theirs, if they are known; as minimised inside
    init_std: np.ndarray | None  # f[] or f[d]
    direction: str
    repeats: int
    reevaluate: str
    restarts: int
    restart_popsize: str

    @property
    def sign(self) -> int:
        return -1 if self.direction == "maximize" else 1

    def members(self, run: int) -> int:
        return self.popsize * 2**run if self.restart_popsize == "double" else self.popsize

    def ga(self, run: int) -> GA:
        children = self.members(run) - 1
        named = isinstance(self.controller, str)
        controller = controllers.controller(self.controller, children) if named else self.controller
        if is_bounded_everywhere(self.bounds):
            controller = within(controller)
        # A share that is a whole number of parents: it gives that number in any precision
        return GA(controller, children, parents(self.truncation, children) / children, self.bounds)

    def key(self, run: int) -> noise.Key:
        return _key(np.uint32(self.seed & 0xFFFFFFFF), np.uint32(self.seed >> 32), np.uint32(run))

    def first_population(self, run: int, shards: Shards | None = None) -> tuple[Array, np.ndarray]:
        """Members `f[N+1, d]` of a run's first population, and which of them have a value already."""
        given = [] if run else [rows for rows in (self.init, self.x0[None]) if rows is not None]
        head = np.concatenate(given)[: self.members(run)] if given else np.empty((0, self.space.dim), self.x0.dtype)
        with precision(self.space.dtype):
            around, size = (self.x0, self.init_std, self.bounds), (self.members(run), self.space.dtype)
            if shards is None:
                population = _draw(self.key(run), head, *around, *size)
            else:
                population = _draw_sharded(self.key(run), head, around, *size, shards)
        known = np.zeros(self.members(run), bool)
        if run == 0 and self.init_values is not None:
            known[: len(self.init_values)] = True
        return population, known

    def generation_cost(self, ga: GA) -> int:
        """Evaluations of a generation, at most."""
        again = {"none": 0, "elite": 1, "parents": parents(ga.truncation, ga.num_children) + 1}[self.reevaluate]
        return self.repeats * (ga.num_children + again)


def parents(truncation: Any, children: int) -> int:
    """From how many members parents are drawn: `selection.pool_size` as a number."""
    return max(1, min(int(float(truncation) * children + 0.5), children))


def check(
    x0: Any,
    *,
    bounds: Any = None,
    popsize: int | None = None,
    controller: Any = None,
    truncation: float | None = None,
    rng: Any = None,
    seed: Any = None,
    init: Any = None,
    init_std: Any = None,
    direction: str = "minimize",
    dtype: Any = None,
    repeats: int = 1,
    reevaluate: str = "none",
    restarts: int = 0,
    restart_popsize: str = "keep",
    compiled: bool = False,
) -> Setup:
    """The setup that arguments of `Optimizer` and `minimize` describe, or an error that names the one at fault."""
    _checks.choice("direction", direction, ("minimize", "maximize"))
    space, row = spaces.of(x0, dtype, compiled=compiled)
    std = None if init_std is None else _init_std(init_std, space)
    unit = 1.0 if std is None or std.ndim == 0 else std
    resolved = resolve(bounds, space.dim, space.flatten, space.dtype, unit, space.wide)
    popsize = GA().num_children + 1 if popsize is None else _checks.integer("popsize", popsize, 2, _checks.MOST)
    if truncation is None:
        truncation = _TRUNCATION if controller is None else GA().truncation
    controller = _CONTROLLER if controller is None else controller
    members, values = _init(init, space, popsize, -1 if direction == "maximize" else 1)
    _inside("x0", row[None], resolved, space)
    if members is not None:
        _inside("init", members, resolved, space)
    setup = Setup(
        space=space,
        x0=_snapped(row, resolved),
        bounds=resolved,
        popsize=popsize,
        controller=controller,
        truncation=_checks.number("truncation", truncation, 0.0, 1.0),
        seed=_seed(rng, seed),
        init=None if members is None else _snapped(members, resolved),
        init_values=values,
        init_std=std,
        direction=direction,
        repeats=_checks.integer("repeats", repeats, 1, most=_checks.MOST),
        reevaluate=_checks.choice("reevaluate", reevaluate, REEVALUATE),
        restarts=_checks.integer("restarts", restarts, 0),
        restart_popsize=_checks.choice("restart_popsize", restart_popsize, ("keep", "double")),
    )
    ga = setup.ga(0)  # complains about the controller
    word = jax.ShapeDtypeStruct((), jnp.uint32)
    jax.eval_shape(lambda key: ga.controller.init(key, ga.num_children, space.dim), noise.Key(word, word))  # type: ignore[arg-type]
    return setup


@jax.jit
def _key(low: Array, high: Array, run: Array) -> noise.Key:
    """The key of a run: that of the seed, as `noise.key` makes it, and below it those of the restarts."""
    key = noise.fold_in(noise.Key(jnp.uint32(0), jnp.uint32(0)), low, high)
    below = noise.fold_in(key, _RESTARTS, run)
    return noise.Key(*(jnp.where(run == 0, first, other) for first, other in zip(key, below, strict=True)))


def _rows(
    key: noise.Key,
    head: Array,
    x0: Array,
    std: Array | None,
    bounds: Bounds | None,
    members: int,
    dtype: str,
    start: Any = 0,
) -> Array:
    """`head` and draws around x0, or over the range of a variable that has one and no spread was asked for.

    `start` is the number of the first variable, where these are only some.
    """
    keys = noise.fold_in(key, jnp.arange(members), noise.BEFORE_THE_FIRST_GENERATION)
    words = noise.bits(keys, x0.shape[0], start)
    spread = jnp.asarray(1.0 if std is None else std, x0.dtype)
    population = (x0 + spread * noise.normal(words)).astype(x0.dtype)
    if bounds is not None:
        span = bounds.high - bounds.low
        if std is None:
            anywhere = bounds.low + jnp.where(jnp.isfinite(span), span, 0) * noise.uniform(words)
            population = jnp.where(jnp.isfinite(span), anywhere.astype(x0.dtype), population)
        population = bounds.repair(population)
    population = storage.rounded(population, dtype, keys, start)
    return population.at[: head.shape[0]].set(head.astype(dtype))


_draw = partial(jax.jit, static_argnums=(5, 6))(_rows)


def _draw_sharded(key: noise.Key, head: np.ndarray, around: tuple, members: int, dtype: str, shards: Shards) -> Array:
    """`_rows` on many devices, of the variables that each holds."""

    def part(key: noise.Key, head: Array, around: tuple) -> Array:
        x0, std, bounds = around
        return _rows(key, head, x0, std, bounds, members, dtype, shards.genes.first)

    draw = jax.jit(shards.map(part, (REPLICATED, shards.by_gene, shards.per_gene(around)), shards.by_gene))
    return draw(shards.replicate(key), shards.shard(head), shards.shard_genes(around))


def _seed(rng: Any, seed: Any) -> int:
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


def _init_std(init_std: Any, space: Space) -> np.ndarray:
    std, most = init_std, float(np.finfo(space.wide).max) / FARTHEST  # or draws would overflow
    if not isinstance(std, dict) and _checks.array("init_std", std, "a number or shaped like x0").ndim == 0:
        _checks.number("init_std", std, 0.0, most)
        return np.asarray(std, space.wide)
    try:
        std = space.flatten(std)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init_std must be a number or shaped like x0, got {_checks.show(init_std)}") from error
    _checks.real("init_std", std, 0.0, most)
    return std


def _init(init: Any, space: Space, popsize: int, sign: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Members `f[n, d]` and, if `init` is a pair, their values `f[n]` as minimised inside."""
    if init is None:
        return None, None
    evaluated = isinstance(init, tuple) and len(init) == 2
    members, values = init if evaluated else (init, None)
    accepted = f"1 to {popsize} solutions, or a pair of such and their values"
    try:
        if space.is_vector:
            rows: np.ndarray = np.asarray(members)
            real = rows.dtype.kind in "iuf" or jnp.issubdtype(rows.dtype, jnp.floating)
            if rows.shape[1:] != (space.dim,) or not real:
                raise ValueError(f"shape {rows.shape} and dtype {rows.dtype}")
            rows = space.row(rows)
        else:
            rows = np.stack([space.flatten(member) for member in members])
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be {accepted}, got {error}") from error
    if not 1 <= len(rows) <= popsize:
        raise ValueError(f"init must be {accepted}, got {len(rows)} solutions")
    if not np.isfinite(rows).all():
        raise ValueError(f"init must be finite, got NaN or infinity in {int((~np.isfinite(rows)).any(1).sum())} rows")
    return rows, None if values is None else sign * real_values("init's values", values, len(rows), space.wide)


def real_values(name: str, values: Any, n: int, dtype: str) -> np.ndarray:
    """`values` as `f[n]`; what is not finite, or beyond `dtype`, is left or becomes infinite."""
    array = _checks.array(name, values, f"{n} real numbers")
    if jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.kind != "f":
        array = array.astype(np.float32)  # bfloat16 and the like
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be {n} real numbers, got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one value per candidate, got {array.shape}")
    return cast(array, dtype)


def _inside(name: str, rows: np.ndarray, bounds: Bounds | None, space: Space) -> None:
    """Refuse what is outside, but for rounding to the population's precision."""
    if bounds is None:
        return
    low, high = np.asarray(bounds.low), np.asarray(bounds.high)
    with np.errstate(over="ignore"):
        below, above = (
            np.nextafter(side.astype(space.dtype), np.asarray(far, space.dtype)).astype(space.wide)
            for side, far in ((low, -np.inf), (high, np.inf))
        )
    outside = (rows < below) | (rows > above)
    if outside.any():
        row, gene = (int(i) for i in np.argwhere(outside)[0])
        where = f"variable {gene}" if name == "x0" else f"variable {gene} of solution {row}"
        raise ValueError(f"{name} must be within bounds [{low[gene]}, {high[gene]}], got {rows[row, gene]} in {where}")


def _snapped(rows: np.ndarray, bounds: Bounds | None) -> np.ndarray:
    return rows if bounds is None else np.clip(rows, bounds.low, bounds.high)
