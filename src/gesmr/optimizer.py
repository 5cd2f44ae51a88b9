"""The optimiser as an object: ask for candidates, evaluate them anywhere, tell their values."""

import time
import warnings
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from . import _provenance, setup, stopping
from ._signals import uninterrupted
from .evolve import History
from .ga import GA, Proposal, State
from .setup import Setup, real_values
from .space import precision
from .stopping import Limits, Progress


class First(NamedTuple):
    """The first population of a run, not all of its values known yet."""

    population: Array  # f[N+1, d]
    values: np.ndarray  # f[N+1], where known
    known: np.ndarray  # bool[N+1]


class Told(NamedTuple):
    """A generation whose values are known. `before` and the rest are what the step was made from: a checkpoint holds
    those and repeats the step, because only the same program gives the same bits."""

    before: tuple | None  # arguments of the step, without the population; None if it was compiled
    state: State  # after it, population included
    proposal: Proposal  # the next population
    log_rate: Array  # of its children


class Ran(NamedTuple):
    """The state after compiled generations."""

    state: State


class Record:
    """The history of a run while it grows."""

    def __init__(self):
        self._columns = array("d"), array("d"), array("q")

    def add(self, *columns: Any) -> None:
        """Elite values, mean log rates and evaluations so far, of one generation or of many."""
        for column, entries in zip(self._columns, columns, strict=True):
            column.frombytes(np.atleast_1d(np.asarray(entries, column.typecode)).tobytes())

    def since(self, generation: int) -> History:
        parts = (np.frombuffer(column[generation:], column.typecode) for column in self._columns)
        return History(*parts)  # type: ignore[arg-type]


