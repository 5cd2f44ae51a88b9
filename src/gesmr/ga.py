"""The genetic algorithm: one elite, truncation selection, Gaussian mutation. Everything else is the controller's."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from . import _checks, feasibility, kernels, noise, selection, storage
from ._pytree import pytree, static
from .bounds import Bounds, check_numbers
from .controllers import GESMR, Controller, Feedback
from .controllers.base import check_controller
from .recombination import Mates, mates_of
from .sums import Sums

# The key of child i of generation t is that of the place (i, t); the rest of the randomness has places at the far end.
_SELECTION, _CONTROLLER, _START = np.array([2**32 - 1, 2**32 - 2, 2**32 - 3], np.uint32)


_ARRAYS = (jax.Array, np.ndarray)
_LARGE = 2**24  # genes of a population whose children must not be in memory twice


class State(NamedTuple):
    """All there is to a run. `_replace` branches it: another key, another controller's state."""

    key: noise.Key
    generation: Array  # i32[]
    population: Array  # f[N+1, d]  slot 0 the elite
    fitness: Array  # f[N+1]  lower is better, inf where the objective was not finite
    controller: Any
    violation: Array | None = None  # f[N+1]  if there are constraints, how far members are from satisfying them

    @property
    def best(self) -> Array:
        """The best solution so far, `f[d]`."""
        return self.population[feasibility.best(self.fitness, self.violation)]

    @property
    def best_fitness(self) -> Array:
        return jnp.min(self.fitness)


class Proposal(NamedTuple):
    """The next population, before its values are known."""

    population: Array  # f[N+1, d]  slot 0 the best of the current members, unaltered
    elite: Array  # i32[]  which current member that is
    parents: Array  # i32[N]  which current member each child was made from
    rates: Array  # f[N]
    values: Array | None = None  # f[N]  of the candidates, if they were found while these were made

    @property
    def candidates(self) -> Array:
        """What to evaluate: `f[N, d]`, the children."""
        return self.population[1:]


