"""Runs of GESMR that differ in their hyperparameters, side by side: what the studies of these compute."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import jax.numpy as jnp
import numpy as np

from .batch import Batch
from .function_task import FunctionTask, function_lanes
from .lanes import SWEEP
from .masked import Setting
from .specs import Compiled, Program, Spec, Tick


class SweptRun(Spec, Protocol):
    """A run of GESMR with a setting of its own."""

    @property
    def function(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def std(self) -> float: ...
    @property
    def shifted(self) -> bool: ...
    @property
    def seed(self) -> int: ...
    @property
    def num_children(self) -> int: ...
    @property
    def generations(self) -> int: ...
    @property
    def setting(self) -> Setting: ...


@dataclass(frozen=True)
class SweepJob:
    """Runs of one function, dimension, place of the optimum, population size and length."""

    specs: tuple[SweptRun, ...]
    alone: ClassVar[bool] = False

    @property
    def label(self) -> str:
        one = self.specs[0]
        where = "shifted " if one.shifted else ""
        return f"{where}{one.function} d={one.dim} N={one.num_children}, {len(self.specs)} runs"

    @property
    def work(self) -> float:
        return self._batch.work

    @property
    def programs(self) -> list[Program]:
        return self._batch.programs

    @property
    def _batch(self) -> Batch:
        one = self.specs[0]
        task = FunctionTask(one.dim, one.num_children, one.function)
        return Batch(task, (SWEEP,), len(self.specs), one.generations)

    def run(self, compiled: Compiled, tick: Tick) -> dict[str, np.ndarray]:
        """Final elite value and its mean over generations, `f[runs]`."""
        one = self.specs[0]
        columns = zip(*(run.setting for run in self.specs), strict=True)
        dtypes = (jnp.float32, jnp.float32, jnp.float32, jnp.int32)
        setting = Setting(*map(jnp.asarray, columns, dtypes))
        stds, seeds = [run.std for run in self.specs], [run.seed for run in self.specs]
        lanes = function_lanes(one.function, one.dim, stds, seeds, one.shifted, setting)
        elite = self._batch.run(compiled, tick, lanes).elite.astype(np.float64)
        return {"final": elite[:, -1], "mean_elite": elite.mean(axis=1)}
