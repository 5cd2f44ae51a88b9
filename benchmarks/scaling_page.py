"""Tables and figure of docs/scaling.md, from the model that `scaling.py` has fitted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scaling import CANDIDATES, MEASURED, POOLS, SECONDS, SPREADS, Model, Point, efficiency

from gesmr.lab.show import figures

DIM = 1000  # variables of the simulated problems
LINKS = {"450 GB/s": 450e9, "50 GB/s": 50e9, "12.5 GB/s": 12.5e9}
MEMORY = 2.4e12  # bytes per second of a device, half of what an H200 is sold with
LATENCY = 20e-6  # of a message between devices


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    align = [":--"] + ["--:"] * (len(headings) - 1)
    return [f"| {' | '.join(cells)} |" for cells in (headings, align, *rows)]


def show(seconds: float) -> str:
    for limit, unit, scale in ((1e-3, "µs", 1e6), (1.0, "ms", 1e3), (600.0, "s", 1.0), (36000.0, "min", 1 / 60)):
        if seconds < limit:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds / 3600:.3g} h"


def checked(points: Sequence[Point]) -> list[str]:
    """Everything but the pools, one by one."""
    rows = [[point.what, show(point.measured), show(point.predicted), f"{point.ratio:.2f}"] for point in points]
    return table(["", "measured", "predicted", "ratio"], rows)


def pools(points: Sequence[Point]) -> list[str]:
    """A generation's measured time in pools of processes, and predicted / measured."""
    found = iter(points)
    cells = {(workers, mean, spread): next(found) for workers in POOLS for mean in SECONDS for spread in SPREADS}
    rows = []
    for mean in SECONDS:
        for spread in SPREADS:
            row = (cells[workers, mean, spread] for workers in POOLS)
            rows.append(
                [f"{1e3 * mean:g} ms, spread {spread:g}", *(f"{show(p.measured)} ({p.ratio:.2f})" for p in row)]
            )
    return table(["evaluation", *(f"{workers} processes" for workers in POOLS)], rows)


def by_workers(model: Model, seed: int) -> list[str]:
    rows = []
    for candidates in (100, 1_000, 10_000):
        for seconds in (0.01, 1.0, 60.0):
            cases = [(10, "pool"), (100, "pool"), (1000, "pool"), (1000, "ray")]
            clusters = (model.cluster(workers, candidates, seconds, DIM, kind, spread=0.5) for workers, kind in cases)
            shares = (efficiency(cluster, seed) for cluster in clusters)
            rows.append([f"N = {candidates:,}, {show(seconds)}", *(f"{100 * share:.0f} %" for share in shares)])
    return table(["", "10 workers", "100", "1,000", "1,000, at Ray's costs"], rows)


def by_trouble(model: Model, seed: int) -> list[str]:
    deaths = {"deaths": 1 / 3600, "recovery": 30.0}
    cases: dict[str, dict[str, Any]] = {
        "all evaluations take 1 s": {},
        "spread 0.5": {"spread": 0.5},
        "spread 1": {"spread": 1.0},
        "spread 1, copies of what is late": {"spread": 1.0, "late": 3.0},
        "1 % of ranges ten times as slow": {"stall": 0.01},
        "1 % of ranges ten times as slow, copies": {"stall": 0.01, "late": 3.0},
        "each dies once an hour, noticed at once": deaths,
        "each dies once an hour, noticed after 30 s": {**deaths, "noticed": 30.0},
        "each dies once an hour, noticed after 30 s, copies": {**deaths, "noticed": 30.0, "late": 3.0},
    }
    rows = []
    for case, options in cases.items():
        shares = [
            efficiency(model.cluster(1000, candidates, 1.0, DIM, **options), seed, 20) for candidates in (1_000, 10_000)
        ]
        rows.append([case, *(f"{100 * share:.0f} %" for share in shares)])
    return table(["1,000 workers", "N = 1,000", "10,000"], rows)


def by_devices(children: int = 100) -> list[str]:
    """Bytes and seconds of a generation, apart from the objective, with a population spread by genes."""
    rows = []
    for dim in (10**6, 10**8, 10**9):
        for count in (1, 8, 64):
            population = 4 * (children + 1) * dim
            moved = 4 * children * dim / count * (count - 1) / count
            local = 2 * population / count / MEMORY
            exchanged = [LATENCY * (count - 1) + moved / rate for rate in LINKS.values()] if count > 1 else []
            cells = (f"{2 * population / count / 1e9:,.3g} GB", show(local), f"{moved / 1e9:,.3g} GB")
            rows.append(
                [f"{dim:.0e}".replace("e+0", "e"), str(count), *cells, *(map(show, exchanged) if exchanged else "–––")]
            )
    return table(["d", "devices", "two populations, each", "children made in", "received, each", *LINKS], rows)


