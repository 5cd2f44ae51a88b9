"""Environments of a few lines, in a module that workers can import: "small_environments:Line-v0" and others."""

import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


def unwrapped(environment: gymnasium.Env) -> Any:
    """The environment itself, whose state can be read and set."""
    return environment.unwrapped


class Line(gymnasium.Env):
    """A place on a line, best at 0, seen as (place, step), moved by −1, 0 or 1. `trouble` comes at step 3."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(3, start=-1)

    def __init__(self, trouble="", closed=""):
        self.trouble, self.closed = trouble, closed

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = self.np_random.uniform(-5, 5), 0
        return self.seen(), {}

    def step(self, action):
        self.place, self.time = self.place + self.moved(action), self.time + 1
        reward = -abs(self.place)
        if self.time == 3:
            if self.trouble == "raise":
                raise RuntimeError("the line is broken")
            while self.trouble == "hang":
                time.sleep(1)
            if self.trouble == "reward":
                reward = np.nan
            if self.trouble == "observation":
                self.place = np.nan
        return self.seen(), reward, False, False, {}

    def seen(self) -> Any:
        return np.array([self.place, self.time], np.float32)

    def moved(self, action):
        assert self.action_space.contains(action), action
        return float(action)

    def close(self):
        if self.closed:
            with Path(self.closed).open("a") as file:
                file.write("closed\n")


class Parts(Line):
    """What is seen has parts, and so have actions."""

    observation_space = spaces.Dict({"far": spaces.Discrete(2), "place": spaces.Box(-np.inf, np.inf, (1,))})
    action_space = spaces.MultiDiscrete([2, 3])

    def seen(self):
        return {"far": int(abs(self.place) > 2), "place": np.array([self.place], np.float32)}

    def moved(self, action):
        assert self.action_space.contains(action), action
        return float(action[0] * (action[1] - 1))


class Numbers(Line):
    """Moved by numbers of a range."""

    action_space = spaces.Box(np.array([-0.5, 0.0], np.float32), np.array([0.5, 0.25], np.float32))

    def moved(self, action):
        assert self.action_space.contains(action), action
        return float(action.sum())


class Switches(Line):
    action_space = spaces.MultiBinary([2, 2])

    def moved(self, action):
        assert self.action_space.contains(action), action
        return float(action.sum() - 2)


class Words(Line):
    observation_space = spaces.Sequence(spaces.Discrete(2))


class Pairs(Line):
    action_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])


for kind in (Line, Parts, Numbers, Switches, Words, Pairs):
    gymnasium.register(f"{kind.__name__}-v0", f"{__name__}:{kind.__name__}", max_episode_steps=8)
gymnasium.register("Endless-v0", f"{__name__}:Line")
