"""Claims 10 and 15: whether K = √N is reasonable, and how fast performance drops towards K = 1 and K = N."""

from collections.abc import Callable

import numpy as np

from ...show import stats
from ...show.claims import Finding, Rule, shortfall
from .results import ENOUGH_SIZES, Results, by_generations, growth, setting, sizes_of
from .runs import AUTHORS_SIZES, FUNCTIONS

_FACTOR = 2  # a K that loses no more is reasonable, one that loses as much drops: values range over orders of magnitude
_MANY = 50  # children, from which there is room between K = 1 and K = N: the authors' smallest population
_PAPER_SEEDS = 5


def _reasonable(results: Results) -> Finding:
    """Of claim 10: what K = √N loses."""
    root = {row: row.num_children**0.5 for row in results}
    loss = float(np.mean([curve.loss(root[row]) for row, curve in results.items()]))
    draws = np.mean([curve.resampled_loss(root[row]) for row, curve in results.items()], axis=0)
    ratio = _ratio(loss, draws)
    grown = "; ".join(f"N = {n}: {half}, {most}" for n, (half, most) in growth(results).items())
    return Finding(
        ratio.value <= _FACTOR, f"K = √N ends {ratio} times as high as the best K; K*/√N, K*/N^(3/4): {grown}"
    )


def _drops(results: Results) -> Finding:
    """Of claim 15: what K = 1 and K = N lose."""
    many = {row: curve for row, curve in results.items() if row.num_children >= _MANY}
    holds, found = [], []
    for name, groups in (("K = 1", lambda n: 1), ("K = N", lambda n: n)):
        loss = np.array([curve.loss(groups(row.num_children)) for row, curve in many.items()])
        draws = np.median([curve.resampled_loss(groups(row.num_children)) for row, curve in many.items()], axis=0)
        dropped = int((loss >= np.log10(_FACTOR)).sum())
        holds.append(2 * dropped > len(many))
        ratio = _ratio(float(np.median(loss)), draws)
        found.append(
            f"{name} ends {ratio} times as high as the best K in the median row, {dropped} of {len(many)} drop"
        )
    return Finding(all(holds), ", ".join(found))


def _ratio(log: float, draws: np.ndarray) -> stats.Ratio:
    """From log10 of a ratio and of its resamples `f[count]`."""
    return stats.Ratio(*(float(10**end) for end in (log, *stats.interval(draws))))


def _in_each_setting(decide: Callable[[Results], Finding], limit: str = "") -> Callable[[Results], Finding | None]:
    """Whether a claim holds in every setting that has every function, three N of `_MANY` or more, and two seeds."""

    def decided(results: Results) -> Finding | None:
        settings = {t: rows for t, rows in by_generations(results).items() if _complete(rows)}
        if not settings:
            return None
        parts = {setting(t, rows): decide(rows) for t, rows in settings.items()}
        used = [(row, curve) for rows in settings.values() for row, curve in rows.items()]
        largest = max(row.num_children for row, _ in used)
        seeds = min(curve.log_final.shape[1] for _, curve in used)
        said = [f"In {name} this {part.verdict}: {part.found}" for name, part in parts.items()]
        said += ["The settings differ"] * (len({part.holds for part in parts.values()}) > 1)
        short = shortfall(seeds=(seeds, _PAPER_SEEDS), children=(largest, AUTHORS_SIZES[-1]))
        found = ". ".join(said) + limit.format(largest=largest)
        return Finding(all(part.holds for part in parts.values()), found, short)

    return decided


def _complete(results: Results) -> bool:
    sizes = [n for n in sizes_of(results) if n >= _MANY]
    seeds = min(curve.log_final.shape[1] for curve in results.values())
    return {row.function for row in results} == set(FUNCTIONS) and len(sizes) >= ENOUGH_SIZES and seeds > 1


_WHERE = f"in each setting (ours, the authors') with all functions, three N of {_MANY} or more and two seeds or more"
_INTERVALS = "In brackets: 95% intervals of resampled seeds"
RULES = (
    Rule(
        10,
        "K = √N groups are reasonable; as N grows the best K tends to N^(3/4)",
        f"decided is the first half: {_WHERE}, the final value at K = √N is at most {_FACTOR} times that at K*, the "
        "best divisor of N, in the geometric mean over seeds, functions, spreads and N (between divisors straight in "
        f"log K). The limit is not decided: K*/√N and K*/N^(3/4) are stated for each N. {_INTERVALS}",
        _in_each_setting(_reasonable, ". What K* tends to as N grows is not decidable from N up to {largest:,}"),
    ),
    Rule(
        15,
        "Performance drops very fast as K → 1 and as K → N",
        f"{_WHERE}, the final value at K = 1 is at least {_FACTOR} times that at the best K, in the geometric mean "
        f"over seeds, in more than half of the rows with N ≥ {_MANY}, and so is that at K = N. {_INTERVALS}",
        _in_each_setting(_drops),
    ),
)
