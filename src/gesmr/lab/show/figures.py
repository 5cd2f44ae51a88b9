"""What figures of all studies share: looks of methods and functions, a style, axes, bands, files that never differ.

Figures are `matplotlib.figure.Figure` objects made without pyplot. Make them inside `style()`.
"""

import base64
import io
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogFormatterMathtext,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

from ... import _checks
from ...plotting import ALPHA, PIXELS, STYLE
from ..errors import StorageError
from . import stats

FORMATS = ("pdf", "svg", "png")
PAGE_WIDTH, PAGE_HEIGHT = 7.0, 9.2  # inches of print that a page has

_SOLID = (0.0, ())
_DOTTED = (0.0, (1.0, 1.4))
_DASHED = (0.0, (5.0, 1.6))
_DASH_DOT = (0.0, (6.0, 1.5, 1.2, 1.5))


@dataclass(frozen=True)
class LineStyle:
    """How a method's line looks. No two methods share both colour and dashes, and no two share a marker."""

    colour: str
    dashes: tuple[float, tuple[float, ...]]
    marker: str
    width: float = 1.1
    above: int = 3  # drawing order; all bands are below

    @property
    def options(self) -> dict[str, Any]:
        """Keywords for `Axes.plot`."""
        return {
            "color": self.colour,
            "linestyle": self.dashes,
            "linewidth": self.width,
            "marker": self.marker,
            "markersize": 3.4 if self.width < 1.5 else 6.0,
            "markeredgecolor": "white" if self.marker not in "x+" else self.colour,
            "markeredgewidth": 0.4 if self.marker not in "x+" else 0.9,
            "zorder": self.above,
        }


# Okabe and Ito's colours, one for each family of methods, less their yellow, which is too pale for lines. In the order
# of the legend.
LINES: dict[str, LineStyle] = {
    "OFMR": LineStyle("#8a8a8a", _DOTTED, "x", above=5),
    "LAMR-100": LineStyle("#000000", _DOTTED, "+", above=5),
    "FMR": LineStyle("#cc79a7", _DASHED, "s"),
    "1CMR": LineStyle("#cc79a7", _DASH_DOT, "D"),
    "UCB/5": LineStyle("#56b4e9", _DASHED, "^", width=0.7, above=2),
    "UCB/10": LineStyle("#56b4e9", _DASH_DOT, "v", width=0.7, above=2),  # their rates jump: others go over them
    "15MR": LineStyle("#0072b2", _SOLID, "o"),
    "SAMR": LineStyle("#009e73", _SOLID, "P"),
    "GESMR": LineStyle("#d55e00", _SOLID, "*", width=1.8, above=4),
    "GESMR-AVG": LineStyle("#e69f00", _DASHED, "<"),
    "GESMR-FIX": LineStyle("#e69f00", _DASH_DOT, ">"),
}
_OTHER_LINES = tuple(LineStyle(c, _DOTTED, m) for c, m in (("#882255", "h"), ("#117733", "d"), ("#332288", "p")))
_COLOURS = {
    "ackley": "#0072b2",
    "griewank": "#d55e00",
    "rastrigin": "#56b4e9",
    "rosenbrock": "#009e73",
    "sphere": "#cc79a7",
}
_OTHER_COLOURS = ("#882255", "#117733", "#332288", "#e69f00")

_RC = {
    **STYLE,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "gesmr",
}

_NO_DATES: dict[str, dict[str, Any]] = {
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
    "png": {"Software": None},
}

LEAPING = ("UCB/5", "UCB/10")  # methods whose rates have no line that an eye could follow
_MOST_DECADES = 150  # on either side of 1 on a log axis; matplotlib's ticks overflow at twice that

_lock = threading.RLock()


def look(method: str) -> LineStyle:
    """Of any method: one that has no look of its own has one of a few."""
    return LINES.get(method) or _OTHER_LINES[crc32(method.encode()) % len(_OTHER_LINES)]


def colour_of(function: str) -> str:
    """Of any function."""
    return _COLOURS.get(function) or _OTHER_COLOURS[crc32(function.encode()) % len(_OTHER_COLOURS)]


def in_order(methods: Iterable[str]) -> list[str]:
    """Each once, in the order of a legend."""
    methods = dict.fromkeys(methods)
    return [*(method for method in LINES if method in methods), *(m for m in methods if m not in LINES)]