class Optimizer:
    """A genetic algorithm that finds its own mutation rate, for evaluations that happen elsewhere.

        opt = gesmr.Optimizer(x0, rng=0, maxiter=100)
        while not opt.stop():
            xs = opt.ask()
            opt.tell(xs, [f(x) for x in xs])
        print(opt.result.x, opt.result.fun)

    The first `ask` returns `popsize` candidates, x0 among them; every later one `popsize − 1`, because the best is kept
    and not evaluated again. Asking again before telling returns the same candidates. They are rows of a read-only
    array, or a list of pytrees if x0 is one.

    Arguments are those of `gesmr.minimize` of the same names, which has them explained.
    """

    def __init__(
        self,
        x0: Any,
        *,
        bounds: Any = None,
        popsize: int | None = None,
        controller: Any = None,
        rng: Any = None,
        seed: Any = None,
        init: Any = None,
        init_std: Any = None,
        direction: str = "minimize",
        dtype: Any = None,
        restarts: int = 0,
        restart_popsize: str = "keep",
        maxiter: int | None = None,
        maxfun: int | None = None,
        maxtime: float | None = None,
        target: float | None = None,
        patience: int | None = None,
    ):
        checked = setup.check(
            x0,
            bounds=bounds,
            popsize=popsize,
            controller=controller,
            rng=rng,
            seed=seed,
            init=init,
            init_std=init_std,
            direction=direction,
            dtype=dtype,
            restarts=restarts,
            restart_popsize=restart_popsize,
        )
        self._start(checked, Limits(maxiter, maxfun, maxtime, target, patience))

    @classmethod
    def _of(cls, checked: Setup, limits: Limits) -> "Optimizer":
        optimizer = cls.__new__(cls)
        optimizer._start(checked, limits)
        return optimizer

    def _start(self, checked: Setup, limits: Limits) -> None:
        self._setup = checked
        self._progress = Progress()
        self._record = Record()
        self._champion: tuple[float, np.ndarray] | None = None  # the best of earlier runs, before a restart
        self._path = "ask/tell"
        self._warned = False
        self._set_limits(limits)
        self._begin_run(0)

    def _set_limits(self, limits: Limits) -> None:
        checked = self._setup
        least = checked.repeats * checked.popsize
        if limits.maxfun is not None and limits.maxfun < least:
            raise ValueError(f"maxfun must be at least {least}, the first population, got {limits.maxfun}")
        if checked.restarts and limits.patience is None:
            raise ValueError("restarts need patience: the generations without a better value after which to restart")
        self._limits = limits
        self._target = None
        if limits.target is not None:  # in the precision of the values, and rounded so that reached is reached
            exact = checked.sign * float(limits.target)
            rounded = np.asarray(exact, checked.space.dtype)
            self._target = float(rounded if rounded <= exact else np.nextafter(rounded, -np.inf, dtype=rounded.dtype))
        self._clock = time.monotonic() - self._progress.seconds

    def _begin_run(self, run: int) -> None:
        checked = self._setup
        self._ga = checked.ga(run)
        population, known = checked.first_population(run)
        values = np.full(len(known), np.nan, checked.space.dtype)
        if run == 0 and checked.init_values is not None:
            values[known] = checked.init_values
        self._progress.run, self._progress.best = run, np.inf
        self._progress.stale = self._progress.blind = 0
        self._phase: First | Told | Ran = First(population, values, known)
        self._handed: Any = None
        self._told: Any = None
        if known.all():
            self._accept(np.empty(0, checked.space.dtype), evaluations=0)

    # asking and telling

    def ask(self) -> Any:
        """The candidates to evaluate."""
        if self._handed is None:
            with precision(self._setup.space.dtype):
                self._handed = self._setup.space.solutions(self._rows())
        return self._handed

    def tell(self, xs: Any, values: Any) -> None:
        """The values of the candidates that `ask` returned, in their order. NaN and infinities count as the worst."""
        self._check_candidates(xs)
        checked = self._setup
        internal = checked.sign * real_values("values", values, len(self._rows()), checked.space.dtype)
        self._accept(internal, evaluations=len(internal))

    def _rows(self) -> np.ndarray:
        """The candidates as rows of a read-only array."""
        phase = self._phase
        if isinstance(phase, First):
            rows = np.asarray(phase.population)
            if phase.known.any():
                rows = rows[~phase.known]
                rows.flags.writeable = False
            return rows
        if isinstance(phase, Ran):
            with precision(self._setup.space.dtype):
                before, proposal, log_rate = _propose(self._ga, phase.state)
            self._phase = phase = Told(before, phase.state, proposal, log_rate)
        return np.asarray(phase.proposal.population)[1:]

    def _check_candidates(self, xs: Any) -> None:
        if xs is None:
            raise TypeError("xs must be the candidates of the last ask, got NoneType")
        if xs is self._handed:
            return
        rows, space = self._rows(), self._setup.space
        accepted = f"xs must be the {len(rows)} candidates of the last ask, in their order"
        if xs is self._told:
            raise ValueError(f"{accepted}, got those of the ask before, which have been told already")
        try:
            if len(xs) != len(rows):
                raise ValueError(f"{accepted}, got {len(xs)}")
            if space.is_vector:
                same = np.array_equal(np.asarray(xs), rows)
            else:
                with precision(space.dtype):
                    pairs = zip(xs, self.ask(), strict=True)
                    same = all(np.array_equal(space.flatten(x), space.flatten(asked)) for x, asked in pairs)
        except TypeError as error:
            raise TypeError(f"{accepted}, got {type(xs).__name__}") from error
        if not same:
            raise ValueError(f"{accepted}, got others; were they told already?")

    def _accept(
        self,
        values: np.ndarray,
        *,
        evaluations: int,
        parent_values: np.ndarray | None = None,
        elite_value: float | None = None,
    ) -> None:
        """Make the step that the values of the candidates, as minimised inside, allow."""
        phase, progress, dtype = self._phase, self._progress, self._setup.space.dtype
        with precision(dtype), uninterrupted():
            if isinstance(phase, First):
                fitness = phase.values.copy()
                fitness[~phase.known] = values
                self._take_first(phase.population, fitness)
                progress.nfev += evaluations
            else:
                assert isinstance(phase, Told)
                told = (values, parent_values, None if elite_value is None else np.asarray(elite_value, dtype))
                made_from = phase.state._replace(population=None), phase.proposal._replace(population=None)
                before = (*made_from, *told, np.int32(progress.elite_count), False)
                best = self._take_step(before, phase.proposal.population)
                progress.nfev += evaluations
                progress.after_generation(best)
                self._record.add(self._setup.sign * best, float(phase.log_rate), progress.nfev)
            self._told, self._handed = self._handed, None
        self._look_around()

    def _take_first(self, population: Array, fitness: np.ndarray) -> None:
        """The step from a valued first population: the same program as any other, told to learn nothing."""
        state, rates = first_state(self._ga, self._setup.key(self._progress.run), population, fitness)
        children, dtype, reevaluate = self._ga.num_children, fitness.dtype, self._setup.reevaluate
        nothing = np.zeros(children, dtype)
        proposal = Proposal(None, np.int32(0), np.zeros(children, np.int32), rates)  # type: ignore[arg-type]
        parents = nothing if reevaluate == "parents" else None
        elite = None if reevaluate == "none" else np.zeros((), dtype)
        _, proposal, log_rate, _, _ = _advance(
            self._ga, population, state, proposal, nothing, parents, elite, np.int32(1), True
        )
        self._progress.best, self._progress.elite_count = float(np.min(np.asarray(state.fitness))), 1
        self._phase = Told((fitness,), state._replace(population=population), proposal, log_rate)

    def _take_step(self, before: tuple, population: Array) -> float:
        """The generation's best value."""
        state, proposal, log_rate, count, best = _advance(self._ga, population, *before)
        self._progress.elite_count, best = int(count), float(best)
        self._phase = Told(before, state._replace(population=population), proposal, log_rate)
        return best

    def _look_around(self) -> None:
        """After a generation: say so if nothing is finite, restart if nothing moves."""
        progress = self._progress
        if not np.isfinite(progress.best) and not self._warned:
            self._warned = True
            patience = self._limits.blind_patience
            message = f"no candidate has had a finite value yet; the search goes on blindly for {patience} generations"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        if progress.run < self._setup.restarts and progress.stale >= (self._limits.patience or np.inf):
            self._restart()

    def _restart(self) -> None:
        """Begin again with another first population, if the budget has room for it."""
        why = self.stop()
        room = self._setup.repeats * self._setup.members(self._progress.run + 1)
        maxfun = self._limits.maxfun
        if why.keys() - {"patience", "nonfinite"} or (maxfun is not None and self._progress.nfev + room > maxfun):
            return
        self._champion = self._best()
        self._begin_run(self._progress.run + 1)

    # looking

    def stop(self) -> dict[str, Any]:
        """Reasons to stop, by name: empty while there are none."""
        self._progress.seconds = time.monotonic() - self._clock
        first = isinstance(self._phase, First)
        if first and self._progress.run == 0:  # nothing is known before the first population is
            return dict(self._progress.events)
        next_cost = 0 if first else self._next_cost()
        return stopping.reasons(self._limits, self._progress, self._target, next_cost)

    def _next_cost(self) -> int:
        return self._setup.next_cost(self._progress.run, self._ga.num_children, float(self._ga.truncation))

    def _best(self) -> tuple[float, np.ndarray]:
        """The lowest value, as minimised inside, and its row."""
        phase = self._phase
        if isinstance(phase, First):
            if not phase.known.any():
                return self._champion or (np.inf, self._setup.x0)
            values = np.where(phase.known & np.isfinite(phase.values), phase.values, np.inf)
            population = phase.population
        else:
            values, population = np.asarray(phase.state.fitness), phase.state.population
        # Of values that are noise in part the lowest is the luckiest: the elite's is the mean of several.
        at = 0 if self._setup.reevaluate != "none" and self._progress.nit else int(np.argmin(values))
        found = float(values[at]), np.asarray(population[at])
        return min(found, self._champion, key=lambda pair: pair[0]) if self._champion else found

    @property
    def result(self) -> Any:
        """The best so far as a `scipy.optimize.OptimizeResult`; `gesmr.minimize` explains its fields."""
        checked, progress, space = self._setup, self._progress, self._setup.space
        stop = self.stop()
        with precision(space.dtype):
            result = self._glance(stop)
            phase = self._phase
            if isinstance(phase, First):
                population, fitness = phase.population, np.where(phase.known, phase.values, np.nan)
                rates = np.empty(0)
            else:
                population, fitness = phase.state.population, np.asarray(phase.state.fitness)
                rates = np.exp(np.asarray(self._ga.controller.log_rates(phase.state.controller)))
            result.update(
                population=space.stacked(np.asarray(population)),
                population_fitness=checked.sign * fitness,
                mutation_rates=rates,
                history=self._record.since(0),
                restarts=progress.run,
                errors=progress.errors,
                seconds=progress.seconds,
                seed=checked.seed,
                versions=_provenance.machine(),
                path=self._path,
            )
        return result

    def _glance(self, stop: dict[str, Any]) -> Any:
        """What is cheap to know: what a callback gets."""
        from scipy.optimize import OptimizeResult  # noqa: PLC0415  half a second, and not needed to begin

        progress = self._progress
        value, row = self._best()
        success, status, message = stopping.verdict(stop, self._limits, value)
        with precision(self._setup.space.dtype):
            x = self._setup.space.solution(row)
        return OptimizeResult(
            x=x,
            fun=self._setup.sign * value,
            success=success,
            status=status,
            message=message,
            nit=progress.nit,
            nfev=progress.nfev,
            stop=stop,
        )

    # keeping

    def save(self, path: str | Path) -> None:
        """Write everything to `path`, atomically; the file that was there becomes `path`.previous."""
        from . import checkpoint  # noqa: PLC0415  it knows optimisers, they need not know it

        checkpoint.write(path, *checkpoint.snapshot(self))

    @classmethod
    def load(cls, path: str | Path, *, x0: Any = None, controller: Any = None, **limits: Any) -> "Optimizer":
        """The optimiser that `save` wrote, which goes on exactly as the other would have.

        x0 is needed if it was a pytree: any of the same structure. So is `controller`, if it is one of your own.
        `maxiter`, `maxfun`, `maxtime`, `target` and `patience` replace those of the file.
        """
        from . import checkpoint  # noqa: PLC0415

        return checkpoint.load(cls, path, x0, controller, limits)


