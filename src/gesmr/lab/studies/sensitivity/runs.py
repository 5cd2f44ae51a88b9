"""How much GESMR's hyperparameters matter: η_x, η_σ, τ and K one at a time, and grids of the first two.

They are data: every setting is a lane of the same program.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...run.function_task import WITH_OPTIMUM as FUNCTIONS
from ...run.lanes import NUM_CHILDREN
from ...run.masked import PAPER, Setting
from ...run.specs import Selection
from ...run.sweep import SweepStudy, SweptRun
from ..functions.runs import GENERATIONS, STDS

DIMS = (30, 100)

TRUNCATIONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
RATE_TRUNCATIONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # no 0.05: of ten rates that is one too
META_RATES = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
GROUPS = (2, 5, 10, 17, 25, 50)
MORE_GROUPS = 17  # six children each, where the grid is looked at again
SETTINGS = tuple(
    dict.fromkeys(
        [Setting(x, sigma) for x in TRUNCATIONS for sigma in RATE_TRUNCATIONS]
        + [PAPER._replace(meta_rate=tau) for tau in META_RATES]
        + [PAPER._replace(groups=groups) for groups in GROUPS]
        + [Setting(x, sigma, groups=MORE_GROUPS) for x in TRUNCATIONS[1:5] for sigma in RATE_TRUNCATIONS[:4]]
    )
)


@dataclass(frozen=True)
class SensitivityRun(SweptRun):
    """One run of GESMR with one setting."""

    kind: ClassVar[str] = "sensitivity"
    function: str
    dim: int
    std: float
    shifted: bool
    truncation: float
    rate_truncation: float
    meta_rate: float
    groups: int
    seed: int
    generations: int
    num_children: int = NUM_CHILDREN
    revision: int = 1  # raised when the same specification would give other random draws

    @property
    def setting(self) -> Setting:
        return Setting(self.truncation, self.rate_truncation, self.meta_rate, self.groups)


class SensitivityStudy(SweepStudy[SensitivityRun]):
    name = "sensitivity"
    title = "Hyperparameters of GESMR: truncation of solutions and of rates, meta-mutation rate"
    takes = ("functions", "dims", "seeds")

    def plan(self, selection: Selection) -> Sequence[SensitivityRun]:
        """Both with the optimum where the paper has it and with it moved."""
        functions = selection.chosen("functions", FUNCTIONS)
        dims = selection.chosen("dims", DIMS, DIMS[:1] if selection.quick else DIMS)
        seeds = selection.seeds_or(5 if selection.quick else 20)
        return [
            SensitivityRun(function, dim, std, shifted, *setting, seed, GENERATIONS[dim])
            for function in functions
            for dim in dims
            for shifted in (False, True)
            for setting in SETTINGS
            for std in STDS
            for seed in seeds
        ]


STUDY = SensitivityStudy()
