"""The figures of docs/methods.md: each method's rates and best values on Ackley in 30-D, its optimum moved.

.venv/bin/python scripts/method_pictures.py docs/methods

It also prints the table of that page. Twenty seconds on two cores.
"""

import argparse
import io
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

import gesmr
from gesmr.lab.show.figures import band, legend_below, log_y, look, settled, shade, style, title
from gesmr.plotting import PIXELS

FUNCTION, DIM, STD, CHILDREN = "ackley", 30, 10.0, 100
ORACLES = {"OFMR": gesmr.OFMR(), "LAMR-100": gesmr.LAMR(window=100)}
PICTURES = {
    "one-rate": ("FMR", "1CMR", "15MR"),
    "bandit": ("UCB/5", "UCB/10"),
    "self-adaptive": ("SAMR",),
    "group-elite": ("GESMR",),
    "ablations": ("GESMR-AVG", "GESMR-FIX"),
    "oracles": ("OFMR", "LAMR-100"),
    "recombining": ("GESMR-X",),
}
METHODS = [method for methods in PICTURES.values() for method in methods]
BESIDE = ("GESMR", "LAMR-100")  # drawn with every method
LEAPING = ("15MR", "UCB/5", "UCB/10")  # their one rate changes at every generation
NEAR = 11  # generations over which such a rate is averaged
ELITED = ("GESMR", "GESMR-AVG")  # their first rate is the best of the generation before


class Runs(NamedTuple):
    """Of a method, over S seeds and T generations."""

    values: np.ndarray  # f[S, T]  the best so far
    rates: np.ndarray  # f[S, T, any]  that the children of a generation were made with


def run(method: str, seeds: int, generations: int) -> Runs:
    """Every seed has a first population and an optimum of its own, the same for all methods."""
    oracle = ORACLES.get(method)
    controller: Any = gesmr.Fixed() if oracle else gesmr.controller(method, CHILDREN)
    ga = gesmr.GA(controller, num_children=CHILDREN)

    def rates(state: Any) -> jax.Array:
        return ga.controller.log_rates(state.controller).reshape(-1)

    def one(seed: jax.Array) -> tuple[jax.Array, jax.Array]:
        key = gesmr.noise.fold_in(gesmr.noise.key(0), seed)
        centred = gesmr.problems.functions.get(FUNCTION, DIM, STD)
        optimum = centred.init(gesmr.noise.fold_in(key, 1), 1)[0]
        problem = gesmr.problems.functions.get(FUNCTION, DIM, STD, shift=optimum)
        population = problem.init(key, CHILDREN + 1)
        state = ga.init(key, population, problem(population))
        if oracle:
            _, history = oracle.evolve(ga, problem, state, generations)
            return history.elite, history.log_rate[:, None]
        _, history = gesmr.evolve(ga, problem, state, generations, record=rates)
        return history.elite, jnp.concatenate([rates(state)[None], history.extra[:-1]])

    values, logs = jax.jit(jax.vmap(one))(jnp.arange(seeds))
    return Runs(np.asarray(values, np.float64), np.exp(np.asarray(logs, np.float64)))


def picture(methods: tuple[str, ...], runs: dict[str, Runs]) -> Figure:
    """Left the rates, right the best values; medians over seeds."""
    with style():
        figure = Figure(figsize=(6.0, 2.1), layout="constrained")
        left, right = figure.subplots(1, 2)
        _rates(left, methods, runs)
        _values(right, methods, runs)
        for axes in (left, right):
            axes.set_xlabel("Generation")
            axes.set_xlim(0, runs[BESIDE[0]].values.shape[1])
        entries = _entries(methods)
        legend_below(figure, entries, columns=5 if len(entries) <= 5 else 3)
        return settled(figure)


