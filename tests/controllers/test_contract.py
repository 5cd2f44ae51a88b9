"""What every controller must satisfy, whatever it does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from helpers.compilations import count_compilations
from helpers.runs import CONTROLLERS, Constant, ask, start, tell

T = 10


def step(ga, problem, state):
    proposal = ga.ask(state)
    return ga.tell(state, proposal, problem(proposal.candidates)), proposal


def by_hand(ga, problem, state, one_step):
    parents = []
    for _ in range(T):
        state, proposal = one_step(ga, problem, state)
        parents.append(proposal.parents)
    return state, np.array(parents)


def assert_close(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-6), a, b)


def assert_equal(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


# Eager JAX takes seconds a generation: one of each class here, their variants in the slow tier.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("FMR", "15MR", "UCB/3", "SAMR", "GESMR uneven") else pytest.mark.slow)
        for name in CONTROLLERS
    ],
)
def test_eager_jit_scan_chunks_and_vmap_agree(name):
    controller = CONTROLLERS[name]
    ga, problem, state = start(controller)
    with jax.disable_jit():
        eager, eager_parents = by_hand(ga, problem, state, step)
    jitted, jit_parents = by_hand(ga, problem, state, jax.jit(step))
    scanned, history = gesmr.evolve(ga, problem, state, T)
    batched_evaluation, _ = gesmr.evolve(ga, problem, state, T, batch_size=5)
    seeds = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(start(controller, seed=s)[2] for s in (7, 0, 9)))
    vmapped, vmapped_history = jax.vmap(lambda s: gesmr.evolve(ga, problem, s, T))(seeds)
    np.testing.assert_array_equal(eager_parents, jit_parents)
    for other in (jitted, scanned, batched_evaluation, jax.tree.map(lambda x: x[1], vmapped)):
        assert_close(eager, other)
    assert_close(history, jax.tree.map(lambda x: x[1], vmapped_history))


def test_the_noise_is_the_same_words_in_every_setting():
    key = gesmr.noise.key(5)
    slots = jnp.arange(13)

    def draw(generation):
        return gesmr.noise.bits(gesmr.noise.fold_in(key, slots, generation), 4)

    with jax.disable_jit():
        eager = np.stack([draw(jnp.int32(t)) for t in range(T)])
    scanned = jax.lax.scan(lambda c, t: (c, draw(t)), 0, jnp.arange(T))[1]
    np.testing.assert_array_equal(eager, jax.vmap(draw)(jnp.arange(T)))
    np.testing.assert_array_equal(eager, scanned)


@pytest.mark.parametrize("pieces", [(3, 7), (1,) * T])
def test_resuming_is_exact(controller, pieces):
    ga, problem, state = start(controller)
    whole, whole_history = gesmr.evolve(ga, problem, state, T)
    histories = []
    for generations in pieces:
        state, history = gesmr.evolve(ga, problem, state, generations)
        histories.append(history)
    assert_equal(whole, state)
    assert_equal(whole_history, jax.tree.map(lambda *h: np.concatenate(h), *histories))


def test_donating_the_state_changes_nothing(controller):
    ga, problem, state = start(controller)
    kept = gesmr.evolve(ga, problem, state, T)
    donated = gesmr.evolve(ga, problem, start(controller)[2], T, donate=True)
    assert_equal(kept, donated)


def test_the_second_call_does_not_recompile(controller):
    traces = []

    def objective(x):
        traces.append(x.shape)
        return jnp.sum(x * x, axis=-1)

    def bump(leaf):
        return leaf * 0.9 if isinstance(leaf, float) else leaf

    ga, _, state = start(controller)
    gesmr.evolve(ga, objective, state, T)
    once = len(traces)
    assert once > 0
    gesmr.evolve(ga, objective, start(controller, seed=3)[2], T)
    gesmr.evolve(jax.tree.map(bump, ga), objective, state, T)
    assert len(traces) == once


def test_problems_are_data_not_code(controller):
    """Two problems of one shape share a program: the shift is an argument of it."""
    ga, _, state = start(controller)
    gesmr.evolve(ga, gesmr.problems.functions.get("sphere", 3, shift=jnp.ones(3)), state, T)
    with count_compilations() as count:
        gesmr.evolve(ga, gesmr.problems.functions.get("sphere", 3, shift=jnp.zeros(3)), state, T)
    assert count() == 0


def test_double_precision(controller, x64):
    ga, problem, state = start(controller, dtype=jnp.float64)
    state, history = gesmr.evolve(ga, problem, state, T)
    assert state.population.dtype == state.fitness.dtype == history.elite.dtype == jnp.float64
    assert np.isfinite(np.asarray(history.elite)).all()


def test_single_precision_population_with_double_precision_on(controller, x64):
    ga, problem, state = start(controller, dtype=jnp.float32)
    state, _ = gesmr.evolve(ga, problem, state, T)
    assert state.population.dtype == jnp.float32


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_children_never_win(controller, bad):
    """Half of space is forbidden: whatever the value there, no member from it is ever selected."""

    def objective(x):
        return jnp.where(x[:, 0] < 0, bad, jnp.sum(x * x, axis=-1))

    ga, problem, _ = start(controller)
    population = problem.init(1, 13)
    state = ga.init(0, population, objective(population))
    for _ in range(T):
        proposal = ask(ga, state)
        parents = np.asarray(state.population)[np.append(proposal.parents, proposal.elite)]
        assert (parents[:, 0] >= 0).all()
        state = tell(ga, state, proposal, objective(proposal.candidates))
        assert np.isfinite(float(state.best_fitness))
        assert np.isfinite(np.asarray(ga.controller.log_rates(state.controller))).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_wholly_non_finite_run_goes_on(controller, bad):
    ga, problem, _ = start(controller)
    state = ga.init(0, problem.init(0, 13), np.full(13, bad, np.float32))
    state, history = gesmr.evolve(ga, Constant(bad), state, T)
    rates = np.exp(np.asarray(ga.controller.log_rates(state.controller)))
    assert np.isfinite(rates).all()
    assert (rates > 0).all()
    assert np.isposinf(np.asarray(history.elite)).all()


def test_asking_twice_gives_the_same_proposal(controller):
    ga, _, state = start(controller)
    assert_equal(ga.ask(state), ga.ask(state))


def test_branches_with_other_keys_differ(controller):
    ga, _, state = start(controller)
    other = ga.ask(state._replace(key=gesmr.noise.key(99)))
    assert (np.asarray(other.population[1:]) != np.asarray(ga.ask(state).population[1:])).all()


SWEEPS = {
    "GA.truncation": (lambda v: gesmr.GA(gesmr.GESMR(groups=4), 12, v), [0.2, 0.5, 1.0]),
    "Fixed.rate": (lambda v: gesmr.GA(gesmr.Fixed(v), 12), [0.01, 0.1, 1.0]),
    "OneFifth.rate": (lambda v: gesmr.GA(gesmr.OneFifth(rate=v), 12), [0.01, 0.1, 1.0]),
    "OneFifth.target": (lambda v: gesmr.GA(gesmr.OneFifth(target=v), 12), [0.1, 0.2, 0.5]),
    "OneFifth.factor": (lambda v: gesmr.GA(gesmr.OneFifth(factor=v), 12), [1.1, 1.5, 2.0]),
    "UCB.low": (lambda v: gesmr.GA(gesmr.UCB(3, low=v), 12), [1e-4, 1e-3, 1e-2]),
    "UCB.high": (lambda v: gesmr.GA(gesmr.UCB(3, high=v), 12), [0.5, 1.0, 10.0]),
    "SAMR.meta_rate": (lambda v: gesmr.GA(gesmr.SAMR(meta_rate=v), 12), [1.1, 2.0, 4.0]),
    "SAMR.low": (lambda v: gesmr.GA(gesmr.SAMR(low=v), 12), [1e-4, 1e-3, 1e-2]),
    "SAMR.high": (lambda v: gesmr.GA(gesmr.SAMR(high=v), 12), [1.0, 10.0, 100.0]),
    "GESMR.meta_rate": (lambda v: gesmr.GA(gesmr.GESMR(4, meta_rate=v), 12), [1.1, 2.0, 4.0]),
    "GESMR.truncation": (lambda v: gesmr.GA(gesmr.GESMR(4, truncation=v), 12), [0.25, 0.5, 1.0]),
    "GESMR.low": (lambda v: gesmr.GA(gesmr.GESMR(4, low=v), 12), [1e-4, 1e-3, 1e-2]),
    "GESMR.high": (lambda v: gesmr.GA(gesmr.GESMR(4, high=v), 12), [1.0, 10.0, 100.0]),
    "Clip.low": (lambda v: gesmr.GA(gesmr.Clip(gesmr.GESMR(4), low=v), 12), [1e-3, 1e-2, 0.1]),
    "Clip.high": (lambda v: gesmr.GA(gesmr.Clip(gesmr.GESMR(4), high=v), 12), [1e-2, 0.1, 1.0]),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_float_hyperparameters_can_be_swept(name):
    """One vmapped run over a hyperparameter is the separate runs, and the hyperparameter matters."""
    make, values = SWEEPS[name]
    problem = gesmr.problems.functions.get("rastrigin", 3)
    population = problem.init(0, 13)

    def run(value):
        ga = make(value)
        return gesmr.evolve(ga, problem, ga.init(0, population, problem(population)), T)[1]

    swept = jax.vmap(run)(jnp.array(values))
    single = [run(v) for v in values]
    for i, history in enumerate(single):
        assert_close(history, jax.tree.map(lambda x, i=i: x[i], swept))
    assert any((np.asarray(swept.elite[0]) != np.asarray(swept.elite[i])).any() for i in (1, 2))


def test_every_kind_of_controller_is_in_the_table():
    inner = {type(getattr(c, "controller", c)).__name__ for c in CONTROLLERS.values()}
    assert inner == {"Fixed", "OneFifth", "UCB", "SAMR", "GESMR"}
