"""What the study `control` shows: returns and rates of every method, on episodes it evolved on and on others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ..problems.control import TASKS
from ..studies.control import REVISION
from ..studies.lanes import METHODS, ORACLES
from . import stats
from .claims import Claim, Verdict
from .errors import LabError
from .figures import PAGE_WIDTH, draw, legend, log_y, save, settled, style
from .simple import SimpleTable, StudyView
from .store import StoredGroup, write_bytes
from .watch import animation, episode, strip, strips

_OTHERS = tuple(method for method in METHODS if method not in (*ORACLES, "GESMR"))
_EXPECTED = ("cartpole", "pendulum", "acrobot")  # where the paper has GESMR ahead


@dataclass(frozen=True)
class MethodRuns:
    """Runs of one method on one task, seed by seed."""

    seeds: tuple[int, ...]
    elite: np.ndarray  # f[S, T]  return of the best policy, mean over the run's own episodes
    log_rate: np.ndarray  # f[S, T]
    best: np.ndarray  # f[S, d]
    held_out: np.ndarray  # f[S, H]  returns of the last best policy on episodes no run has seen

    @property
    def final(self) -> np.ndarray:
        return self.elite[:, -1]

    @property
    def mean_elite(self) -> np.ndarray:
        """Over generations: high if a run is both fast and good."""
        return self.elite.mean(axis=1)

    @property
    def unseen(self) -> np.ndarray:
        """Mean return on the held-out episodes, `f[S]`."""
        return self.held_out.mean(axis=1)

    @property
    def best_seed(self) -> int:
        """That of the policy with the highest return on the held-out episodes."""
        return self.seeds[int(np.argmax(np.nan_to_num(self.unseen, nan=-np.inf)))]


Results = Mapping[str, Mapping[str, MethodRuns]]  # by task, then by method


def load(groups: Sequence[StoredGroup]) -> Results:
    """By task the methods there are, on the seeds they share. The longest runs, if there are several lengths."""
    runs: dict[tuple[str, str], dict[int, tuple[np.ndarray, ...]]] = {}
    for group in groups:
        for i, spec in enumerate(group.specs):
            if spec["kind"] == "control" and spec["revision"] == REVISION:
                arrays = tuple(group.arrays[name][i] for name in ("elite", "log_rate", "best", "held_out"))
                of_method = runs.setdefault((spec["task"], spec["method"]), {})
                if spec["seed"] not in of_method or len(of_method[spec["seed"]][0]) < len(arrays[0]):
                    of_method[spec["seed"]] = arrays
    results: dict[str, dict[str, MethodRuns]] = {}
    for task in TASKS:
        methods = [method for method in METHODS if (task, method) in runs]
        generations = max((len(run[0]) for m in methods for run in runs[task, m].values()), default=0)
        whole = {m: {s: r for s, r in runs[task, m].items() if len(r[0]) == generations} for m in methods}
        whole = {method: of_seed for method, of_seed in whole.items() if of_seed}
        seeds = sorted(set.intersection(*map(set, whole.values()))) if whole else []
        if seeds:
            results[task] = {
                method: MethodRuns(tuple(seeds), *(np.stack(a) for a in zip(*(r[s] for s in seeds), strict=True)))
                for method, r in whole.items()
            }
    if not results:
        raise LabError("no task has runs of all its methods on the same seeds; run the study again")
    return results


def decide(results: Results) -> list[Claim]:
    needed = {"GESMR", *_OTHERS}
    holds, found = None, "the runs this needs are not all there"
    if set(results) == set(TASKS) and all(needed <= set(results[task]) for task in TASKS):
        behind = {task: _behind(results[task]) for task in TASKS}
        ahead = {task: len(behind[task]) > len(_OTHERS) / 2 for task in TASKS}
        holds = all(ahead[task] for task in _EXPECTED) and not ahead["mountaincar"]
        counts = ", ".join(f"{len(behind[task])} on {TASKS[task].environment}" for task in TASKS)
        reached = int((results["mountaincar"]["GESMR"].final > TASKS["mountaincar"].returns[0]).sum())
        seeds = len(results["mountaincar"]["GESMR"].seeds)
        found = (
            f"of {len(_OTHERS)} other methods GESMR is ahead of {counts}; on MountainCar its best policy reaches the "
            f"goal in {reached} of {seeds} seeds"
        )
    return [
        Claim(
            12,
            "Control: GESMR is ahead of most methods on CartPole, Pendulum and Acrobot, and fails on MountainCar",
            "by the best policy's return, averaged over generations and seeds because final returns tie at a task's "
            "highest, GESMR is above more than half of the other methods, oracles aside, on each of the three tasks, "
            "and above at most half of them on MountainCar",
            found,
            Verdict.of(holds),
        )
    ]


def _behind(methods: Mapping[str, MethodRuns]) -> list[str]:
    """The methods, oracles aside, whose mean return over generations and seeds is below GESMR's."""
    reference = methods["GESMR"].mean_elite.mean()
    return [method for method in _OTHERS if methods[method].mean_elite.mean() < reference]


