"""Children in one pass: the parents' genes are read, noise is added, the children are written and added up on the way.

A program makes a block of genes of one child. Programs that run together make the same genes of many children, so that
a parent's genes are fetched from memory once and then found in the cache.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jax.experimental import pallas as pl

from .. import noise
from ..recombination import Mates
from ..sums import Gene, Summed, Sums
from . import interpreted, load, options, store

BLOCK, WARPS, PER_WARP = 1024, 4, 256  # genes of a program, its threads / 32, and genes that need one warp of them


class _Runs(NamedTuple):
    """One run, or several one after the other: R = runs · (N+1) members."""

    population: Array  # f[R, d]
    high: Array  # u32[runs]  the words of the key
    low: Array  # u32[runs]
    generation: Array  # i32[runs]
    first: Array  # u32[runs]  which gene of a solution the first is
    chosen: Array  # i32[R]  which member of its run each child is made from
    rates: Array  # f[R]
    mates: Array | None  # i32[runs or runs · children, M]
    num_mates: Array | None  # i32[runs]
    which: Array | None  # i32[1 or so that it divides runs]
    shift: Array | None  # f[as index, d]
    weight: Array | None  # f[as index, d]


class _Shape(NamedTuple):
    """What shapes a kernel."""

    members: int  # of a run, N+1
    genes: int  # of a whole solution
    mixed: int  # of these, the last ones, are made from many parents
    shared: bool  # whether all of these have the same mates
    formulas: tuple[Summed, ...]


def children(
    key: noise.Key,
    generation: Array,
    population: Array,
    chosen: Array,
    rates: Array,
    genes: noise.Genes | None,
    mates: Mates | None,
    sums: Sums | None,
) -> tuple[Array, Array | None]:
    """The members `f[N+1, d]` that `ga.make_children` makes, and their values `f[N+1]` if they are `sums`."""
    first, total = (np.uint32(0), population.shape[1]) if genes is None else genes
    at, of_function = (lambda x: None if x is None else jnp.asarray(x)[None]), sums or Sums(())
    runs = _Runs(
        population,
        key.high[None],
        key.low[None],
        generation.astype(jnp.int32)[None],
        jnp.asarray(first, jnp.uint32)[None],
        chosen.astype(jnp.int32),
        rates.astype(jnp.float32),
        None if mates is None else mates.members.astype(jnp.int32),
        None if mates is None else jnp.asarray(mates.count, jnp.int32)[None],
        at(of_function.which),
        at(of_function.shift),
        at(of_function.weight),
    )
    mixed = 0 if mates is None else mates.children
    shared = mates is not None and mates.members.shape[0] == 1
    shape = _Shape(population.shape[0], total, mixed, shared, of_function.formulas)
    made, totals = _made(shape)(runs)
    return made, None if sums is None else sums.values(jnp.sum(totals, axis=-1), population.shape[1])


@cache
def _made(shape: _Shape) -> Any:
    """To members `f[R, d]` and their sums `f[terms, R, blocks]`. Runs side by side are taken as one after the other."""
    call = jax.jit(partial(_call, shape))  # traced once for all programs that have runs of these shapes

    @custom_vmap
    def made(runs: _Runs) -> tuple[Array, Array | None]:
        return call(runs)

    @made.def_vmap
    def _(size: int, batched: list[_Runs], runs: _Runs) -> Any:
        def joined(name: str, x: Any, is_batched: Any) -> Any:
            if x is None or (not is_batched and name in ("which", "shift", "weight") and x.shape[0] == 1):
                return x
            x = x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
            return x.reshape(-1, *x.shape[2:])

        members, totals = made(_Runs(*map(joined, _Runs._fields, runs, batched[0])))
        members = members.reshape(size, -1, members.shape[1])
        if totals is None:
            return (members, None), (True, None)
        totals = totals.reshape(totals.shape[0], size, -1, totals.shape[2])
        return (members, jnp.moveaxis(totals, 1, 0)), (True, True)

    return made


def _call(shape: _Shape, runs: _Runs) -> tuple[Array, Array | None]:
    rows, dim = runs.population.shape
    block = min(BLOCK, pl.next_power_of_2(dim))
    blocks = -(-dim // block)
    terms = max((formula.num_sums for formula in shape.formulas), default=0)
    given, tree = jax.tree.flatten(runs)
    found = pl.pallas_call(
        _kernel(shape, dim, block, tree),
        grid=(rows, blocks),
        out_shape=[
            jax.ShapeDtypeStruct((rows, dim), jnp.float32),
            *[jax.ShapeDtypeStruct((terms, rows, blocks), jnp.float32)] * (terms > 0),
        ],
        name="children",
        **options(max(1, min(WARPS, block // PER_WARP))),
    )(*given)
    return found[0], found[1] if terms else None


@cache  # JAX traces one function once
def _kernel(shape: _Shape, dim: int, block: int, tree: Any) -> Callable:
    def kernel(*refs: Any) -> None:
        inputs = tree.num_leaves
        _program(shape, dim, block, tree.unflatten(refs[:inputs]), *refs[inputs:])

    return kernel


def _program(shape: _Shape, dim: int, block: int, runs: Any, made: Any, totals: Any = None) -> None:
    """A block of genes of one child."""
    row, place = pl.program_id(0), pl.program_id(1)
    run = row // shape.members
    slot = row - run * shape.members
    start = place * block
    key = noise.fold_in(noise.Key(runs.high[run], runs.low[run]), slot, runs.generation[run])
    key = key._replace(high=key.high + runs.first[run])  # to it a word's counter is added

    def here(start: Any) -> Any:
        return None if dim % block == 0 else start + lax.iota(jnp.int32, block) < dim

    def child(start: Any, mask: Any) -> Array:
        parents = _parents(shape, runs, key, row, run, slot, start, block, mask)
        words = noise.bits(key, block, start.astype(jnp.uint32))
        return parents + runs.rates[row] * _normal(words)

    mask = here(start)
    x = child(start, mask)
    store(made.at[row, pl.ds(start, block)], x, mask)
    if not shape.formulas:
        return

    def of_block(array: Any, start: Any, mask: Any) -> Any:
        return load(array.at[row // (made.shape[0] // array.shape[0]), pl.ds(start, block)], mask)

    def moved(x: Array, start: Any, mask: Any) -> Array:
        return x if runs.shift is None else x - of_block(runs.shift, start, mask)

    def add_up(formula: Summed) -> None:
        following, counts = None, mask
        if formula.neighbours:  # the first gene of the next block is made here too
            counts = start + 1 + lax.iota(jnp.int32, block) < dim
            following = moved(child(start + 1, counts), start + 1, counts)
        weight = None if runs.weight is None else of_block(runs.weight, start, mask)
        number = (start + 1 + lax.iota(jnp.int32, block)).astype(jnp.float32)
        found = formula.terms(Gene(moved(x, start, mask), number, following, weight, _nearest))
        for i, term in enumerate(found):
            totals[i, row, place] = jnp.sum(term if counts is None else jnp.where(counts, term, 0.0))

    if len(shape.formulas) == 1:
        add_up(shape.formulas[0])
    else:  # which it is is data: only its branch is taken
        index = runs.which[row // (made.shape[0] // runs.which.shape[0])]
        lax.switch(index, [partial(add_up, formula) for formula in shape.formulas])


def _parents(
    shape: _Shape, runs: Any, key: noise.Key, row: Any, run: Any, slot: Any, start: Any, block: int, mask: Any
) -> Array:
    """The genes before noise: of the one parent, or each of a mate's."""
    first = run * shape.members

    def copied() -> Array:
        return load(runs.population.at[first + runs.chosen[row], pl.ds(start, block)], mask)

    def mixed() -> Array:
        table = run if shape.shared else run * shape.mixed + slot - (shape.members - shape.mixed)
        words = noise.bits(key, block, start.astype(jnp.uint32) - np.uint32(shape.genes))
        member = load(runs.mates.at[table, noise.integer(words, runs.num_mates[run])])
        return load(runs.population.at[first + member, start + lax.iota(jnp.int32, block)], mask)

    return copied() if shape.mixed == 0 else lax.cond(slot < shape.members - shape.mixed, copied, mixed)


