"""Twenty generations of the library against an independent NumPy implementation fed the same draws."""

import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from helpers import reference
from helpers.runs import ask, start, tell

T = 20

CASES = {
    "FMR": (gesmr.Fixed(0.01), lambda: reference.FixedRate(0.01)),
    "15MR": (gesmr.controller("15MR"), lambda: reference.OneFifthRule(0.01)),
    "UCB/4": (gesmr.controller("UCB/4"), lambda: reference.Bandit(4)),
    "SAMR": (gesmr.controller("SAMR"), reference.SelfAdaptation),
    "GESMR": (gesmr.GESMR(groups=5), lambda: reference.GroupElites(5)),
    "GESMR uneven": (gesmr.GESMR(groups=6), lambda: reference.GroupElites(6)),
    "GESMR a group each": (gesmr.GESMR(groups=20), lambda: reference.GroupElites(20)),
    "GESMR small pool": (gesmr.GESMR(groups=5, truncation=0.3), lambda: reference.GroupElites(5, truncation=0.3)),
    "GESMR-AVG": (gesmr.GESMR(groups=5, score="mean"), lambda: reference.GroupElites(5, score=np.mean)),
}


def rastrigin(x):
    return 10 * x.shape[1] + (x**2 - 10 * np.cos(2 * np.pi * x)).sum(axis=1)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("truncation", [0.5, 0.33])
def test_twenty_generations(name, truncation, x64):
    controller, make = CASES[name]
    ga, problem, state = start(controller, "rastrigin", 4, 2.0, 20, 3, jnp.float64, truncation)
    elites, log_rates, parents, last = reference.run(state.key, state.population, rastrigin, make(), T, truncation)
    drawn = []
    run = state
    for _ in range(T):
        proposal = ask(ga, run)
        drawn.append(proposal.parents)
        run = tell(ga, run, proposal, problem(proposal.candidates))
    state, history = gesmr.evolve(ga, problem, state, T)
    np.testing.assert_array_equal(np.array(drawn), parents)
    np.testing.assert_allclose(history.elite, elites, rtol=1e-6)
    np.testing.assert_allclose(history.log_rate, log_rates, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.population, last, rtol=1e-5, atol=1e-6)
