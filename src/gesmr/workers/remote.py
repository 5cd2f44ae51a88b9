"""What happens at a worker, whoever sends it: a range of candidates to an answer."""

import time
from typing import Any

import numpy as np

from .schedule import Answer
from .sending import pack_exception, unpack


class Evaluator:
    """Holds the objective, a callable from a row to its value and, if it counts as the worst, what it raised."""

    def __init__(self, packed: bytes):
        self._call: Any = None
        self.failure: bytes | None = None  # why there is none
        try:
            self._call = unpack(packed)
        except BaseException as error:
            self.failure = pack_exception(error)

    def __call__(self, rows: np.ndarray) -> Answer:
        values, errors, failure = [], [], None
        start = time.perf_counter()
        for at, row in enumerate(rows):
            try:
                value, error = self._call(row)
            except BaseException as raised:  # the user's, to be raised again where it is waited for
                failure = pack_exception(raised)
                break
            values.append(value)
            if error is not None:
                errors.append((at, error))
        return Answer(np.array(values, np.float64), errors, time.perf_counter() - start, failure)
