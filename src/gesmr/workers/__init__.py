"""Evaluation by many: processes, a Ray cluster, executors and whatever is like `map`.

One file for each kind of workers of our own. This is the one list of them, and says what `workers` means.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from .. import _checks
from .crew import Crew
from .processes import Pool, is_integer
from .rays import Ray
from .sending import WorkerError

__all__ = ["Pool", "Ray", "WorkerError"]  # as `gesmr` has them
_KINDS: tuple[type[Crew], ...] = (Pool, Ray)

Map = Callable[[Callable, Any], Any]  # like the built-in map


def is_serial(workers: Any) -> bool:
    """Whether candidates are evaluated here, one after the other."""
    return workers is None or (is_integer(workers) and workers == 1)


def crew_of(workers: Any, timeout: float | None = None) -> Crew | None:
    """Workers of our own that `workers` stands for, not started yet; None if it is anything else that is accepted."""
    if isinstance(workers, Crew):
        return workers
    for kind in _KINDS:
        if (crew := kind.meant_by(workers, timeout)) is not None:
            return crew
    map_of(workers)
    return None


def map_of(workers: Any) -> Map:
    """What evaluates many candidates if it is not a crew."""
    if is_serial(workers):
        return _one_after_the_other
    if isinstance(workers, Executor):
        return workers.map
    if not callable(workers) or (isinstance(workers, type) and workers is not map):
        raise ValueError(
            "workers must be None, a number of processes (-1: one for each CPU), a gesmr.Pool or gesmr.Ray, 'ray' or "
            "an address of Ray ('ray://host:10001', 'host:6379'), a concurrent.futures.Executor or a callable like map "
            f"(multiprocessing.Pool().map for instance), got {_checks.show(workers)}"
        )
    return workers


def _one_after_the_other(call: Callable, rows: Any) -> list:
    return [call(row) for row in rows]  # not `map`, for which a StopIteration is the end
