"""The command line: `gesmr study …`, `gesmr report`, `gesmr landscape` and `gesmr minimize`."""

import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

try:
    import typer
    from rich.console import Console
except ImportError:
    sys.exit("the gesmr command needs more than the library: pip install 'gesmr[lab]'")

from ..problems.datasets import DatasetError
from .errors import LabError
from .studies import STUDIES, Selection, Study

if TYPE_CHECKING:
    from .run.store import Store
    from .show.view import Options, View

app = typer.Typer(
    help="Genetic algorithms that find their own mutation rate: the studies of the paper.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
study_app = typer.Typer(help="Run a study of the paper, and see what came of it.", no_args_is_help=True)
app.add_typer(study_app, name="study")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The study; `gesmr study list` names them.")]
Profile = Annotated[str, typer.Option(help="How much of it: quick, or paper for all of it.")]
Seeds = Annotated[
    str | None, typer.Option(help="Seeds 0 … N−1, or a range as in 40-79; default: the profile's.", metavar="N|A-B")
]
Dims = Annotated[str | None, typer.Option(help="Only these dimensions, as in 2,30.")]
Functions = Annotated[str | None, typer.Option(help="Only these functions, as in ackley,sphere.")]
Methods = Annotated[str | None, typer.Option(help="Only these methods, as in GESMR,SAMR.")]
Tasks = Annotated[
    str | None, typer.Option(help="Only these tasks of `images` or `control`, as in mnist or cartpole,acrobot.")
]
Images = Annotated[int | None, typer.Option(help="Training images of a run of `images`.", metavar="N")]
Init = Annotated[str | None, typer.Option(help="How networks of `images` start: uniform, he or normal.")]
Shifted = Annotated[bool, typer.Option("--shifted", help="With every optimum moved to a draw of the first population.")]
AsText = Annotated[
    bool, typer.Option("--as-text", help="By the paper's sentences alone, not as its tables were computed.")
]
OfSeeds = Annotated[
    str | None,
    typer.Option("--seeds", help="Only seeds 0 … N−1, or a range as in 40-79; default: all.", metavar="N|A-B"),
]
Out = Annotated[Path | None, typer.Option(help="Where results are kept; default: runs/PROFILE.", metavar="DIR")]
To = Annotated[Path | None, typer.Option(help="Where to write; default: beside the results.", metavar="DIR")]
Rows = Annotated[list[str] | None, typer.Option("--row", help="A row, as in ackley,100,10; may be repeated.")]
Devices = Annotated[int | None, typer.Option(help="Devices to compute on; default: all.", metavar="N")]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Groups that run at the same time on each device.", metavar="N")
]
Ray = Annotated[bool, typer.Option("--ray", help="Compute on the nodes of a Ray cluster.")]
Address = Annotated[
    str | None, typer.Option(help="Of the Ray cluster, as in host:6379; default: the one that runs here.")
]


def _command(parent: typer.Typer, name: str) -> Callable[[Callable], Callable]:
    """A command whose errors end in a line that says what to do, not in a traceback."""

    def register(function: Callable) -> Callable:
        @wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> None:
            try:
                function(*args, **kwargs)
            except LabError as error:
                _stop(str(error), error.exit_code)
            except KeyboardInterrupt:
                _stop("interrupted; what was finished is kept, and the same command goes on from there", 130)

        return parent.command(name)(guarded)

    return register


@_command(study_app, "list")
def list_studies() -> None:
    """The studies there are."""
    for study in STUDIES.values():
        print(f"{study.name}: {study.title} (profiles: {', '.join(study.profiles)})")


@_command(study_app, "run")
def run(
    name: Name,
    profile: Profile = "quick",
    seeds: Seeds = None,
    dims: Dims = None,
    functions: Functions = None,
    methods: Methods = None,
    shifted: Shifted = False,
    as_text: AsText = False,
    tasks: Tasks = None,
    images: Images = None,
    init: Init = None,
    out: Out = None,
    devices: Devices = None,
    threads: Threads = None,
    ray: Ray = False,
    address: Address = None,
) -> None:
    """Compute what is missing of a study. Killed and started again, it goes on where it was."""
    selection = Selection(
        profile,
        _seeds(seeds),
        _numbers("dims", dims),
        _names(functions),
        _names(methods),
        shifted,
        tasks=_names(tasks),
        images=images,
        init=init,
        as_text=as_text,
    )
    _run(_study(name), selection, _directory(out, profile), _where(devices, threads, ray, address))


