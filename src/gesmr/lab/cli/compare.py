"""`gesmr compare`: several optimisers on a function by its name, and who is better, as text, JSON or a figure."""

import json
import math
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...comparing import Comparison, compare
from ..errors import LabError, ending
from ..loading import load_callable, working_directory_importable
from .command import app, command
from .minimize import as_json_value, raised_in
from .resuming import kept
from .studies import names_said, seeds_said
from .variables import OBJECTIVE, BoundsText, Dim, Variables


@dataclass(frozen=True)
class Request:
    """What was asked for, as it was written on the command line."""

    dim: Dim = None
    bounds: BoundsText = None
    x0: Annotated[
        str | None, typer.Option(help="A number for all variables, or a .npy file; default: drawn for each seed.")
    ] = None
    space: Annotated[
        Path | None, typer.Option(help="Named variables instead: a .toml or .json file.", metavar="FILE")
    ] = None
    methods: Annotated[
        str | None,
        typer.Option(
            help="As in gesmr,DE,CMA-ES; also GESMR, SAMR, sep-CMA-ES, optuna:TPE, evosax:SNES, random, mine:method."
        ),
    ] = None
    seeds: Annotated[str, typer.Option(help="The number of seeds, or a range as in 40-79.", metavar="N|A-B")] = "10"
    maxfun: Annotated[int | None, typer.Option(help="Evaluations of every run; default: 200 per variable.")] = None
    targets: Annotated[str | None, typer.Option(help="Values to reach, as in 0.1,1e-6.")] = None
    init_std: Annotated[float | None, typer.Option(help="Spread of first candidates around x0.")] = None
    direction: Annotated[str, typer.Option(help="minimize, or maximize if higher is better.")] = "minimize"
    vectorized: Annotated[
        bool, typer.Option("--vectorized", help="The function takes all candidates at once, one per row.")
    ] = False
    save: Annotated[
        Path | None, typer.Option(help="Keep finished runs here, and continue from them.", metavar="FILE")
    ] = None


def _left_behind(request: Request, **_: Any) -> str:
    """What Ctrl-C does."""
    if request.save is None:
        return "interrupted; nothing was kept: --save FILE keeps finished runs, and the same command continues"
    return kept(f"finished runs are kept in {request.save}")


@command(
    app,
    "compare",
    "gesmr compare mine.py:loss --dim 4 --bounds=-5,5",
    "gesmr compare mine.py:loss --dim 4 --methods gesmr,random --seeds 20 --json",
    "gesmr compare mine.py:loss --dim 4 --save runs.json --plot curves.png",
    interrupted=_left_behind,
)
def compare_methods(
    objective: Annotated[str, typer.Argument(metavar="FILE.py:FUNCTION", help=OBJECTIVE)],
    request: Request,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a figure: .png, .pdf or .svg.", metavar="FILE")] = None,
) -> None:
    """Compare optimisers on a function of yours. The table goes to standard output, progress to standard error."""
    if plot is not None:
        _check_plot(plot)
    fun = load_callable(objective)
    try:
        found = _compare(fun, request)
        print(_json(found) if as_json else found)
        if plot is not None:
            found.plot(plot)
    except (TypeError, ValueError, OSError, MemoryError, ModuleNotFoundError) as error:
        if raised_in(error, getattr(fun, "__module__", None)):
            raise
        raise ending(error) from error
    if any(row.failed for row in found.rows):
        raise typer.Exit(1)


def _compare(fun: Any, request: Request) -> Comparison:
    variables = Variables.said(request)
    names, seeds = names_said(request.methods), seeds_said(request.seeds)
    with working_directory_importable(), redirect_stdout(sys.stderr):
        return compare(
            fun,
            variables.start if variables.start is not None else _draws(variables, request.init_std),
            None if names is None else {name: _method(name) for name in names},
            10 if seeds is None else seeds,
            request.maxfun,
            bounds=variables.bounds,
            direction=request.direction,
            init_std=request.init_std,
            vectorized=request.vectorized,
            targets=_targets(request.targets),
            save=request.save,
            disp=True,
        )


def _check_plot(path: Path) -> None:
    """Before hours of runs, not after them."""
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise LabError(f"--plot must end in .png, .pdf or .svg, got {path}")
    if not path.parent.is_dir():
        raise LabError(f"--plot must be in a directory that exists, got {path}")


def _method(name: str) -> Any:
    """A name that `compare` knows, or a method of the user's own."""
    family, colon, _ = name.partition(":")
    return load_callable(name) if colon and family not in ("evosax", "optuna") else name


def _draws(variables: Variables, std: float | None) -> Callable[[np.random.Generator], np.ndarray]:
    """Starts, one for each seed: never the origin, which is the optimum of too many functions."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        spread = 1.0 if std is None else std  # `compare` judges it
        return variables.placed(None if variables.closed.all() else spread * rng.standard_normal(variables.dim), rng)

    return draw


def _targets(text: str | None) -> list[float]:
    try:
        return [float(part) for part in names_said(text) or ()]
    except ValueError as error:
        raise LabError(f"--targets must be numbers separated by commas, got {text!r}") from error


def _json(found: Comparison) -> str:
    rows = [{name: _finite(value) for name, value in row._asdict().items()} for row in found.rows]
    reached = {
        f"{target:g}": {name: {"runs": met, "evaluations": _finite(time)} for name, (met, time) in by.items()}
        for target, by in ((target, found.reached(target)) for target in found.targets)
    }
    best = None if found.best is None else {**found.best._asdict(), "x": as_json_value(found.best.x)}
    plain = {"rows": rows, "reached": reached, "best": best, "maxfun": found.maxfun, "seeds": found.seeds}
    return json.dumps({**plain, "problem": found.problem, "versions": found.versions}, allow_nan=False)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
