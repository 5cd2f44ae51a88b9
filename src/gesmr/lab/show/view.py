"""What a study shows: it says what its results, tables, figures and claims are, this prints and writes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any, Generic, TypeVar

from matplotlib.figure import Figure
from rich.console import Console

from ..errors import LabError
from ..run.store import Store, StoredJob, write_text
from .claims import Claim, Rule, as_json
from .figures import for_page, save, save_small, style
from .output import json_text, machines, say
from .report import Chapter, Outcome, Section, shell
from .table import Table

R = TypeVar("R")


@dataclass(frozen=True)
class Options:
    """What a user asked for, beyond the study."""

    shifted: bool = False
    rows: tuple[str, ...] = ()
    as_text: bool = False
    seeds: range | None = None  # None: all there are

    @property
    def asked(self) -> list[str]:
        """The names of those that differ from the defaults."""
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]

    @property
    def suffix(self) -> str:
        """What sets the directories of these apart."""
        of_seeds = f"-seeds-{self.seeds.start}-{self.seeds.stop - 1}" if self.seeds else ""
        return "-shifted" * self.shifted + "-as-text" * self.as_text + of_seeds


class MissingError(Exception):
    """What a store does not hold, as in "shifted runs"."""


@dataclass(frozen=True)
class View(Generic[R]):
    """What a study shows, given how to read its results `R` from the jobs of a store.

    Parameters of `load` and `make_figures` beyond the first are those of `Options` that mean something to the study.
    """

    name: str
    title: str
    load: Callable[..., R]  # from Sequence[StoredJob]; or MissingError
    summary: Callable[[R], str]  # what was run, in a line
    make_tables: Callable[[R], Sequence[Table]]
    make_figures: Callable[..., Mapping[str, tuple[str, Figure]]]  # from R: a caption and a figure by name of its file
    text: str = ""  # what a reader should look for; exported results have a page only with it
    rules: Sequence[Rule[R]] = ()
    counted: str = ""  # as what the report counts its claims; "": as the paper's
    formats: tuple[str, ...] = ("csv", "md")  # of tables
    more: Callable[[R], Mapping[str, str]] = lambda results: {}  # further files beside the tables, by name
    origin: Callable[[R, Sequence[StoredJob]], dict[str, Any]] | None = None  # in place of the usual provenance
    make_chapter: Callable[[Path], Chapter] | None = None  # in place of the usual chapter of the report
    say_agreement: Callable[[Store, R, Path, int | None, Path, Console | None], list[str]] | None = None  # None: JSON

    @property
    def options(self) -> tuple[str, ...]:
        """Those of `Options` that mean something to it."""
        return *_parameters(self.load), *_parameters(self.make_figures)

    def results(self, store: Store, options: Options = Options()) -> R:
        """What the study found, or an error that says what to run."""
        return self._load(store, options)[1]

    def decide(self, results: R) -> list[Claim]:
        return [rule.decided(results) for rule in self.rules]

    def tables(self, store: Store, options: Options, to: Path, console: Console, as_json: bool = False) -> None:
        """Print the tables, for people or as JSON, and write them as files."""
        results = self.results(store, options)
        made = self.make_tables(results)
        if not made:
            raise LabError(f"the study {self.name} has figures but no table")
        if as_json:
            print(json_text([table.plain() for table in made]), end="")
            console = Console(stderr=True)
        else:
            for table in made:
                console.print(table.text(console.width))
        _write_tables(made, self.formats, to)
        more = _write_all(self.more(results), to)
        names = ", ".join(table.name for table in made)
        say(console, ", ".join([f"written to {to}: {names} ({', '.join(self.formats)})", *more]))

    def figures(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Write the figures as PDF, SVG and PNG."""
        made = self._figures(self.results(store, options), options)
        for name, (_, figure) in made.items():
            save(figure, to / name)
        say(console, f"written to {to}: {', '.join(made)} (pdf, svg, png)")

    def claims(self, store: Store, options: Options) -> list[Claim]:
        return self.decide(self.results(store, options))

    def compare(
        self,
        store: Store,
        options: Options,
        against: Path,
        table: int | None,
        to: Path,
        console: Console,
        as_json: bool = False,
    ) -> None:
        """Print how far the tables agree with printed ones, every cell if as JSON; write all cells, and where the runs
        come from."""
        if self.say_agreement is None:
            raise LabError(f"the study {self.name} has no printed table to compare with")
        jobs, results = self._load(store, options)
        written = self.say_agreement(store, results, against, table, to, None if as_json else console)
        write_text(to / "provenance.json", json_text(self._provenance(store, jobs, results)))
        said = Console(stderr=True) if as_json else console
        say(said, f"written to {to}: {', '.join(written)}, provenance.json")

    def export(self, store: Store, options: Options, to: Path, console: Console) -> None:
        """Write what is worth keeping: tables, claims, figures, provenance, and a page of them."""
        jobs, results = self._load(store, options)
        tables, claims, figures = self.make_tables(results), self.decide(results), self._figures(results, options)
        provenance = self._provenance(store, jobs, results)
        _write_tables(tables, ("csv",), to)
        more = _write_all(self.more(results), to)
        for name, (_, figure) in figures.items():
            save_small(figure, to / f"{name}.png")
        write_text(to / "claims.json", as_json(claims))
        write_text(to / "provenance.json", json_text(provenance))
        written = [table.name for table in tables] + [Path(name).stem for name in more]
        written += ["claims", *figures, "provenance"]
        if self.text:
            captions = {name: caption for name, (caption, _) in figures.items()}
            write_text(to / "README.md", _page(self, self.summary(results), claims, tables, captions, provenance))
            written = ["README.md", "tables", "figures", "claims", "provenance"]
        say(console, f"written to {to}: {', '.join(written)}")

    def chapter(self, directory: Path) -> Chapter:
        """The study's part of the report."""
        if self.make_chapter is not None:
            return self.make_chapter(directory)
        store = Store(directory)
        jobs, results = self._load(store, Options())
        full = f"gesmr study run {self.name} --profile paper --out {shell(directory.parent)}"
        claims = self.decide(results)
        partial = any(c.short or c.found == rule.missing for c, rule in zip(claims, self.rules, strict=True))
        images = [
            {
                "caption": caption,
                "source": for_page(figure),
                "inches": f"{figure.get_figwidth():.3g}",
                "shaded": any(axes.images for axes in figure.axes),
            }
            for caption, figure in self._figures(results, Options()).values()
        ]
        context = {"text": self.text, "images": images, "tables": list(map(_for_page, self.make_tables(results)))}
        return Chapter(
            title=self.title,
            summary=self.summary(results),
            outcomes=[Outcome(self.counted, claim, ((self.title, self.name),)) for claim in claims],
            caution=f"{self.title}: these are not all runs, and the verdicts may change." if partial else "",
            sections=[Section(self.name, self.title, "show/report/study.html.j2", context)],
            provenance=[job.provenance for job in jobs],
            runs=_count(jobs),
            commands=store.commands() or [f"gesmr study run {self.name} --out {shell(directory.parent)}"],
            completing=[full] if partial else [],
        )

    def _load(self, store: Store, options: Options) -> tuple[list[StoredJob], R]:
        jobs = list(store.jobs())
        try:
            if not jobs:
                raise MissingError("results")
            return jobs, self.load(jobs, **_chosen(self.load, options))
        except MissingError as what:
            error = f"{store.directory} holds no {what}; `gesmr study run {self.name}` makes some"
            raise LabError(error) from what

    def _figures(self, results: R, options: Options) -> Mapping[str, tuple[str, Figure]]:
        with style():
            return self.make_figures(results, **_chosen(self.make_figures, options))

    def _provenance(self, store: Store, jobs: Sequence[StoredJob], results: R) -> dict[str, Any]:
        usual = {"study": self.title, "runs": _count(jobs), "machines": machines(job.provenance for job in jobs)}
        return (usual if self.origin is None else self.origin(results, jobs)) | {"sessions": store.sessions()}


