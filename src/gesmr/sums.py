"""Functions that are sums over genes on the way to their values, so that whoever makes the genes can add them up."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


class Gene(NamedTuple):
    """What the terms of some genes are made of."""

    x: Array  # f[...]
    number: Any  # f[...]  1 for the first gene of a solution
    following: Any = None  # f[...]  the gene after it, for functions that need it
    weight: Any = None  # f[...]
    nearest: Callable = jnp.round  # to an integer, or what a kernel has in the place of it


class Summed(NamedTuple):
    """f(x) = total(Σ terms, d): terms of every gene, and what their sums come to in d dimensions."""

    terms: Callable[[Gene], tuple[Array, ...]]
    total: Callable[..., Array]
    neighbours: bool = False  # whether terms need the following gene, so that the last one has none

    def value(self, x: Array, weight: Any = None) -> Array:
        """`f[...]` of solutions `f[..., d]`."""
        dim = x.shape[-1]
        number = np.arange(1, dim + 1).astype(x.dtype)
        weight = None if weight is None else jnp.asarray(weight, x.dtype)
        gene = Gene(x[..., :-1], number[:-1], x[..., 1:]) if self.neighbours else Gene(x, number, None, weight)
        return self.total(*map(added, self.terms(gene)), dim)

    @property
    def num_sums(self) -> int:
        """How many sums there are."""
        one = np.ones(1, np.float32)
        return len(self.terms(Gene(one, one, one, one, np.round)))  # type: ignore[arg-type]


class Sums(NamedTuple):
    """An objective: one of `formulas`, of x − shift."""

    formulas: tuple[Summed, ...]
    which: Any = None  # i32[]  which of them, if there are several
    shift: Any = None  # f[d]
    weight: Any = None  # f[d]

    def __call__(self, population: Array) -> Array:
        """Values `f[n]` of solutions `f[n, d]`."""
        x = population if self.shift is None else population - self.shift
        return self._chosen([formula.value(x, self.weight) for formula in self.formulas])

    def values(self, sums: Array, dim: int) -> Array:
        """Values `f[n]` from sums `f[terms, n]`."""
        return self._chosen([formula.total(*sums[: formula.num_sums], dim) for formula in self.formulas])

    def _chosen(self, values: list[Array]) -> Array:
        return values[0] if len(values) == 1 else lax.select_n(self.which, *values)


def added(terms: Array) -> Array:
    """The sum over the last axis. On a CPU as a product with ones: XLA vectorises it, a fused sum only in part."""

    def product(terms: Array) -> Array:
        return jnp.matmul(terms, jnp.ones(terms.shape[-1], terms.dtype), precision="highest")

    return lax.platform_dependent(terms, cpu=product, default=partial(jnp.sum, axis=-1))
