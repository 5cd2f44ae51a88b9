"""Genetic algorithms that find their own mutation rate."""

from . import analysis, noise, problems
from ._pytree import pytree
from ._version import __version__
from .bounds import Bounds
from .controllers import GESMR, PAPER_NAMES, SAMR, UCB, Clip, Controller, Feedback, Fixed, OneFifth, controller
from .evolution import History, evolve
from .ga import GA, Proposal, State
from .optimize.archive import CheckpointError
from .optimize.loggers import JSONLines
from .optimize.loop import Checkpoint
from .optimize.minimize import minimize, scipy_method
from .optimize.optimizer import Optimizer
from .oracles import LAMR, OFMR
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
