"""Claims 1–7, 14 and 18 of the paper, each decided by a rule on our own runs.

Brackets hold the middle 95% over resampled seeds, of claim 14 over resampled turns.
"""

from collections.abc import Sequence

import numpy as np

from ...run.function_task import WITH_OPTIMUM
from ...show import stats
from ...show.claims import Finding, Rule, shortfall
from ...show.resolution import resolved
from .results import RUGGED, SMOOTH, Results
from .runs import GENERATIONS

UNBOUNDED = ("15MR", "SAMR", "GESMR")
PAPER_SEEDS = 40
_RATE_OUT_OF_BOUNDS = np.log(1e4)  # ten times the highest rate any method starts with
_NEGLIGIBLE = 1.10  # times the cost of a fixed rate
_AS_GOOD = 1.5  # times LAMR-100's median
_HIGH = 100  # dimensions, at least
_DIMENSIONS = 3  # at least, for a claim about all rows


def _best(results: Results) -> Finding | None:
    rows = _rows(results, WITH_OPTIMUM, ("GESMR", *results.ranked))
    if not rows:
        return None
    final, mean = (_wins(results, values, rows) for values in (results.final, results.mean))
    found = f"best in {final} and {mean} of {len(rows)} rows"
    return Finding(_most(final, rows) and _most(mean, rows), found, _short(results, rows, results.ranked))


def _samr_smooth(results: Results) -> Finding | None:
    pair = ("SAMR", "LAMR-100")
    smooth, rugged = (_rows(results, functions, pair) for functions in (SMOOTH, RUGGED))
    if not (smooth and rugged):
        return None
    on_smooth, on_rugged = (_not_worse(results, *pair, rows) for rows in (smooth, rugged))
    found = f"matches in {on_smooth} of {len(smooth)} smooth and {on_rugged} of {len(rugged)} rugged rows"
    holds = _most(on_smooth, smooth) and 2 * on_rugged.value < len(rugged)
    return Finding(holds, found, _short(results, smooth + rugged, pair))


def _samr_rugged(results: Results) -> Finding | None:
    pair = ("SAMR", "OFMR")
    rows = _rows(results, RUGGED, pair)
    if not rows:
        return None
    lower = _lower(results, results.log_rate, "SAMR", "OFMR", rows)
    lags = _lower(results, results.final, "OFMR", "SAMR", rows)
    found = f"rate below in {lower}, value above in {lags} of {len(rows)} rows"
    return Finding(_most(lower, rows) and _most(lags, rows), found, _short(results, rows, pair))


def _closest_rates(results: Results) -> Finding | None:
    methods = ("GESMR", *results.ranked, "LAMR-100")
    rows = _rows(results, WITH_OPTIMUM, methods)
    if not rows:
        return None
    won = _wins(results, results.rate_error, rows)
    return Finding(_most(won, rows), f"closest in {won} of {len(rows)} rows", _short(results, rows, methods))


def _as_good_as_oracle(results: Results) -> Finding | None:
    pair = ("GESMR", "LAMR-100")
    rows = _rows(results, WITH_OPTIMUM, pair)
    if not rows:
        return None
    ratios = {i: stats.ratio_of_medians(*_finals(results, i, pair)) for i in rows}
    within = sum(ratio.value <= _AS_GOOD for ratio in ratios.values())
    surely = sum(ratio.high <= _AS_GOOD for ratio in ratios.values())
    beyond = sum(ratio.low > _AS_GOOD for ratio in ratios.values())
    found = [
        f"within {_AS_GOOD} times in {within} of {len(rows)} rows (the ratio's whole 95% interval is within in "
        f"{surely}, beyond in {beyond})"
    ]
    for dim in sorted({results.rows[i].dim for i in rows}):
        of_dim = np.array([ratio.value for i, ratio in ratios.items() if results.rows[i].dim == dim])
        ahead, behind, good = (int(n.sum()) for n in (of_dim < 1, of_dim > 1, of_dim <= _AS_GOOD))
        found.append(f"d = {dim}: {good} of {len(of_dim)}, ahead in {ahead}, behind in {behind}")
    return Finding(2 * within > len(rows), "; ".join(found), _short(results, rows, pair))


def _finals(results: Results, row: int, methods: Sequence[str]) -> list[np.ndarray]:
    """Final values of each method, as far as the function resolves them, without missing ones."""
    function, shifted = results.rows[row].function, results.variant.shifted
    found = results.final[row, results.columns(methods)]
    return [resolved(function, values[np.isfinite(values)], shifted) for values in found]