def make_tables(results: Results) -> list[SimpleTable]:
    rows = []
    for task, methods in results.items():
        best = max((m for m in methods if m not in ORACLES), key=lambda m: methods[m].mean_elite.mean(), default=None)
        for method, runs in methods.items():
            name = f"{method} †" if method in ORACLES else method
            rows.append(
                (
                    TASKS[task].environment,
                    f"{name} *" if method == best else name,
                    float(runs.final.mean()),
                    _error(runs.final),
                    float(runs.mean_elite.mean()),
                    _error(runs.mean_elite),
                    float(runs.unseen.mean()),
                    _error(runs.unseen),
                    float(np.exp(runs.log_rate[:, -1].mean())),
                )
            )
    columns = ("Task", "Method", "final return", "± s.e.", "mean over generations", "± s.e.", "held-out return",
               "± s.e.", "last rate")  # fmt: skip
    episodes = next(iter(next(iter(results.values())).values())).held_out.shape[1]
    note = (
        "Returns of the best policy, mean over the five episodes a run evolves on, then over seeds; higher is better. "
        f"Held out: the last best policy on {episodes} episodes that no run has seen. * the highest mean over "
        "generations, oracles (†) aside. The rate is a geometric mean." + _said_of_nan(results)
    )
    return [SimpleTable("control", "Returns on the control tasks", columns, tuple(rows), note)]


def _said_of_nan(results: Results) -> str:
    bad = [
        f"{TASKS[task].environment} under {method}"
        for task, methods in results.items()
        for method, runs in methods.items()
        if not (np.isfinite(runs.elite).all() and np.isfinite(runs.held_out).all())
    ]
    return f" The environment returned NaN, which counts as the worst, on {', '.join(bad)}." if bad else ""


def _error(values: np.ndarray) -> float | None:
    error = float(stats.standard_error(values))
    return error if np.isfinite(error) else None


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    seeds = max(len(runs.seeds) for methods in results.values() for runs in methods.values())
    made = {
        "control": (
            "Left: return of the best policy over generations, mean over the five episodes a run evolves on. Right: "
            f"mean mutation rate. Means over {seeds} seeds with bands of one standard error.",
            _curves(results),
        )
    }
    shown = {task: _best_of(methods["GESMR"]) for task, methods in results.items() if "GESMR" in methods}
    frames = strips(shown) if shown else None
    if frames is not None:
        made["control_strips"] = (
            "The best policy GESMR found for each task (of all seeds, by its held-out return), on the first held-out "
            "episode, from left to right.",
            frames,
        )
    return made


def _best_of(runs: MethodRuns) -> np.ndarray:
    return runs.best[runs.seeds.index(runs.best_seed)]


def _curves(results: Results) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH, 1.85 * len(results) + 0.8), layout=ConstrainedLayoutEngine(hspace=0.04))
    panels = figure.subplots(len(results), 2, squeeze=False, sharex="row")
    for (task, methods), (left, right) in zip(results.items(), panels, strict=True):
        left.set_title(TASKS[task].environment, loc="left", fontweight="bold")
        rates = np.exp(np.concatenate([runs.log_rate.mean(axis=0) for runs in methods.values()]).astype(np.float64))
        log_y(right, float(rates.min()), float(rates.max()))
        for method, runs in methods.items():
            x = np.arange(1, runs.elite.shape[1] + 1)
            mean, error = runs.elite.mean(axis=0), stats.standard_error(runs.elite.T)
            draw(left, method, x, mean, mean - error, mean + error)
            mean, error = runs.log_rate.mean(axis=0), stats.standard_error(runs.log_rate.T)
            draw(right, method, x, np.exp(mean), np.exp(mean - error), np.exp(mean + error))
        left.set_ylabel("return of the best")
        right.set_ylabel("mean mutation rate")
    for axes in panels[-1]:
        axes.set_xlabel("generation")
    legend(figure, {method for methods in results.values() for method in methods})
    return settled(figure)


def watch(results: Results, task: str | None, method: str, seed: int | None, number: int, to: Path) -> list[str]:
    """Write an animation and a strip of a run's best policy, for one task or all; a line about each.

    Without a seed the run whose policy does best on the held-out episodes.
    """
    if task is not None and task not in results:
        raise LabError(f"--task must be one of {', '.join(results)}, which have been run, got {task!r}")
    lines = []
    for name in results if task is None else [task]:
        methods = results[name]
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


def summary(results: Results) -> str:
    seeds = sorted({len(runs.seeds) for methods in results.values() for runs in methods.values()})
    counts = "–".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
    generations = max(runs.elite.shape[1] for methods in results.values() for runs in methods.values())
    methods = len({method for methods in results.values() for method in methods})
    return f"{len(results)} control tasks, {methods} methods, {counts} seeds, {generations} generations"


VIEW = StudyView(
    name="control",
    title="Control",
    text=(
        "A small network balances, swings up and climbs; its weights are what evolves. A value is minus the return "
        "over five episodes whose start states a run never changes, so parent and child are compared on the same ones; "
        "the table shows what the best policy is worth on episodes it has not seen. Policies take the action they "
        "prefer. MountainCar rewards nothing but reaching the goal: there a first population is often all equal."
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
    decide=decide,
)
