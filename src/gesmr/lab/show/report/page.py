"""One self-contained page, `report.html`, for the results of the studies in a directory."""

import base64
import hashlib
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ...._files import write_atomically
from ...errors import LabError, StorageError
from ..claims import Claim, Verdict

_MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNDECIDED: "?"}
_LAB = "gesmr.lab"  # where templates, scripts and styles are looked for
_PER_GROUP = ("label", "seconds", "on")  # what of a provenance is not the machine's


@dataclass(frozen=True)
class Section:
    """A part of the page: a template of the lab, and what it and its script are given."""

    name: str  # the id of its element
    title: str
    template: str  # sees `section`
    context: Mapping[str, Any] = field(default_factory=dict)
    script: str | None = None  # a file of the lab, once on the page however many sections name it
    data: Any = None  # plain data for the script, in the JSON element `data-NAME`


@dataclass(frozen=True)
class Outcome:
    """A claim decided on one set of runs."""

    runs: str  # which runs, where a study has several sets; else empty
    claim: Claim
    evidence: tuple[tuple[str, str], ...] = ()  # where on the page its numbers are: text and id


@dataclass(frozen=True)
class Chapter:
    """A study's part of the report."""

    title: str
    summary: str  # what was run, in a line
    outcomes: Sequence[Outcome]
    caution: str  # why its verdicts may not be final, and what is missing; empty if they are
    sections: Sequence[Section]
    provenance: Sequence[Mapping[str, Any]]  # of every stored job
    runs: int
    commands: Sequence[str]  # that make the results
    opening: Sequence[Section] = ()  # what the page shows first, before the claims
    completing: Sequence[str] = ()  # the commands that compute what is missing


def write(directory: Path | str, chapters: Mapping[str, Callable[[Path], Chapter]]) -> Path:
    """Write `directory/report.html` from the stores in its sub-directories, one for each study, and return its path.

    `chapters` says, by name of sub-directory, what makes a study's part of the page. Of a study that has nothing to
    show yet, the page says so, unless there is no other. The page makes no request to anything outside itself.
    """
    directory = Path(directory)
    present = [name for name in chapters if (directory / name).is_dir()]
    if not present:
        raise LabError(
            f"{directory} holds no results: it must have a sub-directory for a study ({', '.join(chapters)}); "
            "`gesmr study run` makes one"
        )
    made, unusable = _made([partial(chapters[name], directory / name) for name in present])
    page = render(made, directory, [name for name in chapters if name not in present], unusable)
    path = directory / "report.html"
    try:
        write_atomically(path, page.encode())
    except OSError as error:
        raise StorageError(f"could not write {path}: {error.strerror}") from error
    return path


def _made(chapters: Sequence[Callable[[], Chapter]]) -> tuple[list[Chapter], list[str]]:
    """The chapters, and why others cannot be made; an error if none can."""
    made, errors = [], []
    for make in chapters:
        try:
            made.append(make())
        except StorageError:
            raise
        except LabError as error:
            errors.append(error)
    if not made:
        raise errors[0]
    return made, list(map(str, errors))


def render(
    chapters: Sequence[Chapter], directory: Path, absent: Sequence[str] = (), unusable: Sequence[str] = ()
) -> str:
    """The whole page, which names the studies that are absent or unusable. Everything it needs is in it."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - slow to import, and only the page needs it

    opening = [section for chapter in chapters for section in chapter.opening]
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
            opening=opening,
            sections=sections,
            machines=_machines(chapters),
            total_seconds=sum(_seconds(record) for chapter in chapters for record in chapter.provenance),
            commands=[*(c for chapter in chapters for c in chapter.commands), f"gesmr report {shell(directory)}"],
            written=datetime.now(UTC),
            directory=directory,
            absent=absent,
            unusable=unusable,
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


def csv_address(text: str) -> str:
    """Of a file that is in the page itself."""
    return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def command_line(command: str) -> Markup:
    """It may end a line before an option, not within one."""
    first, *options = command.split(" --")
    return Markup(" ").join(Markup("<span>{}</span>").format(part) for part in (first, *(f"--{o}" for o in options)))


def in_code(text: str) -> Markup:
    """What stands between backticks as code."""
    parts = (Markup("<code>{}</code>" if i % 2 else "{}").format(part) for i, part in enumerate(text.split("`")))
    return Markup("").join(parts)


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
    filters = (duration, csv_address, shell, command_line, in_code)
    environment.filters |= {made.__name__: made for made in filters}
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
    same_claim: dict[Claim, list[Outcome]] = {}
    for outcome in (outcome for chapter in chapters for outcome in chapter.outcomes):
        same_claim.setdefault(outcome.claim, []).append(outcome)
    outcomes = [
        Outcome(" and ".join(outcome.runs for outcome in those if outcome.runs), claim, those[0].evidence)
        for claim, those in same_claim.items()
    ]
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
