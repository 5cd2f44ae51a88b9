"""`gesmr minimize`: a function by its name, progress while it runs, and the result as text or JSON."""

import json
import math
import secrets
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...optimize import archive
from ...optimize.display import Display
from ...optimize.loggers import JSONLines
from ...optimize.loop import Checkpoint
from ...optimize.minimize import minimize
from ...optimize.options import split
from ...workers import Crew, Pool, WorkerError, crew_of
from ...workers.sending import from_worker
from ..errors import LabError, ending
from ..loading import load_callable, working_directory_importable
from .command import app, command
from .resuming import kept
from .variables import OBJECTIVE, BoundsText, Dim, Variables


@dataclass(frozen=True)
class Passed:
    """Options of `gesmr.minimize` that are passed on as they are."""

    init_std: Annotated[float | None, typer.Option(help="Spread of the first population around x0.")] = None
    popsize: Annotated[int | None, typer.Option(help="Members of the population.")] = None
    controller: Annotated[str | None, typer.Option(help="How the rate is chosen: GESMR, SAMR, 15MR …")] = None
    truncation: Annotated[float | None, typer.Option(help="The share of members that may become parents.")] = None
    maxiter: Annotated[int | None, typer.Option(help="The most generations.")] = None
    maxfun: Annotated[int | None, typer.Option(help="The most evaluations.")] = None
    maxtime: Annotated[float | None, typer.Option(help="The most seconds.")] = None
    target: Annotated[float | None, typer.Option(help="Stop at a value as good as this.")] = None
    patience: Annotated[int | None, typer.Option(help="Stop after this many generations without a better value.")] = (
        None
    )
    ftol: Annotated[float | None, typer.Option(help="The least gain that counts, as a share of the whole gain.")] = None
    xtol: Annotated[float | None, typer.Option(help="Stop when members are this close, in units of the ranges.")] = None
    tol: Annotated[float | None, typer.Option(help="Both --ftol and --xtol.")] = None
    vectorized: Annotated[
        bool, typer.Option("--vectorized", help="The function takes all candidates at once, one per row.")
    ] = False
    restarts: Annotated[int, typer.Option(help="How often to start again when patience has run out.")] = 0
    on_error: Annotated[
        str, typer.Option(help="On an exception: raise, or worst, which counts it as the worst value.")
    ] = "raise"
    direction: Annotated[str, typer.Option(help="minimize, or maximize if higher is better.")] = "minimize"


@dataclass(frozen=True)
class Request:
    """What else was asked for, as it was written on the command line."""

    dim: Dim = None
    bounds: BoundsText = None
    x0: Annotated[str | None, typer.Option(help="A number for all variables, or a .npy file; default: drawn.")] = None
    space: Annotated[
        Path | None, typer.Option(help="Named variables instead: a .toml or .json file.", metavar="FILE")
    ] = None
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed repeats a run.", metavar="N")] = None
    workers: Annotated[
        str | None, typer.Option(help="A number of processes (-1: all CPUs), ray, or the address of a Ray cluster.")
    ] = None
    timeout: Annotated[float | None, typer.Option(help="Seconds a candidate may take, with --workers.")] = None
    checkpoint: Annotated[Path | None, typer.Option(help="Keep the run here.", metavar="FILE")] = None
    every: Annotated[int | None, typer.Option(help="Generations between checkpoints; default: 10 s.")] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint, if there is one.")] = False
    log: Annotated[Path | None, typer.Option(help="Add a line of JSON for every generation.", metavar="FILE")] = None


def _left_behind(request: Request, **_: Any) -> str:
    """What Ctrl-C does."""
    if request.checkpoint is None:
        return "interrupted; nothing was kept: --checkpoint FILE keeps a run, and --resume continues it"
    if not archive.exists(request.checkpoint):
        return f"interrupted before there was anything to keep in {request.checkpoint}"
    return kept(f"the run is kept in {request.checkpoint}", "--resume")


