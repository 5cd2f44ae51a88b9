"""Many generations as one compiled loop."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import Partial

from . import _checks, _compilation, noise
from .devices import REPLICATED, Shards, mesh_of, replicate, shard_seeds
from .ga import GA, Proposal, State, check_state, kernel_makes
from .generation import Values, generation
from .storage import is_narrow, on_wide, packed, unpacked

Objective = Callable[..., Array]  # f[N, d] → f[N], to be minimised; of a key too if it is random
OBJECTIVE = np.uint32(2**29 + 1)  # keys of a random objective are at (this, generation)


class History(NamedTuple):
    """One entry per generation, never a solution."""

    elite: Array  # f[T]  the best value among all N+1 after the generation
    log_rate: Array  # f[T]  mean natural log of the rates its children were made with (SAMR: of all it carries)
    evaluations: Array  # i32[T]  evaluations so far, with those of the first population; never above 2³¹ − 1
    extra: Any = None  # what `record` returned, stacked


def evolve(
    ga: GA,
    objective: Objective,
    state: State,
    generations: int,
    *,
    record: Callable[[State], Any] | None = None,
    batch_size: int | None = None,
    donate: bool = False,
    devices: Any = None,
    keyed: bool = False,
) -> tuple[State, History]:
    """Run `generations` generations of `ga` on `objective`, which maps candidates `f[N, d]` to values `f[N]`.

    Compiled once per shape: calls that differ in data only (the state, the floats of `ga`, the arrays of a
    problem) share one program, if `objective` is the same function or a pytree such as the problems of
    `gesmr.problems`. A state with a leading axis of seeds (`jax.vmap(ga.init)`) is many runs, and the results have that
    axis too; hyperparameters are batched by `jax.vmap` around this function.

    `record(state)` is called after every generation; what it returns is stacked in `history.extra`.
    `batch_size` evaluates that many candidates at a time, for objectives that need much memory.
    `donate=True` lets the loop reuse the memory of `state.population`, which must not be used afterwards.
    A population in bfloat16 stays in bfloat16; arithmetic and what `objective` gets are in single precision.

    `devices` spreads the work: a number of devices, "all", a list of them or a `jax.sharding.Mesh` of one axis. Of many
    runs, every device computes some. Of a single run, every device makes and evaluates a share of the children,
    `batch_size` at a time; the population is sharded by genes, and returned that way if the number of genes is a
    multiple of the number of devices.

    `keyed=True` is for a random objective, which is called as `objective(candidates, key)`, with a new `noise.Key` in
    each generation. All batches and devices get the same key, so row i of every batch gets the same draws. A candidate
    is evaluated once: the elite keeps its value, however lucky.
    """
    check_run(ga, objective, state, generations)
    if record is not None:
        _checks.function("record", record)
    donate, keyed = _checks.flag("donate", donate), _checks.flag("keyed", keyed)
    members = ga.num_children + 1
    if state.fitness.ndim not in (1, 2):
        raise ValueError(
            "state must be of one run, or of many with one leading axis of seeds, got fitness of shape "
            f"{state.fitness.shape}; jax.vmap around evolve is for further axes"
        )
    if state.fitness.shape[-1] != members:
        raise ValueError(f"state must hold num_children + 1 = {members} members, got {state.fitness.shape[-1]}")
    if batch_size is not None:
        batch_size = min(_checks.integer("batch_size", batch_size, 1), ga.num_children)
    rest, shape = state._replace(population=None), _Shape(int(generations), record, batch_size, keyed)
    mesh, objective = mesh_of(devices), as_pytree(objective)
    if mesh is None:
        one, many = (_evolve_donating, _evolve_many_donating) if donate else (_evolve, _evolve_many)
        return (many if state.fitness.ndim == 2 else one)(ga, objective, state.population, rest, shape)
    if state.fitness.ndim == 2:
        population, rest = shard_seeds((state.population, rest), mesh, donate=donate)
        ga, objective = replicate((ga, objective), mesh)
        return _evolve_seeds(ga, objective, population, rest, shape, mesh, state.fitness.shape[0])
    shards = Shards(mesh, state.population.shape[1])
    population = shards.shard(state.population, donate=donate)
    objective, rest = shards.replicate((objective, rest))
    return _evolve_sharded(shards.place(ga), objective, population, rest, shape, shards)


def check_run(ga: Any, objective: Any, state: Any, generations: Any) -> None:
    """Refuse arguments that do not describe a run."""
    _checks.integer("generations", generations, 0, most=_checks.MOST)
    if not isinstance(ga, GA):
        raise TypeError(f"ga must be a gesmr.GA, got {_checks.show(ga)}")
    check_state(state)
    _checks.function("objective", objective)


def as_pytree(function: Callable) -> Callable:
    """`function` as an argument of a compiled program: a pytree is passed as data, a plain function as code."""
    is_leaf = jax.tree_util.all_leaves([function])
    return Partial(function) if is_leaf else function


_MIDDLING = 2**16  # genes


class _Shape(NamedTuple):
    """What shapes the program of a run."""

    generations: int
    record: Callable[[State], Any] | None
    batch_size: int | None
    keyed: bool


def _run(
    ga: GA, objective: Objective, population: Array, rest: State, shape: _Shape, shards: Shards | None = None
) -> tuple[State, History]:
    """The loop; on many devices every one of them runs it, on the genes it holds."""
    dtype, genes = population.dtype, None if shards is None else shards.genes
    fused = shards is None and kernel_makes(dtype, ga.bounds)
    sums = getattr(objective, "sums", None) if fused else None  # values are then found while children are made

    def evaluate(state: State, proposal: Proposal) -> Values:
        if proposal.values is not None:
            return Values(proposal.values)
        key = noise.fold_in(state.key, OBJECTIVE, state.generation)
        values = on_wide((lambda candidates: objective(candidates, key)) if shape.keyed else objective, dtype)
        values = values if shards is None else shards.sharded(values)
        return Values(evaluate_children(values, proposal.population, shape.batch_size))

    def visible(state: State) -> State:
        members = state.population if shards is None else shards.gather(state.population)
        return state._replace(population=unpacked(members, dtype))

    def step(state: State, _: None) -> tuple[State, tuple[Array, Array, Any]]:
        state, _, best, rates = generation(ga, state, evaluate, genes=genes, sums=sums)
        extra = None if shape.record is None else shape.record(visible(state))
        return state, (best, rates.mean, extra)

    # Two generations per step let two buffers be swapped: after each of one, the population is copied back. On a CPU
    # that is little for small ones, which would take a third longer to compile. Three steps would be no loop any more.
    swaps = jax.default_backend() != "cpu" or population.size >= _MIDDLING
    unroll = 2 if swaps and shape.generations > 3 else 1
    start = rest._replace(population=packed(population))
    state, (best, log_rate, extra) = lax.scan(step, start, None, length=shape.generations, unroll=unroll)
    evaluations = _evaluations(ga.num_children, rest.generation + 1 + jnp.arange(shape.generations))
    history = History(best, log_rate, evaluations, extra)
    return state._replace(population=unpacked(state.population, dtype)), history


def _evaluations(children: int, generations: Array) -> Array:
    """Evaluations after so many generations, with those of the first population; at most 2³¹ − 1."""
    most = np.iinfo(np.int32).max
    countable = (most - 1) // children
    return jnp.where(generations < countable, children * (jnp.minimum(generations, countable) + 1) + 1, most)


def evaluate_children(objective: Callable, population: Array, batch_size: int | None, first: int = 1) -> Any:
    """What `objective` gives for the members from `first` on, an array `[N]` or a pytree of such, in batches cut from
    the population itself: slicing it would copy it."""
    if batch_size is None:
        return objective(population[first:])
    children = population.shape[0] - first
    starts = first + batch_size * jnp.arange(children // batch_size)

    def batch(_, start: Array) -> tuple[None, Any]:
        return None, objective(lax.dynamic_slice_in_dim(population, start, batch_size))

    left = children % batch_size
    if left and is_narrow(population.dtype):  # the last batch overlaps: a slice outside a loop would make them anew
        starts = jnp.append(starts, population.shape[0] - batch_size)
        found = lax.scan(batch, None, starts)[1]
        return jax.tree.map(lambda values: jnp.concatenate([values[:-1].reshape(-1), values[-1, -left:]]), found)
    found = jax.tree.map(jnp.ravel, lax.scan(batch, None, starts)[1])
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), found, objective(population[-left:])) if left else found


def batch_sizes(rows: int, batch_size: int | None) -> set[int]:
    """The numbers of rows that `evaluate_children` evaluates at a time, of `rows` in all."""
    return {rows} if batch_size is None else {batch_size, rows % batch_size} - {0}


def _run_sharded(
    ga: GA, objective: Objective, population: Array, rest: State, shape: _Shape, shards: Shards
) -> tuple[State, History]:
    """One run on many devices."""
    shape = shape._replace(batch_size=shards.batch(shape.batch_size, ga.num_children))

    def part(ga: GA, population: Array, objective: Objective, rest: State) -> tuple[Array, tuple[State, History]]:
        state, history = _run(ga, objective, population, rest, shape, shards)
        return state.population, (state._replace(population=None), history)

    population, (rest, history) = shards.run(part, ga, population, objective, rest)
    return rest._replace(population=population[:, : shards.num_genes]), history


def _run_many(ga: GA, objective: Objective, population: Array, rest: State, shape: _Shape) -> tuple[State, History]:
    """Many runs on one device."""
    return jax.vmap(lambda population, rest: _run(ga, objective, population, rest, shape))(population, rest)


def _run_seeds(
    ga: GA, objective: Objective, population: Array, rest: State, shape: _Shape, mesh: Mesh, seeds: int
) -> tuple[State, History]:
    """Many runs on many devices, some on each. All but the populations is known everywhere afterwards."""
    by_seed = PartitionSpec(mesh.axis_names[0])

    def part(ga: GA, objective: Objective, population: Array, rest: State) -> tuple[State, History]:
        return _run_many(ga, objective, population, rest, shape)

    specs = REPLICATED, REPLICATED, by_seed, by_seed
    many = jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=by_seed, check_vma=False)
    state, history = jax.tree.map(lambda x: x[:seeds], many(ga, objective, population, rest))
    small = state._replace(population=None), history
    rest, history = lax.with_sharding_constraint(small, NamedSharding(mesh, REPLICATED))
    return rest._replace(population=state.population), history


_evolve = _compilation.jit(_run, static_argnums=4)
_evolve_donating = _compilation.jit(_run, static_argnums=4, donate_argnums=2)
_evolve_many = _compilation.jit(_run_many, static_argnums=4)
_evolve_many_donating = _compilation.jit(_run_many, static_argnums=4, donate_argnums=2)
_evolve_sharded = _compilation.jit(_run_sharded, static_argnums=(4, 5), donate_argnums=2)
_evolve_seeds = _compilation.jit(_run_seeds, static_argnums=(4, 5, 6), donate_argnums=2)
