"""What the study `control` shows: returns and rates of every method, on episodes it evolved on and on others."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ....problems.control import TASKS
from ...run.lanes import ORACLES
from ...show import stats
from ...show.figures import PAGE_WIDTH, draw, draw_rate, label, legend, log_y, settled, title
from ...show.output import finite, span
from ...show.table import Table
from ...show.view import View
from .claims import RULES
from .results import VARIANTS, MethodRuns, Results, by_task, load
from .watch import strips


def make_tables(results: Results) -> list[Table]:
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
                    finite(stats.standard_error(runs.final)),
                    float(runs.mean_elite.mean()),
                    finite(stats.standard_error(runs.mean_elite)),
                    float(runs.unseen.mean()),
                    finite(stats.standard_error(runs.unseen)),
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
    return [Table("control", "Returns on the control tasks", columns, tuple(rows), note)]


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


def make_figures(results: Results) -> dict[str, tuple[str, Figure]]:
    seeds = max(len(runs.seeds) for methods in results.values() for runs in methods.values())
    made = {}
    for name, fresh in (("control", False), ("control_fresh", True)):
        if rows := by_task(results, fresh):
            on = f"its five in one evaluation, {VARIANTS[True]}" if fresh else "the five episodes a run evolves on"
            made[name] = (
                f"Left: return of the best policy over generations, mean over {on}. Right: mean mutation rate. Means "
                f"over {seeds} seeds with bands of one standard error.",
                _curves(rows),
            )
    fixed = by_task(results, False)
    shown = {task: methods["GESMR"].best_policy for task, methods in fixed.items() if "GESMR" in methods}
    frames = strips(shown) if shown else None
    if frames is not None:
        made["control_strips"] = (
            "The best policy GESMR found for each task (of all seeds, by its held-out return), on the first held-out "
            "episode, from left to right.",
            frames,
        )
    return made


def _curves(results: Mapping[str, Mapping[str, MethodRuns]]) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH, 1.85 * len(results) + 0.8), layout=ConstrainedLayoutEngine(hspace=0.04))
    panels = figure.subplots(len(results), 2, squeeze=False, sharex="row")
    for (task, methods), (left, right) in zip(results.items(), panels, strict=True):
        title(left, TASKS[task].environment)
        rates = np.exp(np.concatenate([runs.log_rate.mean(axis=0) for runs in methods.values()]).astype(np.float64))
        log_y(right, float(rates.min()), float(rates.max()))
        for method, runs in methods.items():
            x = np.arange(1, runs.elite.shape[1] + 1)
            mean, error = runs.elite.mean(axis=0), stats.standard_error(runs.elite.T)
            draw(left, method, x, mean, mean - error, mean + error)
            mean, error = runs.log_rate.mean(axis=0), stats.standard_error(runs.log_rate.T)
            draw_rate(right, method, x, np.exp(mean), np.exp(mean - error), np.exp(mean + error))
        left.set_ylabel("Return of the best")
        right.set_ylabel("Mean mutation rate")
    label(panels, "Generation")
    shown = {method for methods in results.values() for method in methods}
    legend(figure, shown, 5, bands="± 1 standard error", rates=True)
    return settled(figure)


def summary(results: Results) -> str:
    every = [runs for methods in results.values() for runs in methods.values()]
    seeds, generations = span(len(runs.seeds) for runs in every), max(runs.elite.shape[1] for runs in every)
    methods = len({method for methods in results.values() for method in methods})
    tasks, fresh = len({row.task for row in results}), any(row.fresh for row in results)
    more = f"; also with {VARIANTS[True]}" if fresh else ""
    return f"{tasks} control tasks, {methods} methods, {seeds} seeds, {generations} generations{more}"


VIEW = View(
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
    rules=RULES,
)