@_command(study_app, "reproduce")
def reproduce(
    name: Name,
    profile: Profile = "quick",
    seeds: Seeds = None,
    shifted: Shifted = False,
    as_text: AsText = False,
    out: Out = None,
    devices: Devices = None,
    threads: Threads = None,
    ray: Ray = False,
    address: Address = None,
) -> None:
    """Run a study, then print its tables and the verdicts on the paper's claims, and write figures and the report."""
    from .show import claims

    directory, console = _directory(out, profile), _console()
    selection = Selection(profile, _seeds(seeds), shifted=shifted, as_text=as_text)
    computed = _run(_study(name), selection, directory, _where(devices, threads, ray, address))
    shown = _open(name, out, profile, shifted, as_text)
    shown.view.tables(shown.store, shown.options, shown.beside("tables"), console)
    figures = shown.beside("figures")
    if computed or not any(figures.glob("*.pdf")):
        shown.view.figures(shown.store, shown.options, figures, console)
    else:
        console.print(f"figures: {figures}, of the same runs as before", highlight=False, soft_wrap=True)
    if not (shifted or as_text):
        console.print(claims.as_text(shown.view.claims(shown.store, shown.options)))
    console.print(f"report: {_report(directory)}", highlight=False, soft_wrap=True)


@_command(study_app, "table")
def table(
    name: Name,
    profile: Profile = "quick",
    seeds: OfSeeds = None,
    shifted: Shifted = False,
    as_text: AsText = False,
    out: Out = None,
    to: To = None,
) -> None:
    """Print the tables of a study; write them as CSV, Markdown and LaTeX, with the statistics behind them."""
    shown = _open(name, out, profile, shifted, as_text, seeds)
    shown.view.tables(shown.store, shown.options, to or shown.beside("tables"), _console())


@_command(study_app, "figure")
def figure(
    name: Name,
    profile: Profile = "quick",
    row: Rows = None,
    seeds: OfSeeds = None,
    shifted: Shifted = False,
    as_text: AsText = False,
    out: Out = None,
    to: To = None,
) -> None:
    """Write the figures of a study as PDF, SVG and PNG."""
    shown = _open(name, out, profile, shifted, as_text, seeds, row)
    shown.view.figures(shown.store, shown.options, to or shown.beside("figures"), _console())


@_command(study_app, "compare")
def compare(
    name: Name,
    against: Annotated[Path, typer.Option(help="A printed table as CSV, or a directory of them.", metavar="PATH")],
    table: Annotated[
        int | None, typer.Option(min=1, max=3, help="Which table it is, if its name does not say.")
    ] = None,
    profile: Profile = "quick",
    seeds: OfSeeds = None,
    shifted: Shifted = False,
    as_text: AsText = False,
    out: Out = None,
    to: To = None,
) -> None:
    """How far the tables of a study agree with printed ones: by table, method and dimension, and cell by cell."""
    shown = _open(name, out, profile, shifted, as_text, seeds)
    shown.view.compare(shown.store, shown.options, _reachable(against), table, to or shown.beside("tables"), _console())


@_command(study_app, "claims")
def decide_claims(
    profile: Profile = "quick",
    seeds: OfSeeds = None,
    shifted: Shifted = False,
    as_text: AsText = False,
    out: Out = None,
    to: Annotated[Path | None, typer.Option(help="Write them to DIR/claims.json as well.", metavar="DIR")] = None,
) -> None:
    """Decide the paper's claims, each by its rule, from all studies that have been run.

    Some seeds, moved optima or the paper's text: from the studies that have such, which is `functions`.
    """
    from .registry import VIEWS
    from .run.store import Store, write_text
    from .show import claims

    directory = _directory(out, profile)
    options = _options(shifted, as_text, seeds)
    names = [name for name, view in VIEWS.items() if set(options.asked) <= set(view.options)]
    stores = {name: Store(directory / name) for name in names if (directory / name).is_dir()}
    if not stores:
        raise LabError(f"{directory} holds no results; `gesmr study run` makes some")
    decided = [claim for name, store in stores.items() for claim in VIEWS[name].claims(store, options)]
    _console().print(claims.as_text(decided))
    if to is not None:
        write_text(to / "claims.json", claims.as_json(decided))


@_command(study_app, "export")
def export(
    name: Name,
    to: Annotated[Path, typer.Option(help="Where to write.", metavar="DIR")],
    profile: Profile = "quick",
    row: Rows = None,
    seeds: OfSeeds = None,
    shifted: Shifted = False,
    as_text: AsText = False,
    out: Out = None,
) -> None:
    """Write the small summaries of a study that are worth keeping: tables, statistics, claims, figures, provenance."""
    shown = _open(name, out, profile, shifted, as_text, seeds, row)
    shown.view.export(shown.store, shown.options, to, _console())


