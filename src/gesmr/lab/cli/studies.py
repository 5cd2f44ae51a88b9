"""`gesmr study …`, and what is shown of studies: `gesmr report`, `gesmr watch`, `gesmr landscape`."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console

from ..._ray import is_address
from ...problems.datasets import DatasetError
from ..errors import LabError
from ..loading import load_callable
from ..run.store import Store, check_home, write_text
from ..show.output import say
from ..studies import STUDIES, Selection, Study, view_of
from . import failures, resuming
from .command import app, command, console, reachable, study_app

if TYPE_CHECKING:
    from ..show.view import Options, View

Name = Annotated[str, typer.Argument(metavar="NAME", help="The study; `gesmr study list` names them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for a program.")]
To = Annotated[Path | None, typer.Option(help="Where to write; default: beside the results.", metavar="DIR")]
Rows = Annotated[
    list[str] | None, typer.Option("--row", help="A row, as in ackley,100,10; may be repeated.", metavar="ROW")
]


@dataclass(frozen=True)
class Where:
    """The devices of this machine, or a cluster."""

    devices: Annotated[int | None, typer.Option(help="Devices to compute on; default: all.", metavar="N")] = None
    threads: Annotated[
        int | None, typer.Option(min=1, help="Parts that run at the same time on each device.", metavar="N")
    ] = None
    ray: Annotated[bool, typer.Option("--ray", help="Compute on the nodes of a Ray cluster.")] = False
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster, as in host:6379; default: the one that runs here.")
    ] = None

    def run(self, study: Study, selection: Selection, directory: Path) -> int:
        """Compute what is missing of a study; how many runs that were."""
        from ..run import runner

        if self.devices is not None and (self.ray or self.address is not None):
            raise LabError("--devices is for this machine, and --ray takes all devices of its nodes: choose one")
        if self.address is not None and not is_address(self.address):
            raise LabError(f'--address must be "auto", "ray://host:10001" or "host:6379", got {self.address!r}')
        progress = Console(stderr=True)
        try:
            specs = study.specs(selection)
        except (TypeError, ValueError) as error:
            raise LabError(f"--{error}") from error
        check_home(directory)
        store = Store(directory / study.name, create=True, warn=lambda line: progress.print(line, style="yellow"))
        cluster = self.address or ("auto" if self.ray else None)
        try:
            computed = runner.run(
                study,
                specs,
                store,
                console=progress,
                devices=self.devices,
                threads=self.threads,
                cluster=cluster,
                command=resuming.given(),
            )
        # An extra that is not installed, images that are not there, an address where no cluster answers
        except (ModuleNotFoundError, DatasetError, ConnectionError) as error:
            raise LabError(str(error)) from error
        there = "all there already" if not computed else f"{computed} computed now"
        say(progress, f"{study.name}: {len(specs)} runs in {store.directory}, {there}")
        return computed


@dataclass(frozen=True)
class Asked:
    """Which runs are computed, and then shown."""

    profile: Annotated[str, typer.Option(help="How much to run: quick, or paper for all of it.")] = "quick"
    seeds: Annotated[
        str | None, typer.Option(help="Seeds 0 … N−1, or a range as in 40-79; default: the profile's.", metavar="N|A-B")
    ] = None
    shifted: Annotated[
        bool, typer.Option("--shifted", help="Move every optimum to a random point, drawn as the first population is.")
    ] = False
    as_text: Annotated[
        bool, typer.Option("--as-text", help="Follow the paper's text alone, not the way its tables were computed.")
    ] = False
    out: Annotated[Path | None, typer.Option(help="Where results are kept; default: runs/PROFILE.", metavar="DIR")] = (
        None
    )

    @property
    def directory(self) -> Path:
        known = sorted({profile for study in STUDIES.values() for profile in study.profiles})
        if self.profile not in known:
            raise LabError(f"--profile must be one of {', '.join(known)}, got {self.profile!r}")
        return reachable(self.out or Path("runs") / self.profile)

    def selection(self, **narrowed: Any) -> Selection:
        return Selection(self.profile, seeds_said(self.seeds), shifted=self.shifted, as_text=self.as_text, **narrowed)

    def options(self, rows: list[str] | None = None) -> "Options":
        from ..show.view import Options

        seeds = seeds_said(self.seeds)
        return Options(self.shifted, tuple(rows or ()), self.as_text, range(seeds) if isinstance(seeds, int) else seeds)

    def of(self, name: str, rows: list[str] | None = None) -> "_Shown":
        """Those of a study, if all that is asked for means something to it."""
        _study(name)
        view, directory, options = view_of(name), self.directory, self.options(rows)
        for option in options.asked:
            if option not in view.options:
                flag = {"as_text": "as-text", "rows": "row"}.get(option, option)
                raise LabError(f"--{flag} means nothing to what the study {name} shows")
        return _Shown(view, Store(directory / name), options)


@dataclass(frozen=True)
class Results(Asked):
    """Which results are shown."""

    seeds: Annotated[
        str | None,
        typer.Option(help="Only seeds 0 … N−1, or a range as in 40-79; default: all.", metavar="N|A-B"),
    ] = None


class _Shown(NamedTuple):
    """What a command shows: a study's view and store, and what is asked of the view."""

    view: "View"
    store: Store
    options: "Options"

    def beside(self, what: str) -> Path:
        """Where to write, if nothing else is said."""
        home = self.store.directory
        return home.parent / what / f"{home.name}{self.options.suffix}"


