"""Mutations of one point of a function in the plane at nine rates (the paper's figure of 2-D Ackley)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .... import noise
from ...run.compilation import Program, keys_shape, shape
from ...run.function_task import AnyFunction
from ...run.reading import PAPER_FUNCTIONS
from ...run.specs import GetProgram, Job, Selection, Study, Tick

SAMPLES = {"quick": 2_000, "paper": 20_000}  # for each rate


@dataclass(frozen=True)
class Mutations:
    """`samples` mutants of one point at each rate. Small steps do not lead from the point to the optimum."""

    kind: ClassVar[str] = "mutations"
    function: str
    samples: int
    point: tuple[float, ...] = (1.5, 1.0)
    rates: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    shown: int = 100  # mutants that are kept for drawing
    revision: int = 1  # raised when the same specification would give other random draws


class MutationsStudy(Study[Mutations]):
    name = "mutations"
    title = "Mutations of one point at nine rates, and what they change, claim 17"
    takes = ("functions",)

    def plan(self, selection: Selection) -> Sequence[Mutations]:
        functions = selection.chosen("functions", PAPER_FUNCTIONS, ("ackley",))
        return [Mutations(function, SAMPLES[selection.profile]) for function in functions]

    def jobs(self, specs: Sequence[Mutations], memory: int) -> Sequence[Job]:
        return [MutationsJob((spec,)) for spec in specs]


def mutate(samples: int, index: Array, point: Array, rates: Array, keys: noise.Key) -> tuple[Array, Array]:
    """Mutants `f[R, M, d]` of a point `f[d]` at rates `f[R]`, and what they change `f[R, M]`; keys `u32[R]`."""

    def at_rate(rate: Array, key: noise.Key) -> Array:
        return point + rate * noise.normal(noise.bits(noise.fold_in(key, jnp.arange(samples)), len(point)))

    mutants = jax.vmap(at_rate)(rates, keys)
    values = AnyFunction(index, np.float32(0))(jnp.concatenate([point[None], mutants.reshape(-1, len(point))]))
    return mutants, (values[1:] - values[0]).reshape(len(rates), samples)


@dataclass(frozen=True)
class MutationsJob(Job[Mutations]):
    @property
    def label(self) -> str:
        return f"mutations of {self.one.function}"

    @property
    def work(self) -> float:
        return float(len(self.one.rates) * self.one.samples * len(self.one.point))

    @property
    def evaluation(self) -> float:
        return float(len(self.one.point))

    @property
    def programs(self) -> list[Program]:
        rates = len(self.one.rates)
        shapes = shape(dtype=jnp.int32), shape(len(self.one.point)), shape(rates), keys_shape(rates)
        return [Program(mutate, (self.one.samples,), shapes)]

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """`mutants f32[1, R, shown, d]` and `changes f32[1, R, samples]`."""
        spec = self.one
        index = PAPER_FUNCTIONS.index(spec.function)
        keys = noise.fold_in(noise.fold_in(noise.key(2022), index), np.arange(len(spec.rates), dtype=np.uint32), 1)
        point, rates = np.array(spec.point, np.float32), np.array(spec.rates, np.float32)
        mutants, changes = compiled(self.programs[0])(np.int32(index), point, rates, keys)
        tick(self.work)
        return {"mutants": np.asarray(mutants)[None, :, : spec.shown], "changes": np.asarray(changes)[None]}


STUDY = MutationsStudy()
