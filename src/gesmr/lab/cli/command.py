"""What a command is: options that several share are declared once, and errors end in a line."""

import os
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console

from ..errors import LabError

app = typer.Typer(
    help="Genetic algorithms that find their own mutation rate: the studies of the paper.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
study_app = typer.Typer(help="Run a study of the paper, and see what came of it.", no_args_is_help=True)
app.add_typer(study_app, name="study")


def command(parent: typer.Typer, name: str) -> Callable[[Callable], Callable]:
    """A command whose errors end in a line that says what to do, not in a traceback.

    A parameter whose type is a dataclass stands for options with the names, types and defaults of its fields.
    """

    def register(function: Callable) -> Callable:
        declared = signature(function).parameters.values()
        bundles: dict[str, Any] = {each.name: each.annotation for each in declared if is_dataclass(each.annotation)}

        @wraps(function)
        def guarded(**options: Any) -> None:
            for bundle, kind in bundles.items():
                options[bundle] = kind(**{field.name: options.pop(field.name) for field in fields(kind)})
            try:
                function(**options)
            except LabError as error:
                _stop(str(error), error.exit_code)
            except KeyboardInterrupt:
                _stop("interrupted; what was finished is kept, and the same command goes on from there", 130)

        options = [option for each in declared for option in _options(each)]
        guarded.__signature__ = Signature(options)  # type: ignore[attr-defined]
        return parent.command(name)(guarded)

    return register


def _options(parameter: Parameter) -> list[Parameter]:
    """What a parameter of a command is on the command line."""
    if not is_dataclass(parameter.annotation):
        return [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
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
    Console(stderr=True).print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)


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
