"""The chapter of the function study: claims, Tables 1–3, curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....problems.functions import FORMULAS
from ...errors import LabError
from ...run.lanes import ORACLES
from ...run.reading import Reading
from ...run.store import Store
from ...show import stats
from ...show.figures import LEAPING, in_order, look, near, over_seeds
from ...show.report import Chapter, Outcome, Section, shell
from .. import Selection
from .claims import RULES
from .figures import RANKED, ranks
from .results import PRINTED, Curves, Results, Row, Variant, load_variants
from .runs import FunctionsStudy, Run
from .tables import Estimates, as_table, estimates, number

TITLE = "Six test functions"
_TABLES = {number: (f"Table {number}", f"tab-table{number}") for number in (1, 2, 3)}
_CURVES = ("Curves", "curves")
_EVIDENCE = {  # by claim, where on the page its numbers are
    1: (_TABLES[1], _TABLES[2]),
    2: (_TABLES[1],),
    3: (_TABLES[1], _CURVES),
    4: (_TABLES[3],),
    5: (_TABLES[1],),
    6: (_TABLES[1],),
    7: (_TABLES[1], _CURVES),
    18: (_TABLES[1], _TABLES[2]),
}
POINTS = 120  # of a curve, about
_ON_DARK = {  # in place of a line's colour, brighter
    "#000000": "#f2f2f2",
    "#8a8a8a": "#a3a3a3",
    "#0072b2": "#5c90f5",
    "#009e73": "#16b88a",
    "#d55e00": "#ff7b24",
}


def chapter(directory: Path) -> Chapter:
    store = Store(directory)
    jobs = list(store.jobs())
    results = load_variants(jobs)
    if not results:
        raise LabError(f"{directory} holds no {PRINTED.name} runs; `gesmr study run functions` makes some")
    return Chapter(
        title=TITLE,
        summary=summary(results),
        outcomes=[
            Outcome(
                variant.name if set(results) != {PRINTED} else "", rule.decided(found), _EVIDENCE.get(rule.number, ())
            )
            for variant, found in results.items()
            for rule in RULES
        ],
        caution=_caution(results),
        opening=[_ranks(results)] if all(found.ranked for found in results.values()) else [],
        sections=[_tables(results), _curves(results)],
        provenance=[job.provenance for job in jobs],
        runs=sum(len(curves.elite) for found in results.values() for curves in found.histories.values()),
        commands=store.commands() or [_command(found, directory.parent) for found in results.values()],
        completing=[_completing(variant, directory.parent) for variant, found in results.items() if _missing(found)],
    )


_ByVariant = dict[Variant, Results]
_RunKey = tuple[str, int, float, str, int]  # function, dimension, std, method, seed


def summary(results: _ByVariant) -> str:
    sizes = []
    for variant, found in results.items():
        shape = zip(map(len, (found.rows, found.methods, found.seeds)), ("row", "method", "seed"), strict=True)
        size = " × ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in shape)
        sizes.append(size if set(results) == {PRINTED} else f"{variant.name}: {size}")
    return "; ".join(sizes)


def _caution(results: _ByVariant) -> str:
    said = [
        ("" if variant == PRINTED else f"{variant.name}: ") + _said(missing, _there(found))
        for variant, found in results.items()
        if (missing := _missing(found))
    ]
    return f"These are not all of the paper's runs, and the verdicts may change. {' '.join(said)}" if said else ""


def _missing(results: Results) -> set[_RunKey]:
    return _asked(Selection(profile="paper")) - _there(results)


def _said(missing: set[_RunKey], there: set[_RunKey]) -> str:
    """What of each kind is missing altogether, and how many other runs."""
    rest, parts = missing, []
    for place, name in ((0, "function"), (1, "dimension"), (3, "method"), (4, "seed")):
        gone: list[Any] = sorted({run[place] for run in missing} - {run[place] for run in there})
        rest = {run for run in rest if run[place] not in gone}
        if gone:
            spanned = name == "seed" and gone[-1] - gone[0] == len(gone) - 1 > 0
            which = f"{gone[0]} to {gone[-1]}" if spanned else ", ".join(map(str, gone))
            parts.append(f"{name}{'s' * (len(gone) > 1)} {which}")
    parts += [f"{len(rest):,} {'other ' if parts else ''}run{'s' * (len(rest) != 1)}"] if rest else []
    return f"Missing: {'; '.join(parts)}."


def _completing(variant: Variant, directory: Path) -> str:
    words = ["gesmr study run functions --profile paper", *_flags(variant), f"--out {shell(directory)}"]
    return " ".join(words)


def _flags(variant: Variant) -> list[str]:
    return ["--shifted"] * variant.shifted + ["--as-text"] * (variant.reading is Reading.TEXT)


def _asked(selection: Selection) -> set[_RunKey]:
    specs = FunctionsStudy().specs(selection)
    return {(run.function, run.dim, run.std, run.method, run.seed) for run in specs if isinstance(run, Run)}


def _there(results: Results) -> set[_RunKey]:
    r, m, s = np.nonzero(~np.isnan(results.final))
    runs = ((results.rows[i], results.methods[j], results.seeds[k]) for i, j, k in zip(r, m, s, strict=True))
    return {(row.function, row.dim, row.std, method, seed) for row, method, seed in runs}


def _command(results: Results, directory: Path) -> str:
    """One that runs all of these, in as few words as can be."""
    study = FunctionsStudy()
    there = _there(results)
    profile = next((name for name in study.profiles if there <= _asked(Selection(name))), study.profiles[-1])
    usual = _asked(Selection(profile))
    words = ["gesmr study run functions", f"--profile {profile}"]
    options = {"dims": lambda run: run[1], "functions": lambda run: run[0], "methods": lambda run: run[3]}
    for option, part in options.items():
        ours = list(dict.fromkeys(part(run) for run in sorted(there)))
        if set(ours) != {part(run) for run in usual}:
            words.append(f"--{option} {shell(','.join(map(str, ours)))}")
    first, last = min(results.seeds), max(results.seeds)
    if results.seeds != tuple(range(len({run[4] for run in usual}))):
        words.append(f"--seeds {f'{first}-{last}' if first else last + 1}")
    return " ".join([*words, *_flags(results.variant), f"--out {shell(directory)}"])


def _ranks(results: _ByVariant) -> Section:
    context = {
        "variants": [
            {"name": variant.name, "label": variant.label, "tables": [_rank_table(found, *of) for of in RANKED.items()]}
            for variant, found in results.items()
        ]
    }
    return Section("ranks", "Who wins where", "studies/functions/functions_ranks.html.j2", context)


def _rank_table(results: Results, of: str, title: str) -> dict[str, Any]:
    """Mean ranks over all rows, over those of a function, and the ranks in every row."""
    rank = ranks(results, of)
    order = np.argsort(stats.mean(rank.T), kind="stable")
    rank, rows = rank[:, order], results.rows
    functions = list(dict.fromkeys(row.function for row in rows))
    lines = [("all", "All", stats.mean(rank.T))]
    for function in functions:
        mine = [i for i, row in enumerate(rows) if row.function == function]
        lines.append(("function", function.capitalize(), stats.mean(rank[mine].T)))
        lines += [("row", f"{rows[i].dim}-D, std {rows[i].std:g}", rank[i]) for i in mine]
    return {
        "name": title.partition(":")[0].lower().replace(" ", ""),
        "title": title,
        "methods": [results.ranked[i] for i in order],
        "lines": [
            {"kind": kind, "label": label, "cells": [_rank_cell(value, line, kind == "row") for value in line]}
            for kind, label, line in lines
            if np.isfinite(line).any()
        ],
    }


def _rank_cell(value: float, line: np.ndarray, whole: bool) -> dict[str, Any]:
    if np.isnan(value):
        return {"text": "–", "good": 0, "first": False}
    good = 1 - (value - 1) / max(len(line) - 1, 1)
    return {"text": f"{value:g}" if whole else f"{value:.1f}", "good": f"{good:.2f}", "first": value == np.nanmin(line)}


def _tables(results: _ByVariant) -> Section:
    made = {variant: estimates(found) for variant, found in results.items()}
    every_row = [row for found in results.values() for row in found.rows]
    context = {
        "variants": [
            {"name": variant.name, "label": variant.label, "tables": [_table(table) for table in made[variant]]}
            for variant in results
        ],
        "filters": {
            "function": [(name, name.capitalize()) for name in dict.fromkeys(row.function for row in every_row)],
            "d": [(str(dim), str(dim)) for dim in sorted({row.dim for row in every_row})],
            "std": [(f"{std:g}", f"{std:g}") for std in sorted({row.std for row in every_row})],
        },
    }
    return Section("tables", "Tables 1–3", "studies/functions/functions_tables.html.j2", context)


def _table(table: Estimates) -> dict[str, Any]:
    """GESMR beside the rows' names, where a phone shows it, and the oracles last."""
    heading, _, title = table.title.partition(": ")
    methods = sorted(table.methods, key=lambda method: (method in ORACLES, method != "GESMR"))
    return {
        "name": table.name,
        "heading": heading,
        "title": title or table.title,
        "csv": as_table(table).csv(),
        "methods": [{"name": method, "oracle": method in ORACLES} for method in methods],
        "rows": [{"row": row, "cells": [_cell(table, i, m) for m in methods]} for i, row in enumerate(table.rows)],
    }


