"""The control tasks: the same as Gymnasium's environments, step by step; what a policy's value is; errors."""

import sys

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr import noise
from gesmr.problems import control
from helpers.policies import GOOD, steering
from helpers.small_environments import unwrapped

GYMNASIUM = {
    "cartpole": "CartPole-v0",
    "pendulum": "Pendulum-v1",
    "acrobot": "Acrobot-v1",
    "mountaincar": "MountainCar-v0",
}
# Where gymnax's variables lie in Gymnasium's state, and states from which every branch of the dynamics is reached
VARIABLES = {
    "cartpole": ("x", "x_dot", "theta", "theta_dot"),
    "pendulum": ("theta", "theta_dot"),
    "acrobot": ("joint_angle1", "joint_angle2", "velocity_1", "velocity_2"),
    "mountaincar": ("position", "velocity"),
}
RANGES = {
    "cartpole": ((-2.6, 2.6), (-3, 3), (-0.25, 0.25), (-3, 3)),
    "pendulum": ((-9, 9), (-8, 8)),
    "acrobot": ((-np.pi, np.pi), (-np.pi, np.pi), (-4 * np.pi, 4 * np.pi), (-9 * np.pi, 9 * np.pi)),
    "mountaincar": ((-1.2, 0.6), (-0.07, 0.07)),
}

pytestmark = pytest.mark.filterwarnings("ignore:.*CartPole-v0 is out of date.*", "ignore:.*Overriding environment.*")


def gymnasium_environment(name):
    return gymnasium.make(GYMNASIUM[name], disable_env_checker=True)


def states_of(name, values):
    """gymnax's state with each variable `[n]`, from `f[n, S]`."""
    like = control.draw_starts(name, noise.key(0), len(values))
    return like.replace(**{v: jnp.asarray(values[:, i]) for i, v in enumerate(VARIABLES[name])})


def random_actions(name, rng, n):
    task = control.TASKS[name]
    return rng.integers(0, task.outputs, n) if task.discrete else rng.uniform(-4, 4, n)


def gymnasium_action(name, action):
    return int(action) if control.TASKS[name].discrete else np.array([action])


def gymnax_steps(name):
    environment, parameters = control._environment(name)
    step = jax.vmap(environment.step_env, in_axes=(None, 0, 0, None))
    return jax.jit(lambda states, actions: step(jax.random.key(0), states, actions, parameters))


