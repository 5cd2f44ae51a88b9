"""The bar of a study in a terminal."""

import io

from rich.console import Console

from gesmr.lab.run.progress import LiveDisplay


def test_nothing_may_be_running_between_two_parts():
    said = io.StringIO()
    with LiveDisplay(Console(width=80, force_terminal=True, file=said), runs=2, work=2.0) as shown:
        for label in ("sphere d=2", "ackley d=2"):
            shown.started(label)
            shown.worked(1.0, 100.0)
            shown.finished(label, 1, 0.1)
    assert "2/2 runs" in said.getvalue()
