"""Any Gymnasium environment as a black-box problem: a value is minus a policy's mean return.

A problem is a few numbers and names, so it can be sent to workers. Every process makes environments of its own when it
first needs them and keeps them. Episodes start from the same seeds every time: parent and child are compared on the
same episodes.
"""

import atexit
import math
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import _checks
from .networks import STD, UNIFORM, Policy

EPISODES = 5
_SEEDS = 2**30  # of training episodes are below it, those of held-out ones are not


@dataclass(frozen=True, eq=False)
class Choices:
    """Actions that are chosen from a few: one of `sizes[i]` for every part i of an action."""

    sizes: tuple[int, ...]
    start: np.ndarray  # of what is chosen; it has the shape of an action

    @property
    def outputs(self) -> int:
        return sum(self.sizes)

    def act(self, outputs: np.ndarray) -> Any:
        """The preferred action."""
        if not self.start.ndim:
            return int(outputs.argmax()) + int(self.start)
        chosen = [part.argmax() for part in np.split(outputs, np.cumsum(self.sizes)[:-1])]
        return np.reshape(chosen, self.start.shape).astype(self.start.dtype) + self.start


@dataclass(frozen=True, eq=False)
class Reals:
    """Actions that are the outputs themselves, clipped to the space they must be in."""

    low: np.ndarray
    high: np.ndarray

    @property
    def outputs(self) -> int:
        return self.low.size

    def act(self, outputs: np.ndarray) -> Any:
        return np.clip(outputs.reshape(self.low.shape), self.low, self.high).astype(self.low.dtype)


@dataclass(frozen=True, eq=False)
class Gym:
    """−(mean return) of a policy over episodes that start from `starts`. `get` makes one."""

    name: str
    starts: tuple[int, ...]  # the seed of each episode
    policy: Policy
    actions: Choices | Reals
    steps: int
    sample: bool = False
    initialisation: str = UNIFORM
    std: float = STD  # of the initialisation "normal"
    options: dict[str, Any] = field(default_factory=dict)  # of gymnasium.make

    @property
    def num_genes(self) -> int:
        return self.policy.num_genes

    @property
    def num_observations(self) -> int:
        return self.policy.inputs

    @property
    def num_episodes(self) -> int:
        return len(self.starts)

    @property
    def x0(self) -> np.ndarray:
        """The first of the policies that `init(0, n)` draws."""
        return self.init(0, 1)[0]

    def init(self, key: Any, n: int) -> np.ndarray:
        """`n` first policies, `f[n, d]`, drawn as those of the control tasks."""
        return np.asarray(self.policy.init(key, n, self.initialisation, self.std))

    def __call__(self, solution: Any) -> float:
        return -float(np.mean(self.returns(solution)))

    def returns(self, solution: Any) -> np.ndarray:
        """The return of every episode, `f[E]`, of a policy `f[d]`."""
        solution = np.asarray(solution)
        if solution.shape != (self.num_genes,) or solution.dtype.kind != "f":
            raise ValueError(f"solution must be f[{self.num_genes}], got {solution.dtype} of shape {solution.shape}")
        layers = self.policy.unpack(solution)
        with _environment(self.name, self.options) as environment:
            return np.array([self._episode(environment, layers, start) for start in self.starts])

    def held_out(self, episodes: int = 100) -> "Gym":
        """The same problem with `episodes` that no seed of `get` leads to, the same for every problem."""
        episodes = _checks.integer("episodes", episodes, 1, _SEEDS)
        return replace(self, starts=tuple(range(_SEEDS, _SEEDS + episodes)))

    def act(self, solution: Any, observation: Any) -> Any:
        """The action that a policy `f[d]` prefers when it sees an observation `f[o]`, flat as the network takes it."""
        return self.actions.act(_outputs(self.policy.unpack(np.asarray(solution)), np.asarray(observation)))

    def _episode(self, environment: Any, layers: "_Layers", start: int) -> float:
        flat = _flattening(environment.observation_space)
        draws = np.random.default_rng([start, 1])  # not the environment's own
        observation, _ = environment.reset(seed=start)
        total = 0.0
        for step in range(self.steps):
            seen = flat(observation)
            if np.isnan(seen).any():
                raise FloatingPointError(f"{self.name} returned an observation of NaN after {step} steps")
            outputs = _outputs(layers, seen)
            if self.sample:  # by Gumbel's trick: softmax gives the probabilities
                outputs = outputs + draws.gumbel(size=outputs.shape)
            observation, reward, terminated, truncated, _ = environment.step(self.actions.act(outputs))
            total += float(reward)
            if not math.isfinite(total):
                raise FloatingPointError(f"{self.name} returned a reward of {reward} after {step + 1} steps")
            if terminated or truncated:
                break
        return total


