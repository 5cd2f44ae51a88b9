"""`minimize`: from a function and a start to the best solution found."""

import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _checks, compiled, evaluate, setup
from . import checkpoint as checkpoints
from ._signals import uninterrupted
from .evaluate import Compiled, PlainValues
from .optimizer import First, Optimizer, Ran, Told, first_state
from .setup import Setup
from .space import cast, precision
from .stopping import Limits

_LONGEST_CHUNK = 1024  # generations
_CHUNK_SECONDS = 0.2
_SAVE_SECONDS = 10.0
_NEVER = np.iinfo(np.int32).max


def minimize(
    fun: Callable,
    x0: Any,
    *,
    args: Any = (),
    bounds: Any = None,
    maxiter: int | None = None,
    maxfun: int | None = None,
    maxtime: float | None = None,
    target: float | None = None,
    patience: int | None = None,
    popsize: int | None = None,
    rng: Any = None,
    seed: Any = None,
    callback: Any = None,
    disp: bool = False,
    init: Any = None,
    init_std: Any = None,
    workers: Any = None,
    vectorized: bool = False,
    direction: str = "minimize",
    controller: Any = None,
    checkpoint: Any = None,
    resume: bool = False,
    batch_size: int | None = None,
    dtype: Any = None,
    jit: bool | None = None,
    keyed: bool = False,
    chunk: int | None = None,
    on_error: str = "raise",
    repeats: int = 1,
    reevaluate: str = "none",
    restarts: int = 0,
    restart_popsize: str = "keep",
) -> Any:
    """The best solution of `fun` that a genetic algorithm with its own mutation rate finds from `x0`.

    What is minimised
        fun(x, *args): a number for a solution; NaN and infinities count as the worst. A JAX function is compiled
            together with the search (`jit=None` finds out, True insists, False calls it in Python every time). A
            Python or NumPy function is called for one candidate after the other, or through `workers`: a callable
            like `map`, or an Executor. With `vectorized=True` it gets ALL candidates at once, ROWS ARE CANDIDATES:
            float[n, d] to float[n] (for a pytree: leaves with a leading axis of n), `batch_size` rows at a time.
        x0: a vector, or any pytree of floating-point arrays; itself a member of the first population.
        direction: "minimize" or "maximize".
        bounds: pairs (low, high) as scipy takes them, one pair for all, or a `gesmr.Bounds`, which also chooses between
            reflection (default), clipping and resampling. Never violated.
        keyed: fun, a JAX function, takes a `jax.random` key as its last argument: one for all candidates of a
            generation, another for the next.
        on_error: "raise" lets exceptions of fun through; "worst" counts them, says so, and goes on.
        repeats: every value is the mean of so many evaluations.
        reevaluate: of noisy functions, again in every generation: "none", the "elite" (its value is then the mean of
            all its evaluations), or "parents" and elite (so that a child is compared with its parent on the same day).

    How it is searched
        popsize: N + 1; a generation costs N evaluations, because the best is kept (101).
        controller: how the mutation rate is chosen: a controller such as `gesmr.GESMR()` or a name such as "SAMR".
        init: members of the first population, or a pair of such and their values. The rest is drawn.
        init_std: spread of the drawn members around x0, a number or one for each variable; 1 by default, and all over
            the range where a variable has one. If given for each variable, mutations are in these units.
        rng, seed: an integer, a numpy Generator or a jax key; `result.seed` repeats a run.
        dtype: float32 or float64; by default that of x0, and JAX's default for a compiled function.
        restarts: how often to begin anew when `patience` has run out, `restart_popsize` "keep" or "double".

    When it ends (the first that comes; 1000 generations if nothing is said)
        maxiter generations, maxfun evaluations (never exceeded), maxtime seconds, a value as good as target, patience
        generations without a better one, StopIteration raised by a callback, Ctrl-C.

    What happens meanwhile
        callback(intermediate_result): or several; after every generation, or between chunks of a compiled run, which
            take about 0.2 s or `chunk` generations. It gets x, fun, nit, nfev, stop and `recent`, the history since
            the last call.
        disp: print a line now and then.
        checkpoint: a file, or a `gesmr.Checkpoint` that says how often; `resume=True` goes on from it if it is there.

    Returns a `scipy.optimize.OptimizeResult`: x, fun, success, status, message, nit, nfev, and population,
    population_fitness, mutation_rates (in units of the range where there is one), history, stop (the reasons by name),
    restarts, errors, seconds, seed, versions and path, which says how fun was evaluated.
    """
    options = {name: value for name, value in locals().items() if name in _SETUP}
    limits = Limits(maxiter, maxfun, maxtime, target, patience)
    args = evaluate.check_options(fun, args, on_error, batch_size)
    how = _How(fun, args, vectorized, workers, batch_size, on_error, repeats, jit, keyed, direction)
    checked, objective = how.settle(x0, options)
    kept = _as_checkpoint(checkpoint)
    watch = _Watch(_callbacks(callback), disp, kept)
    optimizer = _resumed(checked, limits, kept, resume, rng is None and seed is None)
    optimizer._path = how.path
    step = _Compiled(optimizer, objective, batch_size, chunk, kept) if how.compiled else _Plain(optimizer, objective)
    return watch.run(optimizer, step)


