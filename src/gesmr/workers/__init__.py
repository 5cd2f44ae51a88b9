"""Evaluation by many: processes, a Ray cluster, executors and whatever is like `map`."""

from .choice import crew_of, is_serial, map_of
from .crew import Crew
from .processes import Pool
from .rays import Ray
from .sending import WorkerError, described, from_worker, sendable

__all__ = [
    "Crew",
    "Pool",
    "Ray",
    "WorkerError",
    "crew_of",
    "described",
    "from_worker",
    "is_serial",
    "map_of",
    "sendable",
]
