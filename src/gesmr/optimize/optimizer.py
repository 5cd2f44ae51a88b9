"""The optimiser as an object: ask for candidates, evaluate them anywhere, tell their values."""

import time
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _checks, _provenance
from .._signals import uninterrupted
from ..devices import Shards, broadcast, is_first
from ..ga import Proposal
from ..generation import advance, first_state, propose
from . import archive, stopping
from . import options as setup
from .options import Setup, real_values
from .run import First, Ran, Record, Told
from .space import precision
from .stopping import Limits, Progress


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
        truncation: float | None = None,
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
            truncation=truncation,
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
    def _of(cls, checked: Setup, limits: Limits, shards: Shards | None = None) -> "Optimizer":
        optimizer = cls.__new__(cls)
        optimizer._start(checked, limits, shards)
        return optimizer

    def _start(self, checked: Setup, limits: Limits, shards: Shards | None = None) -> None:
        self._setup = checked
        self._shards = shards  # over many devices, if compiled generations are
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
            rounded = np.asarray(exact, checked.space.wide)
            self._target = float(rounded if rounded <= exact else np.nextafter(rounded, -np.inf, dtype=rounded.dtype))
        self._clock = time.monotonic() - self._progress.seconds

    def _begin_run(self, run: int) -> None:
        checked = self._setup
        self._ga = checked.ga(run)
        population, known = checked.first_population(run, self._shards)
        values = np.full(len(known), np.nan, checked.space.wide)
        if run == 0 and checked.init_values is not None:
            values[known] = checked.init_values
        self._progress.run, self._progress.best = run, np.inf
        self._progress.stale = self._progress.blind = 0
        self._phase: First | Told | Ran = First(population, values, known)
        self._handed: Any = None
        self._told: Any = None
        if known.all():
            self._accept(np.empty(0, checked.space.wide), evaluations=0)

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
        internal = checked.sign * real_values("values", values, len(self._rows()), checked.space.wide)
        self._accept(internal, evaluations=len(internal))

    def _rows(self) -> np.ndarray:
        """The candidates as rows of a read-only array."""
        phase = self._phase
        if isinstance(phase, First):
            rows = np.asarray(phase.population)
            return self._wide(rows[~phase.known] if phase.known.any() else rows)
        if isinstance(phase, Ran):
            with precision(self._setup.space.dtype):
                proposal, log_rate = propose(self._ga, phase.state)
            self._phase = phase = Told(None, phase.state, proposal, log_rate)
        return self._wide(np.asarray(phase.proposal.population)[1:])

    def _wide(self, rows: np.ndarray) -> np.ndarray:
        """Members as users see them: not in bfloat16, and read-only."""
        rows = rows.astype(self._setup.space.wide, copy=False)
        rows.flags.writeable = False
        return rows

    def _check_candidates(self, xs: Any) -> None:
        if xs is None:
            raise TypeError("xs must be the candidates of the last ask, got NoneType")
        if xs is self._handed:
            return
        rows, space = self._rows(), self._setup.space
        accepted = f"xs must be the {len(rows)} candidates of the last ask, in their order"
        if xs is self._told:
            raise ValueError(f"{accepted}, got those of the ask before, which have been told already")
        if not hasattr(xs, "__len__") or not hasattr(xs, "__iter__") or getattr(xs, "shape", None) == ():
            raise TypeError(f"{accepted}, got {type(xs).__name__}")
        if len(xs) != len(rows):
            raise ValueError(f"{accepted}, got {len(xs)}")
        try:
            given = np.asarray(xs) if space.is_vector else np.stack([space.flatten(x) for x in xs])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{accepted}, got others: {error}") from error
        with precision(space.dtype):  # leaves may have less precision than rows
            asked = rows if space.is_vector else np.stack([space.flatten(x) for x in self.ask()])
        if not np.array_equal(given, asked):
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
        phase, progress, dtype = self._phase, self._progress, self._setup.space.wide
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
        state, rates = first_state(self._ga, self._setup.key(self._progress.run), fitness, self._setup.space.dim)
        self._progress.best, self._progress.elite_count = float(np.min(np.asarray(state.fitness))), 1
        if self._shards is not None:  # compiled generations follow
            self._phase = Ran(state._replace(population=population))
            return
        children, dtype, reevaluate = self._ga.num_children, fitness.dtype, self._setup.reevaluate
        nothing = np.zeros(children, dtype)
        proposal = Proposal(None, np.int32(0), np.zeros(children, np.int32), rates)  # type: ignore[arg-type]
        parents = nothing if reevaluate == "parents" else None
        elite = None if reevaluate == "none" else np.zeros((), dtype)
        _, proposal, log_rate, _, _ = advance(
            self._ga, population, state, proposal, nothing, parents, elite, np.int32(1), True
        )
        self._phase = Told((fitness,), state._replace(population=population), proposal, log_rate)

    def _take_step(self, before: tuple, population: Array) -> float:
        """The generation's best value."""
        state, proposal, log_rate, count, best = advance(self._ga, population, *before)
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
        self._progress.seconds = broadcast(time.monotonic() - self._clock, self._shards)
        first = isinstance(self._phase, First)
        if first and self._progress.run == 0:  # nothing is known before the first population is
            return dict(self._progress.events)
        next_cost = 0 if first else self._setup.generation_cost(self._ga)
        return stopping.reasons(self._limits, self._progress, self._target, next_cost)

    def _best(self) -> tuple[float, np.ndarray]:
        """The lowest value, as minimised inside, and its row."""
        phase = self._phase
        if isinstance(phase, First):
            if not phase.known.any():
                return self._champion or (np.inf, self._setup.x0)
            values = np.where(phase.known & np.isfinite(phase.values), phase.values, np.inf)
            population, at = phase.population, int(np.argmin(values))
        else:
            values, population = np.asarray(phase.state.fitness), phase.state.population
            # Of values that are noise in part the lowest is the luckiest: the elite's is the mean of several.
            elite = self._setup.reevaluate != "none" and int(phase.state.generation) > 0
            at = 0 if elite else int(np.argmin(values))
        row = np.array(population[at]) if self._shards is None else self._shards.row(population, at)
        found = float(values[at]), row.astype(self._setup.space.wide, copy=False)
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
                controller = phase.state.controller
                if self._shards is not None:  # here, where arithmetic is simple
                    controller = jax.tree.map(jnp.asarray, jax.device_get(controller))
                rates = np.exp(np.asarray(self._ga.controller.log_rates(controller)))
            members = None if self._shards is not None and self._shards.processes > 1 else self._members(population)
            result.update(
                population=None if members is None else space.stacked(members),
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

    def _members(self, population: Array) -> Any:
        """All members `f[N+1, d]`; of a run in several processes only the first gets them."""
        return np.asarray(population) if self._shards is None else self._shards.rows(population)

    def _glance(self, stop: dict[str, Any]) -> Any:
        """What is cheap to know: what a callback gets."""
        from scipy.optimize import OptimizeResult  # noqa: PLC0415  half a second, and not needed to begin

        progress = self._progress
        value, row = self._best()
        success, status, message = stopping.verdict(stop, self._limits, value)
        with precision(self._setup.space.dtype):
            x = self._setup.space.solution(row.copy())  # the user's: what is kept must not change with it
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

        path = _checks.file("path", path)
        content = checkpoint.snapshot(self)
        if is_first(self._shards):
            archive.write(path, *content)

    @classmethod
    def load(cls, path: str | Path, *, x0: Any = None, controller: Any = None, **limits: Any) -> "Optimizer":
        """The optimiser that `save` wrote, which goes on exactly as the other would have.

        x0 is needed if it was a pytree: any of the same structure. So is `controller`, if it is one of your own.
        `maxiter`, `maxfun`, `maxtime`, `target` and `patience` replace those of the file.
        """
        from . import checkpoint  # noqa: PLC0415

        return checkpoint.load(cls, _checks.file("path", path), x0, controller, limits)
