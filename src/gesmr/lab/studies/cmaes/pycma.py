"""CMA-ES as pycma has it, full and separable: strategies, whole runs, and the memory they need.

Its defaults, but for the population. pycma is not part of the core: it is imported when it is used.
"""

import importlib
import os
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...._pytree import pytree, static
from ....problems.functions import AS_PRINTED
from ...run.lanes import NUM_CHILDREN
from ...run.specs import Tick

POPULATION = NUM_CHILDREN + 1  # as many as GESMR holds

# Doubles of full CMA-ES at its peak, fitted to the resident memory of pycma 4.5 at d = 1000 (8.0 d² in all, of which
# numpy's eigh takes three matrices for itself) and of separable CMA-ES at d = 1000 and 10,000.
_MATRICES, _POPULATIONS = 7, 9
EIGH_MATRICES = 3  # a copy and LAPACK's workspace, which tracemalloc does not see
_SHARE_OF_MEMORY = 4  # full CMA-ES may have a quarter of the machine's


class Trace(NamedTuple):
    """A run, generation by generation. Evaluations and seconds are up to the end of the generation."""

    generation: np.ndarray  # i[G]  GESMR counts its first population as generation 0
    evaluations: np.ndarray  # i[G]
    seconds: np.ndarray  # f[G]
    best: np.ndarray  # f[G]  so far
    stopped: str = ""  # pycma's reasons, if it stopped by itself


def full_cmaes(start: np.ndarray, sigma: float, seed: int, population: int = POPULATION) -> Any:
    """pycma's strategy at `start` f[d], with its defaults; MemoryError before it is made if d is too large."""
    check_memory(len(start), population)
    return _strategy(start, sigma, seed, population, separable=False)


def separable_cmaes(start: np.ndarray, sigma: float, seed: int, population: int = POPULATION) -> Any:
    """pycma's strategy with a diagonal covariance matrix, at `start` f[d]."""
    return _strategy(start, sigma, seed, population, separable=True)


STRATEGIES: dict[str, Callable[..., Any]] = {"CMA-ES": full_cmaes, "sep-CMA-ES": separable_cmaes}


def memory_needed(dim: int, population: int = POPULATION) -> int:
    """Bytes full CMA-ES holds at its peak, roughly."""
    return 8 * (_MATRICES * dim**2 + _POPULATIONS * population * dim)


def check_memory(dim: int, population: int = POPULATION) -> None:
    """Refuse dimensions in which full CMA-ES would take more than a quarter of the machine's memory."""
    needed, there = memory_needed(dim, population), _machine_memory()
    if needed > there // _SHARE_OF_MEMORY:
        raise MemoryError(
            f"full CMA-ES in {dim:,} dimensions needs {needed / 2**30:,.1f} GiB, more than a quarter of this machine's "
            f"{there / 2**30:,.1f} GiB; use separable_cmaes, or fewer dimensions"
        )


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**33


def extra(module: str) -> Any:
    """pycma, or what limits its threads: not part of the core, and slow to import."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ModuleNotFoundError(f"CMA-ES needs the package {module}: pip install 'gesmr[cma]'") from error


def one_thread() -> Any:
    """A context in which NumPy's BLAS has one thread, as pycma's users are told to have it.

    Its matrices are small: more threads wait for one another, on a busy machine for a hundred times the work.
    """
    return extra("threadpoolctl").threadpool_limits(1, user_api="blas")


def _strategy(start: np.ndarray, sigma: float, seed: int, population: int, separable: bool) -> Any:
    """Draws come from a generator of its own: pycma would seed NumPy's global one, which threads share."""
    options = {
        "popsize": population,
        "CMA_diagonal": separable,
        "seed": np.nan,
        "randn": np.random.RandomState(seed).randn,
        "verbose": -10,
    }
    return extra("cma").CMAEvolutionStrategy(np.asarray(start, np.float64), sigma, options)


@pytree
class _Shifted:
    function: str = static()
    shift: Any = None

    def __call__(self, population: Array) -> Array:
        return AS_PRINTED[self.function].value(population - self.shift)


def objective(function: str, shift: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The function as printed, for pycma: populations f64[n, d] → values f64[n]."""
    return in_double(_Shifted(function, shift))


def in_double(objective: Any) -> Callable[[np.ndarray], np.ndarray]:
    """An objective that is a pytree, for pycma: populations f64[n, d] → values f64[n]."""
    with jax.enable_x64(True):
        wide = jax.tree.map(_wide, objective)

    def values(population: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(_value(wide, jnp.asarray(population, jnp.float64)))

    return values


def _wide(leaf: Any) -> Array:
    return jnp.asarray(leaf, jnp.float64 if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else None)


@jax.jit
def _value(objective: Callable[[Array], Array], population: Array) -> Array:
    return objective(population)


def run_cmaes(
    start: Callable[[], Any],
    objective: Callable[[np.ndarray], np.ndarray],
    generations: int,
    seconds: float = 0.0,
    tick: Tick = lambda work: None,
) -> Trace:
    """A strategy from its start until it has had both `generations` and `seconds`, or stops by itself."""
    clock, best, stopped = [], [], ""
    begin = time.perf_counter()
    strategy = start()
    while not stopped and (len(best) < generations or clock[-1] < seconds):
        value = run_generation(strategy, objective)
        best.append(min(value, best[-1]) if best else value)
        stopped = " ".join(strategy.stop())
        clock.append(time.perf_counter() - begin)
        tick(1.0 if len(best) <= generations else 0.0)
    tick(max(generations - len(best), 0))
    generation = np.arange(1, len(best) + 1)
    return Trace(generation, strategy.popsize * generation, np.array(clock), np.array(best), stopped)


def run_generation(strategy: Any, objective: Callable[[np.ndarray], np.ndarray]) -> float:
    """The best value of one generation."""
    population = strategy.ask()
    values = objective(np.asarray(population))
    strategy.tell(population, values.tolist())
    return float(values.min())


def run_generations(strategy: Any, evaluate: Callable, count: int) -> None:
    for _ in range(count):
        run_generation(strategy, evaluate)


def traced_memory(begin: Callable[[], Any], evaluate: Callable) -> int:
    """Bytes NumPy and Python hold at the peak of a few generations, the decomposition of a full matrix among them."""
    tracemalloc.start()
    try:
        strategy = begin()
        run_generations(strategy, evaluate, 2)
        strategy.sm.update_now(-1)  # in many dimensions it would be many generations before pycma does
        run_generations(strategy, evaluate, 1)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
