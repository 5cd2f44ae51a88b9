"""The paper's control tasks (Appendix D), simulated by gymnax: a value is minus a policy's mean return.

A problem holds the states its episodes start from, so its values do not vary: parent and child are compared on the
same episodes. Ended episodes stop counting; a time limit of our own ends what is left.
"""

import dataclasses
import warnings
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from .. import _checks, noise
from .._pytree import pytree, static
from .networks import INITIALISATIONS, STD, UNIFORM, Policy

EPISODES = 5

# Places below a problem's key, and the key of start states that are for reporting alone
_STARTS, _ACTIONS = np.array([2**32 - 1, 2**32 - 2], np.uint32)
_HELD_OUT_SEED = 2**64 - 12


class Task(NamedTuple):
    environment: str  # gymnax's class for it
    observations: int
    outputs: int  # of the policy: a preference for each action, or the action itself
    discrete: bool
    steps: int  # the time limit
    returns: tuple[float, float]  # the lowest there can be, and the highest


TASKS: dict[str, Task] = {
    "cartpole": Task("CartPole", 4, 2, True, 200, (1.0, 200.0)),
    "pendulum": Task("Pendulum", 3, 1, False, 200, (-200 * (np.pi**2 + 6.4 + 0.004), 0.0)),
    "acrobot": Task("Acrobot", 6, 3, True, 500, (-500.0, 0.0)),
    "mountaincar": Task("MountainCar", 2, 3, True, 200, (-200.0, -1.0)),
}


class Trajectory(NamedTuple):
    """One episode of one policy, until it ended: L steps."""

    states: dict[str, np.ndarray]  # f[L+1] of each of the environment's variables
    actions: np.ndarray  # [L]
    rewards: np.ndarray  # f[L]


@pytree
class Control:
    """−(mean return) of policies over episodes that start from `starts`. `get` makes one."""

    name: str = static()
    starts: Any  # gymnax's state, with a leading axis of E episodes
    key: Any  # of sampled actions
    steps: int = static()
    sample: bool = static(default=False)
    initialisation: str = static(default=UNIFORM)
    std: Any = STD  # of the initialisation "normal"
    apart: bool = static(default=False)

    @property
    def policy(self) -> Policy:
        task = TASKS[self.name]
        return Policy(task.observations, task.outputs)

    @property
    def num_genes(self) -> int:
        return self.policy.num_genes

    def init(self, key: Any, n: int) -> Array:
        """`n` first policies, `f[n, d]`."""
        return self.policy.init(key, n, self.initialisation, self.std)

    def __call__(self, population: Array, key: Any = None) -> Array:
        """Values `f[...]` of policies `f[..., d]`; on fresh episodes if a key is given.

        These are the same for all policies, or each policy's own if the problem is `apart`. A policy that drives the
        environment to NaN has the value NaN, which a GA counts as the worst.
        """
        if key is None:
            returns = self.returns(population)
        else:
            returns = self._returns_apart(population, key) if self.apart else self.fresh(key).returns(population)
        values = -jnp.mean(returns, axis=-1)
        if not isinstance(values, Tracer) and (bad := int(np.sum(~np.isfinite(values)))):
            warnings.warn(
                f"{self.name} returned NaN to {bad} of {values.size} policies, which counts as the worst value",
                RuntimeWarning,
                stacklevel=2,
            )
        return values

    def returns(self, population: Array) -> Array:
        """The return of every episode, `f[..., E]`, of policies `f[..., d]`."""
        _checks.solutions("population", population, self.num_genes)
        weights, start = self._begin(population.reshape(-1, self.num_genes))
        # Stopping when all have ended was measured and does not pay: some policy of a hundred reaches the limit
        end = lax.fori_loop(0, self.steps, lambda _, now: self._step(weights, now)[0], start)
        return end.total.reshape(*population.shape[:-1], self.num_episodes)

    def _returns_apart(self, population: Array, key: Any) -> Array:
        """Returns `f[..., E]` of policies that each have fresh episodes, and draws of actions, of their own."""
        _checks.solutions("population", population, self.num_genes)
        policies = population.reshape(-1, self.num_genes)
        keys = noise.fold_in(noise.key(key), jnp.arange(len(policies)))
        returns = jax.vmap(lambda policy, key: self.fresh(key).returns(policy))(policies, keys)
        return returns.reshape(*population.shape[:-1], self.num_episodes)

    @property
    def num_episodes(self) -> int:
        return jnp.shape(jax.tree.leaves(self.starts)[0])[0]

    def fresh(self, key: Any) -> "Control":
        """The same problem with as many other episodes, drawn from `key`."""
        return self._with_episodes(key, self.num_episodes)

    def held_out(self, episodes: int = 100) -> "Control":
        """The same problem with `episodes` that no key of `get` leads to, the same for every problem of the task."""
        return self._with_episodes(_HELD_OUT_SEED, _checks.integer("episodes", episodes, 1, most=_checks.MOST))

    def _with_episodes(self, key: Any, episodes: int) -> "Control":
        key = noise.key(key)
        starts = draw_starts(self.name, key, episodes)
        return dataclasses.replace(self, starts=starts, key=key)

    def trajectory(self, solution: Any, episode: int = 0) -> Trajectory:
        """What happens in one episode of a policy `f[d]`."""
        solution = jnp.asarray(solution)
        if solution.shape != (self.num_genes,):
            raise ValueError(f"solution must have shape ({self.num_genes},), got {solution.shape}")
        episode = _checks.integer("episode", episode, 0, self.num_episodes - 1)
        states, actions, rewards, alive = jax.device_get(_trajectory(self, solution, episode))
        length = int(alive.sum())
        variables = {name: getattr(states, name)[: length + 1] for name in vars(states) if name != "time"}
        return Trajectory(variables, actions[:length], rewards[:length])

    def _begin(self, policies: Array) -> tuple[tuple[Array, ...], "_Episodes"]:
        """What policies `f[M, d]` compute with, and the start of their episodes."""
        shape = len(policies), self.num_episodes
        state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, shape), self.starts)
        start = _Episodes(state, jnp.zeros((), jnp.int32), jnp.zeros(shape, policies.dtype), jnp.ones(shape, bool))
        return self.policy.weights(policies), start

    def _step(self, weights: tuple[Array, ...], now: "_Episodes") -> tuple["_Episodes", Array, Array]:
        """All episodes one step on; what was done, and the rewards."""
        environment, parameters = _environment(self.name)
        over_all = partial(jax.vmap, in_axes=(None, 0, 0, None))
        observation = jax.vmap(jax.vmap(environment.get_obs))(now.state)
        action = self._act(self.policy.forward(weights, observation), now.time)
        unused = jax.random.key(0, impl="threefry2x32")  # these environments are deterministic
        _, state, reward, ended, _ = over_all(over_all(environment.step_env))(unused, now.state, action, parameters)
        total = now.total + jnp.where(now.alive, reward, 0).astype(now.total.dtype)
        alive = now.alive & ~ended & (now.time + 1 < self.steps)
        return _Episodes(state, now.time + 1, total, alive), action, reward

    def _act(self, outputs: Array, time: Array) -> Array:
        """Actions `[M, E]` for outputs `f[M, E, outputs]`."""
        if not TASKS[self.name].discrete:
            return outputs[..., 0]  # the environment clips it
        if self.sample:  # by Gumbel's trick; all policies share the draws of an episode's step
            place = noise.fold_in(self.key, jnp.arange(self.num_episodes), _ACTIONS)
            words = noise.bits(noise.fold_in(place, time), outputs.shape[-1])
            outputs = outputs - jnp.log(-jnp.log(noise.uniform(words)))
        return jnp.argmax(outputs, axis=-1)


