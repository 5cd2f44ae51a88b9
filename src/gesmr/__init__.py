"""Genetic algorithms that find their own mutation rate."""

from . import analysis, noise, problems
from ._pytree import pytree
from ._version import __version__
from .archive import CheckpointError
from .bounds import Bounds
from .controllers import (
    GESMR,
    PAPER_NAMES,
    SAMR,
    UCB,
    Clip,
    Controller,
    Feedback,
    Fixed,
    OneFifth,
    controller,
)
from .evolve import History, evolve
from .ga import GA, Proposal, State
from .loggers import JSONLines
from .minimize import minimize, scipy_method
from .optimizer import Optimizer
from .oracles import LAMR, OFMR
from .watching import Checkpoint
from .workers import Pool, Ray, WorkerError

__all__ = [
    "GA",
    "GESMR",
    "LAMR",
    "OFMR",
    "PAPER_NAMES",
    "SAMR",
    "UCB",
    "Bounds",
    "Checkpoint",
    "CheckpointError",
    "Clip",
    "Controller",
    "Feedback",
    "Fixed",
    "History",
    "JSONLines",
    "OneFifth",
    "Optimizer",
    "Pool",
    "Proposal",
    "Ray",
    "State",
    "WorkerError",
    "__version__",
    "analysis",
    "controller",
    "evolve",
    "minimize",
    "noise",
    "problems",
    "pytree",
    "scipy_method",
]
