"""Claim 11: on images GESMR is ahead of all methods but 15MR."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from ...show import stats
from ...show.claims import Finding, Rule, first_complete, shortfall
from .results import RANKED, SETTINGS, Results, Row, Runs, placed
from .runs import GENERATIONS, PAPER_IMAGES, SEEDS, SETS

_BUT_15MR = tuple(method for method in RANKED if method not in ("GESMR", "15MR"))


def _ahead_of_all_but_one(results: Results) -> Finding | None:
    return first_complete({name.capitalize(): _in_setting(results, setting) for setting, name in SETTINGS.items()})


def _in_setting(results: Results, setting: tuple[str, str]) -> Finding | None:
    rows = _decisive(results, setting)
    if not rows:
        return None
    holds = all(all(_halves(results[row])) for row in rows)
    found = "; ".join(_numbers(row, results[row]) for row in rows)
    return Finding(holds, found, shortfall(images=(min(row.images for row in rows), PAPER_IMAGES)))


def _decisive(results: Results, setting: tuple[str, str]) -> list[Row]:
    """The rows that decide the claim for each set: of those that have all it needs, the one with the most images."""
    usable = [
        row
        for row, runs in results.items()
        if (row.setting, row.generations) == (setting, GENERATIONS)
        and set(RANKED) <= set(runs)
        and len(runs["GESMR"].final) >= SEEDS
    ]
    of_sets = [[row for row in usable if row.dataset == name] for name in SETS]
    return [max(rows, key=lambda row: row.images) for rows in of_sets] if all(of_sets) else []


def _halves(runs: Mapping[str, Runs]) -> tuple[bool, bool]:
    """Whether GESMR is ahead of all but 15MR, and 15MR ahead of GESMR; equal is not ahead."""
    loss = placed(runs)
    behind = [not loss[method] <= loss["GESMR"] for method in _BUT_15MR]  # NaN is behind
    return bool(np.isfinite(loss["GESMR"])) and all(behind), loss["15MR"] < loss["GESMR"]


def _numbers(row: Row, runs: Mapping[str, Runs]) -> str:
    """The halves; mean losses; how far GESMR is from the next method and from 15MR; what it cannot be told from."""
    order, mine = placed(runs), runs["GESMR"].final
    halves = ", ".join(f"({name}) {'yes' if half else 'no'}" for name, half in zip("ab", _halves(runs), strict=True))
    means = ", ".join(f"{method} {loss:.3f}" for method, loss in order.items())
    following = next(method for method in order if method in _BUT_15MR)
    differences = ", ".join(f"GESMR − {m} {_difference(mine, runs[m].final)}" for m in (following, "15MR"))
    alike = [m for m in order if m != "GESMR" and not stats.welch(mine, runs[m].final) < stats.LEVEL]
    name = f"{row.name}, {row.images:,} images"
    return f"{name}: {halves}; {means}; {differences}; no significant difference from {', '.join(alike) or 'none'}"


def _difference(x: np.ndarray, y: np.ndarray) -> str:
    """Of two means, with Welch's 95% interval."""
    test: Any = ttest_ind(x, y, equal_var=False)
    low, high = test.confidence_interval()
    return f"{x.mean() - y.mean():+.3f} ({low:+.3f} to {high:+.3f})"


RULES = (
    Rule(
        11,
        "On MNIST and Fashion-MNIST GESMR is ahead of all methods but 15MR, and 15MR is ahead of GESMR",
        "on both sets, by mean training loss at the end, (a) GESMR is below every other method that is no oracle, 15MR "
        "left out, and (b) 15MR is below GESMR; in the authors' setting (standardised pixels, first weights N(0, "
        "0.1²)) if all these runs are there, else in ours; on the most training images for which all these methods "
        f"have {GENERATIONS:,} generations and at least {SEEDS} seeds",
        _ahead_of_all_but_one,
    ),
)
