"""Runs of GESMR that differ in their hyperparameters, side by side: what the studies of these compute."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import jax.numpy as jnp
import numpy as np

from .batch import BatchJob, Run
from .function_task import FunctionRun, FunctionTask, lanes_of, most_lanes
from .lanes import SWEEP
from .masked import Setting
from .specs import GetProgram, Job, Study, Tick, grouped, parts


class SweptRun(FunctionRun, Run):
    """A run of GESMR with a setting of its own."""

    method = SWEEP
    num_children: int

    @property
    @abstractmethod
    def setting(self) -> Setting: ...


R = TypeVar("R", bound=SweptRun)


@dataclass(frozen=True)
class SweepJob(BatchJob[SweptRun]):
    """Runs of one function, dimension, place of the optimum, population size and length."""

    @property
    def label(self) -> str:
        where = "shifted " if self.one.shifted else ""
        return f"{where}{self.one.function} d={self.one.dim} N={self.one.num_children}, {len(self.specs)} runs"

    @property
    def task(self) -> FunctionTask:
        return FunctionTask(self.one.dim, self.one.num_children, self.one.function)

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        """Final elite value and its mean over generations, `f[runs]`."""
        columns = zip(*(run.setting for run in self.specs), strict=True)
        dtypes = (jnp.float32, jnp.float32, jnp.float32, jnp.int32)
        lanes = lanes_of(self.specs, Setting(*map(jnp.asarray, columns, dtypes)))
        elite = self.evolve(compiled, tick, lanes).elite.astype(np.float64)
        return {"final": elite[:, -1], "mean_elite": elite.mean(axis=1)}


class SweepStudy(Study[R]):
    def jobs(self, specs: Sequence[R], memory: int) -> Sequence[Job]:
        """Runs that may share a job together; the largest populations first, so that none of them comes last."""
        alike = grouped(specs, lambda run: (run.function, run.dim, run.shifted, run.num_children, run.generations))
        largest_first = sorted(alike.values(), key=lambda runs: -runs[0].num_children * runs[0].dim)
        return [
            SweepJob(part)
            for runs in largest_first
            for part in parts(runs, most_lanes(runs[0].num_children, runs[0].dim, memory))
        ]
