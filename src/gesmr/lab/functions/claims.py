"""Claims 1–7 and 14 of the paper, each decided by a rule on our own runs."""

from collections.abc import Sequence

import numpy as np

from .. import stats
from ..claims import Claim, Verdict
from .results import RUGGED, SMOOTH, Results
from .tables import FunctionTable, tables

UNBOUNDED = ("15MR", "SAMR", "GESMR")
_RATE_OUT_OF_BOUNDS = np.log(1e4)  # ten times the highest rate any method starts with
_NEGLIGIBLE = 1.10  # times the cost of a fixed rate
_DIMENSIONS = 3  # at least, for a claim about all rows


def claims(results: Results) -> list[Claim]:
    deciders = (_best, _samr_smooth, _samr_rugged, _closest_rates, _as_good_as_oracle, _variants, _linear, _cost)
    return [decide(results) for decide in deciders]


def _claim(number: int, claim: str, rule: str, holds: bool | None, found: str) -> Claim:
    return Claim(number, claim, rule, found if holds is not None else _MISSING, Verdict.of(holds))


_MISSING = "the runs this needs are not all there"


def _best(results: Results) -> Claim:
    rows = _rows(results, (*RUGGED, *SMOOTH), results.ranked)
    wins = [_wins(table, rows, results) for table in tables(results)[:2]] if rows else []
    return _claim(
        1,
        "GESMR is the best method in most rows of Tables 1 and 2, oracles aside",
        "lowest mean of all but the oracles in more than half of the rows with a minimum, in both tables",
        all(2 * won > len(rows) for won in wins) if rows and "GESMR" in results.ranked else None,
        f"best in {' and '.join(map(str, wins))} of {len(rows)} rows",
    )


def _samr_smooth(results: Results) -> Claim:
    smooth = _rows(results, SMOOTH, ("SAMR", "LAMR-100"))
    rugged = _rows(results, RUGGED, ("SAMR", "LAMR-100"))
    counts = [_not_worse(results, "SAMR", "LAMR-100", rows) for rows in (smooth, rugged)]
    decidable = bool(smooth and rugged)
    return _claim(
        2,
        "SAMR matches the oracle LAMR-100 on smooth functions only",
        "its final value is not significantly worse (Welch, p < 0.05) in more than half of the rows of Rosenbrock and "
        "Sphere, and in fewer than half of those of Ackley, Griewank and Rastrigin",
        2 * counts[0] > len(smooth) and 2 * counts[1] < len(rugged) if decidable else None,
        f"matches in {counts[0]} of {len(smooth)} smooth and {counts[1]} of {len(rugged)} rugged rows",
    )


def _samr_rugged(results: Results) -> Claim:
    rows = _rows(results, RUGGED, ("SAMR", "OFMR"))
    lower = _lower(results, results.log_rate, "SAMR", "OFMR", rows)
    lags = _lower(results, results.final, "OFMR", "SAMR", rows)
    return _claim(
        3,
        "On rugged functions SAMR's rates fall below OFMR's and its values lag",
        "mean log rate over the run below OFMR's, and mean final value above OFMR's, each in more than half of the "
        "rows of Ackley, Griewank and Rastrigin",
        2 * lower > len(rows) and 2 * lags > len(rows) if rows else None,
        f"rate below in {lower}, value above in {lags} of {len(rows)} rows",
    )


def _closest_rates(results: Results) -> Claim:
    rows = _rows(results, (*RUGGED, *SMOOTH), (*results.ranked, "LAMR-100"))
    won = _wins(tables(results)[2], rows, results) if rows else 0
    return _claim(
        4,
        "GESMR's mutation rates are the closest to LAMR-100's (Table 3)",
        "lowest mean of all but the oracles in more than half of the rows of Table 3",
        2 * won > len(rows) if rows and "GESMR" in results.ranked else None,
        f"closest in {won} of {len(rows)} rows",
    )


def _as_good_as_oracle(results: Results) -> Claim:
    rows = _rows(results, (*RUGGED, *SMOOTH), ("GESMR", "LAMR-100"))
    as_good = _not_worse(results, "GESMR", "LAMR-100", rows)
    lower = _lower(results, results.final, "GESMR", "LAMR-100", rows)
    return _claim(
        5,
        "GESMR's final values are as good as LAMR-100's",
        "its final value is not significantly worse (Welch, p < 0.05) in more than half of the rows with a minimum",
        2 * as_good > len(rows) if rows else None,
        f"not significantly worse in {as_good} of {len(rows)} rows, a lower mean in {lower}",
    )