_SETUP = ("bounds", "popsize", "controller", "rng", "seed", "init", "init_std", "direction", "dtype", "repeats",
          "reevaluate", "restarts", "restart_popsize")  # fmt: skip


@dataclasses.dataclass
class _How:
    """How `fun` is evaluated, found out before anything else is done."""

    fun: Callable
    args: tuple
    vectorized: bool
    workers: Any
    batch_size: int | None
    on_error: str
    repeats: int
    jit: bool | None
    keyed: bool
    direction: str
    compiled: bool = False
    path: str = ""

    def settle(self, x0: Any, options: dict[str, Any]) -> tuple[Setup, Any]:
        """The setup, and what evaluates: a `Compiled`, or `Values`."""
        if not isinstance(self.vectorized, bool) or not isinstance(self.keyed, bool):
            raise TypeError(f"vectorized and keyed must be True or False, got {self.vectorized!r} and {self.keyed!r}")
        if self.jit not in (None, True, False):
            raise TypeError(f"jit must be None, True or False, got {self.jit!r}")
        evaluate.map_of(self.workers)
        serial = self.workers in (None, 1)
        if self.jit and not serial:
            raise ValueError("jit and workers exclude each other: a compiled function is called for all at once")
        plain = setup.check(x0, **options)
        value, why = None, ""
        if self.jit is None and serial and not self.keyed:
            self.compiled, value = self._probe(x0, plain)
        else:
            self.compiled = serial and self.jit is not False
        if self.compiled:
            checked = setup.check(x0, **{**options, "rng": plain.seed, "seed": None}, compiled=True)
            try:
                objective = self._objective(checked)
                self.path = "jax, vectorized" if self.vectorized else "jax"
                return checked, objective
            except ValueError as error:
                if self.jit or self.keyed:
                    raise
                self.compiled, why = False, f"JAX cannot compile it: {type(error.__cause__ or error).__name__}"
        if self.keyed:
            raise ValueError("keyed needs a compiled JAX function: leave out workers and jit=False")
        values = PlainValues(
            self.fun,
            self.args,
            plain.space,
            vectorized=self.vectorized,
            workers=self.workers,
            batch_size=self.batch_size,
            on_error=self.on_error,
            repeats=self.repeats,
            known=None if value is None else (plain.x0, value),
            why=why,
        )
        self.path = values.path
        return plain, values

    def _probe(self, x0: Any, checked: Setup) -> tuple[bool, float | None]:
        with precision(checked.space.dtype):
            x: Any = checked.x0.copy()
            if not checked.space.is_vector:
                x = checked.space.solution(checked.x0)
            elif isinstance(x0, jax.Array):
                x = jnp.asarray(x)
        return evaluate.probe(self.fun, self.args, x, self.vectorized, checked.space.dtype)

    def _objective(self, checked: Setup) -> Compiled:
        objective = evaluate.compiled(
            self.fun,
            self.args,
            checked.space,
            vectorized=self.vectorized,
            keyed=self.keyed,
            repeats=self.repeats,
            sign=checked.sign,
        )
        if not self.keyed and (self.repeats > 1 or checked.reevaluate != "none"):
            raise TypeError(
                "repeats and reevaluate are for noisy functions; a compiled one is noisy only if keyed=True gives it a "
                "random key (or call it in Python, with jit=False)"
            )
        return objective


