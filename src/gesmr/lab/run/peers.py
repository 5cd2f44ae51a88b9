"""Algorithms of evosax on the tasks of lanes: differential evolution, and strategies that adapt a normal distribution.

They are evosax's own code with its own defaults. A strategy starts at 0 with the spread of the task's first population,
differential evolution from a first population. evosax is not part of the core: it is imported when it is used.
"""

import importlib
import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ... import noise
from .compilation import Program, shape
from .lanes import Lanes, Task, key_of, lanes_shape
from .specs import GetProgram, Job, S, Tick

_CLASSES = {
    "DE": "DifferentialEvolution",
    "sep-CMA-ES": "Sep_CMA_ES",
    "SNES": "SNES",
    "CR-FM-NES": "CR_FM_NES",
}
PEERS = tuple(_CLASSES)
STEP = 100  # generations per call, at most


def default_population(name: str, dim: int) -> int:
    """4 + ⌊3 ln d⌋ for strategies, as their authors have it (CR-FM-NES draws pairs); Storn and Price's 10·d for DE.

    DE's is at most 400: it would have too few generations in many dimensions, and evosax needs time for its square.
    """
    if name == "DE":
        return min(10 * dim, 400)
    advised = 4 + math.floor(3 * math.log(dim))
    return advised + advised % 2 if name == "CR-FM-NES" else advised


class Peer(NamedTuple):
    """An algorithm with a population. Its task must have first populations of as many, `num_children` one less."""

    name: str
    population: int

    def __str__(self) -> str:
        return f"{self.name} N={self.population}"

    @property
    def has_first(self) -> bool:
        """Whether it starts from a first population, which it pays for."""
        return self.name == "DE"

    def generations(self, evaluations: int) -> int:
        """How many it can afford."""
        return evaluations // self.population - self.has_first


def extra() -> Any:
    """evosax's algorithms."""
    try:
        return importlib.import_module("evosax.algorithms")
    except ImportError as error:
        raise ModuleNotFoundError("other algorithms need the package evosax: pip install 'gesmr[peers]'") from error


@dataclass(frozen=True)
class PeerJob(Job[S]):
    """Runs of an algorithm of evosax, a lane each."""

    @property
    @abstractmethod
    def peer(self) -> Peer: ...

    @property
    @abstractmethod
    def task(self) -> Task: ...

    @property
    @abstractmethod
    def evaluations(self) -> int:
        """That a run may have."""

    @property
    def weight(self) -> float:
        """How much work a gene is."""
        return 1.0

    @property
    def programs(self) -> list[Program]:
        return [begin(self.peer, self.task, len(self.specs)), self._go_on]

    @property
    def work(self) -> float:
        return self._work(self.generations)

    @property
    def evaluation(self) -> float:
        return self.task.num_genes * self.weight

    @property
    def generations(self) -> int:
        return self.peer.generations(self.evaluations)

    @property
    def _go_on(self) -> Program:
        calls = -(-self.generations // STEP)
        return go_on(self.peer, self.task, len(self.specs), -(-self.generations // calls))

    def _work(self, generations: int) -> float:
        return generations * self.peer.population * self.task.num_genes * len(self.specs) * self.weight

    def optimize(self, compiled: GetProgram, tick: Tick, lanes: Lanes) -> tuple[np.ndarray, np.ndarray]:
        """Best values `f[R, 1 + G]`, before the first generation and after each, and the best solutions `f[R, d]`."""
        states, program = compiled(self.programs[0])(lanes), self._go_on
        best, solutions = [np.asarray(states.best_fitness)[:, None]], states.best_solution
        step = program.fixed[-1]
        for done in range(0, self.generations, step):
            left = min(step, self.generations - done)
            states, solutions, values = compiled(program)(np.int32(left), states, lanes)
            best.append(np.asarray(values)[:, :left])
            tick(self._work(left))
        return np.concatenate(best, axis=1), np.asarray(solutions)


def begin(peer: Peer, task: Task, lanes: int) -> Program:
    """To the states in which lanes start."""
    return Program(_begin, (peer, task), (lanes_shape(task, lanes),))


def _begin(peer: Peer, task: Task, lanes: Lanes) -> Any:
    algorithm = _algorithm(peer, task)

    def one(own: Any, key: noise.Key) -> Any:
        params, start = algorithm.default_params, jax.random.fold_in(_key(peer, key), 0)
        if peer.has_first:
            population = task.first(lanes.shared, own, key)
            return algorithm.init(start, population, task.objective(lanes.shared, own)(population), params)
        params = params.replace(std_init=task.spread(lanes.shared, own, key))
        return algorithm.init(start, jnp.zeros(task.num_genes), params)

    return jax.vmap(one)(lanes.own, lanes.key)


def go_on(peer: Peer, task: Task, lanes: int, generations: int = STEP) -> Program:
    """To the states so many generations later, and what counts if `i32[]` of them do, without branches on a GPU."""
    shapes = shape(dtype=jnp.int32), _states_shape(peer, task, lanes), lanes_shape(task, lanes)
    return Program(_go_on, (peer, task, generations), shapes, donate=(1,))


@jax.default_matmul_precision("highest")  # on a GPU products would else have ten bits, too few for a covariance
def _go_on(
    peer: Peer, task: Task, generations: int, counting: Array, states: Any, lanes: Lanes
) -> tuple[Any, Array, Array]:
    """The states, the best solutions `f[L, d]` after those that count, and the best values `f[L, generations]`."""
    algorithm = _algorithm(peer, task)

    def generation(own: Any, key: noise.Key, state: Any) -> Any:
        ask, tell = jax.random.split(jax.random.fold_in(_key(peer, key), 1 + state.generation_counter))
        population, state = algorithm.ask(ask, state, algorithm.default_params)
        values = task.objective(lanes.shared, own)(population)
        return algorithm.tell(tell, population, values, state, algorithm.default_params)[0]

    def step(carry: tuple[Any, Array], i: Array) -> tuple[tuple[Any, Array], Array]:
        states = jax.vmap(generation)(lanes.own, lanes.key, carry[0])
        return (states, jnp.where(i < counting, states.best_solution, carry[1])), states.best_fitness

    (states, solutions), best = lax.scan(step, (states, states.best_solution), jnp.arange(generations))
    return states, solutions, best.T


@cache
def _states_shape(peer: Peer, task: Task, lanes: int) -> Any:
    return jax.eval_shape(partial(_begin, peer, task), lanes_shape(task, lanes))


def _algorithm(peer: Peer, task: Task) -> Any:
    return getattr(extra(), _CLASSES[peer.name])(peer.population, jnp.zeros(task.num_genes))


def _key(peer: Peer, key: noise.Key) -> Array:
    """A lane's, as evosax has them."""
    return jax.random.wrap_key_data(jnp.stack(key_of(peer.name, key)))