def _parameters(function: Callable) -> list[str]:
    """All but the first."""
    return list(signature(function).parameters)[1:]


def _chosen(function: Callable, options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in _parameters(function)}


def _count(jobs: Sequence[StoredJob]) -> int:
    """Of runs."""
    return sum(len(job.specs) for job in jobs)


def _write_tables(tables: Sequence[Table], formats: Sequence[str], to: Path) -> None:
    for table in tables:
        written = {"csv": table.csv, "md": table.markdown, "tex": table.latex}
        _write_all({f"{table.name}.{suffix}": written[suffix]() for suffix in formats}, to)


def _write_all(files: Mapping[str, str], to: Path) -> list[str]:
    """Their names."""
    for name, text in files.items():
        write_text(to / name, text)
    return list(files)


def _for_page(table: Table) -> dict[str, Any]:
    kinds = ["number" if numeric else "" for numeric in table.numeric]
    columns = list(zip(table.headings, kinds, strict=True))
    return {"name": table.name, "title": table.title, "columns": columns, "rows": table.shown, "note": table.note,
            "csv": table.csv()}  # fmt: skip


def _page(
    view: View,
    summary: str,
    claims: Sequence[Claim],
    tables: Sequence[Table],
    captions: Mapping[str, str],
    provenance: Mapping[str, Any],
) -> str:
    """A study's results in Markdown."""
    parts = [f"# {view.title}", view.text, f"{summary}. {_where(provenance)}"]
    for claim in claims:
        parts.append(f"**Claim {claim.number}: {claim.verdict}.** {claim.claim}. Found: {claim.found}.")
        parts.append(f"The rule: {claim.rule}.")
        if claim.short:
            parts.append(f"Decided on less than the paper's runs: {claim.short}.")
    parts += [f"![{name}]({name}.png)\n\n{caption}" for name, caption in captions.items()]
    parts += [f"## {table.title}\n\n{table.markdown()}\n{table.note}".rstrip() for table in tables]
    return "\n\n".join(parts) + "\n"


def _where(provenance: Mapping[str, Any]) -> str:
    """On what machines, and how long it took."""
    devices = dict.fromkeys(f"{m['device']} (JAX {m['jax']})" for m in provenance["machines"])
    seconds = sum(s["wall_seconds"] for s in provenance["sessions"])
    return f"{provenance['runs']:,} runs on {', '.join(devices)}, {seconds:,.0f} s with compilation."