def limits(model: Model, seed: int) -> list[str]:
    overhead, by_ray = (model.sent(kind, 8 * DIM) for kind in ("pool", "ray"))
    per_byte = model.sending["pool"][1]
    whole = 4e9 * per_byte
    busy = efficiency(model.cluster(1000, 10_000, 0.01, DIM), seed)
    return [
        f"- **The driver.** A range of candidates costs it {show(overhead)}, with Ray {show(by_ray)} (d = {DIM:,}). W "
        f"workers are kept busy only if a range lasts W times that: {show(1000 * overhead)} and {show(1000 * by_ray)} "
        f"for 1,000. Ranges are not made shorter than that; with N = 10,000 evaluations of 10 ms they are, and workers "
        f"are busy {100 * busy:.0f} % of the time.",
        f"- **Its ask and tell** cost {1e9 * model.per_gene:.1f} ns per gene of the population here: "
        f"{show(model.ask(10_000, DIM))} for N = 10,000 and d = {DIM:,}, in which 1,000 workers wait.",
        f"- **10⁹ parameters through the driver**: {show(whole)} of pickling and copying for a solution of 4 GB at the "
        f"measured {1e-9 / per_byte:.2f} GB/s, so {show(100 * whole)} for 100 of them, every generation.",
    ]


def page(model: Model, seed: int) -> str:
    points = list(model.points(seed))
    mapped = [point for point in points if point.what.startswith("generation")]
    lines = [
        "### Predicted and measured", "",
        f"A generation of {CANDIDATES} evaluations that sleep, through `minimize` and a pool of processes: measured, "
        "and predicted / measured.", "", *pools(mapped), "",
        *checked([point for point in points if point not in mapped]), "",
        "### To a thousand workers", "",
        f"Share of the workers' time that is useful, simulated with the costs above (d = {DIM:,}, spread 0.5).", "",
        *by_workers(model, seed), "",
        "![Speedup over workers](../results/scaling/speedup.png)", "",
        "What goes wrong, at 1 s an evaluation:", "", *by_trouble(model, seed), "",
        "### To 10⁹ parameters", "",
        "N = 100, single precision, the population spread by genes; computed, not measured: devices that move "
        f"{MEMORY / 1e12:g} TB/s in their memory, {show(LATENCY)} a message, and three kinds of links.", "",
        *by_devices(), "",
        "### Where it breaks", "", *limits(model, seed), "",
        model.measured["conditions"],
    ]  # fmt: skip
    return "\n".join(lines)


def draw(model: Model, seed: int) -> None:
    counts = np.unique(np.geomspace(1, 1000, 16).astype(int))
    colours = ("#cc79a7", "#e69f00", "#d55e00", "#009e73", "#0072b2")
    widths = (1.4, 1.4, 1.4, 2.4, 1.0)  # that of 1 s is seen beside that of 10 s, with which it coincides
    panels = (
        ("N = 1,000 candidates", [(1_000, t, f"{show(t)} each") for t in (0.001, 0.01, 0.1, 1.0, 10.0)]),
        ("1 s each", [(n, 1.0, f"N = {n:,}") for n in (100, 1_000, 10_000)]),
    )
    with figures.style():
        figure = Figure(figsize=(7.0, 3.0), layout="constrained")
        for axes, (title, cases) in zip(figure.subplots(1, 2, sharex=True, sharey=True), panels, strict=True):
            axes.plot(counts, counts, color="#8a8a8a", linestyle=":", label="All of them busy")
            for (candidates, seconds, label), colour, width in zip(cases, colours, widths, strict=False):
                found = (
                    workers * efficiency(model.cluster(int(workers), candidates, seconds, DIM, spread=0.5), seed, 3)
                    for workers in counts
                )
                axes.plot(counts, list(found), color=colour, label=label, linewidth=width)
            axes.set(xscale="log", yscale="log", xlabel="Workers", ylim=(0.3, 1200))
            figures.title(axes, title)
            axes.legend()
        figure.axes[0].set_ylabel("Speedup over one perfect worker")
    figures.save_small(figure, MEASURED.with_name("speedup.png"))