@command(study_app, "list", "gesmr study list", "gesmr study list --json")
def list_studies(as_json: AsJson = False) -> None:
    """The studies there are."""
    if as_json:
        plain = [{"name": s.name, "title": s.title, "profiles": list(s.profiles)} for s in STUDIES.values()]
        print(json.dumps(plain, ensure_ascii=False))
        return
    for study in STUDIES.values():
        print(f"{study.name}: {study.title} (profiles: {', '.join(study.profiles)})")


def _kept(**_: Any) -> str:
    """What Ctrl-C leaves behind."""
    return resuming.kept("finished runs are kept")


@command(
    study_app,
    "run",
    "gesmr study run functions",
    "gesmr study run functions --seeds 3 --dims 2,30 --methods GESMR,SAMR",
    "gesmr study run images --profile paper --tasks mnist",
    interrupted=_kept,
)
def run(
    name: Name,
    asked: Asked,
    dims: Annotated[str | None, typer.Option(help="Only these dimensions, as in 2,30.")] = None,
    functions: Annotated[str | None, typer.Option(help="Only these functions, as in ackley,sphere.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, as in GESMR,SAMR.")] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Only these tasks of `images` or `control`, as in mnist or cartpole,acrobot.")
    ] = None,
    images: Annotated[int | None, typer.Option(help="Training images of a run of `images`.", metavar="N")] = None,
    init: Annotated[str | None, typer.Option(help="How networks of `images` start: uniform, he or normal.")] = None,
    where: Where = Where(),
) -> None:
    """Compute what is missing of a study. If it is stopped, the same command continues it."""
    names = {"functions": names_said(functions), "methods": names_said(methods), "tasks": names_said(tasks)}
    selection = asked.selection(dims=_numbers("dims", dims), images=images, init=init, **names)
    where.run(_study(name), selection, asked.directory)


@command(
    study_app,
    "reproduce",
    "gesmr study reproduce functions",
    "gesmr study reproduce control --profile paper --out runs/full",
    interrupted=_kept,
)
def reproduce(name: Name, asked: Asked, where: Where = Where()) -> None:
    """Run a study, then print its tables and the verdicts on the paper's claims, and write figures and the report."""
    from ..show import claims

    directory = asked.directory
    computed = where.run(_study(name), asked.selection(), directory)
    shown = replace(asked, seeds=None).of(name)
    shown.view.tables(shown.store, shown.options, shown.beside("tables"), console())
    figures = shown.beside("figures")
    if computed or not any(figures.glob("*.pdf")):
        shown.view.figures(shown.store, shown.options, figures, console())
    else:
        say(console(), f"figures: {figures}, of the same runs as before")
    if not (asked.shifted or asked.as_text):
        console().print(claims.as_text(shown.view.claims(shown.store, shown.options), console().width))
    write_report(directory)


@command(
    study_app,
    "table",
    "gesmr study table functions",
    "gesmr study table functions --profile paper --seeds 0-39",
    "gesmr study table functions --json",
)
def table(name: Name, results: Results, to: To = None, as_json: AsJson = False) -> None:
    """Print the tables of a study; write them as CSV, Markdown and LaTeX, with the statistics behind them."""
    shown = results.of(name)
    shown.view.tables(shown.store, shown.options, to or shown.beside("tables"), console(), as_json)


@command(
    study_app,
    "figure",
    "gesmr study figure functions",
    "gesmr study figure functions --row ackley,100,10 --row linear,30,1",
)
def figure(name: Name, results: Results, row: Rows = None, to: To = None) -> None:
    """Write the figures of a study as PDF, SVG and PNG."""
    shown = results.of(name, row)
    shown.view.figures(shown.store, shown.options, to or shown.beside("figures"), console())


@command(
    study_app,
    "compare",
    "gesmr study compare functions --against tests/data",
    "gesmr study compare functions --against printed.csv --table 1 --json",
)
def compare(
    name: Name,
    against: Annotated[Path, typer.Option(help="A printed table as CSV, or a directory of them.", metavar="PATH")],
    results: Results,
    table: Annotated[
        int | None, typer.Option(min=1, max=3, help="Which of the paper's tables it is, if its name does not say.")
    ] = None,
    to: To = None,
    as_json: AsJson = False,
) -> None:
    """How far the tables of a study agree with printed ones: by table, method and dimension, and cell by cell."""
    shown = results.of(name)
    to = to or shown.beside("tables")
    shown.view.compare(shown.store, shown.options, reachable(against), table, to, console(), as_json)


