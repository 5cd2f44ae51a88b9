"""GESMR as one would write it in NumPy, to have something to compare with."""

from collections.abc import Callable

import numpy as np


class NumpyGESMR:
    """One elite, truncation selection, `groups` mutation rates that are selected by the best change of their group."""

    def __init__(self, dim: int, members: int, groups: int, objective: Callable[[np.ndarray], np.ndarray]):
        self.rng = np.random.default_rng(0)
        self.children, self.groups, self.objective = members - 1, groups, objective
        self.population = self.rng.standard_normal((members, dim), np.float32)
        self.values = objective(self.population)
        self.rates = np.geomspace(1e-3, 1, groups).astype(np.float32)

    def generation(self) -> None:
        order = np.argsort(self.values)
        parents = self.rng.choice(order[: self.children // 2], self.children)
        per_child = np.repeat(self.rates, self.children // self.groups)
        noise = self.rng.standard_normal((self.children, self.population.shape[1]), np.float32)
        children = self.population[parents] + per_child[:, None] * noise
        values = self.objective(children)
        changes = (values - self.values[parents]).reshape(self.groups, -1).min(axis=1)
        best = np.argsort(changes)
        kept = self.rng.choice(best[: self.groups // 2], self.groups)
        elite = self.rates[best[0]]
        self.rates = self.rates[kept] * 2 ** self.rng.uniform(-1, 1, self.groups).astype(np.float32)
        self.rates[0] = elite
        self.population = np.concatenate([self.population[order[:1]], children])
        self.values = np.append(self.values[order[0]], values)
