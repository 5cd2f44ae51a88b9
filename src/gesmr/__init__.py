"""Genetic algorithms that find their own mutation rate."""

from . import analysis, comparing, controllers, noise, problems, workers
from ._pytree import pytree
from ._version import __version__
from .bounds import Bounds
from .comparing import compare
from .controllers import *  # noqa: F403 - the one list of them is there
from .evolution import History, evolve
from .ga import GA, Proposal, State
from .optimize.archive import CheckpointError
from .optimize.loggers import JSONLines
from .optimize.loop import Checkpoint
from .optimize.minimize import minimize, scipy_method
from .optimize.optimizer import Optimizer
from .oracles import LAMR, OFMR
from .plotting import plot
from .spaces import Choice, Float, Int, Space
from .workers import *  # noqa: F403 - as are these

__all__ = [
    "GA",
    "LAMR",
    "OFMR",
    "Bounds",
    "Checkpoint",
    "CheckpointError",
    "Choice",
    "Float",
    "History",
    "Int",
    "JSONLines",
    "Optimizer",
    "Proposal",
    "Space",
    "State",
    "__version__",
    "analysis",
    "compare",
    "comparing",
    "evolve",
    "minimize",
    "noise",
    "plot",
    "problems",
    "pytree",
    "scipy_method",
]
__all__ += controllers.__all__
__all__ += workers.__all__