@jax.jit
def first_state(ga: GA, key: Any, population: Array, fitness: Array) -> tuple[State, Array]:
    """The state of a valued first population, without that, and some rates `f[N]` as the controller gives them."""
    state = ga.init(key, population, fitness)
    rates = ga.controller.rates(state.controller, jnp.zeros(ga.num_children, jnp.int32))
    return state._replace(population=None), rates  # type: ignore[arg-type]


@jax.jit
def _advance(
    ga: GA,
    population: Array,
    state: State,
    proposal: Proposal,
    values: Array,
    parent_values: Array | None,
    elite_value: Array | None,
    elite_count: Array,
    first: Array,
) -> tuple[State, Proposal, Array, Array, Array]:
    """A generation: learn from the values, then select and mutate. Populations go in and out apart from the rest.

    If it is the `first`, there is nothing to learn yet: one program, because compiling two takes twice as long.
    """
    proposal = proposal._replace(population=None)
    learned, count = learn(ga, state, proposal, values, parent_values, elite_value, elite_count)
    state = jax.tree.map(lambda old, new: jnp.where(first, old, new), state, learned)._replace(population=population)
    best = state.best_fitness if elite_value is None else state.fitness[0]
    return state._replace(population=None), ga.ask(state), mean_log_rate(ga, state), count, best


@jax.jit
def _propose(ga: GA, state: State) -> tuple[Any, Proposal, Array]:
    return None, ga.ask(state), mean_log_rate(ga, state)


def learn(
    ga: GA,
    state: State,
    proposal: Proposal,
    values: Array,
    parent_values: Array | None,
    elite_value: Array | None,
    elite_count: Array,
) -> tuple[State, Array]:
    """`ga.tell`, and the elite's value as the mean of all its evaluations if it was evaluated again."""
    after = ga.tell(state, proposal, values, parent_fitness=parent_values)
    if elite_value is None:
        return after, elite_count
    count = jnp.where(proposal.elite == 0, elite_count, 1) + 1
    mean = after.fitness[0] + (elite_value - after.fitness[0]) / count
    mean = jnp.where(jnp.isfinite(elite_value), mean, jnp.inf).astype(after.fitness.dtype)
    return after._replace(fitness=after.fitness.at[0].set(mean)), count


def mean_log_rate(ga: GA, state: State) -> Array:
    return jnp.mean(ga.controller.log_rates(state.controller))


__all__ = ["Optimizer"]
