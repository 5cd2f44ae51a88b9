"""GESMR: group elite selection of mutation rates (Algorithm 1), and its ablations GESMR-AVG and GESMR-FIX."""

from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _checks, noise, selection
from .._pytree import pytree, static
from .base import Feedback, HoldsLogRates, Recombines, log_spaced, mutate, share


@pytree
class GESMR(HoldsLogRates, Recombines):
    """K rates, each responsible for a group of children, evolved by the *best* change in their group.

    The state is the K log rates, `f[K]`. `groups=None` takes groups of about eight children (`default_groups`).
    `score="mean"` is the paper's GESMR-AVG, `adapt=False` its GESMR-FIX.

    With `recombine`, beyond the paper, that share of the groups makes its children from the genes of many parents.
    These are a class of their own, the last groups: rates are selected, survive and mutate within their class, because
    what is a good rate for a copy is not one for a mixture.
    """

    groups: int | None = static(default=None)  # K
    meta_rate: Any = 2.0  # τ
    truncation: Any = 0.5  # η_σ
    low: Any = 1e-3
    high: Any = 1e3
    score: str = static(default="min")
    adapt: bool = static(default=True)
    recombine: float = static(default=0.0)
    mates: int | None = static(default=None)

    def __post_init__(self):
        self.check_recombination()
        if self.groups is not None:
            _checks.integer("groups", self.groups, 1)
        _checks.real("meta_rate", self.meta_rate, 1.0, open_low=False)
        _checks.real("truncation", self.truncation, 0.0, 1.0)
        _checks.rate_range(self.low, self.high)
        _checks.choice("score", self.score, ("min", "mean"))

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Array:
        groups = self._groups(num_children)
        if groups > num_children:
            raise ValueError(f"groups of a controller must be at most num_children ({num_children}), got {groups}")
        return jnp.concatenate([log_spaced(self.low, self.high, end - start) for start, end in self.classes(groups)])

    def rates(self, state: Array, parents: Array) -> Array:
        return jnp.exp(state)[group_of_child(parents.shape[0], state.shape[0])]

    def update(self, key: noise.Key, state: Array, feedback: Feedback) -> Array:
        if not self.adapt:
            return state
        groups = state.shape[0]
        worth = self._worth(feedback, groups)  # Eq. 5: what each rate achieved
        evolved = [self._evolved(key, start, state[start:end], worth[start:end]) for start, end in self.classes(groups)]
        return jnp.concatenate(evolved)

    def _evolved(self, key: noise.Key, start: int, log_rates: Array, worth: Array) -> Array:
        """The next log rates `f[k]` of a class that begins at group `start`, given what each of them was worth."""
        groups = log_rates.shape[0]
        # Eq. 6: the best rate, and k−1 drawn from the best l
        pool = selection.pool_size(self.truncation, groups)
        place = None if start == 0 else (start, jnp.int32(0))
        survivors = log_rates[selection.truncate(key, worth, pool, place=place).members]
        # Eq. 7: all but the best are mutated
        key = key if place is None else noise.fold_in(key, *place)
        mutants = mutate(noise.bits(key, groups, start=2 * groups), survivors, self.meta_rate)
        return jnp.where(jnp.arange(groups) == 0, survivors, mutants)

    def classes(self, groups: int) -> list[tuple[int, int]]:
        """From which group to which each class reaches: those that copy a parent, then those that recombine."""
        ends = [0, groups - share(self.recombine, groups), groups]
        return [(start, end) for start, end in pairwise(ends) if start < end]

    def recombining(self, num_children: int) -> int:
        groups = self._groups(num_children)
        copying = groups - share(self.recombine, groups)
        return int((group_of_child(num_children, groups) >= copying).sum())

    def _groups(self, num_children: int) -> int:
        return default_groups(num_children, self.recombine > 0) if self.groups is None else self.groups

    def _worth(self, feedback: Feedback, groups: int) -> Array:
        """Δ_k, `f[K]`: the lowest (or mean) change in each group; `inf` for a group that cannot be judged."""
        num_children = feedback.parents.shape[0]
        member, exists = _members(num_children, groups)
        changes = jnp.where(exists, feedback.changes[member], jnp.inf)
        if self.score == "min":
            return jnp.min(changes, axis=1)
        judged = exists & feedback.counts[member]
        total = jnp.sum(jnp.where(judged, changes, 0), axis=1)
        count = jnp.sum(judged, axis=1)
        return jnp.where(count > 0, total / jnp.maximum(count, 1), jnp.inf)


def default_groups(num_children: int, recombining: bool = False) -> int:
    """K for groups of about eight children, and at least four of them; eight if some recombine, who have two classes.

    Over populations of 12 to 3200 the best group had about that many, where √N groups lose up to orders of magnitude in
    large populations; at the paper's N = 100 it can hardly be told from its K = 10 (docs/why.md, study `groups`). With
    fewer than four a small population has too few rates to choose from (docs/budgets.md).
    """
    return min(num_children, max(8 if recombining else 4, round(num_children / 8)))


def group_of_child(num_children: int, groups: int) -> np.ndarray:
    """Which group each child belongs to, `int[N]`: consecutive blocks whose sizes differ by at most one."""
    return np.arange(num_children) * groups // num_children


def _members(num_children: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """The children of each group as a table `int[K, ⌈N/K⌉]`, and which of its entries exist."""
    group = group_of_child(num_children, groups)
    first = np.searchsorted(group, np.arange(groups))
    size = np.bincount(group, minlength=groups)
    column = np.arange(size.max())
    return np.minimum(first[:, None] + column, num_children - 1), column < size[:, None]