@contextmanager
def style() -> Iterator[None]:
    """Inside, figures look alike, whatever the user's settings. These are global, so one thread waits for another."""
    with _lock, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)  # type: ignore[arg-type]
        yield


def settled(figure: Figure) -> Figure:
    """The figure with its layout computed once, so that it is the same in all formats and every time it is saved."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def save(figure: Figure, path_without_suffix: Path | str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the figure in each format, in directories made if absent. The same figure gives the same bytes."""
    base = Path(path_without_suffix)
    written = []
    for suffix in formats:
        _checks.choice("formats", suffix, FORMATS)
        data = io.BytesIO()
        with style():
            figure.savefig(data, format=suffix, dpi=dots(figure), metadata=_NO_DATES[suffix])
        written.append(_write(base.with_name(f"{base.name}.{suffix}"), data))
    return written


def save_small(figure: Figure, path: Path) -> None:
    """Write the figure as one PNG in full colour, which is small enough to be kept beside code."""
    _write(path, _encoded(figure, "png", optimize=True))


def for_page(figure: Figure) -> str:
    """The address of the figure, as an image that a page has within itself."""
    data = _encoded(figure, "webp", lossless=True, method=4)
    return f"data:image/webp;base64,{base64.b64encode(data.getvalue()).decode()}"


def _encoded(figure: Figure, kind: str, **options: Any) -> io.BytesIO:
    drawn, data = io.BytesIO(), io.BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=dots(figure))
    colours = np.asarray(Image.open(drawn).convert("RGB"), np.int16)
    rounded = np.clip((colours + 2) // 4 * 4, 0, 255).astype(np.uint8)  # no eye sees it, and bytes go
    Image.fromarray(rounded).save(data, format=kind, **options)
    return data


def dots(figure: Figure) -> float:
    """To an inch, so that an image of the figure is wide enough to read every line of it on a large screen."""
    return max(240.0, PIXELS / figure.get_figwidth())


def _write(path: Path, data: io.BytesIO) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.getvalue())
    except OSError as error:
        raise StorageError(f"could not write {path}: {error.strerror}") from error
    return path


def log_y(axes: Axes, low: float, high: float) -> None:
    """A log axis that shows 0 < `low` ≤ `high`. What is zero leaves at the bottom."""
    axes.set_yscale("log", nonpositive="clip")
    margin = max(0.05 * (math.log10(high) - math.log10(low)), 0.02)
    bottom = 10.0 ** min(max(math.log10(low) - margin, -_MOST_DECADES), _MOST_DECADES - 1)
    top = 10.0 ** max(min(math.log10(high) + margin, _MOST_DECADES), 1 - _MOST_DECADES)
    axes.set_ylim(bottom, top)
    axis: Axis = axes.yaxis
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    if math.floor(math.log10(top)) - math.ceil(math.log10(bottom)) >= 2:
        axis.set_major_locator(LogLocator(numticks=6))
        axis.set_major_formatter(LogFormatterMathtext())
        return
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if (ratio := top / bottom) > 3:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if ratio > 12 else (1, 2, 3, 5, 7), numticks=20))
    else:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))


def symmetric_log_y(axes: Axes, near: float, low: float, high: float) -> None:
    """An axis for `low` to `high`, at least one of them negative: linear up to the distance `near` from 0, then log."""
    axes.set_yscale("symlog", linthresh=near)
    first, last = math.log10(near), math.log10(max(-low, high))
    magnitudes = 10.0 ** np.arange(first, last, max(math.ceil((last - first) / 5), 1))
    ticks = np.concatenate([-magnitudes[::-1], [0.0], magnitudes])
    shown = (ticks >= low) & (ticks <= max(high, -near))
    axes.set_yticks(ticks[shown])
    axes.yaxis.set_minor_locator(NullLocator())


def over_seeds(history: np.ndarray) -> np.ndarray:
    """Mean and mean ∓ standard error `f[3, P]` of `f[S, P]`."""
    history = np.asarray(history, np.float64).T
    middle, error = stats.mean(history), stats.standard_error(history)
    return np.stack([middle, middle - error, middle + error])


