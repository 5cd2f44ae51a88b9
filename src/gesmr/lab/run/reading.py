"""Two readings of the paper, where what it prints was computed otherwise than its sentences say.

`TEXT` follows the paper's sentences alone, as the library does. `PRINT` is how the printed tables were made, as far as
the first author's public program tells (github.com/akarshkumar0101/evolved-neuroevolution, the files functions.py,
optim.py and paper_meta.py). They differ in:

| | PRINT | TEXT |
|:--|:--|:--|
| Linear | Σ cᵢxᵢ, c the first d of 3,000 values evenly spaced from −10 to 10 | Σ xᵢ |
| UCB/R | `LateUCB`, below | UCB1 on raw rewards |
| equal trials of an oracle | the smallest rate | any of them |
| averages over generations | 0 … T, the first population included | 1 … T |
| a generation's rates, in Table 3 | those in force after its update | those its children were made with |

The last two are taken when tables are made: what is stored serves both (`functions.summary`). Both compute functions
term by term as the paper prints them, in single precision. Images, control, groups and CMA-ES differ in more: see
there.
"""

from enum import StrEnum
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ... import noise
from ..._pytree import pytree
from ...controllers import UCB, Controller, Feedback, Fixed, controller
from ...controllers.bandit import Plays
from ...oracles import LAMR, OFMR

OFMR_NAME, LAMR_NAME = "OFMR", "LAMR-100"
# In the order of its tables. Their places are data of stored programs and draws: functions may only be added.
PAPER_FUNCTIONS = ("ackley", "griewank", "rastrigin", "rosenbrock", "sphere", "linear")


class Reading(StrEnum):
    PRINT = "print"
    TEXT = "text"

    def coefficients(self, dim: int) -> np.ndarray | None:
        """Linear's, `f[d]`; None: all are one."""
        return np.linspace(-10, 10, 3000, dtype=np.float32)[:dim] if self is Reading.PRINT else None

    def controller(self, method: str, num_children: int) -> Controller:
        """The rates of `method`; of an oracle, a fixed one."""
        if method in (OFMR_NAME, LAMR_NAME):
            return Fixed()
        if self is Reading.PRINT and method.startswith("UCB/"):
            return LateUCB(UCB(arms=int(method.removeprefix("UCB/")), low=1e-3, high=1.0, window=10, exploration=0.25))
        return controller(method, num_children)

    @property
    def ofmr(self) -> OFMR:
        return OFMR(ties=self._ties)

    @property
    def lamr(self) -> LAMR:
        return LAMR(window=100, ties=self._ties)

    @property
    def _ties(self) -> str:
        return "first" if self is Reading.PRINT else "random"


class Late(NamedTuple):
    plays: Plays
    arm: Array  # i32[]  the one in use


@pytree
class LateUCB:
    """UCB/R as in the program behind the printed tables: a reward is credited to the arm that is chosen *after* it.

    The bound of an arm is the mean of its last ten rewards + 0.5·√(ln t / n), t the rewards credited so far and n those
    of the arm. Arms without any come first, from the lowest rate on; the first generation uses the lowest rate.
    """

    bandit: UCB

    def init(self, key: noise.Key, num_children: int, num_genes: int) -> Late:
        return Late(self.bandit.init(key, num_children, num_genes), jnp.zeros((), jnp.int32))

    def rates(self, state: Late, parents: Array) -> Array:
        return jnp.broadcast_to(jnp.exp(self.log_rates(state)), parents.shape)

    def update(self, key: noise.Key, state: Late, feedback: Feedback) -> Late:
        chosen = self.bandit.arm(state.plays, jnp.sum(state.plays.plays))
        return Late(self.bandit.credit(state.plays, chosen, feedback), chosen)

    def log_rates(self, state: Late) -> Array:
        return state.plays.log_arms[state.arm][None]

    def clip(self, state: Late, low: Any, high: Any) -> Late:
        return state._replace(plays=self.bandit.clip(state.plays, low, high))
