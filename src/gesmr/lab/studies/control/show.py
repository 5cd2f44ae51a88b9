"""What the study `control` shows: returns and rates of every method, on episodes it evolved on and on others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ....problems.control import TASKS
from ...errors import LabError
from ...run.lanes import METHODS, ORACLES
from ...run.store import StoredJob, write_bytes
from ...show import stats
from ...show.claims import Claim, Verdict, shortfall
from ...show.figures import PAGE_WIDTH, draw, legend, log_y, save, settled, style
from ...show.simple import SimpleTable, StudyView
from .runs import GENERATIONS, REVISION, SEEDS
from .watch import animation, episode, strip, strips

_OTHERS = tuple(method for method in METHODS if method not in (*ORACLES, "GESMR"))
_EXPECTED = ("cartpole", "pendulum", "acrobot")  # where the paper has GESMR ahead
_VARIANTS = {True: "sampled actions and fresh episodes", False: "fixed episodes"}  # by `ControlRun.fresh`


class Row(NamedTuple):
    """What methods are compared on."""

    task: str
    fresh: bool = False  # actions are sampled and episodes fresh at every evaluation, as the authors ran it


@dataclass(frozen=True)
class MethodRuns:
    """Runs of one method on one task, seed by seed."""

    seeds: tuple[int, ...]
    elite: np.ndarray  # f[S, T]  return of the best policy, mean over the run's own episodes; lucky if these are fresh
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


Results = Mapping[Row, Mapping[str, MethodRuns]]  # then by method


def load(groups: Sequence[StoredJob]) -> Results:
    """By row the methods there are, on the seeds they share. The longest runs, if there are several lengths."""
    runs: dict[tuple[Row, str], dict[int, tuple[np.ndarray, ...]]] = {}
    for group in groups:
        for i, spec in enumerate(group.specs):
            if spec["kind"] == "control" and spec["revision"] == REVISION:
                arrays = tuple(group.arrays[name][i] for name in ("elite", "log_rate", "best", "held_out"))
                row = Row(spec["task"], spec.get("fresh", False))
                of_method = runs.setdefault((row, spec["method"]), {})
                if spec["seed"] not in of_method or len(of_method[spec["seed"]][0]) < len(arrays[0]):
                    of_method[spec["seed"]] = arrays
    results: dict[Row, dict[str, MethodRuns]] = {}
    for row in (Row(task, fresh) for fresh in (False, True) for task in TASKS):
        methods = [method for method in METHODS if (row, method) in runs]
        generations = max((len(run[0]) for m in methods for run in runs[row, m].values()), default=0)
        whole = {m: {s: r for s, r in runs[row, m].items() if len(r[0]) == generations} for m in methods}
        whole = {method: of_seed for method, of_seed in whole.items() if of_seed}
        seeds = sorted(set.intersection(*map(set, whole.values()))) if whole else []
        if seeds:
            results[row] = {
                method: MethodRuns(tuple(seeds), *(np.stack(a) for a in zip(*(r[s] for s in seeds), strict=True)))
                for method, r in whole.items()
            }
    if not results:
        raise LabError("no task has runs of all its methods on the same seeds; run the study again")
    return results


def decide(results: Results) -> list[Claim]:
    there = [fresh for fresh in _VARIANTS if _complete(results, fresh)]
    holds, short, found = None, "", "the runs this needs are not all there"
    if there:
        rows = [results[Row(task, there[0])] for task in TASKS]
        holds = _holds(results, there[0])
        short = shortfall(
            seeds=(min(len(methods["GESMR"].seeds) for methods in rows), SEEDS),
            generations=(min(methods["GESMR"].elite.shape[1] for methods in rows), GENERATIONS),
        )
        missing = [f"With {_VARIANTS[fresh]}, not all runs are there" for fresh in _VARIANTS if fresh not in there]
        found = ". ".join([_said(results, fresh) for fresh in there] + missing)
    return [
        Claim(
            12,
            "Control: GESMR is ahead of most methods on CartPole, Pendulum and Acrobot, and fails on MountainCar",
            "by the best policy's return, averaged over generations and seeds because final returns tie, GESMR is "
            "above more than half of the other methods, oracles aside, on each of the three tasks, and above at most "
            "half of them on MountainCar; where every run of all these methods ends at the task's highest return there "
            "is nothing to be ahead of, and the task is not decidable and left out; with sampled actions and fresh "
            "episodes, as the authors ran it, if all these runs are there, else with fixed episodes",
            found,
            Verdict.of(holds),
            short,
        )
    ]


def _complete(results: Results, fresh: bool) -> bool:
    return all({"GESMR", *_OTHERS} <= set(results.get(Row(task, fresh), ())) for task in TASKS)


def _holds(results: Results, fresh: bool) -> bool | None:
    """None: on none of the three tasks can anyone be ahead."""
    ahead = {task: _ahead(task, results[Row(task, fresh)]) for task in TASKS}
    decidable = [ahead[task] for task in _EXPECTED if ahead[task] is not None]
    return all(decidable) and not ahead["mountaincar"] if decidable else None


def _ahead(task: str, methods: Mapping[str, MethodRuns]) -> bool | None:
    """Whether GESMR is ahead; None where there is nothing to be ahead of."""
    final = np.concatenate([methods[method].final for method in ("GESMR", *_OTHERS)])
    if np.allclose(final, TASKS[task].returns[1], rtol=1e-6, atol=1e-6):
        return None
    return len(_behind(methods)) > len(_OTHERS) / 2


def _said(results: Results, fresh: bool) -> str:
    """What was found in a variant, task by task."""
    tasks = "; ".join(_numbers(task, results[Row(task, fresh)]) for task in TASKS)
    car = results[Row("mountaincar", fresh)]["GESMR"]
    reached = int((car.final > TASKS["mountaincar"].returns[0]).sum())
    goal = f"there its best policy reached the goal in {reached} of {len(car.seeds)} seeds"
    return f"With {_VARIANTS[fresh]}, it {Verdict.of(_holds(results, fresh))}: {tasks}; {goal}"


def _numbers(task: str, methods: Mapping[str, MethodRuns]) -> str:
    name, ahead = TASKS[task].environment, _ahead(task, methods)
    if ahead is None:
        return f"{name} not decidable, every run ends at {TASKS[task].returns[1]:g}"
    value, low, high = _lead(methods)
    return (
        f"{name} {'ahead' if ahead else 'not ahead'}, above {len(_behind(methods))} of {len(_OTHERS)} others, "
        f"{value:+.1f} ({low:+.1f} to {high:+.1f}) from their median, held out above {len(_behind(methods, 'unseen'))}"
    )


def _lead(methods: Mapping[str, MethodRuns]) -> tuple[float, float, float]:
    """GESMR's mean return over generations and seeds less the median of the others', with its 95% interval.

    Seeds are resampled, the same for all methods: they share first populations.
    """

    def lead(means: np.ndarray) -> np.ndarray:
        return means[0] - np.median(means[1:], axis=0)

    returns = np.stack([methods[method].mean_elite for method in ("GESMR", *_OTHERS)])
    resampled = returns[:, stats.resamples(returns.shape[1])].mean(axis=2)
    return float(lead(returns.mean(axis=1))), *stats.interval(lead(resampled))


def _behind(methods: Mapping[str, MethodRuns], by: str = "mean_elite") -> list[str]:
    """The methods, oracles aside, whose mean return (over generations and seeds, or `unseen`) is below GESMR's."""
    means = {method: getattr(methods[method], by).mean() for method in ("GESMR", *_OTHERS)}
    return [method for method in _OTHERS if means[method] < means["GESMR"]]


