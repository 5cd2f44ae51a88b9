"""The paper's experiments, and one beyond it. A study is a folder: `runs.py` has its `STUDY`, `show.py` its `VIEW`."""

from importlib import import_module
from typing import TYPE_CHECKING

from ..run.specs import Job, Program, Selection, Spec, Study, as_json, content_hash

if TYPE_CHECKING:
    from ..show.view import View

NAMES = (
    "functions",
    "mutations",
    "landscape",
    "theorem",
    "groups",
    "sensitivity",
    "cmaes",
    "images",
    "control",
    "beyond",
)

STUDIES: dict[str, Study] = {name: import_module(f"{__name__}.{name}.runs").STUDY for name in NAMES}


def view_of(name: str) -> "View":
    """What shows a study. It is imported when it is asked for: to run one must not wait for plotting."""
    return import_module(f"{__name__}.{name}.show").VIEW


__all__ = ["STUDIES", "Job", "Program", "Selection", "Spec", "Study", "as_json", "content_hash", "view_of"]
