"""How much GESMR's hyperparameters matter: η_x, η_σ and τ one at a time, and the grid of the first two.

They are leaves of the GA and its controller, so every setting is a lane of the same program.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _checks
from ..controllers import GESMR
from ..evolve import evolve
from ..ga import GA, State
from ..problems.functions import FORMULAS
from .base import Compiled, Group, Program, Selection, Spec, Tick
from .functions import GENERATIONS, STDS, parts, subset
from .groups import run_steps
from .lanes import (
    NUM_CHILDREN,
    STEP,
    AnyFunction,
    Enter,
    First,
    Lanes,
    compile_for,
    deserves_own_program,
    lanes,
    lanes_shape,
    most_lanes,
    shape,
    state_shape,
    step_lengths,
)

FUNCTIONS = tuple(name for name, formula in FORMULAS.items() if formula.optimum is not None)
DIMS = (30, 100)
GROUPS = 10  # K
REVISION = 1  # raised when the same specification would give other random draws


class Setting(NamedTuple):
    """What GESMR is run with; the defaults are the paper's."""

    truncation: float = 0.5  # η_x
    rate_truncation: float = 0.5  # η_σ
    meta_rate: float = 2.0  # τ


PAPER = Setting()
TRUNCATIONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
RATE_TRUNCATIONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # no 0.05: of ten rates that is one too
META_RATES = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
SETTINGS = tuple(
    dict.fromkeys(
        [Setting(x, sigma) for x in TRUNCATIONS for sigma in RATE_TRUNCATIONS]
        + [PAPER._replace(meta_rate=tau) for tau in META_RATES]
    )
)


@dataclass(frozen=True)
class SensitivityRun:
    """One run of GESMR with one setting."""

    kind: ClassVar[str] = "sensitivity"
    function: str
    dim: int
    std: float
    shifted: bool
    truncation: float
    rate_truncation: float
    meta_rate: float
    seed: int
    generations: int
    groups: int = GROUPS
    num_children: int = NUM_CHILDREN
    revision: int = REVISION


class SensitivityStudy:
    name: ClassVar[str] = "sensitivity"
    title: ClassVar[str] = "Hyperparameters of GESMR: truncation of solutions and of rates, meta-mutation rate"
    profiles: ClassVar[tuple[str, ...]] = ("quick", "paper")

    def specs(self, selection: Selection) -> Sequence[SensitivityRun]:
        """Both with the optimum where the paper has it and with it moved."""
        selection.check(self.name, ("functions", "dims", "seeds"))
        quick = _checks.choice("profile", selection.profile, self.profiles) == "quick"
        functions = subset("functions", selection.functions, FUNCTIONS, FUNCTIONS)
        dims = subset("dims", selection.dims, DIMS[:1] if quick else DIMS, DIMS)
        default_seeds = 5 if quick else 20
        seeds = default_seeds if selection.seeds is None else _checks.integer("seeds", selection.seeds, 1, 2**31 - 1)
        return [
            SensitivityRun(function, dim, std, shifted, *setting, seed, GENERATIONS[dim])
            for function in functions
            for dim in dims
            for shifted in (False, True)
            for setting in SETTINGS
            for std in STDS
            for seed in range(seeds)
        ]

    def groups(self, specs: Sequence[Spec], memory: int) -> Sequence[Group]:
        """Runs of one function, dimension and place of the optimum together; the widest problems first."""
        batches: dict[tuple, list[SensitivityRun]] = defaultdict(list)
        for spec in specs:
            if isinstance(spec, SensitivityRun):
                batches[spec.dim, spec.function, spec.shifted, spec.generations].append(spec)
        widest_first = sorted(batches.items(), key=lambda batch: -batch[0][0])
        return [
            SettingsGroup(part)
            for (dim, *_), runs in widest_first
            for part in parts(tuple(runs), most_lanes(NUM_CHILDREN, dim, memory))
        ]


@dataclass(frozen=True)
class SettingsGroup:
    """Runs of one function, dimension, place of the optimum and length."""

    specs: tuple[SensitivityRun, ...]
    alone: ClassVar[bool] = False

    @property
    def label(self) -> str:
        first = self.specs[0]
        return f"{'shifted ' if first.shifted else ''}{first.function} d={first.dim}, {len(self.specs)} runs"

    @property
    def work(self) -> float:
        first = self.specs[0]
        return float(NUM_CHILDREN * first.dim * first.generations * len(self.specs))

    @property
    def programs(self) -> list[Program]:
        return list(dict.fromkeys([self._first, self._enter, *self._advances]))

    @property
    def _first(self) -> First:
        return First(self.specs[0].dim, len(self.specs))

    @property
    def _enter(self) -> Enter:
        return Enter("GESMR", self.specs[0].dim, len(self.specs))

    @property
    def _advances(self) -> list["Advance"]:
        """The programs of a whole run, step by step."""
        first, count = self.specs[0], len(self.specs)
        only = first.function if deserves_own_program(first.dim, count) else None
        return [Advance(first.dim, count, step, only) for step in step_lengths(first.generations)]

    def run(self, compiled: Compiled, tick: Tick) -> dict[str, np.ndarray]:
        first = self.specs[0]
        stds, seeds = [run.std for run in self.specs], [run.seed for run in self.specs]
        data = lanes(first.function, first.dim, stds, seeds, first.shifted)
        settings = Setting(
            *(
                jnp.asarray([getattr(run, name) for run in self.specs], jnp.float32)  # type: ignore[arg-type]
                for name in Setting._fields
            )
        )
        states = compiled(self._enter)(data.key, *compiled(self._first)(data))
        return run_steps(
            [compiled(program) for program in self._advances], states, Sweep(data, settings), tick, self.work
        )


class Sweep(NamedTuple):
    lanes: Lanes
    settings: Setting  # f[L] each


@dataclass(frozen=True)
class Advance:
    """`generations` more generations: the states after, and the elite values `f[L, generations]`."""

    dim: int
    lanes: int
    generations: int = STEP
    only: str | None = None  # the one function it is for; None: any

    def compile(self) -> Callable:
        settings: Any = Setting(*[shape(self.lanes)] * len(Setting._fields))  # type: ignore[arg-type]
        sweep = Sweep(lanes_shape(self.dim, self.lanes), settings)
        return compile_for(self.function, state_shape("GESMR", self.dim, self.lanes), sweep, donate=(0,))

    def function(self, states: State, sweep: Sweep) -> tuple[State, Array]:
        def one(state: State, shift: Array, setting: Setting) -> tuple[State, Array]:
            rates = GESMR(GROUPS, meta_rate=setting.meta_rate, truncation=setting.rate_truncation)
            objective = AnyFunction(sweep.lanes.function, shift, self.only)
            ga = GA(rates, NUM_CHILDREN, setting.truncation)
            state, history = evolve(ga, objective, state, self.generations)
            return state, history.elite

        return jax.vmap(one)(states, sweep.lanes.shift, sweep.settings)
