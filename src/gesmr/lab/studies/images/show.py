"""What the study `images` shows: losses and accuracies, who is ahead, and what the initialisation changes."""

from typing import Any

import numpy as np
from scipy.stats import kendalltau

from ....problems.networks import INITIALISATIONS, PIXELS, STD, UNIFORM
from ...run.lanes import ORACLES
from ...show import stats
from ...show.output import finite, listed, span
from ...show.table import Table
from ...show.view import View
from .claims import RULES
from .figures import make_figures
from .results import RANKED, Results, load, placed
from .runs import AUTHORS, SETS


def make_tables(results: Results) -> list[Table]:
    return [_final_table(results), *(table for table in [_starts_table(results)] if table.rows)]


def _final_table(results: Results) -> Table:
    lines = []
    for row, runs in results.items():
        places = list(placed(runs))
        for method, run in runs.items():
            seeds = len(run.final)
            p = stats.welch(run.final, runs["GESMR"].final) if "GESMR" in runs and method != "GESMR" else np.nan
            lines.append(
                (
                    row.name,
                    row.images,
                    row.pixels,
                    row.init,
                    row.generations,
                    f"{method}†" if method in ORACLES else method,
                    seeds,
                    places.index(method) + 1 if method in places else None,
                    float(run.final.mean()),
                    finite(stats.standard_error(run.final)),
                    float(run.test_loss[:, -1].mean()),
                    100 * float(run.test_accuracy[:, -1].mean()),
                    float(np.exp(run.log_rate[:, -1].astype(np.float64).mean())),
                    finite(p),
                )
            )
    columns = ("Set", "images", "pixels", "start", "T", "method", "seeds", "place", "training loss", "± s.e.",
               "test loss", "test accuracy %", "rate at the end", "p (GESMR)")  # fmt: skip
    note = (
        "Cross-entropy of the best network at the end, on the run's training images and on all test images, means over "
        "seeds. Place: by mean training loss, without oracles (†). Rate: geometric mean over seeds. p: Welch's test of "
        f"training losses against GESMR's. {'; '.join(f'{name}: {text}' for name, text in PIXELS.items())}; with the "
        f"start {AUTHORS[0]} the latter is the authors' setting, who had 5,000 images."
    )
    return Table("images_final", "Losses, accuracies and places", columns, tuple(lines), note)


def _starts_table(results: Results) -> Table:
    """Places of the methods for each initialisation, where several have run."""
    lines = []
    for row, runs in results.items():
        usual = results.get(row._replace(init=UNIFORM))
        if usual is None or not any(row._replace(init=how) in results for how in INITIALISATIONS if how != UNIFORM):
            continue
        places = {method: place + 1 for place, method in enumerate(placed(runs))}
        shared = [method for method in places if method in usual]
        test: Any = kendalltau([placed(runs)[m] for m in shared], [placed(usual)[m] for m in shared])
        agreement = None if row.init == UNIFORM else finite(test.statistic)
        lines.append((row.name, row.images, row.init, *(places.get(m) for m in RANKED), agreement))
    lines.sort(key=lambda line: (line[0] != "MNIST", -line[1]))
    columns = ("Set", "images", "start", *RANKED, "τ with uniform")
    described = "; ".join(f"{name}: {text}" for name, text in INITIALISATIONS.items())
    note = (
        "Places by mean training loss at the end, without oracles. Kendall's τ compares the order of the methods with "
        f"that of the uniform start: 1 is the same order, 0 none. {described.replace('std²', f'{STD:g}²')}."
    )
    return Table("images_starts", "What the initialisation changes", columns, tuple(lines), note)


def summary(results: Results) -> str:
    sets = ", ".join(dict.fromkeys(row.name for row in sorted(results, key=lambda row: SETS.index(row.dataset))))
    sizes = listed((row.images for row in results), "{:,}")
    generations = listed((row.generations for row in results), "{:,}")
    methods = len({method for runs in results.values() for method in runs})
    seeds = span(len(run.final) for runs in results.values() for run in runs.values())
    return f"{sets}; {sizes} training images; {methods} methods, {seeds} seeds, {generations} generations"


VIEW = View(
    name="images",
    title="Networks that classify images",
    text=(
        "A convolutional network of 2,140 weights learns to tell digits and clothes apart by mutation alone. The paper "
        "has GESMR ahead of every method but 15MR, and 15MR ahead of it. It says neither how networks start nor how "
        "pixels are scaled. The authors' program does (standardised pixels, first weights N(0, 0.1²), 5,000 images); "
        "beside it stands our own choice. Does the order of the methods depend on it?"
    ),
    load=load,
    summary=summary,
    make_tables=make_tables,
    make_figures=make_figures,
    rules=RULES,
)
