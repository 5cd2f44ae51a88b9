"""How many groups GESMR should have: final elite value for every K that divides N (claims 10 and 15).

K is data here: one program serves all K of an N, and all functions, spreads and seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...run.masked import PAPER, Setting
from ...run.specs import Selection
from ...run.sweep import SweepStudy, SweptRun
from ..functions.runs import STDS

FUNCTIONS = ("ackley", "griewank", "rosenbrock", "sphere")
SIZES = (12, 60, 120, 360, 840, 2520)  # N, each with more divisors than any smaller number
DIM = 100
GENERATIONS = 1000
# As the paper's authors ran it, by their public code
AUTHORS_SIZES = (50, 100, 200, 400, 800, 1600, 3200)
AUTHORS_STD = 5.0
AUTHORS_GENERATIONS = 500


def divisors(n: int) -> tuple[int, ...]:
    return tuple(k for k in range(1, n + 1) if n % k == 0)


@dataclass(frozen=True)
class GroupsRun(SweptRun):
    """One run of GESMR with K groups."""

    kind: ClassVar[str] = "groups"
    shifted = False
    function: str
    num_children: int
    groups: int
    std: float
    seed: int
    dim: int = DIM
    generations: int = GENERATIONS
    revision: int = 1  # raised when the same specification would give other random draws

    @property
    def setting(self) -> Setting:
        return PAPER._replace(groups=self.groups)


class GroupsStudy(SweepStudy[GroupsRun]):
    name = "groups"
    title = "How many groups: final value against K for populations of 12 to 3200, claims 10, 15"
    takes = ("functions", "seeds")

    def plan(self, selection: Selection) -> Sequence[GroupsRun]:
        """`quick` has our populations up to 360 and three seeds, `paper` all of ours and the authors', and ten."""
        functions = selection.chosen("functions", FUNCTIONS)
        seeds = selection.seeds_or(3 if selection.quick else 10)
        sizes = [(size, STDS, GENERATIONS) for size in SIZES if size <= 360 or not selection.quick]
        if not selection.quick:
            sizes += [(size, (AUTHORS_STD,), AUTHORS_GENERATIONS) for size in AUTHORS_SIZES]
        return [
            GroupsRun(function, size, groups, std, seed, generations=generations)
            for size, stds, generations in sizes
            for function in functions
            for groups in divisors(size)
            for std in stds
            for seed in seeds
        ]


STUDY = GroupsStudy()
