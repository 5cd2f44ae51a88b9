"""What the study `beyond` shows: GESMR-X on every row beside the paper's methods and other algorithms."""

from ...show.output import span
from ...show.view import View
from .claims import RULES
from .figures import make_figures
from .results import MAIN, Results, load
from .runs import STUDY
from .tables import every_column, make_tables


def summary(results: Results) -> str:
    main = sum(row in MAIN for row in results.rows)
    said = [f"{len(results.rows)} rows ({main} of the {len(MAIN)} main ones), {len(results.columns)} methods"]
    if results.rows:
        seeds = span(len(runs.seeds) for columns in results.rows.values() for runs in columns.values())
        said.append(f"{seeds} seeds")
    if results.images or results.control:
        said.append(f"{len(results.images)} sets of images, {len(results.control)} tasks of control")
    return ", ".join(said)


VIEW = View(
    name=STUDY.name,
    title=STUDY.title,
    text=(
        "GESMR-X is GESMR some of whose groups recombine: their children take every gene from a parent of its own. "
        "Optima are draws of the first population's distribution, and half of the rows are turned, so that no method "
        "gains from where an optimum is or from the axes. GESMR-X was chosen on Ackley and Rosenbrock with seeds of "
        "their own (the profile `choice`) before anything else was run. The claims below are this project's, not the "
        "paper's. Does recombination help, against whom, and where does another algorithm do better?"
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
    rules=RULES,
    more=every_column,
    counted="beyond",
)