def _cell(table: Estimates, i: int, method: str) -> dict[str, Any]:
    j = table.methods.index(method)
    value, error, median = (float(part[i, j]) for part in (table.mean, table.standard_error, table.median))
    seeds = int((~np.isnan(table.values[i, j])).sum())
    known = "" if np.isnan(error) else f", standard error {error:.3g}"
    best = table.best[i]
    lowest = np.nan if best is None else table.cell(i, best)
    competes = best is not None and method not in ORACLES
    return {
        "value": "" if np.isnan(value) else f"{value:.9g}",
        "error": "" if np.isnan(error) else f"{error:.4g}",
        "text": three_digits(value),
        "error_text": "" if np.isnan(error) else f"±{three_digits(error)}",
        "printed": number(value),
        "error_printed": "" if np.isnan(error) else f"±{number(error)}",
        "hint": f"mean {value:.4g}{known}, median {median:.4g}, {seeds} seeds" if seeds else "no run",
        "best": competes and three_digits(value) == three_digits(lowest),
        "best_printed": competes and number(value) == number(lowest),
        "star": method == best and table.significant[i],
        "oracle": method in ORACLES,
        "method": method,
    }


def three_digits(value: float) -> str:
    """Of a number, so that values as small as 1e-12 differ on the page if they do."""
    if np.isnan(value):
        return "–"
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    power = int(exponent)
    return f"{mantissa}e{power}" if not -3 < power < 4 else f"{value:.{max(2 - power, 0)}f}"


