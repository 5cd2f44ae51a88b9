"""Theorem 1 and what follows from it for small mutation rates.

The minimum of q > 1 independent N(0, σ²) has the expectation σ·E[min at σ = 1] < 0. Near a point with gradient ∇f a
change Δ = f(x + σε) − f(x) is N(0, σ²‖∇f‖²) for small σ: there E[min_q Δ_q] = −c_q·σ‖∇f‖, with c_q = −E[min of q
standard normals], and E[Δ] = 0. How small is small is measured in units of the rate σ_H at which the second-order part
of Δ, ½σ²εᵀHε, has the same root mean square as the first: σ_H = ‖∇f‖ / √(¼(tr H)² + ½‖H‖²). At the least rate looked at
the second-order part is a ten-thousandth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import Partial

from .... import noise
from ....analysis.order_statistics import estimate, simulated_minima
from ....controllers import controller
from ....evolution import evolve
from ....ga import GA
from ....problems.functions import FORMULAS, Function
from ...run.compilation import Program, keys_shape, shape
from ...run.function_task import WITH_OPTIMUM as FUNCTIONS
from ...run.lanes import NUM_CHILDREN
from ...run.specs import GetProgram, Job, Selection, Spec, Study, Tick, as_json, content_hash, grouped
from ..functions.runs import GENERATIONS as DIMS

COUNTS = (2, 3, 5, 10, 30, 100, 1000, 10_000)  # q
SIGMAS = (0.01, 1.0, 100.0)
GENERATIONS = (0, 30, 100, 300)  # after which a run's best solution is a point
REVISION = 1  # raised when the same specification would give other random draws

_DRAWS_AT_ONCE = 2**18


@dataclass(frozen=True)
class Minimum:
    """The mean of `samples` minima of q draws of N(0, σ²)."""

    kind: ClassVar[str] = "minimum"
    q: int
    sigma: float
    samples: int
    revision: int = REVISION


@dataclass(frozen=True)
class Point:
    """Both objectives at the best solution of a run of GESMR, for rates from 10⁻⁴σ_H to √10·σ_H."""

    kind: ClassVar[str] = "point"
    function: str
    dim: int
    generation: int
    samples: int  # groups of q children, the same at every rate
    per_decade: int  # rates, from 10⁻²σ_H
    q: int = 10
    revision: int = REVISION


def ratios(per_decade: int) -> np.ndarray:
    """The rates looked at, as multiples of σ_H, `f[S]`: few where nothing changes."""
    return 10.0 ** np.concatenate([[-4, -3], np.linspace(-2, 0.5, 5 * per_decade // 2 + 1)])


class TheoremStudy(Study[Minimum | Point]):
    name = "theorem"
    title = "Theorem 1 and small mutation rates: claim 9"
    takes = ("functions", "dims")

    def plan(self, selection: Selection) -> Sequence[Minimum | Point]:
        functions = selection.chosen("functions", FUNCTIONS)
        dims = selection.chosen("dims", DIMS, (30, 100))
        quick = selection.quick
        minima = [Minimum(q, sigma, 20_000 if quick else 2**18) for q in COUNTS for sigma in SIGMAS]
        points = [
            Point(function, dim, generation, samples=2**12 if quick else 2**16, per_decade=4 if quick else 8)
            for function in functions
            for dim in dims
            for generation in GENERATIONS
        ]
        return [*minima, *points]

    def jobs(self, specs: Sequence[Minimum | Point], memory: int) -> Sequence[Job]:
        """The points of a run together, the most costly first; the minima of one q together."""
        points = grouped((s for s in specs if isinstance(s, Point)), lambda point: replace(point, generation=0))
        minima = grouped((s for s in specs if isinstance(s, Minimum)), lambda minimum: replace(minimum, sigma=0.0))
        jobs = [*map(PointJob, points.values()), *map(MinimumJob, minima.values())]
        return sorted(jobs, key=lambda job: -job.work)


@dataclass(frozen=True)
class MinimumJob(Job[Minimum]):
    """Of specifications that differ in σ alone."""

    @property
    def label(self) -> str:
        return f"minimum of {self.one.q} normals"

    @property
    def work(self) -> float:
        return float(sum(spec.q * spec.samples for spec in self.specs))

    @property
    def programs(self) -> list[Program]:
        return [Program(_minima, (self.one.q, self.one.samples), (keys_shape(), shape()))]

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """`mean`, `mean_error f[n]`."""
        estimates = []
        for spec in self.specs:
            estimates.append(estimate(compiled(self.programs[0])(_key(spec), np.float32(spec.sigma))))
            tick(spec.q * spec.samples)
        mean, error = np.array(estimates).T
        return {"mean": mean, "mean_error": error}


def _minima(q: int, samples: int, key: noise.Key, sigma: Array) -> Array:
    return simulated_minima(key, q, samples, sigma)


@dataclass(frozen=True)
class PointJob(Job[Point]):
    """Of one run: points that differ in the generation alone."""

    @property
    def label(self) -> str:
        return f"{self.one.function} d={self.one.dim} small rates"

    @property
    def work(self) -> float:
        return sum(map(self._work, self.specs))

    @property
    def evaluation(self) -> float:
        return float(self.one.dim)

    @property
    def programs(self) -> list[Program]:
        one, index = self.one, shape(dtype=jnp.int32)
        run = Program(elites, (one.dim, max(spec.generation for spec in self.specs)), (index,))
        shapes = index, shape(one.dim, dtype=np.float64), keys_shape()
        return [run, _InDouble(measure, (one.q, one.samples, one.per_decade), shapes)]

    def _work(self, spec: Point) -> float:
        return float(spec.samples * spec.q * spec.dim * len(ratios(spec.per_decade)))

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """Fields of `Local` and `Moments` for each point, and the rates `sigma f[n, S]`."""
        function = np.int32(FUNCTIONS.index(self.one.function))
        elites, measure = map(compiled, self.programs)
        points = np.asarray(elites(function), np.float64)
        found = []
        for spec in self.specs:
            local, sigma, moments = measure(function, points[spec.generation], _key(spec))
            found.append({**local._asdict(), "sigma": sigma, **moments._asdict()})
            tick(self._work(spec))
        return {name: np.stack([one[name] for one in found]) for name in found[0]}


class Local(NamedTuple):
    """A function near a point."""

    value: Array  # f[]
    gradient: Array  # f[]  ‖∇f‖
    trace: Array  # f[]  of the Hessian
    sigma_h: Array  # f[]  the rate at which the second-order part of a change is as large as the first


def local(function: Callable[[Array], Array], x: Array) -> Local:
    value, gradient = jax.value_and_grad(function)(x)
    hessian = jax.hessian(function)(x)
    size, trace = jnp.linalg.norm(gradient), jnp.trace(hessian)
    return Local(value, size, trace, size / jnp.sqrt(trace**2 / 4 + jnp.sum(hessian**2) / 2))


class Moments(NamedTuple):
    """E[min_q Δ_q] and E[Δ] divided by σ‖∇f‖, with standard errors, `f[S]` for S rates."""

    slope: Array
    slope_error: Array
    mean: Array
    mean_error: Array


def objectives(
    function: Callable[[Array], Array], x: Array, gradient: Array, sigma: Array, key: noise.Key, q: int, samples: int
) -> Moments:
    """From `samples` groups of q changes about `x f[d]`, with the same noise at each rate `sigma f[S]`."""
    value = function(x)

    def sample(index: Array) -> tuple[Array, Array]:
        words = noise.bits(noise.fold_in(key, index), q * len(x))
        epsilon = noise.normal(words).astype(x.dtype).reshape(q, len(x))
        changes = lax.map(lambda rate: (function(x + rate * epsilon) - value) / (rate * gradient), sigma)
        return changes.min(axis=1), changes.mean(axis=1)

    at_once = min(samples, max(1, _DRAWS_AT_ONCE // (q * len(x))))
    values = lax.map(sample, jnp.arange(samples), batch_size=at_once)
    (slope, slope_error), (mean, mean_error) = (
        (of.mean(axis=0), of.std(axis=0, ddof=1) / np.sqrt(samples)) for of in values
    )
    return Moments(slope, slope_error, mean, mean_error)


def _value(function: Array, x: Array) -> Array:
    """Values `f[...]` of `x f[..., d]` under the function of that number, which is data: one program serves all."""
    return lax.switch(function, [FORMULAS[name].value for name in FUNCTIONS], x)


def elites(dim: int, generations: int, function: Array) -> Array:
    """The best solution after 0, 1, … `generations` generations of GESMR, `f32[generations + 1, d]`, in one run.

    The run starts from the first population that seed 0 has in the function study at std = 1.
    """
    problem = Partial(_value, function)
    ga = GA(controller("GESMR", NUM_CHILDREN), NUM_CHILDREN)
    key = noise.fold_in(noise.key(2022), 0)
    population = Function("sphere", dim).init(key, NUM_CHILDREN + 1, jnp.float32)
    start = ga.init(key, population, problem(population))
    _, history = evolve(ga, problem, start, generations, record=lambda state: state.best)
    return jnp.concatenate([start.best[None], history.extra])


class _InDouble(Program):
    """Compiled and run in double precision, whatever the setting.

    The setting is a thread's own, so threads that compute in single precision meanwhile are not disturbed.
    """

    def compile(self) -> Callable:
        with jax.enable_x64(True):
            compiled = super().compile()

        def run(*arguments: Any) -> Any:
            with jax.enable_x64(True):
                return jax.device_get(compiled(*arguments))

        return run


def measure(
    q: int, samples: int, per_decade: int, function: Array, x: Array, key: noise.Key
) -> tuple[Local, Array, Moments]:
    """`Local`, rates and `Moments` at a point `f64[d]`."""
    problem = Partial(_value, function)
    near = local(problem, x)
    sigma = near.sigma_h * ratios(per_decade)
    return near, sigma, objectives(problem, x, near.gradient, sigma, key, q, samples)


def _key(spec: Spec) -> noise.Key:
    """Every specification has its own noise."""
    return jax.device_get(noise.key(int(content_hash(as_json(spec))[:16], 16)))


STUDY = TheoremStudy()
