"""How the mutation rate is chosen: one file per family of methods. This is the one list of them, and of their names."""

import dataclasses
import math
import re
from collections.abc import Callable

from .. import _checks
from .bandit import UCB
from .base import Controller, Feedback
from .clip import Clip
from .fixed import Fixed
from .group_elite import GESMR
from .one_fifth import OneFifth
from .self_adaptive import SAMR

__all__ = [
    "GESMR",
    "PAPER_NAMES",
    "SAMR",
    "UCB",
    "Clip",
    "Controller",
    "Feedback",
    "Fixed",
    "OneFifth",
    "controller",
]

# Every parameter is written out: these stay the paper's, whatever the classes' defaults become.
_NAMED: dict[str, Callable[[int], Controller]] = {
    "FMR": lambda n: Fixed(rate=0.01),
    "1CMR": lambda n: Fixed(rate=None),
    "15MR": lambda n: OneFifth(rate=0.01, target=0.2, factor=2.0),
    "UCB/5": lambda n: _ucb(5),
    "UCB/10": lambda n: _ucb(10),
    "SAMR": lambda n: SAMR(meta_rate=2.0, low=1e-3, high=1e3),
    "GESMR": lambda n: _gesmr(n, "min", True),
    "GESMR-AVG": lambda n: _gesmr(n, "mean", True),
    "GESMR-FIX": lambda n: _gesmr(n, "min", False),
    "GESMR-X": lambda n: _gesmr(n, "min", True, recombine=0.4),  # beyond the paper, and the paper's but for the share
}

# Those the paper compares. A name that is added above is not one of them.
PAPER_NAMES = ("FMR", "1CMR", "15MR", "UCB/5", "UCB/10", "SAMR", "GESMR", "GESMR-AVG", "GESMR-FIX")


def controller(name: str, num_children: int = 100) -> Controller:
    """The method the paper calls `name`, with the paper's parameters: "GESMR", "UCB/5", "1CMR" …

    "GESMR-X" is GESMR with recombination in 40% of its groups (docs/recombination.md).
    GESMR's K is √N: the paper's 10 groups at its N = 100. Give `num_children` for another N.
    "UCB/R" takes any R. The oracles OFMR and LAMR-G are searches over whole runs: `gesmr.OFMR`, `gesmr.LAMR`.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a controller must be a string, got {_checks.show(name)} ({type(name).__name__})")
    num_children = _checks.integer("num_children", num_children, 1, most=_checks.MOST)
    if name in _NAMED:
        return _NAMED[name](num_children)
    if match := re.fullmatch(r"UCB/([1-9]\d{0,5})", name):
        return _ucb(int(match[1]))
    if name == "OFMR" or name.startswith("LAMR"):
        raise ValueError(
            f"name must be that of a controller, got the oracle {_checks.show(name)}; use gesmr.OFMR or gesmr.LAMR"
        )
    known = ", ".join(_NAMED)
    raise ValueError(f"the name of a controller must be one of {known} (or UCB/R for any R), got {_checks.show(name)}")


def _ucb(arms: int) -> UCB:
    return UCB(arms=arms, low=1e-3, high=1.0)


def _gesmr(num_children: int, score: str, adapt: bool, recombine: float = 0.0) -> GESMR:
    groups = round(math.sqrt(num_children))
    return GESMR(
        groups, meta_rate=2.0, truncation=0.5, low=1e-3, high=1e3, score=score, adapt=adapt, recombine=recombine
    )


# By the names of their classes, as checkpoints know them
CLASSES = {name: globals()[name] for name in __all__ if dataclasses.is_dataclass(globals()[name])}
