"""Results as a picture: best value, mutation rates and diversity as runs went on.

Figures are made without pyplot: they are nobody's current figure, and nothing has to be closed.
"""

import io
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from . import _checks

# Okabe and Ito's colours, less their yellow, which is too pale for lines, and two more; dashes for printers without any
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00", "#882255", "#332288")
_DASHES = ("-", (0, (5, 1.6)), (0, (1, 1.4)), (0, (6, 1.5, 1.2, 1.5)))
_WIDTH, ALPHA = 1.3, 0.18  # of lines, of bands
_DOTS = {"linestyle": "none", "marker": ".", "markersize": 2.2}
PIXELS = 1680  # the least width of a figure that is saved as an image
STYLE = {  # of all figures of the project: the lab's too
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.5,
    "legend.edgecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "ytick.minor.width": 0.4,
    "ytick.minor.size": 1.5,
}
_PANELS = ("Best value", "Mutation rate", "Diversity")
_BEST, _MEAN, _LOWEST, _HIGHEST, _ELITE, _DIVERSITY = range(6)  # rows of what is drawn, four of them of rates
_MOST_POINTS = 1000  # of a line
_MOST_SPREADS = 3  # of rates: more hide each other
_MOST = 1e150  # that is drawn: matplotlib's ticks overflow at its square


def plot(results: Any, *, axes: Any = None, by: str = "evaluations", path: Any = None) -> Any:
    """Draw the best value, mutation rates and diversity over a run: a matplotlib Figure.

    results: a result of `gesmr.minimize`; several results, of different seeds, for a median with a band between the
        quartiles; or a dictionary of either by name, to compare methods.
    axes: three axes of yours to draw on, instead of a new figure.
    by: "evaluations" or "generations".
    path: a file to write the figure to, such as run.png, run.pdf or run.svg.
    """
    _checks.choice("by", by, ("evaluations", "generations"))
    path = None if path is None else _checks.file("path", path)
    named = _named(results)
    try:
        import matplotlib as mpl  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install 'gesmr[lab]'") from error
    if axes is not None:
        panels = _three(axes)
        _draw(panels, named, by)
        figure: Any = panels[0].figure
    else:
        with mpl.rc_context(STYLE):  # type: ignore[arg-type]
            figure = Figure(figsize=(8.4, 2.6), dpi=120, layout="constrained")
            _draw(figure.subplots(1, 3), named, by, figure)
            figure.draw_without_rendering()  # or ticks would be made later, in another style
        figure._repr_png_ = partial(_png, figure)  # for notebooks
    if path is not None:
        figure.savefig(path, dpi=max(200.0, PIXELS / figure.get_figwidth()))
    return figure


def _png(figure: Any) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png")
    return data.getvalue()


def _named(results: Any) -> dict[str, list[Any]]:
    """Lists of results by name; of results without one, by none."""
    if not isinstance(results, Mapping) or hasattr(results, "history"):
        return {"": _runs("results", results)}
    if not results:
        raise ValueError("results must hold at least one result, got an empty dictionary")
    return {str(name): _runs(f"results[{name!r}]", runs) for name, runs in results.items()}


def _runs(name: str, given: Any) -> list[Any]:
    runs = list(given) if isinstance(given, list | tuple) else [given]
    if not runs:
        raise ValueError(f"{name} must hold at least one result, got none")
    for run in runs:
        if not hasattr(getattr(run, "history", None), "diversity"):
            accepted = "a result of gesmr.minimize, a list of such or a dictionary of either"
            raise TypeError(f"{name} must be {accepted}, got {_checks.described(run)}")
    return runs


def _three(axes: Any) -> list[Any]:
    panels = list(np.ravel(np.asarray(axes, object)))
    if len(panels) != 3 or not all(hasattr(panel, "fill_between") for panel in panels):
        raise TypeError(f"axes must be three axes of matplotlib, got {_checks.show(axes)}")
    return panels


# What is drawn


def _rows(result: Any) -> np.ndarray:
    """`f64[6, T]` of a run. A value that is worse than any number is one that is too large to be drawn."""
    history, worst = result.history, 1e10 * _MOST
    best = np.asarray(history.elite, np.float64)
    is_known = np.abs(best) < _MOST
    known = best[is_known]
    rises = known.size and abs(result.fun - known.max()) < abs(result.fun - known.min())  # it was maximised
    best = np.where(is_known, best, -worst if rises else worst)
    if result.get("restarts"):  # of which each begins with a first population
        best = (np.maximum if rises else np.minimum).accumulate(best)
    logs = history.log_rate, history.log_rate_low, history.log_rate_high, history.log_rate_elite
    rates = np.clip(np.asarray(logs, np.float64), -np.log(_MOST), np.log(_MOST))
    diversity = np.asarray(history.diversity, np.float64)
    return np.stack([best, *rates, np.where(np.isfinite(diversity), diversity, np.nan)])


def _quartiles(runs: list[Any], by: str) -> tuple[np.ndarray, np.ndarray]:
    """Points `f64[P]`, and lower quartile, median and upper quartile of the runs there, `f64[3, 6, P]`, NaN where there
    is none. The best value of a run that has ended stays; its rates do not."""
    evaluations = [np.asarray(run.history.evaluations, np.float64) for run in runs]
    xs = evaluations if by == "evaluations" else [np.arange(1.0, len(x) + 1) for x in evaluations]
    grid = np.unique(np.concatenate(xs))
    if len(grid) == 0:
        return grid, np.empty((3, 6, 0))
    if len(grid) > _MOST_POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, _MOST_POINTS).astype(int)]
    sampled = np.full((len(runs), 6, len(grid)), np.nan)
    for run, x, sample in zip(runs, xs, sampled, strict=True):
        if len(x):
            last = np.searchsorted(x, grid, side="right") - 1
            sample[:] = np.where(last >= 0, _rows(run)[:, last], np.nan)
            sample[_MEAN:, grid > x[-1]] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice")
        found = np.nanquantile(sampled, (0.25, 0.5, 0.75), axis=0)
    found[:, _MEAN:_DIVERSITY] = np.exp(found[:, _MEAN:_DIVERSITY])
    return grid, np.where(np.abs(found) < 2 * _MOST, found, np.nan)


