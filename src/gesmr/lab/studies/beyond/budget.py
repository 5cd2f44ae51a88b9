"""What all runs of the study `beyond` may spend, and what is kept of their histories."""

from typing import Any

import numpy as np

from ...run.lanes import NUM_CHILDREN
from ...run.peers import Peer

POINTS = 60  # of a history that are kept, at most


def evaluations_of(generations: Any) -> Any:
    """Those of T generations of a GA, the first population's included."""
    return NUM_CHILDREN + 1 + NUM_CHILDREN * generations


def kept_generations(generations: int) -> np.ndarray:
    """The generations (from 1) whose values are kept: ever fewer, the first and the last among them."""
    return np.unique(np.round(np.geomspace(1, generations, POINTS)).astype(int))


def kept_of(history: np.ndarray) -> np.ndarray:
    """What is kept of a GA's history `f[R, T]`."""
    return history[:, kept_generations(history.shape[1]) - 1].astype(np.float32)


def kept_of_peer(best: np.ndarray, peer: Peer, generations: int) -> np.ndarray:
    """Of best values `f[R, 1 + G]`, those after as many evaluations as a GA has had at each place that is kept.

    NaN where no value was known yet.
    """
    evaluations = evaluations_of(kept_generations(generations))
    reached = np.minimum(evaluations // peer.population - peer.has_first, best.shape[1] - 1)
    known = best[:, np.maximum(reached, 0)]
    return np.where((reached >= 0) & np.isfinite(known), known, np.nan).astype(np.float32)