def make_tables(results: Results) -> list[SimpleTable]:
    rows = []
    for row, methods in results.items():
        best = max((m for m in methods if m not in ORACLES), key=lambda m: methods[m].mean_elite.mean(), default=None)
        for method, runs in methods.items():
            name = f"{method} †" if method in ORACLES else method
            rows.append(
                (
                    TASKS[row.task].environment,
                    "fresh" if row.fresh else "fixed",
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
    columns = ("Task", "Episodes", "Method", "final return", "± s.e.", "mean over generations", "± s.e.",
               "held-out return", "± s.e.", "last rate")  # fmt: skip
    episodes = next(iter(next(iter(results.values())).values())).held_out.shape[1]
    note = (
        "Returns of the best policy, mean over the five episodes a run evolves on, then over seeds; higher is better. "
        f"Held out: the last best policy on {episodes} episodes that no run has seen. * the highest mean over "
        "generations, oracles (†) aside. The rate is a geometric mean." + _said_of_luck(results) + _said_of_nan(results)
    )
    return [SimpleTable("control", "Returns on the control tasks", columns, tuple(rows), note)]


def _said_of_luck(results: Results) -> str:
    if not any(row.fresh for row in results):
        return ""
    return (
        " Fresh: actions are sampled (but Pendulum's, which are numbers) and every policy has episodes of its own, as "
        "the authors ran it. The best policy's return is then that of one evaluation, the luckiest: believe the "
        "held-out return, with sampled actions too."
    )


def _said_of_nan(results: Results) -> str:
    bad = [
        f"{TASKS[row.task].environment} under {method}"
        for row, methods in results.items()
        for method, runs in methods.items()
        if not (np.isfinite(runs.elite).all() and np.isfinite(runs.held_out).all())
    ]
    return f" The environment returned NaN, which counts as the worst, on {', '.join(bad)}." if bad else ""


def _error(values: np.ndarray) -> float | None:
    error = float(stats.standard_error(values))
    return error if np.isfinite(error) else None


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    seeds = max(len(runs.seeds) for methods in results.values() for runs in methods.values())
    made = {}
    for name, fresh in (("control", False), ("control_fresh", True)):
        if rows := _of_variant(results, fresh):
            on = f"its five in one evaluation, {_VARIANTS[True]}" if fresh else "the five episodes a run evolves on"
            made[name] = (
                f"Left: return of the best policy over generations, mean over {on}. Right: mean mutation rate. Means "
                f"over {seeds} seeds with bands of one standard error.",
                _curves(rows),
            )
    fixed = _of_variant(results, False)
    shown = {task: _best_of(methods["GESMR"]) for task, methods in fixed.items() if "GESMR" in methods}
    frames = strips(shown) if shown else None
    if frames is not None:
        made["control_strips"] = (
            "The best policy GESMR found for each task (of all seeds, by its held-out return), on the first held-out "
            "episode, from left to right.",
            frames,
        )
    return made


def _of_variant(results: Results, fresh: bool) -> Mapping[str, Mapping[str, MethodRuns]]:
    """By task."""
    return {row.task: methods for row, methods in results.items() if row.fresh == fresh}


def _best_of(runs: MethodRuns) -> np.ndarray:
    return runs.best[runs.seeds.index(runs.best_seed)]


def _curves(results: Mapping[str, Mapping[str, MethodRuns]]) -> Figure:
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

    Without a seed the run whose policy does best on the held-out episodes. Of runs with fixed episodes.
    """
    fixed = _of_variant(results, False)
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


def summary(results: Results) -> str:
    seeds = sorted({len(runs.seeds) for methods in results.values() for runs in methods.values()})
    counts = "–".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
    generations = max(runs.elite.shape[1] for methods in results.values() for runs in methods.values())
    methods = len({method for methods in results.values() for method in methods})
    tasks, fresh = len({row.task for row in results}), any(row.fresh for row in results)
    more = f"; also with {_VARIANTS[True]}" if fresh else ""
    return f"{tasks} control tasks, {methods} methods, {counts} seeds, {generations} generations{more}"


VIEW = StudyView(
    name="control",
    title="Control",
    text=(
        "A small network balances, swings up and climbs; its weights are what evolves. A value is minus the return "
        "over five episodes whose start states a run never changes, so parent and child are compared on the same ones; "
        "the table shows what the best policy is worth on episodes it has not seen. Policies take the action they "
        "prefer. The authors sampled actions and had fresh episodes at every evaluation: fresh runs do that too. "
        "MountainCar rewards nothing but reaching the goal: there a first population is often all equal."
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
    decide=decide,
)