@pytree
class GA:
    """A population of one elite and `num_children` children.

    Population t+1 is the best of population t and N children of population t: each copies a parent drawn uniformly
    from the best `truncation`·N of the N+1, plus Gaussian noise of the controller's rate. A better child is
    therefore promoted to slot 0 by the next selection, not at once. Children that the controller lets recombine take
    every gene from a parent of its own instead; what they achieve is still measured by the one they were assigned.

        ga = GA(GESMR(), num_children=100)
        state = ga.init(key, population, fitness)
        proposal = ga.ask(state)
        state = ga.tell(state, proposal, objective(proposal.candidates))

    `ask` draws from the state's key and generation number alone: asked twice, it gives the same answer. With
    `bounds` every child is inside; that the first population is, is up to whoever makes it.
    """

    controller: Controller = GESMR()
    num_children: int = static(default=100)  # N
    truncation: Any = 0.5  # η_x
    bounds: Bounds | None = None

    def __post_init__(self):
        check_controller(self.controller)
        _checks.integer("num_children", self.num_children, 1, most=_checks.MOST)
        _checks.real("truncation", self.truncation, 0.0, 1.0)
        if self.bounds is not None and not isinstance(self.bounds, Bounds):
            raise TypeError(f"bounds must be a gesmr.Bounds or None, got {_checks.show(self.bounds)}")
        if self.bounds is not None:
            check_numbers(self.bounds)
            _checks.ordered(self.bounds.low, self.bounds.high)

    def init(self, key: Any, population: Any, fitness: Any, violation: Any = None) -> State:
        """Start from an evaluated population `f[N+1, d]`, `f[N+1]`, in the order given.

        If there are constraints, `violation f[N+1]` says how far each member is from satisfying them, 0 if it does.
        """
        population = _check_population(population, self.num_children + 1)
        return self.start(key, fitness, population.shape[1], violation)._replace(population=population)

    def start(self, key: Any, fitness: Any, num_genes: int, violation: Any = None) -> State:
        """`init` for a population that is kept elsewhere: a state without it."""
        key = noise.key(key)
        fitness, violation = _check_values(fitness, violation, self.num_children + 1)
        start = noise.fold_in(key, _START)
        controller = self.controller.init(start, self.num_children, num_genes)
        return State(key, jnp.zeros((), jnp.int32), None, fitness, controller, violation)  # type: ignore[arg-type]

    def ask(self, state: State, genes: noise.Genes | None = None, sums: Sums | None = None) -> Proposal:
        """Select parents and make children; only these `genes` of them, if the state's population has no others.

        An objective that is `sums` over genes is computed on the way.
        """
        check_state(state)
        if genes is not None and not isinstance(genes, noise.Genes):
            raise TypeError(f"genes must be a gesmr.noise.Genes or None, got {type(genes).__name__}")
        if sums is not None and not isinstance(sums, Sums):
            raise TypeError(f"sums must be a gesmr.sums.Sums or None, got {type(sums).__name__}")
        selected = self._select(state)
        rates = self.controller.rates(state.controller, selected.members[1:])
        made = self._children(state.key, state, selected, rates, genes, sums)
        values = None if made.values is None else made.values[1:]
        return Proposal(made.population, selected.members[0], selected.members[1:], rates, values)

    def ask_siblings(self, state: State, proposal: Proposal, key: noise.Key) -> Array:
        """Other children `f[N, d]` of the parents of a proposal, with the same rates and the noise of another key."""
        return self._children(key, state, self._select(state), proposal.rates).population[1:]

    def _select(self, state: State) -> selection.Selected:
        pool = selection.pool_size(self.truncation, self.num_children)
        place = _SELECTION, state.generation
        return selection.truncate(state.key, state.fitness, pool, state.violation, place)

    def _children(
        self,
        key: noise.Key,
        state: State,
        selected: selection.Selected,
        rates: Array,
        genes: noise.Genes | None = None,
        sums: Sums | None = None,
    ) -> "Made":
        mates = mates_of(self.controller, selected)
        return make_children(
            key, state.generation, state.population, selected.members, rates, self.bounds, genes, mates, sums
        )

    def tell(
        self,
        state: State,
        proposal: Proposal,
        fitness: Any,
        *,
        parent_fitness: Any = None,
        violation: Any = None,
        judged: Any = None,
    ) -> State:
        """The next state, given the candidates' values `f[N]`.

        If the objective is noisy and the parents were evaluated again beside their children, `parent_fitness f[N]`
        holds those values; the changes the controller sees are taken from them. If there are constraints, `violation
        f[N]` says how far the candidates are from satisfying them. Where `judged bool[N]` is false a child is not the
        one that was proposed: whatever its value, it is no merit of its rate.
        """
        check_state(state)
        if not isinstance(proposal, Proposal) or not isinstance(proposal.parents, _ARRAYS):
            raise TypeError(f"proposal must be the Proposal of this GA, got {type(proposal).__name__}")
        if (violation is None) != (state.violation is None):
            raise ValueError("violation must be given if the state was started with one, and only then")
        fitness, violation = _check_values(fitness, violation, self.num_children, state.fitness.dtype)
        before = None if state.violation is None else state.violation[proposal.parents]
        if parent_fitness is None:
            parent_fitness = state.fitness[proposal.parents]
        else:
            checked = _check_fitness(parent_fitness, self.num_children, "parent_fitness")
            parent_fitness, _ = feasibility.cleaned(checked.astype(state.fitness.dtype), before)
        parent_value, value = feasibility.comparable(parent_fitness, before, fitness, violation)
        if judged is not None:
            parent_value = jnp.where(_check_judged(judged, self.num_children), parent_value, jnp.inf)
        feedback = Feedback(proposal.elite, proposal.parents, proposal.rates, parent_value, value)
        key = noise.fold_in(state.key, _CONTROLLER, state.generation)
        return State(
            key=state.key,
            generation=state.generation + 1,
            population=proposal.population,
            fitness=jnp.concatenate([state.fitness[proposal.elite][None], fitness]),
            controller=self.controller.update(key, state.controller, feedback),
            violation=violation if before is None else jnp.append(state.violation[proposal.elite], violation),  # type: ignore[index]
        )


