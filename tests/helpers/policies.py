"""Policies for the control tasks that are known to be good."""

import numpy as np

from gesmr.problems import control


def steering(name: str, weights: tuple[float, ...], lowest: int, highest: int) -> np.ndarray:
    """A policy that takes action `highest` where weights · observation is positive, else `lowest`."""
    task, hidden = control.TASKS[name], 128
    first, second = np.zeros((hidden, task.observations)), np.zeros((task.outputs, hidden))
    first[0], first[1] = weights, np.negative(weights)
    second[highest, 0] = second[lowest, 1] = 1
    return np.concatenate([first.ravel(), np.zeros(hidden), second.ravel(), np.zeros(task.outputs)])


GOOD = {
    "cartpole": steering("cartpole", (0, 0.2, 1, 1), 0, 1),
    "mountaincar": steering("mountaincar", (0, 1), 0, 2),
    "acrobot": steering("acrobot", (0, 0, 0, 0, 1, 0), 2, 0),
}