def _variants(results: Results) -> Claim:
    variants = ("GESMR-AVG", "GESMR-FIX")
    rows = _rows(results, (*RUGGED, *SMOOTH), ("GESMR", *variants))
    worse = [_lower(results, results.final, "GESMR", variant, rows) for variant in variants]
    surely = [len(rows) - _not_worse(results, variant, "GESMR", rows) for variant in variants]
    found = "; ".join(
        f"{variant} is worse in {a} of {len(rows)} rows, significantly in {b}"
        for variant, a, b in zip(variants, worse, surely, strict=True)
    )
    return _claim(
        6,
        "GESMR-AVG and GESMR-FIX are worse than GESMR",
        "each has a higher mean final value in more than half of the rows with a minimum",
        all(2 * count > len(rows) for count in worse) if rows else None,
        found,
    )


def _linear(results: Results) -> Claim:
    rows = _rows(results, ("linear",), results.methods)
    grown, first, order = [], 0, 0
    for i in rows:
        row = results.rows[i]
        ends = {m: results.curves(row, m).log_rate[:, -1].mean() for m in results.methods}
        grown.append({m for m, end in ends.items() if end > _RATE_OUT_OF_BOUNDS})
        ranking = sorted(results.ranked, key=lambda m: stats.mean(results.values(results.final, row, m)))
        first += ranking[:1] == ["15MR"]
        order += ranking[:3] == ["15MR", "GESMR", "SAMR"]
    exactly = sum(methods == set(UNBOUNDED) for methods in grown)
    others = [f"{m} too in {n}" for m in results.methods if m not in UNBOUNDED and (n := sum(m in g for g in grown))]
    decidable = rows and set(UNBOUNDED) <= set(results.methods)
    return _claim(
        7,
        "On Linear only 15MR, SAMR and GESMR grow without bound, 15MR fastest",
        "in every row of Linear the mean rate ends above 10⁴, ten times the highest start rate, for these three and no "
        "other, and 15MR's final value is the lowest",
        exactly == first == len(rows) if decidable else None,
        "; ".join(
            [
                f"only these three in {exactly} of {len(rows)} rows",
                *others,
                f"15MR lowest in {first}, followed by GESMR and SAMR in {order}",
            ]
        ),
    )


def _cost(results: Results) -> Claim:
    fastest = {dim: seconds.min(axis=0) for dim, seconds in sorted(results.seconds.items())}
    ratios = {dim: float(gesmr / fixed) for dim, (fixed, gesmr) in fastest.items()}
    largest = max(ratios, default=0)
    return _claim(
        14,
        "GESMR costs almost nothing over a fixed rate",
        "a generation takes at most 1.10 times that of a fixed rate, in the largest dimension measured (the objective "
        "is Sphere, about the cheapest there is)",
        ratios[largest] <= _NEGLIGIBLE if largest >= 100 else None,
        ", ".join(f"{ratio:.2f} at d = {dim}" for dim, ratio in ratios.items()),
    )


def _rows(results: Results, functions: Sequence[str], methods: Sequence[str]) -> list[int]:
    """Rows of these functions where every method has two seeds or more; none if they are too few to decide by.

    The paper speaks of all its functions and dimensions: every function must be there, in three dimensions at least.
    """
    if not set(methods) <= set(results.methods):
        return []
    columns = [results.methods.index(method) for method in methods]
    enough = (np.isfinite(results.final[:, columns]).sum(-1) > 1).all(-1)
    rows = [i for i in results.select(functions) if enough[i]]
    dims = {f: {results.rows[i].dim for i in rows if results.rows[i].function == f} for f in functions}
    return rows if all(len(found) >= _DIMENSIONS for found in dims.values()) else []


def _wins(table: FunctionTable, rows: list[int], results: Results) -> int:
    wanted = {results.rows[i] for i in rows}
    return sum(best == "GESMR" and row in wanted for row, best in zip(table.rows, table.best, strict=True))


def _lower(results: Results, values: np.ndarray, one: str, other: str, rows: list[int]) -> int:
    """In how many rows `one` has the lower mean."""
    means = [stats.mean(values[rows, results.methods.index(method)]) for method in (one, other) if rows]
    return int(np.sum(means[0] < means[1])) if rows else 0


def _not_worse(results: Results, one: str, other: str, rows: list[int]) -> int:
    """In how many rows `one` is not significantly worse than `other`, by the paper's test on the seeds they share."""
    count = 0
    for i in rows:
        pair = results.final[i, [results.methods.index(one), results.methods.index(other)]]
        x, y = pair[:, np.isfinite(pair).all(axis=0)]
        count += not (x.mean() > y.mean() and stats.welch(x, y) < stats.LEVEL)
    return count
