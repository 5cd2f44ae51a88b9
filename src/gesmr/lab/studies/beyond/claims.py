"""Claims 19 to 22, which are this project's own: what recombination gains over GESMR, decided like the paper's."""

from collections.abc import Callable, Mapping

from ....controllers import PAPER_NAMES
from ...run.reading import LAMR_NAME
from ...show.claims import Finding, Rule
from ...show.output import span
from .methods import X
from .results import GROUPS, MAIN, Count, Results
from .runs import Row
from .tables import significantly_lower

_SETTINGS = "five functions, two spreads, d = 30 and 100 as they are and turned, d = 1000; moved optima"


def _at_least(
    least: int, told: Callable[[Results], Mapping[Row, bool]], *columns: str
) -> Callable[[Results], Finding | None]:
    """Whether something is so in as many of the main rows; undecided while one of them is missing."""

    def decide(results: Results) -> Finding | None:
        where = told(results)
        count = Count.of(where, MAIN)
        if not count.told:
            return None
        parts = [(name, Count.of(where, rows)) for name, rows in GROUPS.items() if name != "all"]
        by_part = "; ".join(f"{name}: {part}" for name, part in parts if part.told)
        seeds = span(len(results.rows[row][column].seeds) for row in MAIN if row in where for column in columns)
        found = f"in {count} rows, {seeds} seeds ({by_part})"
        if count.told < count.rows:
            return Finding(None, f"{found}; {count.rows - count.told} of {count.rows} rows are not there")
        return Finding(count.so >= least, found)

    return decide


def _rule(number: int, claim: str, what: str, least: int, decide: Callable[[Results], Finding | None]) -> Rule[Results]:
    return Rule(
        number, f"{claim} (this project's claim, not the paper's)",
        f"in at least {least} of {len(MAIN)} rows ({_SETTINGS}) {what}", decide,
    )  # fmt: skip


RULES = (
    _rule(
        19, f"{X} ends lower than GESMR", f"the median final value of {X} is lower than that of GESMR", 48,
        _at_least(48, lambda results: results.lower(X, "GESMR"), X, "GESMR"),
    ),
    _rule(
        20, f"{X} is ahead of every method of the paper but the oracles",
        f"its median final value is lower than those of {', '.join(PAPER_NAMES)}", 46,
        _at_least(46, lambda results: results.lower(X, *PAPER_NAMES), X, *PAPER_NAMES),
    ),
    _rule(
        21, f"{X} is ahead of the oracle {LAMR_NAME}", f"its median final value is lower than that of {LAMR_NAME}", 46,
        _at_least(46, lambda results: results.lower(X, LAMR_NAME), X, LAMR_NAME),
    ),
    _rule(
        22, f"What {X} gains over GESMR is more than chance",
        "its median is lower and Mann and Whitney's p is below 0.05, corrected by Holm's method for all rows", 40,
        _at_least(40, lambda results: significantly_lower(results, X, "GESMR"), X, "GESMR"),
    ),
)  # fmt: skip
