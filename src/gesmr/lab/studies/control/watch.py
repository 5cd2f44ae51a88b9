"""Episodes of control policies as pictures: an animation, and a strip of frames."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from PIL import Image

from ....problems.control import TASKS, Trajectory, get
from ...errors import LabError
from ...run.store import write_bytes
from ...show.figures import PAGE_WIDTH, save, settled, style
from .results import Results, by_task

_FRAMES = 8  # of a strip
_MOST_FRAMES = 250  # of an animation
_DARK, _LIGHT, _ACCENT, _GOAL = "#333333", "#9a9a9a", "#d55e00", "#009e73"
_STEP_MILLISECONDS = {"cartpole": 20, "pendulum": 50, "acrobot": 70, "mountaincar": 30}


def watch(results: Results, task: str | None, method: str, seed: int | None, number: int, to: Path) -> list[str]:
    """Write an animation and a strip of a run's best policy, for one task or all; a line about each.

    Without a seed the run whose policy does best on the held-out episodes. Of runs with fixed episodes.
    """
    fixed = by_task(results, False)
    if task is not None and task not in fixed:
        raise LabError(f"--task must be one of {', '.join(fixed)}, which have been run, got {task!r}")
    lines = []
    for name in fixed if task is None else [task]:
        methods = fixed[name]
        if method not in methods:
            raise LabError(f"--method must be one of {', '.join(methods)}, which have been run, got {method!r}")
        runs = methods[method]
        if seed is not None and seed not in runs.seeds:
            raise LabError(f"--seed must be one of {', '.join(map(str, runs.seeds))}, which have been run, got {seed}")
        chosen = runs.best_seed if seed is None else seed
        seen = episode(name, runs.best[runs.seeds.index(chosen)], number)
        base = to / f"{name}-{method.replace('/', '-')}-seed{chosen}-episode{number}"
        write_bytes(base.with_name(f"{base.name}.gif"), animation(name, seen))
        with style():
            save(strip({name: seen}), base, ("png",))
        lines.append(
            f"{TASKS[name].environment}, {method}, seed {chosen}, held-out episode {number}: return "
            f"{seen.rewards.sum():.1f} in {len(seen.rewards)} steps; {base}.gif, .png"
        )
    return lines


def episode(task: str, solution: np.ndarray, number: int = 0) -> Trajectory:
    """The held-out episode `number` of a policy."""
    try:
        return get(task).held_out(number + 1).trajectory(solution, number)
    except ModuleNotFoundError as error:
        raise LabError(str(error)) from error


def animation(task: str, seen: Trajectory) -> bytes:
    """A GIF of an episode, about as fast as its clock."""
    with style():
        figure = Figure(figsize=(3.2, 2.66), dpi=100)
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 0.9))
        stride = max(2 if task == "cartpole" else 1, -(-len(seen.rewards) // _MOST_FRAMES))
        images = []
        for i in [*range(0, len(seen.rewards), stride), len(seen.rewards)]:
            axes.clear()
            _scene(axes, task, seen, i)
            title = f"{TASKS[task].environment}   step {i}   return {seen.rewards[:i].sum():.0f}"
            axes.set_title(title, fontsize=8, pad=2)
            canvas.draw()
            images.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]).quantize(48))
    data = io.BytesIO()
    pause = [_STEP_MILLISECONDS[task] * stride] * (len(images) - 1) + [1000]
    images[0].save(data, "GIF", save_all=True, append_images=images[1:], duration=pause, loop=0, optimize=False)
    return data.getvalue()


def strip(episodes: Mapping[str, Trajectory]) -> Figure:
    """A row of frames for each task, evenly spaced in time from start to end. Made inside `style()`."""
    figure = Figure(figsize=(PAGE_WIDTH, 0.84 * len(episodes)))
    panels = figure.subplots(len(episodes), _FRAMES, squeeze=False)
    figure.subplots_adjust(left=0.03, right=0.995, bottom=0.01, top=1 - 0.2 / len(episodes), wspace=0.04, hspace=0.3)
    for (task, seen), row in zip(episodes.items(), panels, strict=True):
        steps = np.round(np.linspace(0, len(seen.rewards), _FRAMES)).astype(int)
        for axes, i in zip(row, steps, strict=True):
            _scene(axes, task, seen, int(i))
            axes.set_title(f"step {i}", fontsize=6.5, pad=2, color="#555555")
        row[0].set_ylabel(TASKS[task].environment, fontsize=6.5, fontweight="bold", labelpad=2)
    return settled(figure)


def strips(policies: Mapping[str, np.ndarray]) -> Figure | None:
    """The strip of a policy for each task on the first held-out episode; None where gymnax is not installed."""
    try:
        return strip({task: episode(task, policy) for task, policy in policies.items()})
    except LabError:
        return None


def _scene(axes: Axes, task: str, seen: Trajectory, i: int) -> None:
    """The state before step `i` (the last: after all), and what the policy does there. All views are 4 : 3."""
    axes.set(xticks=[], yticks=[], facecolor="#f6f6f6")
    axes.spines[:].set_visible(False)
    axes.grid(False)
    state = {name: float(values[i]) for name, values in seen.states.items()}
    action = float(seen.actions[i]) if i < len(seen.actions) else None
    _SCENES[task](axes, state, action)
    axes.set_aspect("equal")


def _cartpole(axes: Axes, state: Mapping[str, float], action: float | None) -> None:
    x, lean = state["x"], state["theta"]
    axes.set(xlim=(-2.6, 2.6), ylim=(-1.5, 2.4))
    axes.plot([-2.4, 2.4], [0, 0], color=_LIGHT, linewidth=1.0)
    axes.add_patch(Rectangle((x - 0.4, -0.2), 0.8, 0.4, color=_DARK, zorder=3))
    axes.plot([x, x + 1.6 * np.sin(lean)], [0, 1.6 * np.cos(lean)], color=_ACCENT, linewidth=3, zorder=4,
              solid_capstyle="round")  # fmt: skip
    if action is not None:
        _arrow(axes, (x, -0.7), (1.0 * (2 * action - 1), 0.0))


def _pendulum(axes: Axes, state: Mapping[str, float], action: float | None) -> None:
    angle = state["theta"]
    axes.set(xlim=(-1.8, 1.8), ylim=(-1.35, 1.35))
    axes.plot([0, -np.sin(angle)], [0, np.cos(angle)], color=_ACCENT, linewidth=4, solid_capstyle="round", zorder=3)
    axes.add_patch(Circle((0, 0), 0.08, color=_DARK, zorder=4))
    axes.plot([0, 0], [1.12, 1.25], color=_GOAL, linewidth=2)
    if action is not None:
        _arrow(axes, (0, -1.2), (0.4 * float(np.clip(action, -2, 2)), 0.0))


def _acrobot(axes: Axes, state: Mapping[str, float], action: float | None) -> None:
    first, both = state["joint_angle1"], state["joint_angle1"] + state["joint_angle2"]
    elbow = np.array([np.sin(first), -np.cos(first)])
    tip = elbow + np.array([np.sin(both), -np.cos(both)])
    axes.set(xlim=(-2.88, 2.88), ylim=(-2.16, 2.16))
    axes.plot([-2.1, 2.1], [1, 1], color=_GOAL, linewidth=1.2, linestyle="--")
    axes.plot([0, elbow[0]], [0, elbow[1]], color=_DARK, linewidth=3, solid_capstyle="round", zorder=3)
    axes.plot([elbow[0], tip[0]], [elbow[1], tip[1]], color=_ACCENT, linewidth=3, solid_capstyle="round", zorder=3)
    axes.plot([0, elbow[0]], [0, elbow[1]], "o", color=_DARK, markersize=3, zorder=4)
    if action is not None:
        _arrow(axes, (-1.9, -1.8), (0.7 * (action - 1), 0.0))


def _mountaincar(axes: Axes, state: Mapping[str, float], action: float | None) -> None:
    x = np.linspace(-1.2, 0.6, 80)
    axes.set(xlim=(-1.25, 0.65), ylim=(-0.2, 1.225))
    axes.plot(x, _height(x), color=_LIGHT, linewidth=1.2)
    axes.plot([0.5, 0.5], [_height(0.5), _height(0.5) + 0.2], color=_GOAL, linewidth=2)
    axes.plot(state["position"], _height(state["position"]) + 0.04, "o", color=_ACCENT, markersize=7, zorder=3)
    if action is not None:
        _arrow(axes, (-0.3, -0.08), (0.25 * (action - 1), 0.0))


def _height(x):
    return 0.45 * np.sin(3 * x) + 0.55


def _arrow(axes: Axes, start: tuple[float, float], by: tuple[float, float]) -> None:
    """What the policy does; a dot where that is nothing."""
    if abs(by[0]) < 1e-3:
        axes.plot(*start, ".", color=_DARK, markersize=3)
        return
    end = start[0] + by[0], start[1] + by[1]
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": _DARK, "linewidth": 1.0, "shrinkA": 0})


_SCENES: dict[str, Callable[[Axes, Mapping[str, float], float | None], None]] = {
    "cartpole": _cartpole,
    "pendulum": _pendulum,
    "acrobot": _acrobot,
    "mountaincar": _mountaincar,
}