def check_state(state: Any) -> None:
    """Refuse `state` unless it is a `State` with fitness."""
    if not isinstance(state, State):
        raise TypeError(f"state must be the State that ga.init returns, got {type(state).__name__}")
    if not isinstance(state.fitness, _ARRAYS):
        raise TypeError("state must be the State that ga.init returns, got one without fitness")


class Made(NamedTuple):
    """Members, and what they are worth if it was found on the way."""

    population: Array  # f[N+1, d]
    values: Array | None = None  # f[N+1]


def make_children(
    key: noise.Key,
    generation: Array,
    population: Array,
    chosen: Array,
    rates: Array,
    bounds: Bounds | None = None,
    genes: noise.Genes | None = None,
    mates: Mates | None = None,
    sums: Sums | None = None,
) -> Made:
    """How parents make a child: x' = x + σε (Eq. 2), for each of the members `chosen i32[N+1]` of a generation.

    Slot 0 has rate 0, an exact copy. One gather and one fused noise term: the population is read and written once.
    With bounds σ is in units of a gene's range, and what leaves it is brought back. Where a population holds only some
    `genes`, its children get the noise of those. Of the last children x is put together from the genes of their
    `mates`, drawn by words that count down from the end of what a key has. A kernel does all of it, and adds up `sums`.
    """
    rates = jnp.concatenate([jnp.zeros_like(rates[:1]), rates])

    def plain() -> Made:
        keys = noise.fold_in(key, jnp.arange(chosen.shape[0]), generation)
        members = _children(keys, population, chosen, rates, bounds, genes, mates)
        return Made(members, None if sums is None else sums(members))

    if not kernel_makes(population.dtype, bounds):
        return plain()
    from .kernels import making  # noqa: PLC0415  it takes time to import, and few need it

    def by_kernel() -> Made:
        return Made(*making.children(key, generation, population, chosen, rates, genes, mates, sums))

    return kernels.either(by_kernel, plain)


def kernel_makes(dtype: Any, bounds: Bounds | None) -> bool:
    """Whether a kernel makes children of such a population."""
    return bounds is None and dtype == jnp.float32 and kernels.wanted()


def _children(
    keys: noise.Key,
    population: Array,
    chosen: Array,
    rates: Array,
    bounds: Bounds | None,
    genes: noise.Genes | None,
    mates: Mates | None,
) -> Array:
    """`make_children` as plain code."""
    rates = rates[:, None]
    first, total = (0, population.shape[1]) if genes is None else genes
    members, num_genes = storage.packed(population), population.shape[1]
    bounds = None if bounds is None else bounds.stored_in(population.dtype)

    def mutated(keys: noise.Key, parents: Array, rates: Array) -> Array:
        parents = storage.wide(parents)
        steps = rates if bounds is None else bounds.steps(rates, parents.dtype)

        def words(attempt: Any) -> Array:
            return noise.bits(keys, num_genes, attempt * total + first)

        def mutants(attempt: Any) -> Array:
            return (parents + steps * noise.normal(words(attempt))).astype(parents.dtype)

        children = mutants(0)
        if bounds is not None:
            children = bounds.leap(bounds.repair(children, mutants), parents, rates, words(0))
        return storage.rounded(children, population.dtype, keys, first)

    def copied(keys: noise.Key, chosen: Array, rates: Array) -> Array:
        return mutated(keys, members.at[chosen].get(mode="promise_in_bounds"), rates)

    if mates is None:
        return copied(keys, chosen, rates)

    def mixed(keys: noise.Key, number: Array, rates: Array) -> Array:
        return mutated(keys, mates.genes(members, noise.bits(keys, num_genes, first - total), number), rates)

    # Each part is a loop of its own: of one loop for both, every gene would pay for mates.
    alone = chosen.shape[0] - mates.children
    high, low, sizes = (jnp.split(x, [alone]) for x in (*keys, rates))
    parts = (
        (copied, (noise.Key(high[0], low[0]), chosen[:alone], sizes[0])),
        (mixed, (noise.Key(high[1], low[1]), jnp.arange(mates.children), sizes[1])),
    )
    if population.size < _LARGE:  # joined by a copy, because XLA gives a loop that writes in place only one core
        return jnp.concatenate([make(*rows) for make, rows in parts])
    children, written = storage.packed(jnp.zeros_like(population)), 0
    for make, rows in parts:
        children = _in_blocks(make, rows, children, written)
        written = alone
    return storage.unpacked(children, population.dtype)


