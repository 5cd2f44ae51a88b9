"""What `workers` means: nobody else, processes, a Ray cluster, an executor or something like `map`."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from .. import _checks, _ray
from .crew import Crew
from .processes import MOST, Pool
from .rays import Ray

Map = Callable[[Callable, Any], Any]  # like the built-in map


def is_serial(workers: Any) -> bool:
    """Whether candidates are evaluated here, one after the other."""
    return workers is None or (_is_integer(workers) and workers == 1)


def crew_of(workers: Any) -> Crew | None:
    """Workers of our own that `workers` stands for, not started yet; None if it is anything else that is accepted."""
    if isinstance(workers, Crew):
        return workers
    if _is_integer(workers) and workers != 1 and (workers > 0 or workers == -1):
        return Pool(None if workers == -1 else _checks.integer("workers, a number of processes,", workers, 1, MOST))
    if isinstance(workers, str) and _ray.is_address(workers):
        return Ray(workers)
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


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
