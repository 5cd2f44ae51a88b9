"""The page, live or exported: one document with its style, scripts and data in it."""

import base64
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from ... import _checks
from ..show.figures import look
from . import settings
from .settings import METHODS, Place, Setting, read
from .simulation import landscape_json, run_json

MOST_METHODS = 4
_LAB = "gesmr.lab"
_SCRIPTS = ("playground/drawing.js", "playground/player.js")  # of both pages; the live one has another


class Preset(NamedTuple):
    """A setting worth seeing."""

    name: str
    title: str
    says: str  # what there is to see
    methods: Sequence[str]
    setting: Mapping[str, Any]


PRESETS = (
    Preset(
        "vanishing",
        "The vanishing rate",
        "Rastrigin is all hills and valleys: most mutations make things worse, and the smallest do the least harm. So "
        "SAMR’s rates, which survive by average success, shrink before the deepest valley is found. GESMR judges a "
        "rate by the best child of its group, and keeps one that still leaps.",
        ("GESMR", "SAMR"),
        {"function": "rastrigin", "dim": 2, "std": 4, "children": 100, "groups": 10, "generations": 120, "seed": 0},
    ),
    Preset(
        "many",
        "In 30 dimensions",
        "Ackley in 30 dimensions; you see two of them. SAMR’s rates fall below a hundredth while nearly everything is "
        "still to be done, and the value stands still.",
        ("GESMR", "SAMR"),
        {"function": "ackley", "dim": 30, "std": 10, "children": 100, "groups": 10, "generations": 150, "seed": 0},
    ),
    Preset(
        "valley",
        "A curved valley",
        "Rosenbrock’s valley: no single rate is right for long. FMR’s 0.01 creeps along it, 1CMR’s ½ cannot settle, "
        "and the one-fifth rule ends with a rate that is far too large.",
        ("GESMR", "15MR", "FMR", "1CMR"),
        {"function": "rosenbrock", "dim": 2, "std": 1, "children": 100, "groups": 10, "generations": 120, "seed": 0},
    ),
    Preset(
        "ablations",
        "Why the elite",
        "The paper’s ablations on Ackley in 10 dimensions: judged by the mean of their groups (GESMR-AVG) rates vanish "
        "as well; rates that never change (GESMR-FIX) are too coarse for what is left to do.",
        ("GESMR", "GESMR-AVG", "GESMR-FIX"),
        {"function": "ackley", "dim": 10, "std": 10, "children": 100, "groups": 10, "generations": 150, "seed": 0},
    ),
)


class Wanted(NamedTuple):
    """What is to be exported."""

    runs: Sequence[Setting]
    place: Place
    frame: int
    theme: str


def wanted(given: Any) -> Wanted:
    """`given`, from JSON, checked."""
    if not isinstance(given, Mapping) or set(given) != {"runs", "place", "frame", "theme"}:
        raise ValueError("an export must have runs, place, frame and theme")
    runs = given["runs"]
    if not isinstance(runs, list) or not 1 <= len(runs) <= MOST_METHODS:
        raise ValueError(f"runs must be a list of 1 to {MOST_METHODS}, got {_checks.show(runs)}")
    _checks.choice("theme", given["theme"], ("light", "dark"))
    checked = [read(Setting, run) for run in runs]
    frame = _checks.integer("frame", given["frame"], 0, max(run.generations for run in checked))
    return Wanted(checked, read(Place, given["place"]), frame, given["theme"])


@cache
def live() -> tuple[bytes, str]:
    """The page that asks the server, and the policy it is served with."""
    limits = {name.lower(): getattr(settings, name) for name in ("DIM", "CHILDREN", "GROUPS", "GENERATIONS", "SEED")}
    data = {
        "presets": [preset._asdict() for preset in PRESETS],
        "defaults": dataclasses.asdict(Setting()),
        "most": MOST_METHODS,
    }
    scripts = [_asset(name) for name in (*_SCRIPTS, "playground/live.js")]
    policy = _policy([_asset("show/report/theme.js"), *scripts], "connect-src 'self';")
    page = _render(scripts, data, policy, live=True, limits=limits | {"std": settings.STD}, zooms=settings.ZOOMS)
    return page, policy


def exported(wanted: Wanted) -> bytes:
    """The page with what is on view, which needs no server."""
    runs = [json.loads(run_json(setting)) for setting in wanted.runs]
    data = {"runs": runs, "landscape": json.loads(landscape_json(wanted.place)), "frame": wanted.frame}
    scripts = [_asset(name) for name in _SCRIPTS]
    policy = _policy([_asset("show/report/theme.js"), *scripts])
    return _render(scripts, data, policy, live=False, theme=wanted.theme)


def _render(scripts: Sequence[str], data: Mapping[str, Any], policy: str, **context: Any) -> bytes:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_LAB, "playground"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    looks = {method: {"colour": look(method).colour, "dashes": look(method).dashes[1]} for method in METHODS}
    page = environment.get_template("playground.html.j2").render(
        style=_asset("playground/playground.css"),
        early=_asset("show/report/theme.js"),
        scripts=scripts,
        data={**data, "looks": looks},
        policy=policy,
        functions=settings.FUNCTIONS,
        methods=METHODS,
        **context,
    )
    return page.encode()


def _asset(name: str) -> Markup:
    """A style sheet or script of the lab, which is not escaped."""
    return Markup(resources.files(_LAB).joinpath(name).read_text("utf-8"))


def _policy(scripts: Sequence[str], more: str = "") -> str:
    """A Content-Security-Policy under which these scripts run and no others."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    start = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:;"
    return f"{start} {more} base-uri 'none'; form-action 'none'"
