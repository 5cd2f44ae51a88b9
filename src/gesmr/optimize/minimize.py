"""`minimize`: from a function and a start to the best solution found."""

import dataclasses
import warnings
from collections.abc import Callable
from contextlib import closing
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from .. import _checks
from .._signals import Interrupts
from ..devices import Shards, broadcast_integer, mesh_of
from ..spaces import Space
from ..workers.sending import described
from .called import CalledStep, Outcome, PlainValues, number, returned
from .checkpoint import chosen_by_itself, resumed, was_compiled
from .compiled import LONGEST_CHUNK, CompiledStep
from .constraints import Constraints
from .layout import of as layout_of
from .layout import precision
from .loop import Loop, as_callbacks, as_checkpoint, check_function, held, read_if_resumed
from .options import Objective, Setup, check, seed_of, split
from .phases import first
from .run import begin
from .stopping import Limits
from .traced import JaxFunction, Jitted


def minimize(
    fun: Callable,
    x0: Any,
    *,
    args: Any = (),
    bounds: Any = None,
    constraints: Any = (),
    integrality: Any = None,
    maxiter: int | None = None,
    maxfun: int | None = None,
    maxtime: float | None = None,
    target: float | None = None,
    patience: int | None = None,
    tol: float | None = None,
    ftol: float | None = None,
    xtol: float | None = None,
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
    truncation: float | None = None,
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
    devices: Any = None,
    eq_tol: float = 1e-4,
) -> Any:
    """The best solution of `fun` that a genetic algorithm with its own mutation rate finds from `x0`.

    What is minimised
        fun(x, *args): a number for a solution; NaN and infinities count as the worst.
            A JAX function is compiled together with the search (`jit=None` finds out by calling it once, True insists,
            False calls it in Python every time). It sees globals, attributes and objects in args as they are when the
            run begins. Arrays it reads and floats in args are data: new values need no new program.
            A Python or NumPy function is called for one candidate after the other, or by `workers`: a number of
            processes, a `gesmr.Pool`, "ray", an address of Ray or a `gesmr.Ray`, an Executor or a callable like `map`.
            With `vectorized=True` it gets all candidates at once, and rows are candidates: float[n, d] to float[n] (for
            a pytree: leaves with a leading axis of n), `batch_size` rows at a time.
        x0: a vector, or any pytree of floating-point arrays; itself a member of the first population. Or a
            `gesmr.Space` of named variables, real, integer or without order: fun gets a dictionary.
        direction: "minimize" or "maximize".
        bounds: pairs (low, high) as scipy takes them, one pair for all, pytrees like x0, or a `gesmr.Bounds`, which
            also chooses between reflection (default), clipping and resampling. Never violated.
        integrality: 1 where a variable is an integer, as in scipy; one for all, one for each, or shaped like x0.
        constraints: scipy's NonlinearConstraint, LinearConstraint or dictionaries. Feasible solutions come before
            infeasible ones, those by the sum of their violations. Equalities hold within `eq_tol`. A Python function is
            not called where constraints are violated.
        keyed: fun, a JAX function, takes a `jax.random` key as its last argument: one for all candidates of a
            generation, another for the next.
        on_error: "raise" lets exceptions of fun through; "worst" counts them as the worst value and warns once.
        repeats: every value is the mean of this many evaluations.
        reevaluate: who is evaluated again in every generation, for noisy functions: "none", the "elite" (its value is
            then the mean of all its evaluations), or "parents" and elite (so parent and child share a generation).

    How it is searched
        popsize: N + 1; a generation costs N evaluations, because the best is kept. 101, and fewer if `maxfun` is small:
            docs/budgets.md has the rule.
        controller: how the mutation rate is chosen: a controller such as `gesmr.GESMR()` or a name such as "SAMR";
            by default GESMR, which recombines if there are 50 children or more and no integers or choices.
            "GESMR" is the paper's.
        truncation: the share of members that may become parents: 0.3, in a population of up to 50 and with integers or
            choices 0.2; the paper's 0.5 if a controller is given.
        init: members of the first population, or a pair of members and their values. The rest is drawn.
        init_std: spread of the drawn members around x0, a number or one for each variable; 1 by default, or a
            variable's whole range if it has one. If given for each variable, mutations are in these units.
        rng, seed: an integer, a numpy Generator or a jax key; `result.seed` repeats a run.
        dtype: float32 or float64; by default that of x0, and JAX's default for a compiled function. bfloat16 stores
            the population in half the memory; fun and all arithmetic have single precision.
        restarts: how often to begin anew when `patience` has run out, `restart_popsize` "keep" or "double".
        devices: over which the children of a compiled run are sharded: a number, "all", a list of jax devices or a
            `jax.sharding.Mesh` of one axis. batch_size counts for each of them.

    When it ends (the first to be reached; 1000 generations or ftol=1e-12 if none is given)
        maxiter generations, maxfun evaluations (never exceeded), maxtime seconds, a value as good as target, patience
        generations without a better one, a callback that returns True or raises StopIteration, Ctrl-C.
        ftol: no value in `patience` generations (50) that is lower by more than ftol times what the run has gained, or
            times max(|fun|, 1) if that is less.
        xtol: members are on average no farther than this from their mean, in units of a variable's range or of 1.
        tol: both.

    What happens meanwhile
        callback(intermediate_result): or several; after every generation, or between chunks of a compiled run, which
            take about 0.2 s or `chunk` generations. It gets x, fun, nit, nfev, stop and `recent`, the history since
            the last call.
        disp: a live line in a terminal, elsewhere a line every five seconds.
        checkpoint: a file, or a `gesmr.Checkpoint` that says how often; `resume=True` continues from it if it is there.

    Returns a `scipy.optimize.OptimizeResult`: x, fun, success, status, message, nit, nfev, and population (read-only),
    population_fitness, mutation_rates (in units of the range where there is one), history, stop (the reasons by name),
    restarts, errors, seconds, seed, versions, path, which says how fun was evaluated, and with constraints
    constr_violation, 0 if x is feasible. `gesmr.plot` shows it, `to_dataframe()` is its history for pandas.
    """
    options, limits = split(locals())
    layout, _ = layout_of(x0, dtype)
    kept_by = Constraints(constraints, is_vector=layout.is_vector, dim=layout.dim, eq_tol=eq_tol)
    options["constrained"] = bool(kept_by)
    objective = Objective(fun, args, vectorized, workers, batch_size, on_error, jit, keyed, kept_by)
    if chunk is not None:
        _checks.integer("chunk", chunk, 1, most=LONGEST_CHUNK)
    kept = as_checkpoint(checkpoint)
    loop = Loop(as_callbacks(callback), _checks.flag("disp", disp), kept)
    mesh = mesh_of(devices)
    with Interrupts() as interrupts, held(kept if mesh is None or jax.process_index() == 0 else None):
        found = read_if_resumed(kept, resume)
        if found is not None:
            options |= chosen_by_itself(found[0], options)
        if mesh is not None:
            options["rng"] = _agree(mesh, found is not None, options["rng"], seed)
        if found is not None and jit is None and not objective.keyed:  # it need not be found out again
            objective = dataclasses.replace(objective, jit=was_compiled(found[0]))
        setup, by = _decide(objective, x0, options, limits)
        compiled = isinstance(by, JaxFunction)
        if mesh is not None and not compiled:
            message = "devices are for a compiled JAX function; fun is called in Python, where workers can be given"
            raise ValueError(message)
        shards = None if mesh is None else Shards(mesh, setup.layout.dim)
        if kept is None or found is None:
            run = begin(setup, limits, shards, compiled=compiled)
        else:
            run = resumed(setup, limits, found, kept.path, shards, compiled)
        run.path = by.path if shards is None else f"{by.path}, devices: {shards.count}"
        every = None if kept is None else kept.every
        step = CompiledStep(run, by, batch_size, chunk, every) if isinstance(by, JaxFunction) else CalledStep(run, by)
        with closing(by):
            if kept is not None and found is not None and not objective.keyed and not run.stop():
                check_function(run, step, kept.path)
            return loop(run, step, interrupts)


