"""The command line, without a process of its own."""

from typer.testing import CliRunner

from gesmr.lab.cli import app


def gesmr(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr
