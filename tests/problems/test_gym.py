"""Gymnasium's environments as problems: what a policy does, what it is worth, and what trouble comes to."""

import pickle
import subprocess
import sys
import textwrap
import threading

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr.problems import control, gym, networks
from helpers import TESTS, misbehaving
from helpers.evaluation import values
from helpers.processes import wait_until
from helpers.refusals import assert_refused
from helpers.small_environments import unwrapped

SMALL = "helpers.small_environments"
LINE = f"{SMALL}:Line-v0"
GYMNASIUM = {
    "cartpole": "CartPole-v1",
    "pendulum": "Pendulum-v1",
    "acrobot": "Acrobot-v1",
    "mountaincar": "MountainCar-v0",
}


def get(name=LINE, *args, **options):
    return gym.get(name, *args, **options)


# Policies


@pytest.mark.parametrize("name", GYMNASIUM)
def test_policies_are_those_of_the_control_tasks(name):
    """The same first members, and the same actions on the observations of an episode."""
    task, ours = control.TASKS[name], get(GYMNASIUM[name])
    policy = networks.Policy(task.observations, task.outputs)
    population = ours.init(7, 5)
    np.testing.assert_array_equal(population, policy.init(7, 5))
    assert (ours.num_genes, ours.num_observations) == (policy.num_genes, task.observations)
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(5, 200, task.observations)).astype(np.float32)
    outputs = np.asarray(policy(jnp.asarray(population), jnp.asarray(observations)))
    chosen = set()
    for solution, seen, expected in zip(population, observations, outputs, strict=True):
        actions = [ours.act(solution, observation) for observation in seen]
        if task.discrete:
            assert actions == np.argmax(expected, axis=-1).tolist()
            chosen |= set(actions)
        else:
            np.testing.assert_allclose(actions, np.clip(expected, -2, 2), rtol=1e-4, atol=1e-5)
    assert len(chosen) > 1 or not task.discrete


def starts_of(name, problem):
    """The start states of a problem's episodes, as gymnax's state."""
    variables = {
        "cartpole": ("x", "x_dot", "theta", "theta_dot"),
        "pendulum": ("theta", "theta_dot"),
        "acrobot": ("joint_angle1", "joint_angle2", "velocity_1", "velocity_2"),
        "mountaincar": ("position", "velocity"),
    }[name]
    environment = gymnasium.make(GYMNASIUM[name])
    states = []
    for seed in problem.starts:
        environment.reset(seed=seed)
        states.append(np.asarray(unwrapped(environment).state, float))
    like = control.draw_starts(name, gesmr.noise.key(0), len(states))
    return like.replace(**{v: jnp.asarray(column) for v, column in zip(variables, np.array(states).T, strict=True)})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cartpole", "pendulum", "acrobot", "mountaincar"])
def test_returns_are_those_of_the_control_tasks(name, x64):
    """From the same start states. Gymnasium shows them in single precision: a few episodes go another way."""
    ours = get(GYMNASIUM[name], episodes=4, max_steps=control.TASKS[name].steps)
    theirs = control.get(name, episodes=4)
    theirs = control.Control(name, starts_of(name, ours), theirs.key, theirs.steps)
    population = ours.init(3, 6).astype(np.float64) * np.array([1, 1, 3, 3, 10, 10])[:, None]
    returns = np.array([ours.returns(solution) for solution in population])
    expected = np.asarray(theirs.returns(jnp.asarray(population)))
    same = np.isclose(returns, expected, rtol=1e-3)
    assert same.mean() > 0.8, (returns, expected)
    np.testing.assert_allclose(ours(population[0]), -returns[0].mean())


def test_a_problem_repeats_itself_and_can_be_sent():
    problem = get(episodes=3, seed=4)
    x = problem.init(1, 1)[0]
    returns = problem.returns(x)
    assert len(set(returns)) == 3  # other starts
    np.testing.assert_array_equal(returns, problem.returns(x))
    sent = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(returns, sent.returns(x))
    np.testing.assert_array_equal(returns, get(episodes=3, seed=4).returns(x))
    assert not np.array_equal(returns, get(episodes=3, seed=5).returns(x))
    assert len(pickle.dumps(problem)) < 2000


def test_held_out_episodes_are_others():
    problem = get(episodes=50)
    held_out = problem.held_out(20)
    assert held_out.num_episodes == 20
    assert not set(held_out.starts) & set(problem.starts)
    assert held_out.starts == get(seed=9).held_out(20).starts


def test_episodes_end():
    """Of eight steps, or three; a reward of −|place| each."""
    x = np.zeros(get().num_genes)  # always −1, the first action
    starts = [gymnasium.make(LINE).reset(seed=seed)[0][0] for seed in get(episodes=2).starts]
    for options, steps in (({}, 8), ({"max_steps": 3}, 3)):
        expected = [-sum(abs(start - 1 - step) for step in range(steps)) for start in starts]
        np.testing.assert_allclose(get(episodes=2, **options).returns(x), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["Parts", "Numbers", "Switches"])
def test_spaces_of_parts_and_numbers(name):
    """The environments complain about actions that are not theirs."""
    problem = get(f"{SMALL}:{name}-v0", hidden=4)
    assert (problem.num_observations, problem.actions.outputs) == {
        "Parts": (3, 5), "Numbers": (2, 2), "Switches": (2, 8)}[name]  # fmt: skip
    values = {problem(x) for x in problem.init(0, 8) * 10}
    assert len(values) > 1