def _agree(mesh: Mesh, resumed: bool, rng: Any, seed: Any) -> Any:
    """One seed for all processes; complains if not all of them see the checkpoint that some do."""
    if broadcast_integer(resumed, mesh) != resumed:
        raise FileNotFoundError("checkpoint must be on a file system that all processes see")
    return broadcast_integer(seed_of(), mesh) if rng is None and seed is None else rng


def _decide(
    objective: Objective, x0: Any, given: dict[str, Any], limits: Limits
) -> tuple[Setup, JaxFunction | PlainValues]:
    """How `fun` is evaluated, compiled if it computes with JAX and else called; and the setup of the options given."""
    setup = check(x0, given, limits)
    known, why = None, ""
    if isinstance(x0, Space) and not x0.is_numeric:
        if objective.jit or objective.keyed:
            raise ValueError("jit and keyed need a Space whose choices are numbers: a compiled function gets no others")
        on_jax = False
    elif objective.jit is None and objective.is_serial and not objective.keyed:
        on_jax, known = _probe(objective, x0, setup, given["dtype"])
        if known is None and not on_jax:
            why = "nothing that satisfies its constraints was there to try it with"
    else:
        on_jax = objective.is_serial and objective.jit is not False
    if on_jax:
        again = check(x0, {**given, "rng": setup.seed, "seed": None}, limits, compiled=True)
        try:
            return again, JaxFunction(objective, again)
        except ValueError as error:
            if objective.jit or objective.keyed:
                raise
            why = f"JAX cannot compile it: {type(error.__cause__ or error).__name__}"
    if objective.keyed:
        raise ValueError("keyed needs a compiled JAX function: leave out workers and jit=False")
    return setup, PlainValues(objective, setup.layout, repeats=setup.repeats, known=known, why=why)


