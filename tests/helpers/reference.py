"""The paper's algorithms once more, in plain NumPy and float64, written from the paper rather than from the library.

It shares nothing with the library but the random words, which it takes from `gesmr.noise` at the places the library
documents: child i of generation t draws its genes from place (i, t), selection from (2³²−1, t), the controller from
(2³²−2, t), and a controller's start from (2³²−3, 0).
"""

import math
from fractions import Fraction
from functools import partial

import jax
import numpy as np

from gesmr import noise

SELECTION, CONTROLLER, START = 2**32 - 1, 2**32 - 2, 2**32 - 3


@partial(jax.jit, static_argnums=3)
def _words(key, first, second, n):
    return noise.bits(noise.fold_in(key, first, second), n)


def words(key, first, second, n):
    return np.asarray(_words(key, np.uint32(first), np.uint32(second), n)).astype(
        object
    )  # Python integers: no overflow


def below(word, upper):
    return int(word) * upper >> 32


def minus_one_to_one(word):
    return 2 * ((int(word) >> 9) + 0.5) / 2**23 - 1


def round_half_up(share, n):
    return max(1, math.floor(Fraction(str(share)) * n + Fraction(1, 2)))


def select(values, random, pool):
    """One elite, the others from the best `pool`: the first n words choose ranks, the next n order ties."""
    n = len(values)
    order = sorted(range(n), key=lambda i: (values[i], random[n + i]))
    return [order[0]] + [order[below(random[i], pool)] for i in range(1, n)]


class FixedRate:
    def __init__(self, rate):
        self.rate = rate

    def start(self, key, n):
        pass

    def rates(self, parents):
        return [self.rate] * len(parents)

    def record(self):
        return math.log(self.rate)

    def learn(self, key, t, elite, parents, before, after):
        pass


class OneFifthRule(FixedRate):
    def learn(self, key, t, elite, parents, before, after):
        successes = sum(a < b for a, b in zip(after, before, strict=True))
        self.rate = self.rate * 2 if successes / len(parents) > 1 / 5 else self.rate / 2


class Bandit:
    def __init__(self, arms):
        self.arms = np.geomspace(1e-3, 1, arms)
        self.rewards = [[] for _ in range(arms)]

    def start(self, key, n):
        pass

    def pick(self):
        t = sum(map(len, self.rewards))
        for arm, seen in enumerate(self.rewards):
            if not seen:
                return arm
        return int(np.argmax([np.mean(r) + math.sqrt(2 * math.log(t + 1) / len(r)) for r in self.rewards]))

    def rates(self, parents):
        return [self.arms[self.pick()]] * len(parents)

    def record(self):
        return math.log(self.arms[self.pick()])

    def learn(self, key, t, elite, parents, before, after):
        self.rewards[self.pick()].append(-min(a - b for a, b in zip(after, before, strict=True)))


class SelfAdaptation:
    def start(self, key, n):
        deal = words(key, START, 0, n + 1)
        spaced = np.geomspace(1e-3, 1e3, n + 1)
        self.carried = [spaced[i] for i in sorted(range(n + 1), key=lambda i: deal[i])]

    def rates(self, parents):
        return [self.carried[p] for p in parents]

    def record(self):
        return float(np.mean(np.log(self.carried)))

    def learn(self, key, t, elite, parents, before, after):
        random = words(key, CONTROLLER, t, len(parents))
        children = [self.carried[p] * 2 ** minus_one_to_one(w) for p, w in zip(parents, random, strict=True)]
        self.carried = [self.carried[elite], *children]


class GroupElites:
    def __init__(self, groups, score=min, truncation=0.5):
        self.groups, self.score, self.truncation = groups, score, truncation

    def start(self, key, n):
        self.sigma = list(np.geomspace(1e-3, 1e3, self.groups))
        self.group = [i * self.groups // n for i in range(n)]

    def rates(self, parents):
        return [self.sigma[g] for g in self.group]

    def record(self):
        return float(np.mean(np.log(self.sigma)))

    def learn(self, key, t, elite, parents, before, after):
        k = self.groups
        change = [a - b for a, b in zip(after, before, strict=True)]
        worth = [self.score([c for c, g in zip(change, self.group, strict=True) if g == j]) for j in range(k)]
        random = words(key, CONTROLLER, t, 3 * k)
        kept = [self.sigma[i] for i in select(worth, random, round_half_up(self.truncation, k))]
        self.sigma = [kept[0]] + [kept[j] * 2 ** minus_one_to_one(random[2 * k + j]) for j in range(1, k)]


def run(key, population, objective, controller, generations, truncation=0.5):
    """Elite value, recorded log rate and parents of every generation, and the last population."""
    x = np.asarray(population, np.float64)
    n, d = len(x) - 1, x.shape[1]
    f = objective(x)
    controller.start(key, n)
    elites, log_rates, all_parents = [], [], []
    for t in range(generations):
        chosen = select(list(f), words(key, SELECTION, t, 2 * (n + 1)), round_half_up(truncation, n))
        elite, parents = chosen[0], chosen[1:]
        log_rates.append(controller.record())
        rates = controller.rates(parents)
        epsilon = noise.normal(_words(key, np.arange(1, n + 1), t, d))
        children = x[parents] + np.array(rates)[:, None] * np.array(epsilon, np.float64)
        values = objective(children)
        controller.learn(key, t, elite, parents, [f[p] for p in parents], list(values))
        x, f = np.vstack([x[elite], children]), np.concatenate([[f[elite]], values])
        elites.append(f.min())
        all_parents.append(parents)
    return np.array(elites), np.array(log_rates), np.array(all_parents), x