class _Plain:
    """One generation at a time, evaluated in Python."""

    def __init__(self, optimizer: Optimizer, values: evaluate.Values):
        self._optimizer, self._values = optimizer, values
        self._warned = False

    def __call__(self) -> None:
        optimizer, values = self._optimizer, self._values
        checked = optimizer._setup
        errors = values.errors
        rows = optimizer._rows()
        found = self._internal(values(rows))
        parents, elite, count = self._again()
        evaluations = checked.repeats * (len(rows) + count)
        optimizer._progress.errors += values.errors - errors
        if values.first_error is not None and not self._warned:
            self._warned = True
            message = f"fun raised {values.first_error}; such candidates count as the worst"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
        del rows  # or it would keep the old population alive
        optimizer._accept(found, evaluations=evaluations, parent_values=parents, elite_value=elite)

    def _again(self) -> tuple[np.ndarray | None, float | None, int]:
        """Fresh values of the parents and of the elite, of those that are to be evaluated again, and how many."""
        phase, reevaluate = self._optimizer._phase, self._optimizer._setup.reevaluate
        if not isinstance(phase, Told) or reevaluate == "none":
            return None, None, 0
        elite = float(self._internal(self._values(np.asarray(phase.proposal.population)[:1]))[0])
        if reevaluate == "elite":
            return None, elite, 1
        distinct, which = np.unique(np.asarray(phase.proposal.parents), return_inverse=True)
        parents = self._internal(self._values(np.asarray(phase.state.population)[distinct]))[which]
        return parents, elite, 1 + len(distinct)

    def _internal(self, values: np.ndarray) -> np.ndarray:
        checked = self._optimizer._setup
        return cast(checked.sign * values, checked.space.dtype)


