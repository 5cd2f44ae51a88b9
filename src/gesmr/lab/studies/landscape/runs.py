"""What mutation does to the six functions (the paper's figures of σ against Δ): mean, minimum and maximum of Δ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .... import noise
from ....analysis import Bins, Curves, Density
from ....analysis.curves import stream
from ....analysis.samples import lane_deltas
from ....problems.functions import Function
from ...run.compilation import Program, keys_shape, shape
from ...run.function_task import AnyFunction
from ...run.reading import PAPER_FUNCTIONS
from ...run.specs import GetProgram, Job, Selection, Study, Tick
from ..functions.runs import GENERATIONS

# Points for each rate, every one with two groups: 10⁵ changes in a quick panel, 10⁶ where they are cheap; 4.9 · 10⁶.
_POINTS = {"quick": lambda dim: 820 if dim <= 30 else 82, "paper": lambda dim: 4000}
DIMS = tuple(GENERATIONS)
BINS = 120  # of Δ, on either axis
_CURVES = ("mean", "lowest", "highest", "mean_error", "lowest_error", "highest_error", "counted", "dropped")


@dataclass(frozen=True)
class Panel:
    """Changes of one function, from points x ~ N(0, std² I), over a log-spaced grid of rates."""

    kind: ClassVar[str] = "panel"
    function: str
    dim: int
    points: int  # for each rate
    group: int = 10
    low: float = 1e-3
    high: float = 1e3
    num_rates: int = 61
    std: float = 1.0
    revision: int = 1  # raised when the same specification would give other random draws

    @property
    def rates(self) -> np.ndarray:
        """`f[num_rates]`"""
        return np.geomspace(self.low, self.high, self.num_rates)


class LandscapeStudy(Study[Panel]):
    name = "landscape"
    title = "Change of value against mutation rate: mean, minimum, density, and claim 8"
    takes = ("dims", "functions")

    def plan(self, selection: Selection) -> Sequence[Panel]:
        points = _POINTS[selection.profile]
        dims = selection.chosen("dims", DIMS)
        functions = selection.chosen("functions", PAPER_FUNCTIONS)
        return [Panel(function, dim, points(dim)) for function in functions for dim in dims]

    def jobs(self, specs: Sequence[Panel], memory: int) -> Sequence[Job]:
        """A panel each, the widest first. A program serves all functions of a dimension."""
        return [PanelJob((panel,), _lanes(panel, memory)) for panel in sorted(specs, key=lambda panel: -panel.dim)]


def changes(dim: int, group: int, std: Array, index: Array, keys: noise.Key, rates: Array) -> Array:
    """Changes `f[L, 2, q]` of a function, by its index in PAPER_FUNCTIONS, for keys `u32[L]` and rates `f[L]`."""
    draw_point = partial(Function("sphere", dim, std).init, dtype=jnp.float32)
    return lane_deltas(AnyFunction(index, np.float32(0)), draw_point, group, keys, rates)


@dataclass(frozen=True)
class PanelJob(Job[Panel]):
    lanes: int  # points in one call of the program

    @property
    def label(self) -> str:
        return f"{self.one.function} d={self.one.dim}"

    @property
    def work(self) -> float:
        return float(self._genes(self.one.points * self.one.num_rates))

    @property
    def evaluation(self) -> float:
        return float(self.one.dim)

    @property
    def programs(self) -> list[Program]:
        shapes = shape(), shape(dtype=jnp.int32), keys_shape(self.lanes), shape(self.lanes)
        return [Program(changes, (self.one.dim, self.one.group), shapes)]

    def run(self, compiled: GetProgram, tick: Tick) -> dict[str, np.ndarray]:
        panel = self.one
        index = PAPER_FUNCTIONS.index(panel.function)
        step = partial(compiled(self.programs[0]), np.float32(panel.std), np.int32(index))
        key = noise.fold_in(noise.key(2022), index, panel.dim)
        sizes = panel.points, panel.group, self.lanes, BINS
        return to_arrays(stream(step, key, panel.rates, *sizes, lambda lanes: tick(self._genes(lanes))))

    def _genes(self, lanes: int) -> int:
        return lanes * 2 * self.one.group * self.one.dim


def to_arrays(curves: Curves) -> dict[str, np.ndarray]:
    """Curves with their density, as a store keeps them: first axis of length 1."""
    if curves.density is None:
        raise ValueError("curves must have a density, got none")
    bins = curves.density.bins
    arrays = {name: getattr(curves, name) for name in _CURVES}
    arrays |= {"near": np.float64(bins.near), "linear_edges": bins.linear, "symlog_edges": bins.symlog}
    arrays |= {f"{axis}_counts": getattr(curves.density, axis).astype(np.int32) for axis in ("linear", "symlog")}
    return {name: np.asarray(array)[None] for name, array in arrays.items()}


def from_arrays(panel: Panel, arrays: Mapping[str, np.ndarray]) -> Curves:
    """The inverse of `to_arrays`, of a run's own arrays, without the first axis."""
    bins = Bins(float(arrays["near"]), arrays["linear_edges"], arrays["symlog_edges"])
    density = Density(bins, arrays["linear_counts"], arrays["symlog_counts"])
    values = {name: arrays[name] for name in _CURVES}
    return Curves(rates=panel.rates, group=panel.group, density=density, **values)


def _lanes(panel: Panel, memory: int) -> int:
    """How many points at once: enough to keep the device busy, in at most about `memory` bytes."""
    per_lane = (1 + 2 * panel.group) * panel.dim
    genes = min(2**22 if jax.default_backend() == "cpu" else 2**27, memory // 32)
    return max(1, min(genes // per_lane, panel.points * panel.num_rates))


STUDY = LandscapeStudy()