@command(study_app, "claims", "gesmr study claims", "gesmr study claims --profile paper --json")
def decide_claims(
    results: Results,
    to: Annotated[Path | None, typer.Option(help="Write them to DIR/claims.json as well.", metavar="DIR")] = None,
    as_json: AsJson = False,
) -> None:
    """Decide the paper's claims, each by its rule, from all studies that have been run.

    --seeds, --shifted and --as-text leave only studies that have such runs: `functions`.
    """
    from ..show import claims

    directory, options = results.directory, results.options()
    views = {name: view for name in STUDIES if set(options.asked) <= set((view := view_of(name)).options)}
    stores = {name: Store(directory / name) for name in views if (directory / name).is_dir()}
    if not stores:
        raise LabError(f"{directory} holds no results; `gesmr study run` makes some")
    decided = [claim for name, store in stores.items() for claim in views[name].claims(store, options)]
    if as_json:
        print(claims.as_json(decided), end="")
    else:
        console().print(claims.as_text(decided, console().width))
    if to is not None:
        write_text(to / "claims.json", claims.as_json(decided))


@command(study_app, "export", "gesmr study export functions --to results/mine")
def export(
    name: Name,
    to: Annotated[Path, typer.Option(help="Where to write.", metavar="DIR")],
    results: Results,
    row: Rows = None,
) -> None:
    """Write small files that are worth keeping: tables, statistics, claims, figures and where they come from."""
    shown = results.of(name, row)
    shown.view.export(shown.store, shown.options, to, console())


@command(
    app,
    "landscape",
    "gesmr landscape mine.py:many --dim 30",
    "gesmr landscape mine.py:many --dim 30 --std 5 --to ackley --json",
)
def show_landscape(
    objective: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:FUNCTION",
            help="Your JAX function, from N solutions (N rows) to N values; MODULE:FUNCTION too.",
        ),
    ],
    dim: Annotated[int, typer.Option(min=1, help="How many variables there are.")],
    to: Annotated[Path, typer.Option(help="Where to write.", metavar="DIR")] = Path("landscape"),
    samples: Annotated[int, typer.Option(min=1, help="Changes of value for each rate.")] = 2000,
    group: Annotated[int, typer.Option(min=2, help="Children of a group, q.")] = 10,
    std: Annotated[float, typer.Option(help="Points are drawn from N(0, std² I).")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show what mutation does to your function: the change of value against the mutation rate, and the best rates."""
    from ..studies.landscape import show as landscape

    function = load_callable(objective)
    try:
        landscape.show_landscape(function, dim, to, console(), samples, group, std, as_json)
    except LabError as error:
        if (cause := error.__cause__) is None or failures.told(cause) is None:
            raise
        raise cause from cause.__cause__


@command(app, "watch", "gesmr watch runs/quick", "gesmr watch runs/quick --task cartpole --method SAMR")
def watch(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Where results are kept, as in runs/quick.")],
    task: Annotated[
        str | None, typer.Option(help="Only this task, as in cartpole; default: every one there is.")
    ] = None,
    method: Annotated[str, typer.Option(help="Whose policy, as in SAMR.")] = "GESMR",
    seed: Annotated[
        int | None, typer.Option(help="The run's seed; default: the best run on held-out episodes.")
    ] = None,
    episode: Annotated[int, typer.Option(min=0, help="Which held-out episode.")] = 0,
    to: To = None,
) -> None:
    """Show the best policy of a control run: an animation (GIF) and a strip of frames (PNG)."""
    from ..studies.control.watch import watch as animate

    reachable(directory)
    home = directory.parent if directory.name == "control" and (directory / "store.json").is_file() else directory
    results = view_of("control").results(Store(home / "control"))
    for line in animate(results, task, method, seed, episode, to or home / "watch"):
        say(console(), line)


@command(app, "report", "gesmr report runs/quick")
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where results are kept, as in runs/quick.")],
) -> None:
    """Write DIR/report.html: everything in one page that needs nothing else."""
    write_report(reachable(directory))


def write_report(directory: Path) -> None:
    from ..show.report import write

    page = write(directory, {name: view_of(name).chapter for name in STUDIES})
    say(console(), f"report: {page}")


def _study(name: str) -> Study:
    if name not in STUDIES:
        raise LabError(f"study must be one of {', '.join(STUDIES)}, got {name!r}")
    return STUDIES[name]


def names_said(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(part) for part in names_said(text) or ())
    except ValueError as error:
        raise LabError(f"--{option} must be whole numbers separated by commas, got {text!r}") from error


def seeds_said(text: str | None) -> int | range | None:
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
