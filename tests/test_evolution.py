"""The compiled loop and its record."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from helpers.runs import ask, start, tell

T = 10


def test_history_is_what_happened(controller):
    ga, problem, state = start(controller)
    final, history = gesmr.evolve(ga, problem, state, T)
    elites, log_rates = [], []
    for _ in range(T):
        log_rates.append(np.mean(ga.controller.log_rates(state.controller)))  # before the update
        proposal = ask(ga, state)
        state = tell(ga, state, proposal, problem(proposal.candidates))
        elites.append(min(np.asarray(state.fitness)))
    np.testing.assert_allclose(history.elite, elites, rtol=1e-4)
    np.testing.assert_allclose(history.log_rate, log_rates, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(history.evaluations, 13 + 12 * np.arange(1, T + 1))
    assert int(final.generation) == T
    assert history.extra is None


def test_rates_are_recorded_as_natural_logarithms_before_the_update():
    """15MR starts at 0.01: the first entry is ln 0.01, and the next differ by ln 2."""
    ga, problem, state = start(gesmr.controller("15MR"))
    _, history = gesmr.evolve(ga, problem, state, T)
    assert float(history.log_rate[0]) == pytest.approx(np.log(0.01), rel=1e-5)
    np.testing.assert_allclose(np.abs(np.diff(history.log_rate)), np.log(2), rtol=1e-4)


def test_samr_records_all_carried_rates():
    ga, problem, state = start(gesmr.controller("SAMR"))
    _, history = gesmr.evolve(ga, problem, state, 1)
    assert float(history.log_rate[0]) == pytest.approx(0.0, abs=1e-4)  # the middle of 1e-3 … 1e3, over N+1


@pytest.mark.parametrize("batch_size", [None, 1, 5, 12, 1000])
def test_every_candidate_is_evaluated_once(batch_size):
    seen = []

    def count(x):
        seen.append(np.array(x))
        return np.sum(np.square(x), axis=-1, dtype=np.float32)

    def objective(x):
        return jax.pure_callback(count, jax.ShapeDtypeStruct(x.shape[:1], jnp.float32), x)

    ga, _, state = start(gesmr.GESMR(groups=3))
    _, history = gesmr.evolve(ga, objective, state, T, batch_size=batch_size)
    assert 13 + sum(len(x) for x in seen) == int(history.evaluations[-1]) == 13 + 12 * T
    if batch_size:
        assert max(len(x) for x in seen) == min(batch_size, 12)


def test_record_sees_every_state():
    ga, problem, state = start(gesmr.GESMR(groups=3))
    final, history = gesmr.evolve(ga, problem, state, T, record=lambda s: (s.generation, s.best))
    generations, best = history.extra
    np.testing.assert_array_equal(generations, np.arange(1, T + 1))
    np.testing.assert_array_equal(best[-1], final.best)
    np.testing.assert_allclose(problem(best), history.elite, rtol=1e-5)


def test_no_generations():
    ga, problem, state = start(gesmr.GESMR(groups=3))
    same, history = gesmr.evolve(ga, problem, state, 0)
    jax.tree.map(np.testing.assert_array_equal, same, state)
    assert history.elite.shape == (0,)


def test_the_elite_is_never_mutated_or_evaluated_again():
    """A noisy objective would betray a second evaluation: the elite keeps the value it was given."""
    ga, problem, state = start(gesmr.Fixed(10.0))
    state = state._replace(fitness=state.fitness.at[4].set(-1000.0))
    final, history = gesmr.evolve(ga, problem, state, T)
    assert (np.asarray(history.elite) == -1000.0).all()
    np.testing.assert_array_equal(final.population[0], state.population[4])


def test_users_classes_work_as_objectives():
    class Shifted:
        def __init__(self, shift):
            self.shift = shift

        def __call__(self, x):
            return jnp.sum((x - self.shift) ** 2, axis=-1)

    ga, _, state = start(gesmr.GESMR(groups=3))
    final, _ = gesmr.evolve(ga, Shifted(2.0), state, 100)
    np.testing.assert_allclose(final.best, [2.0] * 3, atol=0.2)


def test_hyperparameters_and_seeds_nest():
    """A 2 × 3 sweep of truncation and seeds equals the runs one by one."""
    _, problem, _ = start(gesmr.Fixed())

    @jax.jit
    def run(truncation, seed):
        ga = gesmr.GA(gesmr.GESMR(3, truncation=truncation), 12)
        population = problem.init(gesmr.noise.fold_in(gesmr.noise.key(0), seed), 13)
        return gesmr.evolve(ga, problem, ga.init(5, population, problem(population)), T)[1].elite

    truncations, seeds = jnp.array([0.3, 0.7]), jnp.arange(3)
    table = jax.vmap(lambda t: jax.vmap(lambda s: run(t, s))(seeds))(truncations)
    for i, t in enumerate(truncations):
        for j, s in enumerate(seeds):
            np.testing.assert_allclose(table[i, j], run(t, s), rtol=1e-4)


@pytest.fixture
def three_seeds(controller):
    """A GA, its problem and the first states of three seeds."""
    ga, problem, _ = start(controller)

    def first(seed):
        key = gesmr.noise.fold_in(gesmr.noise.key(0), seed)
        population = problem.init(key, 13)
        return ga.init(key, population, problem(population))

    return ga, problem, jax.vmap(first)(jnp.arange(3))


def test_a_state_with_an_axis_of_seeds_is_many_runs(three_seeds):
    """To the bit what `jax.vmap` around the function gives."""
    ga, problem, states = three_seeds
    many = gesmr.evolve(ga, problem, states, T, record=lambda s: s.best)
    around = jax.vmap(lambda state: gesmr.evolve(ga, problem, state, T, record=lambda s: s.best))(states)
    assert many[1].elite.shape == (3, T)
    assert len({np.asarray(run).tobytes() for run in many[1].elite}) == 3
    jax.tree.map(np.testing.assert_array_equal, many, around)


@pytest.mark.parametrize("controller", [gesmr.GESMR(groups=4)])
def test_options_of_many_runs(three_seeds):
    ga, problem, states = three_seeds
    plain = gesmr.evolve(ga, problem, states, T)
    jax.tree.map(np.testing.assert_array_equal, plain, gesmr.evolve(ga, problem, states, T, devices=1))
    batched, _ = gesmr.evolve(ga, problem, states, T, batch_size=5)
    np.testing.assert_allclose(batched.fitness, plain[0].fitness, rtol=1e-4)
    keyed, _ = gesmr.evolve(ga, noisy, states, T, keyed=True)
    one, _ = gesmr.evolve(ga, noisy, jax.tree.map(lambda x: x[2], states), T, keyed=True)
    np.testing.assert_allclose(keyed.population[2], one.population, rtol=1e-4, atol=1e-5)
    again = gesmr.evolve(ga, problem, states, T, donate=True)
    assert states.population.is_deleted()
    jax.tree.map(np.testing.assert_array_equal, plain, again)


@pytest.mark.parametrize("devices", [None, 1])
@pytest.mark.parametrize("axes", [(2, 3), ()])
def test_states_of_other_shapes_are_refused(axes, devices):
    ga, problem, state = start(gesmr.GESMR(groups=4))
    shape = (*axes, 13) if axes else ()
    state = state._replace(fitness=jnp.zeros(shape))
    with pytest.raises(ValueError, match=r"state must be of one run, or of many .* got fitness of shape \("):
        gesmr.evolve(ga, problem, state, T, devices=devices)


# Random objectives


def noisy(x, key):
    """The square of the distance to a point that is drawn anew in every generation, the same for all candidates."""
    return jnp.sum((x - gesmr.noise.normal(gesmr.noise.bits(key, x.shape[-1]))) ** 2, axis=-1)


@pytest.fixture(scope="module")
def by_hand():
    """Elite values of `T` generations under `noisy`, given a GA and a state."""

    @jax.jit
    def step(ga, state, key):
        proposal = ga.ask(state)
        return ga.tell(state, proposal, noisy(proposal.candidates, key))

    def run(ga, state):
        elites = []
        for generation in range(T):
            state = step(ga, state, gesmr.noise.fold_in(state.key, 2**29 + 1, generation))
            elites.append(float(state.best_fitness))
        return elites

    return run


def test_a_random_objective_gets_a_key_for_every_generation(by_hand):
    ga, _, state = start(gesmr.GESMR(groups=3))
    half, first = gesmr.evolve(ga, noisy, state, T // 2, keyed=True)
    _, second = gesmr.evolve(ga, noisy, half, T // 2, keyed=True)  # goes on with other keys
    elite = [*first.elite, *second.elite]
    np.testing.assert_allclose(elite, by_hand(ga, state), rtol=1e-5)
    assert (np.diff(elite) <= 0).all()  # the elite keeps the value it had


@pytest.mark.parametrize(("seeds", "options"), [(1, {"batch_size": 5}), (1, {"devices": 1}), (2, {"devices": 1})])
def test_keys_do_not_depend_on_batches_or_devices(by_hand, seeds, options):
    ga, _, state = start(gesmr.GESMR(groups=3))
    expected = by_hand(ga, state)
    if seeds == 2:
        other = state._replace(key=gesmr.noise.key(9))
        expected = [by_hand(ga, other), expected]
        state = jax.tree.map(lambda *leaves: jnp.stack(leaves), other, state)
    _, history = gesmr.evolve(ga, noisy, state, T, keyed=True, **options)
    np.testing.assert_allclose(history.elite, expected, rtol=1e-5)


def test_evaluations_do_not_overflow():
    """From a generation short of 2³¹ evaluations on: counted as long as a number holds them, and then the highest."""
    problem = gesmr.problems.functions.get("sphere", 2)
    population = problem.init(0, 1001)
    ga = gesmr.GA(gesmr.Fixed(1.0), num_children=1000)
    state = ga.init(0, population, problem(population))
    most = 2**31 - 1
    late = state._replace(generation=jnp.int32(most // 1000 - 5))
    _, history = gesmr.evolve(ga, problem, late, 10)
    generations = most // 1000 - 5 + np.arange(1, 11)
    exact = 1000 * (generations + 1) + 1
    np.testing.assert_array_equal(history.evaluations, np.where(exact <= most, exact, most))
