"""`gesmr playground`: a page on this machine in which evolution can be watched."""

import webbrowser
from typing import Annotated

import typer

from ..errors import LabError
from .command import app, command


@command(app, "playground", "gesmr playground", "gesmr playground --no-browser --port 8000")
def playground(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Default: any that is free.", show_default=False)] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.", show_default=True)
    ] = True,
) -> None:
    """Watch methods evolve side by side on a landscape, in a page that only this machine can open."""
    from ..playground import Playground  # noqa: PLC0415 - brings JAX, which other commands need not wait for

    try:
        server = Playground(port)
    except OSError as error:
        raise LabError(f"--port {port} cannot be used: {error.strerror}") from error
    with server:
        typer.echo(f"The playground is at {server.url}\nPress Ctrl-C to stop it.")
        if browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("\nStopped.")
            server.abandon()