def _in_blocks(make: Callable, rows: tuple, children: Array, first: int) -> Array:
    """`children` with what is made of the `rows` from `first` on, a few at a time: all at once need memory twice.

    A block is written while the next is made, so that making does not write in place.
    """
    count = rows[-1].shape[0]
    size = min(count, 2 * -(-children.shape[0] // 128))

    def start(number: Any) -> Any:
        return jnp.minimum(number * size, count - size)

    def write(number: Any, children: Array, block: Array) -> Array:
        return lax.dynamic_update_slice_in_dim(children, block, first + start(number), 0)

    def step(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        some = jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start(number), size), rows)
        return write(jnp.maximum(number - 1, 0), *carry), storage.packed(make(*some))

    blocks = -(-count // size)
    return write(blocks - 1, *lax.fori_loop(0, blocks, step, (children, jnp.zeros_like(children[:size]))))


def _check_population(population: Any, members: int) -> Array:
    expected = f"a float array of shape ({members}, d): num_children + 1 members of d ≥ 1 genes"
    shape, dtype = getattr(population, "shape", ()), getattr(population, "dtype", None)
    if dtype is None:
        population = _checks.array("population", population, expected)
        shape, dtype = population.shape, population.dtype
    if len(shape) != 2 or shape[0] != members or shape[1] < 1:
        raise ValueError(f"population must be {expected}, got shape {tuple(shape)}")
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"population must be {expected}, got dtype {dtype}")
    if not isinstance(population, Tracer) and not bool(jnp.isfinite(_checks.on_jax(population)).all()):
        bad = int((~np.isfinite(np.asarray(population, np.float64))).any(axis=1).sum())
        raise ValueError(f"population must be finite, got NaN or infinity in {bad} of {members} members")
    return _checks.on_jax(population)


def _check_values(fitness: Any, violation: Any, n: int, dtype: Any = None) -> tuple[Array, Array | None]:
    """Fitness and, if there are constraints, violation `f[n]`, cleaned."""
    fitness = _check_fitness(fitness, n)
    violation = None if violation is None else _check_fitness(violation, n, "violation")
    return feasibility.cleaned(fitness if dtype is None else fitness.astype(dtype), violation)


def _check_judged(judged: Any, n: int) -> Any:
    accepted = f"{n} truth values, one per candidate"
    if not isinstance(judged, _ARRAYS):
        judged = _checks.array("judged", judged, accepted)
    if judged.shape != (n,) or judged.dtype != bool:
        raise ValueError(f"judged must be {accepted}, got {_checks.described(judged)}")
    return judged


def _check_fitness(fitness: Any, n: int, name: str = "fitness") -> Array:
    if not isinstance(fitness, jax.Array | np.ndarray):
        fitness = _checks.array(name, fitness, f"{n} real numbers")
    if fitness.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one value per candidate, got {fitness.shape}")
    if jnp.issubdtype(fitness.dtype, jnp.integer):
        fitness = fitness.astype(float)
    if not jnp.issubdtype(fitness.dtype, jnp.floating):
        raise TypeError(f"{name} must be real numbers, got dtype {fitness.dtype}")
    return storage.wide(_checks.on_jax(fitness))