# Drawing it


def _draw(panels: Sequence[Any], named: dict[str, list[Any]], by: str, figure: Any = None) -> None:
    """With a legend of the names below a `figure`, or in the first panel if there is none."""
    from matplotlib.ticker import EngFormatter, MaxNLocator  # noqa: PLC0415

    found = {name: _quartiles(runs, by) for name, runs in named.items()}
    looks = [{"color": _COLOURS[i % len(_COLOURS)], "linestyle": _DASHES[i % len(_DASHES)]} for i in range(len(found))]
    values, rates, diversities = panels
    for (x, (low, middle, high)), look in zip(found.values(), looks, strict=True):
        line = {**look, "linewidth": _WIDTH, "marker": "." if len(x) == 1 else ""}
        for panel, row in ((values, _BEST), (diversities, _DIVERSITY)):
            panel.plot(x, middle[row], **line)
            _band(panel, x, low[row], high[row], look["color"])
        rates.plot(x, middle[_MEAN], **line)
        if len(found) <= _MOST_SPREADS:
            _band(rates, x, middle[_LOWEST], middle[_HIGHEST], look["color"])
            colour = "black" if len(found) == 1 else look["color"]
            learned = slice(1, None, len(x) // 60 + 1)  # none is the best of rates that have not been tried
            rates.plot(x[learned], middle[_ELITE, learned], color=colour, zorder=4, **_DOTS)
    for panel, title in zip(panels, _PANELS, strict=True):
        panel.set_title(title, loc="left", fontweight="bold")
        panel.set_xlabel(by.capitalize())
        panel.set_xlim(0, None if any(len(x) for x, _ in found.values()) else 1)
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    quartiles = [of for _, of in found.values()]
    _scale(values, [of[:, _BEST] for of in quartiles])
    _scale(diversities, [of[:, _DIVERSITY] for of in quartiles])
    _scale(rates, [_within(of[1]) if len(found) <= _MOST_SPREADS else of[1, _MEAN] for of in quartiles])
    _legends(panels, named, looks, figure)


def _band(panel: Any, x: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str) -> None:
    panel.fill_between(x, low, high, color=colour, alpha=ALPHA, linewidth=0, zorder=1)


def _within(rows: np.ndarray) -> np.ndarray:
    """Rates that an axis shows of `f64[6, P]`: all means, and lowest and highest but for a few generations, such as the
    first, for which they are spread over all magnitudes."""
    mean, low, high = rows[[_MEAN, _LOWEST, _HIGHEST]]
    if not np.isfinite(mean).any():
        return mean
    return np.array([*mean, np.nanquantile(low, 0.02), np.nanquantile(high, 0.98)])


def _scale(panel: Any, lines: list[np.ndarray]) -> None:
    """Limits that show these numbers, and a log axis if they differ by more than a factor of ten and are not negative,
    or else by far from those at the end `[..., -1]`. What is zero leaves a log axis at the bottom."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter  # noqa: PLC0415

    numbers = np.concatenate([line.ravel() for line in lines])
    numbers = numbers[np.isfinite(numbers)]
    sizes = np.abs(numbers[numbers != 0])
    if not sizes.size:
        return
    low, high, ratio = numbers.min(), numbers.max(), sizes.max() / sizes.min()
    if low >= 0 and ratio >= 10:
        panel.set_yscale("log", nonpositive="clip")
        panel.set_ylim(sizes.min() / ratio**0.05, high * ratio**0.05)
        if ratio < 100:
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            panel.yaxis.set_minor_locator(NullLocator())
        return
    near = np.nanmax(np.abs(np.concatenate([np.ravel(line[..., -1:]) for line in lines])), initial=0.0)
    if low < 0 and sizes.max() > 100 * near > 0:
        panel.set_yscale("symlog", linthresh=near)
        panel.set_ylim(low - max(-low, near) / 2, high + max(high, near) / 2)


def _legends(panels: Sequence[Any], named: dict[str, list[Any]], looks: list[dict], figure: Any) -> None:
    """What the lines and bands are: of rates in their panel, of names and of several runs as `_draw` says."""
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    is_one, most = len(named) == 1, max(map(len, named.values()))
    colour, dots = (looks[0]["color"], "black") if is_one else ("#666666", "#666666")
    band = Patch(color=colour, alpha=ALPHA, linewidth=0)
    if len(named) <= _MOST_SPREADS:
        handles = [Line2D([], [], color=colour, linewidth=_WIDTH), Line2D([], [], color=dots, **_DOTS), band]
        panels[1].legend(handles, ["Mean", "Group elite", "Lowest to highest"])
    entries: list[Any] = list(zip([Line2D([], [], linewidth=_WIDTH, **look) for look in looks], named, strict=True))
    if most > 1:
        entries = [(entries[0][0], f"Median of {most} runs")] if is_one else entries
        entries.append((band, "Quartiles"))
    if is_one and most == 1:
        return
    handles, names = zip(*entries, strict=True)
    if figure is None or is_one:
        panels[0].legend(handles, names, handlelength=3.0)
    else:
        columns = -(-len(names) // -(-len(names) // 6))  # in lines of one length, of at most six
        figure.legend(handles, names, loc="outside lower center", ncols=columns, handlelength=3.0)
