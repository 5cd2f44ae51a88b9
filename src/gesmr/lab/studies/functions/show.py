"""What the study of test functions shows: Tables 1–3, curves and ranks, claims, agreement with print."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...run.store import StoredJob
from ...show.output import machines
from ...show.view import View
from .agreement import say_agreement
from .chapter import TITLE, chapter, summary
from .claims import RULES
from .figures import make_figures
from .results import Results, load
from .tables import estimates, make_tables, statistics_csv


def _origin(results: Results, jobs: Sequence[StoredJob]) -> dict[str, Any]:
    """Where the numbers come from."""
    seconds = {dim: np.median(times, axis=0).round(9).tolist() for dim, times in sorted(results.seconds.items())}
    return {
        "study": f"functions: {results.variant.label}",
        "rows": len(results.rows),
        "methods": list(results.methods),
        "seeds": [results.seeds[0], results.seeds[-1]],
        "runs": int(np.isfinite(results.final).sum()),
        "machines": machines(job.provenance for job in jobs),
        "seconds_per_generation": {
            str(dim): {"fixed rate": fixed, "GESMR": gesmr} for dim, (fixed, gesmr) in seconds.items()
        },
    }


VIEW = View(
    name="functions",
    title=TITLE,
    load=load,
    summary=lambda results: summary({results.variant: results}),
    make_tables=make_tables,
    make_figures=make_figures,
    rules=RULES,
    formats=("csv", "md", "tex"),
    more=lambda results: {"statistics.csv": statistics_csv(estimates(results))},
    origin=_origin,
    make_chapter=chapter,
    say_agreement=say_agreement,
)