def _curves(results: _ByVariant) -> Section:
    methods = in_order(method for found in results.values() for method in found.methods)
    data = {
        "methods": [_look(method) for method in methods],
        "variants": [{"name": variant.name, "rows": _row_curves(found)} for variant, found in results.items()],
    }
    context = {"variants": [{"name": variant.name, "label": variant.label} for variant in results]}
    return Section(
        "curves",
        "Curves",
        "studies/functions/functions_curves.html.j2",
        context,
        "studies/functions/functions.js",
        data,
    )


def _look(method: str) -> dict[str, Any]:
    own = look(method)
    return {
        "name": method,
        "oracle": method in ORACLES,
        "colour": own.colour,
        "dark": _ON_DARK.get(own.colour, own.colour),
        "dash": [round(1.5 * length, 2) for length in own.dashes[1]],
        "width": 3.2 if method == "GESMR" else 1.7,
        "above": own.above,
    }


def _row_curves(results: Results) -> list[dict[str, Any]]:
    return [
        {
            "function": row.function,
            "dim": row.dim,
            "std": row.std,
            "label": row.label,
            "bounded": FORMULAS[row.function].optimum is not None,
            **_lines(results, row),
        }
        for row in results.rows
    ]


def _lines(results: Results, row: Row) -> dict[str, Any]:
    """Over the same generations for every method: elite value, its error, log10 of the rate, its band."""
    histories = results.histories_of(row)
    kept = thinned(next(iter(histories.values())).generation)
    return {
        "generation": next(iter(histories.values())).generation[kept].tolist(),
        "lines": {method: line_of(method, history, kept) for method, history in histories.items()},
    }


def line_of(method: str, history: Curves, kept: np.ndarray) -> dict[str, Sequence[float | None]]:
    elite = np.asarray(history.elite[:, kept], np.float64).T
    rates = over_seeds(history.log_rate) / np.log(10)
    rate, low, high = (near(rates[0]) if method in LEAPING else rates)[:, kept]
    return {
        "value": _rounded(stats.mean(elite)),
        "value_error": _rounded(stats.standard_error(elite)),
        "rate": _rounded(rate),
        "rate_low": _rounded(low),
        "rate_high": _rounded(high),
    }


def thinned(generation: np.ndarray, points: int = POINTS) -> np.ndarray:
    """Indices of about `points` generations, the first and the last among them, good on a linear and on a log axis."""
    if len(generation) <= points:
        return np.arange(len(generation))
    even = np.linspace(generation[0], generation[-1], points // 2)
    steady = np.geomspace(generation[0], generation[-1], points // 2)
    wanted = np.searchsorted(generation, np.concatenate([even, steady]) - 1e-9)
    return np.unique(np.clip(wanted, 0, len(generation) - 1))


def _rounded(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