@_command(app, "landscape")
def show_landscape(
    objective: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="A JAX function from f[N, d] to f[N].")],
    dim: Annotated[int, typer.Option(min=1, help="How many genes a solution has.")],
    to: Annotated[Path, typer.Option(help="Where to write.", metavar="DIR")] = Path("landscape"),
    samples: Annotated[int, typer.Option(min=1, help="Changes of value for each rate.")] = 2000,
    group: Annotated[int, typer.Option(min=2, help="Children of a group, q.")] = 10,
    std: Annotated[float, typer.Option(help="Points are drawn from N(0, std² I).")] = 1.0,
) -> None:
    """What mutation does to a function of yours: change of value against mutation rate, and the best rates."""
    from .loading import load_callable
    from .studies.landscape import show as landscape

    landscape.show_landscape(load_callable(objective), dim, to, _console(), samples, group, std)


@_command(app, "minimize")
def minimize_function(
    objective: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="From a vector to a number.")],
    dim: Annotated[int, typer.Option(min=1, help="How many variables it has.")],
    bounds: Annotated[str | None, typer.Option(help="Of all variables, as in -5,5 or 0,inf.")] = None,
    x0: Annotated[str | None, typer.Option(help="A number for all variables, or a .npy file; default: drawn.")] = None,
    init_std: Annotated[float | None, typer.Option(help="Spread of the first population around x0.")] = None,
    popsize: Annotated[int | None, typer.Option(help="Members of the population.")] = None,
    controller: Annotated[str | None, typer.Option(help="How the rate is chosen: GESMR, SAMR, 15MR …")] = None,
    truncation: Annotated[float | None, typer.Option(help="The share of members that may become parents.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeats a run.")] = None,
    maxiter: Annotated[int | None, typer.Option(help="Generations.")] = None,
    maxfun: Annotated[int | None, typer.Option(help="Evaluations, never exceeded.")] = None,
    maxtime: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    target: Annotated[float | None, typer.Option(help="A value that is good enough.")] = None,
    patience: Annotated[int | None, typer.Option(help="Generations without a better value.")] = None,
    maximize: Annotated[bool, typer.Option("--maximize", help="Higher is better.")] = False,
    vectorized: Annotated[
        bool, typer.Option("--vectorized", help="The function takes all candidates, one per row, to all values.")
    ] = False,
    workers: Annotated[
        str | None, typer.Option(help="A number of processes (-1: all CPUs), ray, or the address of a Ray cluster.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds a candidate may take, with --workers.")] = None,
    restarts: Annotated[int, typer.Option(help="How often to begin anew when patience has run out.")] = 0,
    on_error: Annotated[str, typer.Option(help="What an exception is: raise, or worst for the worst value.")] = "raise",
    checkpoint: Annotated[Path | None, typer.Option(help="Keep the run here.", metavar="FILE")] = None,
    every: Annotated[int | None, typer.Option(help="Generations between checkpoints; default: 10 s.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, if it is there.")] = False,
    log: Annotated[Path | None, typer.Option(help="Add a line of JSON for every generation.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Minimise a function of yours. What is printed goes to standard output, progress to standard error."""
    from . import minimizing
    from .loading import load_callable

    limits = {"maxiter": maxiter, "maxfun": maxfun, "maxtime": maxtime, "target": target, "patience": patience}
    search = {"popsize": popsize, "controller": controller, "truncation": truncation}
    search |= {"init_std": init_std, "restarts": restarts}
    result = minimizing.minimize(
        load_callable(objective),
        minimizing.Request(dim, bounds, x0, seed, checkpoint, every, resume, log, workers, timeout),
        Console(stderr=True),
        {**limits, **search, "vectorized": vectorized, "on_error": on_error},
        maximize,
    )
    print(minimizing.as_json(result) if as_json else minimizing.as_text(result))
    if code := minimizing.exit_code(result):
        raise typer.Exit(code)


@_command(app, "watch")
def watch(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Where results are kept, as in runs/quick.")],
    task: Annotated[
        str | None, typer.Option(help="Only this task, as in cartpole; default: every one there is.")
    ] = None,
    method: Annotated[str, typer.Option(help="Whose policy, as in SAMR.")] = "GESMR",
    seed: Annotated[int | None, typer.Option(help="Of which run; default: the best on held-out episodes.")] = None,
    episode: Annotated[int, typer.Option(min=0, help="Which held-out episode.")] = 0,
    to: To = None,
) -> None:
    """Show the best policy of a control run at work: an animation (GIF) and a strip of frames (PNG)."""
    from .run.store import Store
    from .show.output import say
    from .studies.control import watch as control
    from .studies.control.show import VIEW

    _reachable(directory)
    home = directory.parent if directory.name == "control" and (directory / "store.json").is_file() else directory
    results = VIEW.results(Store(home / "control"))
    for line in control.watch(results, task, method, seed, episode, to or home / "watch"):
        say(_console(), line)


@_command(app, "report")
def write_report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where results are kept, as in runs/quick.")],
) -> None:
    """Write DIR/report.html: everything in one page that needs nothing else."""
    _console().print(f"report: {_report(_reachable(directory))}", highlight=False, soft_wrap=True)


def _where(devices: int | None, threads: int | None, ray: bool, address: str | None) -> Callable[..., int]:
    """What computes the missing runs of a study: the devices of this machine, or a cluster."""
    from .._ray import is_address
    from .run import runner

    if ray or address is not None:
        if devices is not None:
            raise LabError("--devices is for this machine, and --ray takes all devices of its nodes: choose one")
        if address is not None and not is_address(address):
            raise LabError(f'--address must be "auto", "ray://host:10001" or "host:6379", got {address!r}')
        return partial(runner.run, threads=threads, cluster=address or "auto")
    return partial(runner.run, devices=devices, threads=threads)


def _run(study: Study, selection: Selection, directory: Path, compute: Callable[..., int]) -> int:
    """Run what is missing; how many runs that were."""
    from .run.store import Store, check_home

    console = Console(stderr=True)
    try:
        specs = study.specs(selection)
    except (TypeError, ValueError) as error:
        raise LabError(f"--{error}") from error
    check_home(directory)
    store = Store(directory / study.name, create=True, warn=lambda line: console.print(line, style="yellow"))
    try:
        computed = compute(study, specs, store, console=console)
    # An extra that is not installed, images that are not there, an address where no cluster answers
    except (ModuleNotFoundError, DatasetError, ConnectionError) as error:
        raise LabError(str(error)) from error
    there = "all there already" if not computed else f"{computed} computed now"
    console.print(f"{study.name}: {len(specs)} runs in {store.directory}, {there}", highlight=False, soft_wrap=True)
    return computed


def _study(name: str) -> Study:
    if name not in STUDIES:
        raise LabError(f"study must be one of {', '.join(STUDIES)}, got {name!r}")
    return STUDIES[name]


def _report(directory: Path) -> Path:
    from .registry import VIEWS
    from .show import report

    return report.write(directory, {name: view.chapter for name, view in VIEWS.items()})


class _Shown(NamedTuple):
    """What a command shows: a study's view and store, the directory that holds it, and what is asked of the view."""

    name: str
    view: "View"
    store: "Store"
    directory: Path
    options: "Options"

    def beside(self, what: str) -> Path:
        """Where to write, if nothing else is said."""
        return self.directory / what / f"{self.name}{self.options.suffix}"


def _open(
    name: str,
    out: Path | None,
    profile: str,
    shifted: bool = False,
    as_text: bool = False,
    seeds: str | None = None,
    rows: list[str] | None = None,
) -> _Shown:
    from .registry import VIEWS
    from .run.store import Store

    _study(name)
    view, directory, options = VIEWS[name], _directory(out, profile), _options(shifted, as_text, seeds, rows)
    for option in options.asked:
        if option not in view.options:
            flag = {"as_text": "as-text", "rows": "row"}.get(option, option)
            raise LabError(f"--{flag} means nothing to what the study {name} shows")
    return _Shown(name, view, Store(directory / name), directory, options)


def _options(shifted: bool, as_text: bool, seeds: str | None, rows: list[str] | None = None) -> "Options":
    from .show.view import Options

    chosen = _seeds(seeds)
    return Options(shifted, tuple(rows or ()), as_text, range(chosen) if isinstance(chosen, int) else chosen)


def _directory(out: Path | None, profile: str) -> Path:
    known = sorted({profile for study in STUDIES.values() for profile in study.profiles})
    if profile not in known:
        raise LabError(f"--profile must be one of {', '.join(known)}, got {profile!r}")
    return _reachable(out or Path("runs") / profile)


def _reachable(directory: Path) -> Path:
    """`directory`, whether it is there or not, if what is in it can be asked for at all."""
    try:
        (directory / "store.json").exists()
    except OSError as error:
        raise LabError(f"{directory} cannot be used: {error.strerror}") from error
    return directory


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(part) for part in _names(text) or ())
    except ValueError as error:
        raise LabError(f"--{option} must be whole numbers separated by commas, got {text!r}") from error


def _seeds(text: str | None) -> int | range | None:
    """`5` is a number of seeds, `40-79` those from 40 to 79."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    try:
        seeds = range(int(first), int(last) + 1) if dash else int(first)
    except ValueError:
        seeds = 0
    if not seeds:
        raise LabError(f"--seeds must be a number of seeds as in 5, or a range as in 40-79, got {text!r}")
    return seeds


def _console() -> Console:
    """Tables are wide: outside a terminal they get the room they need."""
    console = Console()
    return console if console.is_terminal else Console(width=150)


def _stop(message: str, code: int) -> NoReturn:
    Console(stderr=True).print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    app()