def _variants(results: Results) -> Finding | None:
    methods = ("GESMR", "GESMR-AVG", "GESMR-FIX")
    rows, variants = _rows(results, WITH_OPTIMUM, methods), methods[1:]
    if not rows:
        return None
    worse = {variant: _lower(results, results.final, "GESMR", variant, rows) for variant in variants}
    surely = {variant: len(rows) - _not_worse(results, variant, "GESMR", rows).value for variant in variants}
    found = [f"{v} is worse in {worse[v]} of {len(rows)} rows, significantly in {surely[v]}" for v in variants]
    holds = all(_most(count, rows) for count in worse.values())
    return Finding(holds, "; ".join(found), _short(results, rows, methods))


def _linear(results: Results) -> Finding | None:
    rows = _rows(results, ("linear",), (*UNBOUNDED, *results.methods))
    if not rows:
        return None
    ends = [[results.curves(results.rows[i], m).log_rate[:, -1] for m in results.methods] for i in rows]
    unbounded = np.isin(results.methods, UNBOUNDED)
    grown, resampled = (means > _RATE_OUT_OF_BOUNDS for means in _means(np.array(ends)))
    exactly = _count((grown == unbounded).all(axis=1), (resampled == unbounded[:, None]).all(axis=1))
    columns = results.columns(results.ranked)
    order, orders = (np.argsort(means, axis=1) for means in _means(results.final[rows][:, columns]))
    wanted = [results.ranked.index(method) for method in ("15MR", "GESMR", "SAMR")]
    first, then = _count(order[:, 0] == wanted[0], orders[:, 0] == wanted[0]), (order[:, :3] == wanted).all(axis=1)
    others = [
        f"{method} too in {count}"
        for method, count in zip(results.methods, grown.sum(axis=0), strict=True)
        if count and method not in UNBOUNDED
    ]
    found = [
        f"only these three in {exactly} of {len(rows)} rows",
        *others,
        f"15MR lowest in {first}, followed by GESMR and SAMR in {then.sum()}",
    ]
    return Finding(exactly.value == first.value == len(rows), "; ".join(found), _short(results, rows, results.methods))


def _cost(results: Results) -> Finding | None:
    dims = sorted(results.seconds)
    if max(dims, default=0) < _HIGH:
        return None
    ratios = [stats.ratio_of_medians(*results.seconds[dim].T[::-1]) for dim in dims]
    last = ratios[-1]
    holds = None if last.low <= _NEGLIGIBLE < last.high else last.high <= _NEGLIGIBLE
    said = [f"{r.value:.3f} ({r.low:.3f}–{r.high:.3f}) at d = {dim}" for dim, r in zip(dims, ratios, strict=True)]
    return Finding(holds, ", ".join(said), shortfall(dimensions=(len(dims), len(GENERATIONS))))


def _high_and_rugged(results: Results) -> Finding | None:
    rows = _rows(results, WITH_OPTIMUM, ("GESMR", *results.ranked))
    rugged = [i for i in rows if results.rows[i].function in RUGGED]
    high = [i for i in rows if results.rows[i].dim >= _HIGH]
    both = [i for i in rugged if i in high]
    if not both:
        return None
    wins = [[_wins(results, values, chosen) for values in (results.final, results.mean)]
            for chosen in (both, rugged, high)]  # fmt: skip
    said = [f"{final} and {mean} of" for final, mean in wins]
    found = (
        f"best in {said[0]} {len(both)} such rows, in {said[1]} the {len(rugged)} rugged ones, in {said[2]} the "
        f"{len(high)} with d ≥ {_HIGH}"
    )
    return Finding(all(_most(won, both) for won in wins[0]), found, _short(results, rows, results.ranked))


def _rows(results: Results, functions: Sequence[str], methods: Sequence[str]) -> list[int]:
    """Rows of these functions where every method has two seeds or more; none if they are too few to decide by.

    The paper speaks of all its functions and dimensions: every function must be there, in three dimensions at least.
    """
    if not set(methods) <= set(results.methods):
        return []
    seeds = _seeds(results, methods)
    rows = [i for i in results.select(functions) if seeds[i] > 1]
    dims = {f: {results.rows[i].dim for i in rows if results.rows[i].function == f} for f in functions}
    return rows if all(len(found) >= _DIMENSIONS for found in dims.values()) else []


def _seeds(results: Results, methods: Sequence[str]) -> np.ndarray:
    """How many seeds each row has of all these methods at least, `i[R]`."""
    there = np.isfinite(results.final[:, results.columns(methods)])
    return np.min(there.sum(axis=-1), axis=-1)


def _short(results: Results, rows: list[int], methods: Sequence[str]) -> str:
    """How far these rows fall short of the paper's."""
    dims, seeds = {results.rows[i].dim for i in rows}, int(_seeds(results, methods)[rows].min())
    return shortfall(seeds=(seeds, PAPER_SEEDS), dimensions=(len(dims), len(GENERATIONS)))