class _Compiled:
    """A chunk of generations at a time, in one compiled program."""

    def __init__(self, optimizer: Optimizer, objective: Compiled, batch_size: int | None, chunk: int | None, kept: Any):
        self._optimizer, self._objective, self._batch_size = optimizer, objective, batch_size
        self._chunk = None if chunk is None else _checks.integer("chunk", chunk, 1)
        self._every = kept.every if kept is not None else None
        self._length = max(_LONGEST_CHUNK, self._chunk or 0)  # of the record: one program for shorter chunks too
        self._next = 8  # generations of the next chunk; more once we know how long they take

    def __call__(self) -> None:
        optimizer = self._optimizer
        with precision(optimizer._setup.space.dtype):
            if isinstance(optimizer._phase, First):
                self._first(optimizer._phase)
            else:
                self._generations()
        optimizer._look_around()

    def _first(self, phase: First) -> None:
        optimizer = self._optimizer
        checked, run = optimizer._setup, optimizer._progress.run
        rows = phase.population if not phase.known.any() else phase.population[~phase.known]
        key = checked.key(run)
        found = compiled.first_values(self._objective, rows, key, self._batch_size)
        fitness = phase.values.copy()
        fitness[~phase.known] = np.asarray(found)
        with uninterrupted():
            state, _ = first_state(optimizer._ga, key, phase.population, fitness)
            optimizer._phase = Ran(state._replace(population=phase.population))
            progress = optimizer._progress
            progress.nfev += len(rows) * checked.repeats
            progress.best, progress.elite_count = float(np.min(np.asarray(state.fitness))), 1

    def _generations(self) -> None:
        optimizer, limits = self._optimizer, self._optimizer._limits
        checked, progress, phase = optimizer._setup, optimizer._progress, optimizer._phase
        cost = optimizer._next_cost()
        rules = compiled.Rules(
            np.int32(self._room(cost)),
            np.asarray(-np.inf if optimizer._target is None else optimizer._target, checked.space.dtype),
            np.int32(min(limits.patience or _NEVER, _NEVER)),
            np.int32(min(limits.blind_patience, _NEVER)),
        )
        counts = compiled.Counts(
            np.asarray(progress.best, checked.space.dtype),  # type: ignore[arg-type]
            *(np.int32(n) for n in (progress.stale, progress.blind, progress.elite_count)),  # type: ignore[arg-type]
        )
        state, children = phase.state, optimizer._ga.num_children  # type: ignore[union-attr]
        pool = max(1, int(float(optimizer._ga.truncation) * children + 0.5))
        batch_size = None if self._batch_size is None else min(self._batch_size, children)
        start = time.monotonic()
        with uninterrupted():
            ran = compiled.run(
                optimizer._ga,
                self._objective,
                state.population,
                state._replace(population=None),  # type: ignore[arg-type]
                counts,
                rules,
                checked.reevaluate,
                min(pool, children),
                batch_size,
                self._length,
            )
            optimizer._phase = Ran(ran.state)
            (best, stale, blind, elite_count), n, elite, log_rate = jax.device_get(ran[1:])
            n = int(n)
            evaluations = progress.nfev + cost * np.arange(1, n + 1)
            optimizer._record.add(checked.sign * elite[:n], log_rate[:n], evaluations)
            progress.nit, progress.nfev = progress.nit + n, progress.nfev + cost * n
            progress.best, progress.stale, progress.blind = float(best), int(stale), int(blind)
            progress.elite_count = int(elite_count)
        self._adapt(n, time.monotonic() - start)

    def _room(self, cost: int) -> int:
        """How many generations the next chunk may have."""
        progress, limits = self._optimizer._progress, self._optimizer._limits
        room = [self._chunk or self._next, self._length]
        if limits.generations is not None:
            room.append(limits.generations - progress.nit)
        if limits.maxfun is not None:
            room.append((limits.maxfun - progress.nfev) // cost)
        if self._every is not None:
            room.append(self._every - progress.nit % self._every)
        return max(min(room), 0)

    def _adapt(self, generations: int, seconds: float) -> None:
        wanted = int(generations * _CHUNK_SECONDS / max(seconds, 1e-6))
        limits = self._optimizer._limits
        if limits.maxtime is not None:  # the last chunks are short, so that the time is kept
            left = limits.maxtime - self._optimizer._progress.seconds
            wanted = min(wanted, int(generations * max(left, 0.0) / max(seconds, 1e-6)))
        self._next = int(np.clip(wanted, 1, min(4 * self._next, self._length)))


@dataclasses.dataclass
class Checkpoint:
    """Where and how often to keep a run: after every so many generations or seconds, and at its end."""

    path: str | Path
    every: int | None = None
    seconds: float | None = None

    def __post_init__(self):
        if not isinstance(self.path, str | Path) or not str(self.path):
            raise TypeError(f"checkpoint must be a file name or a gesmr.Checkpoint, got {self.path!r}")
        if self.every is not None:
            _checks.integer("every", self.every, 1)
        if self.seconds is not None:
            _checks.number("seconds", self.seconds, 0.0)
        if self.every is None and self.seconds is None:
            self.seconds = _SAVE_SECONDS


def _as_checkpoint(given: Any) -> Checkpoint | None:
    return given if given is None or isinstance(given, Checkpoint) else Checkpoint(given)


def _resumed(checked: Setup, limits: Limits, kept: Checkpoint | None, resume: bool, any_seed: bool) -> Optimizer:
    """A fresh optimiser, or the one in the checkpoint."""
    if kept is None:
        if resume:
            raise ValueError("resume needs a checkpoint to go on from")
        return Optimizer._of(checked, limits)
    if not checkpoints.exists(kept.path):
        if not Path(kept.path).parent.is_dir():
            raise FileNotFoundError(f"checkpoint must be in a directory that exists, got {kept.path}")
        return Optimizer._of(checked, limits)
    if not resume:
        raise FileExistsError(f"{kept.path} exists already: resume=True goes on from it, or choose another file")
    meta, arrays = checkpoints.read(kept.path)
    if any_seed:
        checked = dataclasses.replace(checked, seed=meta["setup"]["seed"])
    checkpoints.check_same(checked, meta, arrays, kept.path)
    optimizer = Optimizer._of(checked, limits)
    checkpoints.restore(optimizer, meta, arrays)
    return optimizer


def _callbacks(callback: Any) -> list[Callable]:
    found = [] if callback is None else list(callback) if isinstance(callback, Sequence) else [callback]
    for one in found:
        if not callable(one):
            raise TypeError(f"callback must be callable, or a list of such, got {one!r}")
    return found


class _Watch:
    """The loop: steps until there is a reason to stop, and what happens between them."""

    def __init__(self, callbacks: list[Callable], disp: bool, kept: Checkpoint | None):
        self._callbacks, self._disp, self._kept = callbacks, disp, kept
        self._shown = self._saved = time.monotonic()
        self._saved_at = self._told_at = 0

    def run(self, optimizer: Optimizer, step: Callable[[], None]) -> Any:
        self._saved_at = self._told_at = optimizer._progress.nit
        try:
            while not optimizer.stop():
                step()
                self._between(optimizer)
        except KeyboardInterrupt:
            optimizer._progress.events["interrupted"] = True
        except BaseException:
            self._save(optimizer)
            raise
        self._save(optimizer)
        result = optimizer.result
        if self._disp:
            print(f"{result.message} Best value {result.fun:.6g} after {result.nit} generations.", flush=True)
        return result

    def _between(self, optimizer: Optimizer) -> None:
        progress = optimizer._progress
        now = time.monotonic()
        if self._disp and now - self._shown >= 1.0:
            self._shown = now
            print(f"generation {progress.nit}: best value {optimizer._setup.sign * progress.best:.6g}", flush=True)
        if self._callbacks:
            self._tell(optimizer)
        kept = self._kept
        if kept is None:
            return
        due = kept.every is not None and progress.nit - self._saved_at >= kept.every
        if due or (kept.seconds is not None and now - self._saved >= kept.seconds):
            self._save(optimizer)

    def _tell(self, optimizer: Optimizer) -> None:
        stop = optimizer.stop()
        glance = optimizer._glance(stop)
        glance["recent"] = optimizer._record.since(self._told_at)
        self._told_at = optimizer._progress.nit
        try:
            for callback in self._callbacks:
                callback(glance)
        except StopIteration:
            optimizer._progress.events["callback"] = True

    def _save(self, optimizer: Optimizer) -> None:
        if self._kept is None:
            return
        with uninterrupted():
            optimizer.save(self._kept.path)
        self._saved, self._saved_at = time.monotonic(), optimizer._progress.nit


def scipy_method(fun: Callable, x0: Any, args: Any = (), **options: Any) -> Any:
    """`scipy.optimize.minimize(fun, x0, method=gesmr.scipy_method, options={...})`: gradients are not used.

    Options are those of `gesmr.minimize`; scipy's `maxfev` and `maxiter` are understood, `tol` is not.
    """
    callback = options.pop("callback", None)
    for unused in ("jac", "hess", "hessp"):
        options.pop(unused, None)
    if options.pop("constraints", ()) not in ((), [], None):
        raise ValueError("constraints are not supported: put a penalty into fun, or NaN where x is not allowed")
    if "maxfev" in options:
        options["maxfun"] = options.pop("maxfev")
    return minimize(fun, x0, args=args, callback=callback, **options)


__all__ = ["Checkpoint", "minimize", "scipy_method"]
