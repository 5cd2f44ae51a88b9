"""What a command is: options that several share are declared once, and errors end in a line."""

import os
import warnings
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args

import typer
import typer.core
from rich.console import Console
from rich.markup import escape
from typer.models import OptionInfo

from ..._version import __version__
from ..errors import LabError
from . import failures


def examples(*lines: str, title: str = "Examples:") -> str:
    """What follows the options of a command in its help."""
    return "\n".join([f"[bold]{title}[/bold]", *(f"  {escape(line)}" for line in lines)])


_CODES = (
    "0    done",
    "1    a target was missed, a method failed, your function raised an error,",
    "     or a file could not be read or written",
    "2    the command was wrong",
    "130  interrupted by Ctrl-C",
)
_ORDER = ("minimize", "compare", "playground", "study", "report", "landscape", "watch")


class _PlainHelp:
    """--help says of itself no type of what it takes: it takes nothing."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class _Command(_PlainHelp, typer.core.TyperCommand):
    """An error in an option says what was given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            for fault in getattr(error.__cause__, "errors", list)():
                error.message += f", got {fault['input']!r}"
            raise


class _Group(_PlainHelp, typer.core.TyperGroup): ...


class _InOrder(_Group):
    """What most people are after comes first."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=lambda name: (*_ORDER, name).index(name))


app = typer.Typer(
    help="Genetic algorithms that find their own mutation rate: an optimiser, and the paper's studies.",
    epilog=examples(
        "gesmr minimize mine.py:loss --dim 10 --bounds=-5,5",
        "gesmr compare mine.py:loss --dim 10 --bounds=-5,5 --methods gesmr,DE",
        "gesmr study reproduce functions",
    )
    + "\n\n"
    + examples(*_CODES, title="Exit codes:"),
    cls=_InOrder,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
study_app = typer.Typer(
    help="Run a study of the paper and show its results.",
    epilog=examples(
        "gesmr study list",
        "gesmr study run functions --seeds 3 --dims 2,30",
        "gesmr study table functions",
    ),
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.add_typer(study_app, name="study")


def _say_version(asked: bool) -> None:
    if asked:
        print(f"gesmr {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True, metavar=""),
    ] = False,
) -> None: ...


Interrupted = Callable[..., str]  # from the options of a command to what Ctrl-C leaves behind


def command(
    parent: typer.Typer, name: str, *lines: str, interrupted: Interrupted = lambda **options: "interrupted"
) -> Callable[[Callable], Callable]:
    """A command, with examples for its help, whose errors end in a line that says what to do, not in a traceback.

    A parameter whose type is a dataclass stands for options with the names, types and defaults of its fields. One named
    `objective` is a function of the user's, whose errors are shown with the user's own lines.
    """

    def register(function: Callable) -> Callable:
        declared = signature(function).parameters.values()
        bundles: dict[str, Any] = {each.name: each.annotation for each in declared if is_dataclass(each.annotation)}

        @wraps(function)
        def guarded(**options: Any) -> None:
            for bundle, kind in bundles.items():
                options[bundle] = kind(**{field.name: options.pop(field.name) for field in fields(kind)})
            try:
                with warnings.catch_warnings():
                    warnings.showwarning = _warn
                    function(**options)
            except LabError as error:
                _stop(f"error: {error}", error.exit_code)
            except KeyboardInterrupt:
                _stop(interrupted(**options), 130)
            except Exception as error:
                if "objective" not in options or (told := failures.told(error)) is None:
                    raise
                _stop(told, 1)

        options = [option for each in declared for option in _options(each)]
        guarded.__signature__ = Signature(options)  # type: ignore[attr-defined]
        epilog = examples(*lines, title="Example:" if len(lines) == 1 else "Examples:")
        return parent.command(name, epilog=epilog, cls=_Command)(guarded)

    return register


_SHOWN = {bool: "", int: "N", float: "X", str: "TEXT"}  # what help says an option takes


def _options(parameter: Parameter) -> list[Parameter]:
    """What a parameter of a command is on the command line."""
    if not is_dataclass(parameter.annotation):
        kind, *rest = (*get_args(parameter.annotation), None)
        given = rest[0]
        if isinstance(given, OptionInfo) and given.metavar is None:
            kinds = [of for of in (get_args(kind) or (kind,)) if of in _SHOWN]
            given.metavar = _SHOWN[kinds[0]] if kinds else None
        return [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
    return [option for field in _fields(parameter) for option in _options(field)]


def _fields(parameter: Parameter) -> list[Parameter]:
    """The fields of a dataclass as parameters."""
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            annotation=field.type,
            default=Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(parameter.annotation)
    ]


def _stop(message: str, code: int) -> NoReturn:
    _say(message, "red")
    raise typer.Exit(code)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning is for who gave the command: which line of the library warns is nothing to them."""
    _say(f"warning: {message}", "yellow")


def _say(message: str, style: str) -> None:
    Console(stderr=True).print(message, style=style, markup=False, highlight=False, soft_wrap=True)


def console() -> Console:
    """Tables are wide: outside a terminal they get the room they need, unless COLUMNS says how much there is."""
    console = Console()
    return console if console.is_terminal or os.environ.get("COLUMNS") else Console(width=150)


def reachable(directory: Path) -> Path:
    """`directory`, whether it is there or not, if what is in it can be asked for at all."""
    try:
        (directory / "store.json").exists()
    except OSError as error:
        raise LabError(f"{directory} cannot be used: {error.strerror}") from error
    return directory