class _Episodes(NamedTuple):
    state: Any  # gymnax's, every leaf [M, E]
    time: Array  # i32[]  steps done
    total: Array  # f[M, E]  the return so far
    alive: Array  # bool[M, E]


@jax.jit
def _trajectory(problem: Control, solution: Array, episode: Array) -> tuple[Any, Array, Array, Array]:
    """States `[T+1]`, actions and rewards `[T]`, and whether each step counts."""
    weights, start = problem._begin(solution[None])

    def step(now: _Episodes, _: None) -> tuple[_Episodes, tuple]:
        then, action, reward = problem._step(weights, now)
        return then, (then.state, action, reward, now.alive)

    _, (states, *rest) = lax.scan(step, start, None, length=problem.steps)
    states = jax.tree.map(lambda first, after: jnp.concatenate([first[None], after]), start.state, states)
    return jax.tree.map(lambda leaf: leaf[:, 0, episode], (states, *rest))


def get(
    name: str,
    episodes: int = EPISODES,
    key: Any = 0,
    *,
    steps: int | None = None,
    sample: bool = False,
    apart: bool = False,
    init: str = UNIFORM,
    std: float = STD,
) -> Control:
    """The task `name`, one of `TASKS`, with episodes whose start states are drawn from `key`.

    A policy takes the action it prefers; `sample=True` draws actions with the softmax of its preferences as
    probabilities, the same draws for all policies. With `apart=True` a call with a key, as `gesmr.evolve(keyed=True)`
    makes them, gives every policy fresh episodes and draws of its own. `steps` is the time limit, by default the
    paper's. `init` and `std` say how first policies are drawn: see `networks.INITIALISATIONS`.
    """
    _checks.choice("name", name, tuple(TASKS))
    episodes = _checks.integer("episodes", episodes, 1, most=_checks.MOST)
    steps = TASKS[name].steps if steps is None else _checks.integer("steps", steps, 1, TASKS[name].steps)
    sample, apart = _checks.flag("sample", sample), _checks.flag("apart", apart)
    _checks.choice("init", init, tuple(INITIALISATIONS))
    _checks.real("std", std, 0.0)
    if sample and not TASKS[name].discrete:
        raise ValueError(f"sample must be False for {name}, whose actions are not chosen from a few, got {sample!r}")
    key = noise.key(key)
    return Control(name, draw_starts(name, key, episodes), key, steps, sample, init, std, apart)


def draw_starts(name: str, key: noise.Key, episodes: int) -> Any:
    """Start states as gymnax draws them: its state, with a leading axis of `episodes`."""
    environment, parameters = _environment(name)
    places = noise.fold_in(key, jnp.arange(episodes), _STARTS)
    keys = jax.random.wrap_key_data(jnp.stack(places, axis=-1), impl="threefry2x32")
    return jax.vmap(environment.reset_env, in_axes=(0, None))(keys, parameters)[1]


@cache
def _environment(name: str) -> tuple[Any, Any]:
    """gymnax's environment and its parameters. Its own time limits are no shorter than ours."""
    try:
        from gymnax.environments import classic_control  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"control tasks need gymnax: pip install 'gesmr[rl]' ({error.name} is missing)"
        ) from error
    environment = getattr(classic_control, TASKS[name].environment)()
    with jax.ensure_compile_time_eval():  # the first call may come while a program is traced
        return environment, environment.default_params
