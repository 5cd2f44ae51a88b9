"""How much GESMR's hyperparameters matter: η_x, η_σ, τ and K one at a time, and grids of the first two.

They are data: every setting is a lane of the same program.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .... import _checks
from ....problems.functions import FORMULAS
from ...run.batch import parts
from ...run.function_task import most_lanes
from ...run.lanes import NUM_CHILDREN
from ...run.masked import PAPER, Setting
from ...run.specs import Job, Selection, Spec
from ...run.sweep import SweepJob
from ..functions.runs import GENERATIONS, STDS, subset

FUNCTIONS = tuple(name for name, formula in FORMULAS.items() if formula.optimum is not None)
DIMS = (30, 100)
REVISION = 1  # raised when the same specification would give other random draws

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
    groups: int
    seed: int
    generations: int
    num_children: int = NUM_CHILDREN
    revision: int = REVISION

    @property
    def setting(self) -> Setting:
        return Setting(self.truncation, self.rate_truncation, self.meta_rate, self.groups)


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
        seeds = selection.seeds_or(5 if quick else 20)
        return [
            SensitivityRun(function, dim, std, shifted, *setting, seed, GENERATIONS[dim])
            for function in functions
            for dim in dims
            for shifted in (False, True)
            for setting in SETTINGS
            for std in STDS
            for seed in seeds
        ]

    def jobs(self, specs: Sequence[Spec], memory: int) -> Sequence[Job]:
        """Runs of one function, dimension and place of the optimum together; the widest problems first."""
        batches: dict[tuple, list[SensitivityRun]] = defaultdict(list)
        for spec in specs:
            if isinstance(spec, SensitivityRun):
                batches[spec.dim, spec.function, spec.shifted, spec.generations].append(spec)
        widest_first = sorted(batches.items(), key=lambda batch: -batch[0][0])
        return [
            SweepJob(part)
            for (dim, *_), runs in widest_first
            for part in parts(tuple(runs), most_lanes(NUM_CHILDREN, dim, memory))
        ]
