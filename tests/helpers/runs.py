"""Small runs of the GA that several test files start from."""

from typing import Any

import jax
import jax.numpy as jnp

import gesmr
from gesmr.problems import functions

# One of each kind, for N = 12: K that divides N, K that does not, and as many groups as children.
CONTROLLERS = {
    "GESMR": gesmr.GESMR(groups=4),  # the first, which is the one of `pytest --quick`
    "FMR": gesmr.controller("FMR"),
    "15MR": gesmr.controller("15MR"),
    "UCB/3": gesmr.controller("UCB/3"),
    "SAMR": gesmr.controller("SAMR"),
    "GESMR uneven": gesmr.GESMR(groups=5),
    "GESMR a group each": gesmr.GESMR(groups=12),
    "GESMR-AVG": gesmr.GESMR(groups=4, score="mean"),
    "GESMR-FIX": gesmr.GESMR(groups=4, adapt=False),
    "GESMR-X": gesmr.GESMR(groups=5, recombine=0.4),
    "GESMR-X of two": gesmr.Clip(gesmr.GESMR(groups=4, recombine=0.5, mates=2), 1e-2, 10.0),
    "SAMR-X": gesmr.SAMR(recombine=0.5),
    "clipped GESMR": gesmr.Clip(gesmr.GESMR(groups=4), 1e-2, 10.0),
}


def start(
    controller: gesmr.Controller[Any],
    function: str = "sphere",
    dim: int = 3,
    std: float = 1.0,
    num_children: int = 12,
    seed: int = 0,
    dtype: Any = None,
    truncation: float = 0.5,
) -> tuple[gesmr.GA, functions.Function, gesmr.State]:
    """A GA, its problem and an evaluated first population."""
    problem = functions.get(function, dim, std)
    ga = gesmr.GA(controller, num_children, truncation)
    population = problem.init(seed, num_children + 1, dtype)
    return ga, problem, ga.init(seed, population, problem(population))


@jax.jit
def ask(ga: gesmr.GA, state: gesmr.State) -> gesmr.Proposal:
    """`ga.ask`, compiled once for all settings of a controller."""
    return ga.ask(state)


@jax.jit
def tell(ga: gesmr.GA, state: gesmr.State, proposal: gesmr.Proposal, values: jax.Array) -> gesmr.State:
    """`ga.tell`, compiled once for all settings of a controller."""
    return ga.tell(state, proposal, values)


@gesmr.pytree
class Constant:
    """An objective with one value everywhere, which is data: another one needs no other program."""

    value: Any

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.full(x.shape[0], self.value)
