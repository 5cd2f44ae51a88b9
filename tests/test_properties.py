"""What holds for any sizes, seeds and functions (hypothesis)."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import gesmr


@st.composite
def runs(draw):
    n = draw(st.sampled_from([1, 2, 9]))
    controller = draw(
        st.sampled_from(
            [
                gesmr.Fixed(0.3),
                gesmr.OneFifth(),
                gesmr.UCB(arms=2),
                gesmr.SAMR(),
                gesmr.GESMR(groups=draw(st.sampled_from([1, n, (n + 1) // 2]))),
                gesmr.GESMR(groups=draw(st.sampled_from([1, n, (n + 1) // 2])), score="mean"),
            ]
        )
    )
    truncation = draw(st.floats(0.01, 1.0))
    dim = draw(st.sampled_from([1, 3]))
    return gesmr.GA(controller, n, truncation), dim, draw(st.integers(0, 2**64 - 1)), draw(st.integers(1, 4))


# Functions that are awkward in different ways: plateaus, holes without a value, huge and tiny numbers.
OBJECTIVES = {
    "sphere": lambda x: jnp.sum(x * x, axis=-1),
    "plateaus": lambda x: jnp.floor(jnp.sum(jnp.abs(x), axis=-1)),
    "holes": lambda x: jnp.where(x[:, 0] > 0.5, jnp.nan, jnp.sum(x, axis=-1)),
    "huge": lambda x: 1e37 * jnp.sum(x, axis=-1),
    "log": lambda x: jnp.log(jnp.sum(x, axis=-1)),
    "constant": lambda x: jnp.zeros(x.shape[0]),
}


@settings(max_examples=8, deadline=None, derandomize=True)
@given(runs(), st.sampled_from(sorted(OBJECTIVES)))
def test_the_elite_never_worsens_evaluations_add_up_and_rates_stay_sound(run, name):
    ga, dim, seed, generations = run
    calls = []

    def objective(x):
        calls.append(x.shape[0])
        return OBJECTIVES[name](x)

    population = gesmr.problems.functions.get("sphere", dim, 2.0).init(seed, ga.num_children + 1)
    state = ga.init(seed, population, objective(population))
    best = float(state.best_fitness)
    for _ in range(generations):
        proposal = ga.ask(state)
        assert (np.asarray(proposal.rates) > 0).all()
        assert np.isfinite(np.asarray(proposal.rates)).all()
        np.testing.assert_array_equal(proposal.population[0], state.population[int(proposal.elite)])
        state = ga.tell(state, proposal, objective(proposal.candidates))
        assert float(state.best_fitness) <= best
        best = float(state.best_fitness)
        assert not np.isnan(np.asarray(state.fitness)).any()
        rates = np.exp(np.asarray(ga.controller.log_rates(state.controller)))
        assert np.isfinite(rates).all()
        assert (rates > 0).all()
    assert sum(calls) == ga.num_children + 1 + ga.num_children * generations