def draw(axes: Axes, method: str, x: np.ndarray, middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """A method's line `f[P]` with its band, where that is finite, after the axis has its scale and limits.

    Markers of different methods are staggered.
    """
    own = look(method)
    apart = max(len(x) // 4, 1)
    first = in_order([*LINES, method]).index(method) * apart // len(LINES) % apart
    if own.dashes == _SOLID:  # a rim that sets it off from the lines it crosses
        axes.plot(x, middle, color="white", linewidth=own.width + 1.0, zorder=own.above - 0.5)
    axes.plot(x, middle, label=method, markevery=(first, apart), **own.options)
    if np.isfinite(low).any():
        band(axes, x, low, high, own.colour)


def draw_rate(axes: Axes, method: str, x: np.ndarray, middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """As `draw`, but of UCB, whose rate leaps at every generation, the geometric mean and the range of what is near."""
    if method in LEAPING:
        with np.errstate(divide="ignore"):
            middle, low, high = np.exp(near(np.log(middle)))
    draw(axes, method, x, middle, low, high)


def near(line: np.ndarray) -> np.ndarray:
    """Mean and range `f[3, P]` of what each point of `f[P]` has around it: a twenty-fifth of the line, three points at
    least."""
    reach = max(len(line) // 50, 1)
    around = sliding_window_view(np.pad(line, reach, mode="edge"), 2 * reach + 1)
    return np.stack([around.mean(axis=-1), around.min(axis=-1), around.max(axis=-1)])


def band(axes: Axes, x: np.ndarray, low: np.ndarray, high: np.ndarray, colour: Any) -> None:
    """Around a line, below all lines. On a log axis it ends where that does."""
    if axes.get_yscale() == "log":
        low, high = np.maximum([low, high], axes.get_ylim()[0])
    axes.fill_between(x, low, high, color=colour, alpha=ALPHA, linewidth=0, zorder=1)


def title(axes: Axes, text: str, **look: Any) -> None:
    """Above the left end of a panel."""
    axes.set_title(text, loc="left", fontweight="bold", **look)


def label(panels: np.ndarray, x: str = "", y: str = "", **look: Any) -> None:
    """Name the axes of panels `[lines, columns]` that share them: x below the last line, y left of the first column."""
    for axes in panels[-1] if x else ():
        axes.set_xlabel(x, **look)
    for axes in panels[:, 0] if y else ():
        axes.set_ylabel(y, **look)


def log_ticks(axes: Axes, x_or_y: str, ticks: Sequence[float], form: Callable[[float], str] = "{:g}".format) -> None:
    """Make that axis a log axis which names these numbers and no others."""
    getattr(axes, f"set_{x_or_y}scale")("log")
    axis: Axis = getattr(axes, f"{x_or_y}axis")
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))
    axis.set_minor_locator(NullLocator())


def mark(marker: str, text: str, **options: Any) -> Line2D:
    """An entry of a legend: a marker without a line."""
    return Line2D([], [], linestyle="none", marker=marker, label=text, **options)


def shade(text: str, colour: str = "#777777") -> Patch:
    """An entry of a legend: a band."""
    return Patch(color=colour, alpha=0.3, linewidth=0, label=text)


def legend_below(figure: Any, handles: Sequence[Artist], columns: int | None = None, **options: Any) -> Legend:
    """One legend for all panels of a figure, or a part of one, below them."""
    columns = min(columns or len(handles), len(handles))
    return figure.legend(handles=handles, loc="outside lower center", ncols=columns, **options)


def legend(
    figure: Figure,
    looks: Mapping[str, LineStyle] | Iterable[str],
    columns: int = 6,
    *,
    bands: str = "",
    rates: bool = False,
    more: Sequence[Artist] = (),
) -> None:
    """Of methods, or of lines that look like this, below all panels; what `bands` are, and those of UCB's `rates`."""
    if not isinstance(looks, Mapping):
        looks = {method: look(method) for method in in_order(looks)}
    handles: list[Artist] = [Line2D([], [], label=name, **own.options) for name, own in looks.items()]
    handles += [shade(bands)] * bool(bands)
    leaping = [method for method in looks if method in LEAPING] if rates else []
    handles += [shade("Range of UCB's rate", looks[method].colour) for method in leaping[:1]]
    placed = legend_below(figure, [*handles, *more], columns, handlelength=3.6, columnspacing=1.6)
    for text in placed.get_texts():
        text.set_fontweight("bold" if text.get_text() == "GESMR" else "normal")
