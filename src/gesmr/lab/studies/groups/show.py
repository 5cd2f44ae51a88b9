"""What the study `groups` shows: final value against K, the best K against N, claims 10 and 15, what to recommend."""

from collections.abc import Mapping

import numpy as np

from ...show import stats
from ...show.output import span
from ...show.table import Table
from ...show.view import View
from .claims import RULES
from .figures import file_name, make_figures
from .results import Results, by_generations, growth, load, losses, setting, sizes_of


def recommended(results: Results) -> str:
    """The rule with the lowest mean loss, if a paired t-test over rows tells it from √N; else √N."""
    loss = losses(results)
    lowest = min(loss, key=lambda rule: loss[rule].mean())
    return lowest if _p_against_default(loss, lowest) < stats.LEVEL else "√N"


def _p_against_default(loss: Mapping[str, np.ndarray], rule: str) -> float:
    p = float(stats.compare(loss[rule], loss["√N"]).paired)
    return p if np.isfinite(p) else 1.0


def make_tables(results: Results) -> list[Table]:
    rows = tuple(
        (
            row.function.capitalize(),
            row.std,
            row.generations,
            row.num_children,
            curve.best,
            row.num_children**0.5,
            row.num_children**0.75,
            float(10 ** curve.mean.min()),
            float(10 ** curve.at(row.num_children**0.5)),
        )
        for row, curve in results.items()
    )
    columns = ("Function", "std", "T", "N", "best K", "√N", "N^(3/4)", "final at best K", "final at √N")
    note = "T: generations. Geometric means over seeds; at √N interpolated between the divisors of N beside it."
    settings = by_generations(results)
    made = [_rules_table(t, of_setting) for t, of_setting in settings.items()]
    return [Table("groups", "The best number of groups", columns, rows, note), *made, _growth_table(settings)]


def _growth_table(settings: Mapping[int, Results]) -> Table:
    rows = tuple((t, n, *half, *most) for t, rows in settings.items() for n, (half, most) in growth(rows).items())
    columns = ("T", "N", "K*/√N", "√N: from", "√N: to", "K*/N^(3/4)", "N^(3/4): from", "N^(3/4): to")
    note = "T: generations. Geometric means over functions and spreads; from … to: 95% intervals of resampled seeds."
    return Table("groups_growth", "The best number of groups against √N and N^(3/4)", columns, rows, note)


def _rules_table(generations: int, results: Results) -> Table:
    loss = losses(results)
    sizes = sizes_of(results)
    of_size = {n: np.array([row.num_children == n for row in results]) for n in sizes}
    rows = tuple(
        (
            f"K = {rule}",
            float(values.mean()),
            *(float(values[chosen].mean()) for chosen in of_size.values()),
            float(values.max()),
            None if rule == "√N" else _p_against_default(loss, rule),
        )
        for rule, values in loss.items()
    )
    best = recommended(results)
    advice = "keep K ≈ √N as the default" if best == "√N" else f"make K ≈ {best} the default in place of √N"
    note = (
        "log10 of the final value over that of the best K; 0 is as good as the best. N/6 and N/8 are at least 2. "
        f"Recommended is the rule with the lowest mean if a paired t-test over the {len(results)} rows tells it from "
        f"√N (p < 0.05): {advice}."
    )
    columns = ("Rule", "mean loss", *(f"N = {n}" for n in sizes), "worst row", "p against √N")
    name = file_name("groups_rules", generations)
    return Table(name, f"What a rule of thumb for K loses: {setting(generations, results)}", columns, rows, note)


def summary(results: Results) -> str:
    functions = len({row.function for row in results})
    seeds = span(curve.log_final.shape[1] for curve in results.values())
    settings = "; ".join(
        f"{t} generations, N = {', '.join(map(str, sizes_of(rows)))}" for t, rows in by_generations(results).items()
    )
    return f"{functions} functions in 100-D, {settings}, {seeds} seeds"


VIEW = View(
    name="groups",
    title="How many groups",
    text=(
        "GESMR with every number of groups K that divides the population size N. With few groups the rates explore too "
        "little; with many each is judged by too few children. Where is the best K, how does it grow with N, and what "
        "does another K lose? The runs with std 5 are as the paper's authors ran them."
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
    rules=RULES,
)