def _rates(axes: Axes, methods: tuple[str, ...], runs: dict[str, Runs]) -> None:
    title(axes, "Mutation rate")
    lines = {method: _over_seeds(method, runs[method].rates) for method in _drawn(methods)}
    shown = [of if method in methods else of[1] for method, of in lines.items()]
    log_y(axes, min(of.min() for of in shown), max(of.max() for of in shown))
    for method, (low, mean, high, best) in lines.items():
        line, x = look(method), np.arange(1, len(mean) + 1)
        axes.plot(x, mean, color=line.colour, linestyle=line.dashes, zorder=line.above)
        if method in methods:
            band(axes, x, low, high, line.colour)
        if method in methods and method in ELITED:
            axes.plot(x[1::6], best[1::6], color="black", marker=".", markersize=2.4, linestyle="none", zorder=6)


def _drawn(methods: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys((*methods, *BESIDE)))


def _over_seeds(method: str, rates: np.ndarray) -> np.ndarray:
    """Lowest, mean, highest and first rate, `f[4, T]`: medians over seeds.

    Of a rate that leaps, mean and quartiles over the seeds and the `NEAR` generations around.
    """
    logs = np.log(rates)
    if method in LEAPING:
        padded = np.pad(logs[:, :, 0], ((0, 0), (NEAR // 2, NEAR // 2)), mode="edge")
        near = np.moveaxis(sliding_window_view(padded, NEAR, axis=1), 1, 2).reshape(-1, logs.shape[1])
        low, high = np.quantile(near, (0.25, 0.75), axis=0)
        return np.exp([low, near.mean(axis=0), high, low])
    of_a_run = np.stack([logs.min(axis=2), logs.mean(axis=2), logs.max(axis=2), logs[:, :, 0]])
    return np.exp(np.median(of_a_run, axis=1))


def _values(axes: Axes, methods: tuple[str, ...], runs: dict[str, Runs]) -> None:
    title(axes, "Best value")
    lines = {method: np.quantile(runs[method].values, (0.25, 0.5, 0.75), axis=0) for method in _drawn(methods)}
    shown = [of if method in methods else of[1] for method, of in lines.items()]
    log_y(axes, min(of.min() for of in shown), max(of.max() for of in shown))
    for method, (low, median, high) in lines.items():
        line, x = look(method), np.arange(1, len(median) + 1)
        axes.plot(x, median, color=line.colour, linestyle=line.dashes, zorder=line.above)
        if method in methods:
            band(axes, x, low, high, line.colour)


def _entries(methods: tuple[str, ...]) -> list[Any]:
    """Every line of the figure, explained."""
    entries: list[Any] = []
    for method in _drawn(methods):
        line = look(method)
        entries.append(Line2D([], [], color=line.colour, linestyle=line.dashes, label=method))
    if any(method in ELITED for method in methods):
        entries.append(Line2D([], [], color="black", marker=".", markersize=3, linestyle="none", label="Best rate"))
    return [*entries, shade("Quartiles" if methods[-1] in LEAPING else "Range of rates, quartiles of values")]


def table(runs: dict[str, Runs]) -> str:
    """The medians over seeds at the end, as Markdown."""
    lines = ["| | best value | mean rate |", "|:--|--:|--:|"]
    for method, of in sorted(runs.items(), key=lambda pair: np.median(pair[1].values[:, -1])):
        rate = np.exp(np.median(np.log(of.rates[:, -1]).mean(axis=1)))
        lines.append(f"| {method} | {np.median(of.values[:, -1]):.2g} | {rate:.1g} |")
    return "\n".join(lines)


def png(figure: Figure) -> bytes:
    """In full colour; shades are rounded and rows are not filtered, which makes a drawing a third smaller."""
    drawn = io.BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=PIXELS / figure.get_figwidth())
    shades = np.asarray(Image.open(drawn).convert("RGB"), np.int16)
    rounded = np.clip((shades + 8) // 16 * 16, 0, 255).astype(np.uint8)
    height, width, _ = rounded.shape
    rows = np.pad(rounded.reshape(height, -1), ((0, 0), (1, 0)))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    framed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--generations", type=int, default=300)
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    runs = {method: run(method, asked.seeds, asked.generations) for method in METHODS}
    for name, methods in PICTURES.items():
        (asked.directory / f"{name}.png").write_bytes(png(picture(methods, runs)))
    print(table(runs))


if __name__ == "__main__":
    main()