@command(
    app,
    "minimize",
    "gesmr minimize mine.py:loss --dim 10 --bounds=-5,5 --maxfun 20000",
    'gesmr minimize mine.py:loss --bounds "-5,5;0,1;0,inf" --seed 1 --json',
    "gesmr minimize mine.py:loss --dim 10 --maxtime 3600 --checkpoint run --resume",
    interrupted=_left_behind,
)
def minimize_function(
    objective: Annotated[str, typer.Argument(metavar="FILE.py:FUNCTION", help=OBJECTIVE)],
    request: Request,
    passed: Passed,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Minimise a function of yours. The result goes to standard output, progress to standard error."""
    result = _minimize(load_callable(objective), request, asdict(passed))
    print(_json(result) if as_json else _text(result))
    if "interrupted" in result.stop:
        raise KeyboardInterrupt
    if not result.success:
        raise typer.Exit(1)


def _minimize(fun: Callable, request: Request, options: dict[str, Any]) -> Any:
    """The result of `gesmr.minimize`. What is wrong with the request ends in LabError, not so errors of `fun`."""
    try:
        if request.checkpoint is None and (request.resume or request.every is not None):
            raise LabError("--resume and --every need --checkpoint")
        if request.checkpoint is not None and archive.exists(request.checkpoint) and not request.resume:
            raise LabError(f"{request.checkpoint} exists already: --resume continues it, or choose another file")
        seed = _seed(request)
        variables = Variables.said(request)
        checkpoint = None if request.checkpoint is None else Checkpoint(request.checkpoint, request.every)
        show = Display(sys.stderr, split(options)[1].in_force)
        callbacks = [show, *([] if request.log is None else [JSONLines(request.log, x=request.space is not None)])]
        with working_directory_importable(), show:
            return minimize(
                fun,
                variables.start if variables.start is not None else _drawn(variables, seed, options["init_std"]),
                bounds=variables.bounds,
                rng=seed,
                callback=callbacks,
                checkpoint=checkpoint,
                resume=request.resume,
                workers=_workers(request.workers, request.timeout),
                **options,
            )
    except (TypeError, ValueError, OSError, MemoryError, WorkerError, ModuleNotFoundError) as error:
        if from_worker(error) or raised_in(error, getattr(fun, "__module__", None)):
            raise
        raise ending(error) from error


def _text(result: Any) -> str:
    lines = [
        result.message,
        f"best value   {result.fun:.10g}",
        f"at           {_shown(result.x)}",
        f"generations  {result.nit}, evaluations {result.nfev}, seconds {result.seconds:.1f}",
        f"evaluated by {result.path}; seed {result.seed}",
    ]
    if result.restarts:
        lines.append(f"restarts     {result.restarts}")
    if result.errors:
        lines.append(f"exceptions   {result.errors}, counted as the worst value")
    return "\n".join(lines)


def _shown(x: Any) -> str:
    """A solution in a line: what is long is cut short."""
    if isinstance(x, dict):
        return ", ".join(f"{name} = {_shown(value)}" for name, value in x.items())
    if isinstance(x, np.ndarray):
        parts = [_shown(value) for value in x[:6].tolist()] if x.ndim == 1 else [_shown(part) for part in x[:6]]
        return f"[{', '.join(parts)}{', …' if len(x) > 6 else ''}]"
    return f"{x:.6g}" if isinstance(x, float) else repr(x)


def as_json_value(x: Any) -> Any:
    """A solution for JSON."""
    if isinstance(x, dict):
        return {name: as_json_value(value) for name, value in x.items()}
    return x.tolist() if isinstance(x, np.ndarray) else x


def _json(result: Any) -> str:
    names = ("fun", "success", "status", "message", "nit", "nfev", "stop", "restarts", "errors", "seconds", "seed",
             "path", "versions")  # fmt: skip
    plain = {"x": as_json_value(result.x), "mutation_rates": result.mutation_rates.tolist()}
    plain |= {name: result[name] for name in names}
    if not math.isfinite(plain["fun"]):
        plain["fun"] = None
    return json.dumps(plain, allow_nan=False)


def _seed(request: Request) -> int:
    """The one given; of a run that goes on its own, because x0 may have been drawn from it; else any."""
    if request.seed is not None:
        return request.seed
    if request.resume and request.checkpoint is not None and archive.exists(request.checkpoint):
        return int(archive.read(request.checkpoint)[0]["setup"]["seed"])
    return secrets.randbits(63)


def _workers(text: str | None, timeout: float | None) -> Crew | None:
    """A number of processes, or where a Ray cluster is."""
    if text is None:
        if timeout is not None:
            raise LabError("--timeout needs --workers")
        return None
    number = int(text) if text.removeprefix("-").isdigit() else None
    if number == 1:
        return Pool(1, timeout=timeout)
    return crew_of(text if number is None else number, timeout)


def _drawn(variables: Variables, seed: int, std: float | None) -> np.ndarray:
    """Never the origin, which is the optimum of too many functions."""
    generator = np.random.default_rng(seed)
    normal = (1.0 if std is None else std) * generator.standard_normal(variables.dim)  # `minimize` judges std
    return variables.placed(normal, generator)


def raised_in(error: BaseException, module: str | None) -> bool:
    """Whether the error came from a module: a function's own errors are shown with where they arose."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == module for frame, _ in frames)
