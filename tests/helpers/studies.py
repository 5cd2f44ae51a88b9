"""Small stores and results that several test files of the lab start from."""

import json
from pathlib import Path

import numpy as np

from gesmr.lab.run.lanes import METHODS
from gesmr.lab.studies.functions.results import PRINTED, Curves, Results, Row
from gesmr.lab.studies.functions.runs import Run, generations_of, kept_generations

ROWS = [
    Row(function, dim, std)
    for function in ("ackley", "griewank", "rastrigin", "rosenbrock", "sphere", "linear")
    for dim in (2, 30, 100)
    for std in (1.0, 10.0)
]


def around(centres, seeds: int = 12, noise: float = 0.1, seed: int = 0) -> np.ndarray:
    """Values `f[.., seeds]` that scatter about the centres `f[..]`."""
    centres = np.asarray(centres, float)[..., None]
    return centres + np.random.default_rng(seed).normal(0, noise, (*centres.shape[:-1], seeds))


def made_up_results(final, rows=None, methods=METHODS, mean=None, rate_error=None, log_rate=None, end_log_rate=None):
    """Results with the given values `f[R, M, S]`; what is not given is made of them."""
    final = np.asarray(final, np.float64)
    rows = rows or [Row("sphere", dim, 1.0) for dim in (2, 30, 100)][: len(final)]

    def other(values):
        return np.array(np.broadcast_to(final if values is None else values, final.shape))

    histories = {}
    for i, row in enumerate(rows):
        generation = kept_generations(generations_of(row.function, row.dim))
        for m, method in enumerate(methods):
            start = np.broadcast_to(0.0 if end_log_rate is None else end_log_rate[m], final.shape[-1:])
            elite = final[i, m][:, None] + np.linspace(10.0, 0.0, len(generation))
            histories[row, method] = Curves(generation, elite, np.repeat(start[:, None], len(generation), axis=1))
    return Results(
        variant=PRINTED,
        rows=tuple(rows),
        methods=tuple(methods),
        seeds=tuple(range(final.shape[-1])),
        final=final,
        mean=other(mean),
        rate_error=other(rate_error),
        used_rate_error=other(rate_error),
        log_rate=other(log_rate),
        seconds={},
        histories=histories,
    )


def made_up_group(methods=("GESMR",), function="sphere", dim=2, seeds=3, shifted=False):
    """Specifications and arrays of a group, as a store takes them."""
    generations = generations_of(function, dim)
    specs = [Run(function, dim, 1.0, method, seed, shifted, generations) for method in methods for seed in range(seeds)]
    points, windows = len(kept_generations(generations)), -(-generations // 100)
    values = np.arange(1.0, len(specs) + 1)
    curve = values[:, None] + np.linspace(1.0, 0.0, points)
    moments = np.repeat(np.stack([-values, values**2], axis=1)[:, :, None], windows, axis=2)
    arrays = {
        "elite": curve.astype(np.float32),
        "log_rate": -curve.astype(np.float32),
        "first": values + 1,
        "final": values,
        "mean_elite": curve.mean(axis=1),
        "mean_log_rate": -curve.mean(axis=1),
        "used": moments,
        "left": moments,
    }
    return specs, arrays


def arrays_in(store: Path) -> dict[str, bytes]:
    """Files of arrays by name; the name has the job and a digest of the content in it."""
    return {path.name: path.read_bytes() for path in store.glob("groups/*.npz")}


def devices_of(store: Path) -> list[str]:
    """Where each job was computed."""
    return [json.loads(path.read_text())["provenance"]["on"] for path in store.glob("groups/*.json")]
