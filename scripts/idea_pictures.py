"""The pictures of docs/idea.md, from runs of the library: idea.png, idea-change.png and idea-groups.png.

.venv/bin/python scripts/idea_pictures.py docs
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

import gesmr
from gesmr import noise
from gesmr.lab.show import figures

DIM, STD, CHILDREN = 100, 10.0, 100
GENERATIONS, SEEDS = 600, 20
METHODS = {  # and what the legend calls them
    "LAMR-100": "LAMR-100 (oracle: looks ahead)",
    "GESMR": "GESMR (best of a group)",
    "GESMR-AVG": "GESMR-AVG (mean of a group)",
    "SAMR": "SAMR (inherited)",
}
BEST = figures.look("GESMR")
GROUP = 10  # children that share a rate, as in the paper
WIDTH = 6.4  # inches of all pictures: text stays legible where a page shows them small
FROM, RATES = 3.0, (0.1, 1.5)  # a parent on a line, and two rates for its children


class Runs(NamedTuple):
    """Of every method's runs: arrays `[SEEDS, GENERATIONS]`."""

    values: np.ndarray
    rates: np.ndarray


def problem() -> gesmr.problems.functions.Function:
    """Ackley's function in 100 dimensions, its optimum at a draw of the first population's distribution."""
    shift = STD * np.random.default_rng(5).normal(size=DIM)
    return gesmr.problems.functions.get("ackley", DIM, std=STD, shift=shift.astype(np.float32))


def start(ga: gesmr.GA, seed: jax.Array | int) -> gesmr.State:
    key = noise.fold_in(noise.key(0), seed)
    population = problem().init(key, CHILDREN + 1)
    return ga.init(key, population, problem()(population))


def runs(method: str) -> Runs:
    ga = gesmr.GA(gesmr.controller("SAMR" if method == "LAMR-100" else method, CHILDREN), num_children=CHILDREN)
    search = gesmr.LAMR().evolve if method == "LAMR-100" else gesmr.evolve

    def run(seed: jax.Array) -> gesmr.History:
        return search(ga, problem(), start(ga, seed), GENERATIONS)[1]

    history = jax.vmap(run)(jnp.arange(SEEDS))
    return Runs(np.asarray(history.elite), np.exp(np.asarray(history.log_rate)))


# idea.png: rates and values of whole runs


def vanishing() -> Figure:
    figure = Figure(figsize=(WIDTH, 2.25), layout="constrained")
    rates, values = figure.subplots(1, 2)
    every, some = np.arange(GENERATIONS), np.unique([*range(10), *range(10, GENERATIONS, 6), GENERATIONS - 1])
    for method, label in METHODS.items():
        of, look = runs(method), figures.look(method)
        shown = every if method == "LAMR-100" else some
        for axes, numbers in ((rates, of.rates), (values, of.values)):
            low, middle, high = np.quantile(numbers[:, shown], (0.25, 0.5, 0.75), axis=0)
            axes.plot(shown + 1, middle, **look.options | {"marker": ""}, label=label)
            if method != "LAMR-100":
                figures.band(axes, shown + 1, low, high, look.colour)
        print(
            f"{method}: median rate {np.median(of.rates[:, 99]):.2g} in generation 100,",
            f"{np.median(of.rates[:, -1]):.2g} in the end; value {np.median(of.values[:, -1]):.3g}",
        )
    rates.set_yscale("log")
    rates.set_ylim(3e-5, 3)
    values.set_ylim(0, 21)
    for axes in (rates, values):
        axes.set_xlim(0, GENERATIONS)
    titled(rates, "Mutation rate", "Generation")
    rates.set_title(f"{DIM}-D Ackley, median of {SEEDS} runs", loc="right", fontsize=7.0)
    titled(values, "Best value so far (optimum 0)", "Generation")
    handles, labels = rates.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=4, handlelength=2.0, columnspacing=1.1, fontsize=6.6
    )
    return figure


# idea-change.png: what a rate does to the change of value


def change() -> Figure:
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    left, curves = halves
    lines = left.subplots(2, 1, sharex=True, sharey=True)
    for rate, axes in zip(RATES, lines, strict=True):
        children_on_a_line(axes, rate)
    lines[-1].set_xlabel("x")
    mean_and_best(curves.subplots())
    return figure