def test_actions_are_drawn_in_proportion():
    """With preferences log(1), log(2), log(5): an action's mean is 4/8, its variance 3/4 − 1/4; five deviations."""
    problem = get(sample=True, episodes=200, hidden=1, max_steps=1)
    x = np.zeros(problem.num_genes)
    x[-3:] = np.log([1, 2, 5])
    starts = [gymnasium.make(LINE).reset(seed=seed)[0][0] for seed in problem.starts]
    moves = np.abs(problem.returns(x)) - np.abs(starts)  # ±1 or 0, near 0 something else
    far = np.abs(starts) > 1
    mean = np.mean((moves * np.sign(starts))[far])
    assert abs(mean - 0.5) < 5 * np.sqrt(0.5 / far.sum())
    np.testing.assert_array_equal(problem.returns(x), problem.returns(x))


# Trouble


def test_an_environment_that_raises_follows_on_error():
    problem = get(trouble="raise")
    options = {"popsize": 5, "maxiter": 1, "rng": 0}
    with pytest.raises(RuntimeError, match="the line is broken"):
        gesmr.minimize(problem, problem.x0, **options)
    with pytest.warns(RuntimeWarning, match="no candidate"), pytest.warns(RuntimeWarning, match="the line is broken"):
        result = gesmr.minimize(problem, problem.x0, on_error="worst", **options)
    assert result.errors == result.nfev


@pytest.mark.parametrize(("trouble", "message"), [
    ("reward", "Line-v0 returned a reward of nan after 3 steps"),
    ("observation", "Line-v0 returned an observation of NaN after 3 steps"),
])  # fmt: skip
def test_nan_is_an_error_that_says_where_it_came_from(trouble, message):
    problem = get(trouble=trouble)
    with pytest.raises(FloatingPointError, match=message):
        problem(problem.x0)


def test_an_environment_that_raised_is_closed_and_not_used_again(tmp_path):
    closed = tmp_path / "closed"
    problem = get(trouble="raise", closed=str(closed))
    for _ in range(2):
        with pytest.raises(RuntimeError):
            problem(problem.x0)
    assert closed.read_text() == "closed\n" * 2


def test_threads_do_not_share_an_environment():
    problem = get(episodes=20)
    population = problem.init(0, 8)
    expected = [problem(x) for x in population]
    found = [0.0] * 8

    def work(i):
        found[i] = problem(population[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_environments_are_closed_at_exit(tmp_path):
    script = textwrap.dedent("""
        import sys
        from gesmr.problems import gym
        problem = gym.get("helpers.small_environments:Line-v0", closed=sys.argv[1])
        problem(problem.x0)
    """)
    path = tmp_path / "closed"
    done = subprocess.run([sys.executable, "-c", script, path], cwd=TESTS, capture_output=True, text=True, timeout=120,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert path.read_text() == "closed\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*slower than none:RuntimeWarning")
def test_workers_find_what_one_process_finds(tmp_path):
    closed = tmp_path / "closed"
    problem = get(closed=str(closed))
    options = {"init": problem.init(0, 21), "popsize": 21, "maxiter": 10, "rng": 0}
    alone = gesmr.minimize(problem, problem.x0, **options)
    with gesmr.Pool(2) as pool:
        wait_until(lambda: values(pool, misbehaving.by_whom, tmp_path) and len(list(tmp_path.glob("worker-*"))) == 2)
        together = gesmr.minimize(problem, problem.x0, workers=pool, **options)
    np.testing.assert_array_equal(alone.x, together.x)
    assert alone.fun == together.fun < problem(problem.x0)
    assert closed.read_text() == "closed\n" * 2  # one environment for each worker


@pytest.mark.slow
def test_an_environment_that_hangs_follows_on_error():
    problem = get(trouble="hang")
    with gesmr.Pool(2, timeout=1.0, tries=1) as pool:
        options = {"popsize": 3, "maxiter": 1, "rng": 0, "workers": pool}
        with pytest.raises(gesmr.WorkerError, match="no answer within 1 s"):
            gesmr.minimize(problem, problem.x0, **options)
        with pytest.warns(RuntimeWarning, match="no candidate"), pytest.warns(RuntimeWarning, match="no answer"):
            result = gesmr.minimize(problem, problem.x0, on_error="worst", **options)
    assert result.errors == result.nfev


REFUSALS = {
    "no name": (lambda: get(3), TypeError, ["name", "3"]),
    "an unknown name": (lambda: get("CartPoll-v1"), ValueError, ["name", "CartPoll", "CartPole"]),
    "an unknown version": (lambda: get("CartPole-v9"), ValueError, ["name", "v9"]),
    "an unknown module": (lambda: get("no_such_module:Line-v0"), ValueError, ["name", "no_such_module"]),
    "observations without a length": (lambda: get(f"{SMALL}:Words-v0"), ValueError, ["Words-v0", "Sequence"]),
    "actions in a tuple": (lambda: get(f"{SMALL}:Pairs-v0"), ValueError, ["Pairs-v0", "actions", "Tuple"]),
    "no time limit": (lambda: get(f"{SMALL}:Endless-v0"), ValueError, ["max_steps", "Endless-v0"]),
    "a longer time limit": (lambda: get(max_steps=9), ValueError, ["max_steps", "from 1 to 8", "9"]),
    "numbers that are drawn": (lambda: get("Pendulum-v1", sample=True), ValueError, ["sample", "Pendulum-v1"]),
    "no episodes": (lambda: get(episodes=0), ValueError, ["episodes", "0"]),
    "an unknown init": (lambda: get(init="xavier"), ValueError, ["init", "'uniform'", "xavier"]),
    "another length": (lambda: get()(np.zeros(3)), ValueError, ["solution", "(3,)"]),
    "integers": (lambda: get()(np.zeros(get().num_genes, int)), ValueError, ["solution", "int64"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_refused(case):
    assert_refused(*REFUSALS[case])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert_refused(lambda: get("Acrobot-v1", seed=1, render_mode=None), ModuleNotFoundError, ["gesmr[rl]"])
