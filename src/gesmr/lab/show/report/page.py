"""Chapters to HTML."""

import base64
import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ..claims import Claim, Verdict
from .base import Chapter, Outcome

_MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNDECIDED: "?"}
_LAB = "gesmr.lab"  # where templates, scripts and styles are looked for
_PER_GROUP = ("label", "seconds", "on")  # what of a provenance is not the machine's


def render(chapters: Sequence[Chapter], directory: Path) -> str:
    """The whole page. Everything it needs is in it."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - slow to import, and only the page needs it

    sections = [section for chapter in chapters for section in chapter.sections]
    names = dict.fromkeys(["show/report/report.js", *(section.script for section in sections if section.script)])
    scripts = [Markup(get_plotlyjs()), *(_asset(name) for name in names)]
    return (
        _environment()
        .get_template("show/report/report.html.j2")
        .render(
            chapters=chapters,
            claims=_claims(chapters),
            tally=_tally(chapters),
            marks=_MARKS,
            sections=sections,
            machines=_machines(chapters),
            total_seconds=sum(_seconds(record) for chapter in chapters for record in chapter.provenance),
            commands=[*(c for chapter in chapters for c in chapter.commands), f"gesmr report {shell(directory)}"],
            written=datetime.now(UTC),
            directory=directory,
            style=_asset("show/report/report.css"),
            early=_asset("show/report/theme.js"),
            scripts=scripts,
            policy=_policy([_asset("show/report/theme.js"), *scripts]),
        )
    )


def shell(argument: object) -> str:
    """As a shell must be given it."""
    return shlex.quote(str(argument))


def duration(seconds: float) -> str:
    """Two units at most: 41 s, 2 min 5 s, 3 h 12 min."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, left = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_LAB, ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters["duration"] = duration
    return environment


def _asset(name: str) -> Markup:
    """A style sheet or script of the lab, which is not escaped."""
    return Markup(resources.files(_LAB).joinpath(name).read_text("utf-8"))


def _policy(scripts: Sequence[str]) -> str:
    """A Content-Security-Policy under which these scripts run, no others, and nothing is fetched."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


def _claims(chapters: Sequence[Chapter]) -> list[list[Outcome]]:
    """By number; the same claim decided on several sets of runs together, and once where they agree to the letter."""
    runs: dict[Claim, list[str]] = {}
    for outcome in (outcome for chapter in chapters for outcome in chapter.outcomes):
        runs.setdefault(outcome.claim, []).append(outcome.runs)
    outcomes = [Outcome(" and ".join(filter(None, names)), claim) for claim, names in runs.items()]
    ordered = sorted(outcomes, key=lambda outcome: outcome.claim.number)
    return [list(same) for _, same in groupby(ordered, key=lambda outcome: outcome.claim.number)]


def _tally(chapters: Sequence[Chapter]) -> dict[str, Counter[Verdict]]:
    """How many claims have each verdict, for every set of runs."""
    tally: dict[str, Counter[Verdict]] = {}
    for chapter in chapters:
        for outcome in chapter.outcomes:
            tally.setdefault(outcome.runs, Counter())[outcome.claim.verdict] += 1
    return tally


def _machines(chapters: Sequence[Chapter]) -> list[dict[str, Any]]:
    """Every combination of versions and device, with its number of groups and seconds."""
    machines: dict[tuple, dict[str, Any]] = {}
    for record in (record for chapter in chapters for record in chapter.provenance):
        facts = {name: str(value) for name, value in record.items() if name not in _PER_GROUP}
        machine = machines.setdefault(tuple(facts.items()), {"facts": facts, "groups": 0, "seconds": 0.0})
        machine["groups"] += 1
        machine["seconds"] += _seconds(record)
    return list(machines.values())


def _seconds(record: Mapping[str, Any]) -> float:
    return float(record.get("seconds", 0.0))