def children_on_a_line(axes: Axes, rate: float) -> None:
    """Ten children of one parent, on Rastrigin's function of one variable."""
    objective = gesmr.problems.functions.get("rastrigin", 1)
    x = np.linspace(-1.6, 5.6, 800, dtype=np.float32)
    start = float(objective(jnp.full(1, FROM)))
    children = FROM + rate * noise.normal(noise.bits(noise.fold_in(noise.key(1), jnp.arange(GROUP)), 1))
    values = np.asarray(objective(children))
    axes.plot(x, objective(jnp.asarray(x[:, None])), color="#b8b8b8", linewidth=1.0, zorder=1)
    axes.axhline(start, color="black", linewidth=0.6)
    axes.plot(FROM, start, "k*", markersize=9, label="Parent")
    for chosen, colour, label in ((values >= start, "#8a8a8a", "Worse"), (values < start, BEST.colour, "Better")):
        axes.plot(
            children[chosen], values[chosen], "o", color=colour, markersize=4.5, mec="white", mew=0.4, label=label
        )
    axes.set_ylim(-4, 49)
    axes.set_title(f"Rate {rate:g}", loc="left", fontweight="bold")
    found = f"mean {values.mean() - start:+.1f}, best {values.min() - start:+.2f}".replace("-", "−")
    axes.set_title(found, loc="right", fontsize=7.5)
    if rate == RATES[0]:
        axes.legend(loc="upper left", ncols=3, borderaxespad=0.1, handletextpad=0.1, columnspacing=0.8)


def mean_and_best(axes: Axes) -> None:
    """Over points of the first population: the mean change of value, and the best of a group of ten."""
    rates = np.logspace(-3, 1, 41)
    curves = gesmr.analysis.objective_curves(problem(), problem().init, rates, samples=40_000, group=GROUP, key=0)
    mean = figures.look("GESMR-AVG")
    axes.axhline(0, color="black", linewidth=0.6)
    axes.plot(rates, curves.mean, color=mean.colour, linestyle=mean.dashes, linewidth=1.5, label="Mean of ten children")
    axes.plot(rates, curves.lowest, color=BEST.colour, linewidth=1.8, label="Best of ten children")
    at = int(np.argmin(curves.lowest))
    axes.plot(rates[at], curves.lowest[at], "o", color=BEST.colour, markersize=5)
    print(f"best of {GROUP}: {curves.lowest[at]:.3g} at rate {rates[at]:.2g}; lowest mean {curves.mean.min():.2g}")
    axes.set_xscale("log")
    axes.set_ylim(-0.14, 0.36)
    axes.legend(loc="upper left")
    titled(axes, "Expected change of value", "Mutation rate")


# idea-groups.png: a generation of GESMR


def groups(after: int = 60) -> Figure:
    """What the groups of one generation achieved, and the rates of the next."""
    ga = gesmr.GA(gesmr.controller("GESMR", CHILDREN), num_children=CHILDREN)
    state = start(ga, 0)
    state, _ = gesmr.evolve(ga, problem(), state, after)
    proposal = ga.ask(state)
    values = problem()(proposal.candidates)
    changes = np.asarray(values - state.fitness[proposal.parents]).reshape(-1, GROUP)
    now = np.asarray(proposal.rates).reshape(-1, GROUP)[:, 0]
    following = np.exp(np.asarray(ga.tell(state, proposal, values).controller))
    best = int(np.argmin(changes.min(axis=1)))

    figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
    axes, strip = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    grey, colour = "#9a9a9a", BEST.colour
    axes.axhline(0, color="black", linewidth=0.6)
    axes.plot(np.repeat(now, GROUP), changes.ravel(), ".", color=grey, markersize=4, label="A child")
    axes.plot(now, changes.mean(axis=1), "_", color="black", markersize=13, label="Mean of its group")
    axes.plot(now, changes.min(axis=1), "o", color=colour, markersize=5, label="Best of its group")
    axes.plot(now[best], changes.min(), "o", color=colour, markersize=11, fillstyle="none", label="Group elite")
    axes.set_xscale("log")
    axes.set_ylim(changes.min() - 0.08, None)
    axes.legend(loc="upper left", ncols=2, columnspacing=1.2)
    titled(axes, "Change of value, child by child", "")
    for y, rates in ((1, now), (0, following)):
        strip.plot(rates, np.full(len(rates), y), "|", color=grey, markersize=9, markeredgewidth=1.4)
        strip.plot(now[best], y, "|", color=colour, markersize=12, markeredgewidth=2.4)
    strip.plot([now[best]] * 2, (0.25, 0.75), color=colour, linewidth=1)
    strip.set_yticks([1, 0], ["Rates now", "Rates next"])
    strip.set_ylim(-0.6, 1.6)
    strip.grid(visible=False, axis="y")
    strip.set_xlabel("Mutation rate")
    strip.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    strip.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    strip.xaxis.set_minor_locator(NullLocator())
    print(f"generation {after}: rates {now.min():.2g} to {now.max():.2g}, elite {now[best]:.2g};")
    print(f"next {following.min():.2g} to {following.max():.2g}")
    return figure


def titled(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(below)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    directory = parser.parse_args().directory
    for name, draw in {"idea": vanishing, "idea-change": change, "idea-groups": groups}.items():
        with figures.style():
            figure = figures.settled(draw())
        figures.save_small(figure, directory / f"{name}.png")


if __name__ == "__main__":
    main()