def _probe(objective: Objective, x0: Any, setup: Setup, dtype: Any) -> tuple[bool, tuple[np.ndarray, Outcome] | None]:
    """Whether a function computes with JAX, and what came of calling it for a row; None if it was not called.

    A function that is jitted already is not called: it can only be JAX's. Any other is, with numbers and not while JAX
    is tracing: what it makes on its first call and keeps are then numbers too. Where nothing is known that satisfies
    its constraints, they are looked at instead.
    """
    if isinstance(objective.fun, Jitted):
        return True, None
    row = _feasible(objective, setup)
    if row is None:
        with precision(setup.layout.dtype):
            return objective.constraints.use_jax(setup.layout.solution(setup.x0.copy())), None
    with precision(setup.layout.dtype):
        x: Any = setup.layout.solution(row.copy())
        if setup.layout.is_vector and isinstance(x0, jax.Array):
            x = jnp.asarray(x)
    there = layout_of(x0, dtype, compiled=True)[0].dtype  # what fun keeps fits where it is compiled
    try:
        with precision(there), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Explicitly requested dtype")  # JAX's, where a function of it gets x0
            given = x
            if objective.vectorized:
                named = setup.layout.space is not None
                given = setup.layout.stacked(row[None]) if named else jax.tree.map(lambda leaf: leaf[None], x)
            value = objective.fun(given, *objective.args)
            found = float(returned(value, 1)[0]) if objective.vectorized else number(value)
    except Exception as error:
        if objective.on_error == "raise":
            raise
        return False, (row, (np.nan, described(error)))
    return isinstance(value, jax.Array), (row, (found, None))


def _feasible(objective: Objective, setup: Setup) -> np.ndarray | None:
    """x0, or the first of the first population that satisfies the constraints."""
    if not objective.constraints:
        return setup.x0
    with precision(setup.layout.dtype):
        for row in (setup.x0, *np.asarray(first(setup, 0).population, setup.layout.wide)):
            try:
                if objective.constraints.violation(setup.layout.solution(row.copy())) == 0:
                    return row
            except Exception:
                if objective.on_error == "raise":
                    raise
    return None


def scipy_method(fun: Callable, x0: Any, args: Any = (), **options: Any) -> Any:
    """`scipy.optimize.minimize(fun, x0, method=gesmr.scipy_method, options={...})`: gradients are not used.

    Options are those of `gesmr.minimize`; scipy's `maxfev`, `maxiter`, `tol` and `constraints` are understood.
    """
    callback = options.pop("callback", None)
    for unused in ("jac", "hess", "hessp"):
        options.pop(unused, None)
    if "maxfev" in options:
        options["maxfun"] = options.pop("maxfev")
    return minimize(fun, x0, args=args, callback=callback, **options)