def _nearest(x: Array) -> Array:
    """`jnp.round`, which a kernel does not have: beyond 2^22 floats have no fraction that matters."""
    return jnp.where(jnp.abs(x) < 2.0**22, jnp.floor(x + 0.5), x)


def _normal(words: Array) -> Array:
    """`noise.normal` by the functions that the card has in hardware, to 1e-5 or so (5e-4 of the few draws near 0).

    They take no time beside the memory's; exact ones would take a third more.
    """
    if interpreted():
        return noise.normal(words)
    radius = ((words >> 1).astype(jnp.int32).astype(jnp.float32) + 0.5) * np.float32(2**-31)
    angle = (words * np.uint32(0x9E3779B9)).astype(jnp.int32).astype(jnp.float32) * np.float32(np.pi * 2**-32)
    square = np.float32(-2 * np.log(2)) * _hardware("lg2.approx.ftz.f32", radius)
    return _hardware("sqrt.approx.ftz.f32", jnp.maximum(square, 0)) * _hardware("sin.approx.ftz.f32", angle)


def _hardware(instruction: str, x: Array) -> Array:
    from jax.experimental.pallas import triton  # noqa: PLC0415

    (found,) = triton.elementwise_inline_asm(
        f"{instruction} $0, $1;",
        args=[x],
        constraints="=f,f",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(x.shape, x.dtype)],
    )
    return found