_Layers = list[tuple[np.ndarray, np.ndarray]]  # weights and biases


def _outputs(layers: _Layers, observation: np.ndarray) -> np.ndarray:
    """What `Policy` computes, in NumPy."""
    (first, first_bias), (second, second_bias) = layers
    hidden = np.maximum(first @ observation.astype(first.dtype) + first_bias, 0)
    return second @ hidden + second_bias


def get(
    name: str,
    episodes: int = EPISODES,
    seed: int = 0,
    *,
    hidden: int = 128,
    max_steps: int | None = None,
    sample: bool = False,
    init: str = UNIFORM,
    std: float = STD,
    **options: Any,
) -> Gym:
    """The environment `name`, as in "CartPole-v1" or "module:Mine-v0", with episodes whose starts follow from `seed`.

    A policy is a network with `hidden` units. It takes the action it prefers; `sample=True` draws actions with the
    softmax of its preferences as probabilities, the same draws for all policies; actions that are numbers are clipped
    to their range. `max_steps` ends episodes earlier than the environment's own limit. `init` and `std` say how first
    policies are drawn: see `networks.INITIALISATIONS`. Other options go to `gymnasium.make`.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of an environment, got {_checks.show(name)}")
    episodes = _checks.integer("episodes", episodes, 1, most=_SEEDS)
    seed = _checks.integer("seed", seed, 0)
    sample = _checks.flag("sample", sample)
    _checks.real("std", std, 0.0)
    with _environment(name, options) as environment:
        actions = _actions(name, environment.action_space)
        policy = Policy(_num_observations(name, environment.observation_space), actions.outputs, hidden)
        limit = environment.spec.max_episode_steps
    if max_steps is None and limit is None:
        raise ValueError(f"max_steps must be given: {name} has no time limit of its own, and some policy may never end")
    if sample and isinstance(actions, Reals):
        raise ValueError(f"sample must be False for {name}, whose actions are not chosen from a few, got {sample!r}")
    steps = limit if max_steps is None else _checks.integer("max_steps", max_steps, 1, limit)
    starts = tuple(int(word) % _SEEDS for word in np.random.SeedSequence(seed).generate_state(episodes))
    problem = Gym(name, starts, policy, actions, steps, sample, init, std, options)
    problem.init(0, 1)  # complains about init
    return problem


# Environments of this process that nobody uses at the moment, by name and options
_idle: dict[str, list[Any]] = defaultdict(list)
_lock = threading.Lock()


@contextmanager
def _environment(name: str, options: dict[str, Any]) -> Iterator[Any]:
    """An environment for the block, to be used again unless the block raises."""
    key = f"{name} {sorted(options.items())}"
    with _lock:
        environment = _idle[key].pop() if _idle[key] else None
    environment = environment or _make(name, options)
    try:
        yield environment
    except BaseException:
        environment.close()
        raise
    with _lock:
        _idle[key].append(environment)


def _make(name: str, options: dict[str, Any]) -> Any:
    try:
        import gymnasium  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"environments need Gymnasium: pip install 'gesmr[rl]' ({error.name} is missing)"
        ) from error
    try:
        return gymnasium.make(name, disable_env_checker=True, **options)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ModuleNotFoundError(f"{name} needs more than Gymnasium: {error}") from error
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        raise ValueError(
            f"name must be one that gymnasium.make takes, got {_checks.show(name)}: {_checks.shortened(str(error))}"
        ) from error


@atexit.register
def _close() -> None:
    for environments in _idle.values():
        while environments:
            environments.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # they are the parent's


def _num_observations(name: str, space: Any) -> int:
    from gymnasium.spaces import flatdim  # noqa: PLC0415

    if not space.is_np_flattenable:
        raise ValueError(f"name must be an environment whose observations make one vector; those of {name} are {space}")
    return flatdim(space)


def _flattening(space: Any) -> Callable[[Any], np.ndarray]:
    from gymnasium.spaces import Box, flatten  # noqa: PLC0415

    return np.ravel if isinstance(space, Box) else lambda observation: np.asarray(flatten(space, observation))


def _actions(name: str, space: Any) -> Choices | Reals:
    from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete  # noqa: PLC0415

    match space:
        case Discrete():
            return Choices((int(space.n),), np.asarray(space.start))
        case MultiDiscrete():
            return Choices(tuple(int(size) for size in space.nvec.ravel()), np.asarray(space.start))
        case MultiBinary():
            return Choices((2,) * math.prod(space.shape), np.zeros(space.shape, space.dtype))
        case Box() if np.issubdtype(space.dtype, np.floating):
            return Reals(space.low, space.high)
    raise ValueError(f"name must be an environment whose actions are choices or numbers; those of {name} are {space}")