# The environments


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", control.TASKS)
def test_transitions_are_those_of_gymnasium(name, count, x64):
    """Random transitions, in double precision as Gymnasium computes them."""
    rng = np.random.default_rng(7)
    low, high = np.array(RANGES[name]).T
    values = rng.uniform(low, high, (count, len(low)))
    if name == "cartpole":  # what has ended is not stepped again
        values = values[(np.abs(values[:, 0]) < 2.4) & (np.abs(values[:, 2]) < np.radians(12))]
    actions = random_actions(name, rng, len(values))
    observations, states, rewards, ended, _ = gymnax_steps(name)(states_of(name, values), jnp.asarray(actions))
    after = np.stack([getattr(states, variable) for variable in VARIABLES[name]], axis=1)
    theirs = unwrapped(gymnasium_environment(name))
    theirs.reset(seed=0)
    there = []
    for value, action in zip(values, actions, strict=True):
        theirs.state = value.copy()
        theirs.steps_beyond_terminated = None  # CartPole: this is a first step
        observation, reward, terminated, truncated, _ = theirs.step(gymnasium_action(name, action))
        there.append((np.array(theirs.state), observation, reward, terminated, truncated))
    state, observation, reward, terminated, truncated = (np.array(column) for column in zip(*there, strict=True))
    np.testing.assert_allclose(after, state, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(observations, observation, rtol=1e-6, atol=1e-6)  # theirs are in single precision
    np.testing.assert_allclose(rewards, reward, rtol=1e-9)
    np.testing.assert_array_equal(ended, terminated)
    assert not truncated.any()
    assert terminated.sum() > 10 or name == "pendulum"  # enough of both kinds


@pytest.mark.parametrize("name", control.TASKS)
def test_start_states_are_drawn_like_those_of_gymnasium(name):
    starts = control.draw_starts(name, noise.key(3), 2000)
    ours = np.stack([getattr(starts, variable) for variable in VARIABLES[name]], axis=1)
    theirs = unwrapped(gymnasium_environment(name))
    drawn = []
    for seed in range(200):
        theirs.reset(seed=seed)
        drawn.append(np.asarray(theirs.state, float))
    for mine, other in zip(ours.T, np.array(drawn).T, strict=True):
        width = np.ptp(other)
        # the ends of a uniform distribution, of 2000 and of 200 draws: 5% apart with probability 4e-5
        np.testing.assert_allclose([mine.min(), mine.max()], [other.min(), other.max()], atol=0.05 * width + 1e-12)
        np.testing.assert_allclose(mine.mean(), other.mean(), atol=0.1 * width + 1e-12)


def seen(name, state):
    """What a policy sees of a state. Gymnasium's own observations are in single precision."""
    if name == "pendulum":
        return np.array([np.cos(state[0]), np.sin(state[0]), state[1]])
    if name == "acrobot":
        return np.array([np.cos(state[0]), np.sin(state[0]), np.cos(state[1]), np.sin(state[1]), state[2], state[3]])
    return np.asarray(state)


def episode_in_gymnasium(name, policy, start):
    """The return and the length of an episode of a function from observations to actions."""
    environment = gymnasium_environment(name)
    environment.reset(seed=0)
    inner = unwrapped(environment)
    inner.state = np.array(start, float)
    total, length, ended = 0.0, 0, False
    while not ended:
        _, reward, terminated, truncated, _ = environment.step(policy(seen(name, inner.state)))
        total, length, ended = total + float(reward), length + 1, terminated or truncated
    return total, length


def plain_policy(name, solution):
    """The network in NumPy, from the flat vector."""
    task, hidden = control.TASKS[name], 128
    sizes = np.cumsum([hidden * task.observations, hidden, task.outputs * hidden, task.outputs])
    first, first_bias, second, second_bias = np.split(np.asarray(solution, float), sizes[:-1])

    def act(observation):
        x = np.maximum(first.reshape(hidden, -1) @ observation + first_bias, 0)
        outputs = second.reshape(-1, hidden) @ x + second_bias
        return int(np.argmax(outputs)) if task.discrete else outputs

    return act


@pytest.mark.parametrize(
    "name",
    ["cartpole", "mountaincar", *(pytest.param(name, marks=pytest.mark.slow) for name in ("pendulum", "acrobot"))],
)
def test_whole_episodes_are_those_of_gymnasium(name, x64):
    """Policies of very different strength, two episodes each: returns and lengths, the time limit included."""
    problem = control.get(name, episodes=2, key=5)
    solutions = jnp.asarray(problem.init(11, 6), jnp.float64) * jnp.array([1, 1, 3, 3, 30, 30])[:, None]
    if name in GOOD:
        solutions = solutions.at[5].set(GOOD[name])
    returns = np.asarray(jax.jit(problem.returns)(solutions))
    starts = np.stack([getattr(problem.starts, variable) for variable in VARIABLES[name]], axis=1)
    there = [
        [episode_in_gymnasium(name, plain_policy(name, solution), start) for start in starts] for solution in solutions
    ]
    total, length = np.moveaxis(np.array(there), -1, 0)
    np.testing.assert_allclose(returns, total, rtol=1e-6)
    assert (length == control.TASKS[name].steps).any()  # an episode ended by the time limit
    assert (length < control.TASKS[name].steps).any() or name == "pendulum"
    for i, j in ((0, 0), (5, 1)) if name == "acrobot" else ():
        episode = problem.trajectory(solutions[i], j)
        assert len(episode.rewards) == length[i, j]
        np.testing.assert_allclose(episode.rewards.sum(), total[i, j], rtol=1e-6)
        assert all(len(values) == length[i, j] + 1 for values in episode.states.values())


@pytest.mark.parametrize("name", control.TASKS)
def test_time_limits_are_those_of_gymnasium(name):
    assert gymnasium.spec(GYMNASIUM[name]).max_episode_steps == control.TASKS[name].steps


# The problem


@pytest.fixture(scope="module")
def cartpole():
    return control.get("cartpole")


@pytest.fixture(scope="module")
def evaluate():
    """Values and returns of a population, compiled."""
    return jax.jit(lambda problem, population: (problem(population), problem.returns(population)))


def test_a_value_is_minus_the_mean_return_over_the_five_start_states(cartpole, evaluate):
    values, returns = evaluate(cartpole, cartpole.init(1, 53))
    assert returns.shape == (53, 5)
    np.testing.assert_allclose(values, -np.asarray(returns).mean(axis=1), rtol=1e-6)
    assert ((returns >= 1) & (returns <= 200)).all()
    assert len(np.unique(np.asarray(cartpole.starts.theta))) == 5


def test_a_policy_is_worth_the_same_in_any_company(cartpole, evaluate):
    population = cartpole.init(1, 53)
    some = np.array([0, 24, 25, 52])
    alone = np.concatenate([evaluate(cartpole, population[np.array([i, i])])[1][:1] for i in some])
    np.testing.assert_allclose(evaluate(cartpole, population)[1][some], alone, atol=1)  # rounding may cost a step


def test_episodes_are_fixed_by_the_key_and_others_are_held_out(cartpole):
    same, other = control.get("cartpole", key=0), control.get("cartpole", key=1)
    held_out = cartpole.held_out(7)
    np.testing.assert_array_equal(cartpole.starts.x, same.starts.x)
    np.testing.assert_array_equal(held_out.starts.x, other.held_out(9).starts.x[:7])  # the same for every problem
    drawn = np.concatenate([problem.starts.x for problem in (cartpole, other, held_out, cartpole.fresh(3))])
    assert len(np.unique(drawn)) == 5 + 5 + 7 + 5


def test_a_key_draws_fresh_episodes(cartpole, evaluate):
    falling = steering("cartpole", (0, 0.2, 1, 1), 1, 0)
    population = jnp.asarray(np.stack([GOOD["cartpole"], falling]), jnp.float32)
    fresh, _ = evaluate(cartpole.fresh(8), population)
    np.testing.assert_allclose(cartpole(population, noise.key(8)), fresh, rtol=1e-6)
    assert fresh[0] == -200
    assert -12 < fresh[1] < -5


def test_policies_apart_have_episodes_and_draws_of_their_own():
    """Equal policies in equal company are worth the same, apart they are not; a key's draws repeat."""
    problem = control.get("cartpole", episodes=3, sample=True, apart=True)
    same = jnp.zeros((4, problem.num_genes))  # actions are tossed
    values = jax.jit(lambda key: problem(same, key))
    first = np.asarray(values(noise.key(8)))
    assert len(np.unique(first)) > 1
    np.testing.assert_array_equal(first, values(noise.key(8)))
    assert (first != np.asarray(values(noise.key(9)))).any()
    alone = problem.fresh(noise.fold_in(noise.key(8), 2))
    np.testing.assert_allclose(first[2], -np.mean(alone.returns(same[2])), rtol=1e-6)
    np.testing.assert_allclose(problem(same), np.tile(problem(same[:1]), 4))  # without a key all share


def test_sampled_actions_repeat_and_follow_the_softmax(evaluate):
    """With all weights zero actions are tossed evenly; with a preference of ln 3 one is taken three times in four."""
    problem = control.get("cartpole", episodes=400, sample=True)
    tossed = np.zeros((2, problem.num_genes), np.float32)
    tossed[1, -1] = np.log(3)  # the bias of the action "right"
    returns = np.asarray(evaluate(problem, jnp.asarray(tossed))[1])
    np.testing.assert_array_equal(returns, evaluate(problem, jnp.asarray(tossed))[1])
    assert len(np.unique(returns[0])) > 10  # episodes toss for themselves
    # Gymnasium's CartPole under random actions: the mean of 400 returns has a standard error of about 0.6
    environment, rng = gymnasium_environment("cartpole").unwrapped, np.random.default_rng(1)
    for row, probability in zip(returns, (0.5, 0.75), strict=True):
        lengths = []
        for seed in range(300):
            environment.reset(seed=seed)
            length, ended = 0, False
            while not ended:
                ended, length = environment.step(int(rng.random() < probability))[2], length + 1
            lengths.append(length)
        error = np.hypot(row.std() / 20, np.std(lengths) / np.sqrt(300))
        assert abs(row.mean() - np.mean(lengths)) < 4.5 * error  # fails by chance once in 150,000


@pytest.mark.slow
def test_evolution_learns_to_balance(cartpole, evaluate):
    ga = gesmr.GA(gesmr.controller("GESMR", 20), num_children=20)
    population = cartpole.init(0, 21)
    state = ga.init(0, population, evaluate(cartpole, population)[0])
    state, history = gesmr.evolve(ga, cartpole, state, 30)
    assert history.elite[-1] == -200 == state.best_fitness


# Errors


def test_an_environment_that_returns_nan_counts_as_the_worst_and_is_said():
    problem = control.get("pendulum", episodes=2)
    population = np.array(problem.init(0, 4))
    population[1] = 1e38 * np.sign(population[1])  # a torque of infinity less infinity
    with pytest.warns(RuntimeWarning, match="pendulum returned NaN to 1 of 4 policies, which counts as the worst"):
        values = problem(jnp.asarray(population))
    assert np.isnan(values[1])
    state = gesmr.GA(num_children=3).init(0, problem.init(0, 4), values)
    assert np.isposinf(state.fitness[1])
    assert np.isfinite(np.delete(state.fitness, 1)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: control.get("pong"),
            "name must be one of 'cartpole', 'pendulum', 'acrobot', 'mountaincar', got 'pong'",
        ),
        (lambda: control.get("cartpole", episodes=0), "episodes must be an integer of at least 1, got 0"),
        (lambda: control.get("cartpole", steps=201), "steps must be an integer from 1 to 200, got 201"),
        (lambda: control.get("cartpole", init="zeros").init(0, 3), "init must be one of .*, got 'zeros'"),
        (lambda: control.get("pendulum", sample=True), "sample must be False for pendulum"),
        (lambda: control.get("cartpole")(jnp.zeros((3, 897))), r"population must have 898 genes, got shape \(3, 897\)"),
        (lambda: control.get("cartpole").trajectory(np.zeros(5)), r"solution must have shape \(898,\), got \(5,\)"),
        (lambda: control.get("cartpole").trajectory(np.zeros(898), 5), "episode must be an integer from 0 to 4, got 5"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_without_gymnax_one_sentence_says_what_to_install(monkeypatch):
    control._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "gymnax.environments", None)
    with pytest.raises(ModuleNotFoundError, match=r"control tasks need gymnax: pip install 'gesmr\[rl\]'"):
        control.get("cartpole")