class _Count(stats.Ratio):
    """A number of rows, with its interval."""

    def __str__(self) -> str:
        return f"{self.value:g} ({self.low:g}–{self.high:g})"


def _count(which: np.ndarray, resampled: np.ndarray) -> _Count:
    """How many rows, given which they are, `bool[R]`, and which they would be in every resample, `bool[R, count]`."""
    low, high = stats.interval(resampled.sum(axis=0))
    return _Count(int(which.sum()), round(low), round(high))


def _most(count: _Count, rows: list[int]) -> bool:
    """More than half; half is not most."""
    return 2 * count.value > len(rows)


def _means(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Over seeds, and in every resample of these: `f[R, M]` and `f[R, M, count]`."""
    return stats.mean(values), stats.resampled_means(values)


def _wins(results: Results, values: np.ndarray, rows: list[int]) -> _Count:
    """In how many rows GESMR has the lowest mean of all but the oracles."""
    columns, place = results.columns(results.ranked), results.ranked.index("GESMR")
    lowest, resampled = (np.nanargmin(means, axis=1) == place for means in _means(values[rows][:, columns]))
    return _count(lowest, resampled)


def _lower(results: Results, values: np.ndarray, one: str, other: str, rows: list[int]) -> _Count:
    """In how many rows `one` has the lower mean."""
    columns = results.columns((one, other))
    lower, resampled = (means[:, 0] < means[:, 1] for means in _means(values[rows][:, columns]))
    return _count(lower, resampled)


def _not_worse(results: Results, one: str, other: str, rows: list[int]) -> _Count:
    """In how many rows `one` is not significantly worse than `other`, by the paper's test on the seeds they share."""
    which, resampled = [], []
    for i in rows:
        pair = results.final[i, results.columns((one, other))]
        pair = pair[:, np.isfinite(pair).all(axis=0)]
        which.append(_is_not_worse(*pair))
        resampled.append(_is_not_worse(*pair[:, stats.resamples(pair.shape[1])]))  # f[count, S] each
    return _count(np.array(which), np.array(resampled))


def _is_not_worse(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ~((x.mean(-1) > y.mean(-1)) & (stats.welch(x, y) < stats.LEVEL))


RULES = (
    Rule(
        1,
        "GESMR is the best method in most rows of Tables 1 and 2, oracles aside",
        "lowest mean of all but the oracles in more than half of the rows with a minimum, in both tables",
        _best,
    ),
    Rule(
        2,
        "SAMR matches the oracle LAMR-100 on smooth functions only",
        "its final value is not significantly worse (Welch, p < 0.05) in more than half of the rows of Rosenbrock and "
        "Sphere, and in fewer than half of those of Ackley, Griewank and Rastrigin",
        _samr_smooth,
    ),
    Rule(
        3,
        "On rugged functions SAMR's rates fall below OFMR's and its values lag",
        "mean log rate over the run below OFMR's, and mean final value above OFMR's, each in more than half of the "
        "rows of Ackley, Griewank and Rastrigin",
        _samr_rugged,
    ),
    Rule(
        4,
        "GESMR's mutation rates are the closest to LAMR-100's (Table 3)",
        "lowest mean of all but the oracles in more than half of the rows of Table 3",
        _closest_rates,
    ),
    Rule(
        5,
        "GESMR's final values are as good as LAMR-100's",
        f"the ratio of its median final value to LAMR-100's is at most {_AS_GOOD} in more than half of the rows with a "
        "minimum (values below what single precision resolves count as that)",
        _as_good_as_oracle,
    ),
    Rule(
        6,
        "GESMR-AVG and GESMR-FIX are worse than GESMR",
        "each has a higher mean final value in more than half of the rows with a minimum",
        _variants,
    ),
    Rule(
        7,
        "On Linear only 15MR, SAMR and GESMR grow without bound, 15MR fastest",
        "in every row of Linear the mean rate ends above 10⁴, ten times the highest start rate, for these three and no "
        "other, and 15MR's final value is the lowest",
        _linear,
    ),
    Rule(
        14,
        "GESMR costs almost nothing over a fixed rate",
        f"a generation takes at most {_NEGLIGIBLE:.2f} times that of a fixed rate, in the largest dimension measured "
        "(ratio of medians; the objective is Sphere, about the cheapest there is); not decidable if the 95% interval "
        "reaches to both sides",
        _cost,
    ),
    Rule(
        18,
        "GESMR outperforms the other methods on high-dimensional and rugged functions",
        "lowest mean of all but the oracles in more than half of the rows of Ackley, Griewank and Rastrigin with "
        f"d ≥ {_HIGH}, in Tables 1 and 2",
        _high_and_rugged,
    ),
)
