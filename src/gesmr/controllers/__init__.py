"""How the mutation rate is chosen: one file per family of methods."""

from .bandit import UCB
from .base import Controller, Feedback
from .clip import Clip
from .fixed import Fixed
from .group_elite import GESMR
from .one_fifth import OneFifth
from .registry import PAPER_NAMES, controller
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
