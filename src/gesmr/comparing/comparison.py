"""What came of a comparison: every run, a table with intervals and tests, a figure, a file."""

import dataclasses
import json
import textwrap
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import _checks
from .._files import write_atomically
from ..plotting import PIXELS, STYLE
from ..spaces import Space
from . import statistics

FORMAT = 1
_WIDTH = 80
_LEVEL = 0.95  # of intervals
# Okabe and Ito's, less their yellow
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8a8a8a")


@dataclasses.dataclass(frozen=True)
class Run:
    """A method with a seed, from its start to the end of its budget."""

    method: str
    seed: int
    evaluations: int
    seconds: float
    attempts: int  # how often the method was begun
    improved_at: tuple[int, ...]  # after how many evaluations a better value was found
    values: tuple[float, ...]  # these values
    x: tuple[float, ...] | None  # where the last was found; None if no value was finite and feasible
    error: str = ""  # why the method failed, if it did

    def best(self, evaluations: Any, worst: float) -> np.ndarray:
        """The best value after so many evaluations, `f[...]`, and `worst` before there was one."""
        place = np.searchsorted(np.array(self.improved_at, int), evaluations, side="right")
        return np.array([worst, *self.values])[place]

    def reached(self, target: float, sign: int) -> int | None:
        """After how many evaluations it was as good as `target`; None if it never was."""
        return next(
            (at for at, value in zip(self.improved_at, self.values, strict=True) if sign * value <= sign * target), None
        )


class Row(NamedTuple):
    """A line of the table."""

    method: str
    median: float
    low: float  # of the interval for the median
    high: float
    rank: int | None  # by the median; None if a run failed
    p: float  # that the best method and this one are alike, corrected; NaN for the best itself
    evaluations: float  # medians
    seconds: float
    failed: int  # runs
    error: str  # of the first that failed


class Best(NamedTuple):
    """The best solution of all runs."""

    x: Any
    fun: float
    method: str
    seed: int


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The runs of some methods on one problem. `print` shows the table."""

    methods: dict[str, str]  # names, and what they stand for
    seeds: tuple[int, ...]
    maxfun: int
    problem: dict[str, Any]  # as `compare` was told
    targets: tuple[float, ...]
    runs: tuple[Run, ...]
    versions: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def sign(self) -> int:
        return -1 if self.problem["direction"] == "maximize" else 1

    @property
    def worst(self) -> float:
        """What stands for the value of a run that found nothing finite and feasible."""
        return self.sign * np.inf

    def of(self, method: str) -> list[Run]:
        """The runs of a method, one for each seed."""
        _checks.choice("method", method, tuple(self.methods))
        return [run for run in self.runs if run.method == method]

    def values(self, method: str, evaluations: Any = None) -> np.ndarray:
        """The best values of a method's runs at the end, or after so many evaluations, `f[seeds, ...]`."""
        at = self.maxfun if evaluations is None else evaluations
        return np.array([run.best(at, self.worst) for run in self.of(method)])

    @property
    def best(self) -> Best | None:
        """The best solution there was; None if no value was finite."""
        found = [run for run in self.runs if run.values]
        if not found:
            return None
        run = min(found, key=lambda run: self.sign * run.values[-1])
        space, x = self.problem["space"], np.array(run.x)
        return Best(x if space is None else Space.from_dict(space).decode(x), run.values[-1], run.method, run.seed)

    @cached_property
    def rows(self) -> list[Row]:
        """The table: methods from best to worst by their medians, then those that failed."""
        sound = [name for name in self.methods if not any(run.error for run in self.of(name))]
        samples = {name: self.values(name) for name in sound}
        median = {name: _median(samples[name]) for name in sound}
        sound.sort(key=lambda name: self.sign * median[name])
        p = statistics.all_pairs([self.sign * samples[name] for name in sound])
        found = []
        for place, name in enumerate(sound):
            rank = 1 + sum(self.sign * median[other] < self.sign * median[name] for other in sound)
            low, high, _ = statistics.median_interval(samples[name], _LEVEL)
            found.append(
                Row(name, median[name], low, high, rank, p[0, place] if place else np.nan, *self._cost(name), 0, "")
            )
        for name in self.methods:
            if name not in sound:
                errors = [run.error for run in self.of(name) if run.error]
                unknown = np.nan, np.nan, np.nan, None, np.nan
                found.append(Row(name, *unknown, *self._cost(name), len(errors), errors[0]))
        return found

    def _cost(self, name: str) -> tuple[float, float]:
        return tuple(float(np.median([getattr(run, of) for run in self.of(name)])) for of in ("evaluations", "seconds"))  # type: ignore[return-value]

    def reached(self, target: float) -> dict[str, tuple[int, float]]:
        """For each method, how many runs were as good as `target`, and its expected running time: the evaluations it
        takes on average if runs that miss it are begun again."""
        return {
            name: statistics.running_time(
                [run.reached(target, self.sign) for run in self.of(name)], [run.evaluations for run in self.of(name)]
            )
            for name in self.methods
        }

    def __str__(self) -> str:
        interval = "95% interval" if self._sure >= _LEVEL else "interval"
        headings = ("method", "median", interval, "rank", "p", "evals", "sec")
        sound = [row for row in self.rows if row.rank is not None]
        cells = [headings, *(_cells(row) for row in sound)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(headings))]
        widths[0] = min(max(widths[0], 6), max(_WIDTH - sum(widths[1:]) - 2 * len(widths[1:]), 10))
        lines = [_line(line, widths) for line in cells]
        for row in self.rows:
            if row.rank is None:
                count = f"{row.failed} of {len(self.seeds)} runs"
                lines.append(_shortened(f"{_shortened(row.method, widths[0])}  failed in {count}: {row.error}", _WIDTH))
        for target in self.targets:
            each = [
                f"{name} {met}/{len(self.seeds)}" + (f" ({time:.4g})" if met else "")
                for name, (met, time) in self.reached(target).items()
            ]
            lines += _wrapped(f"reached {target:g}, and evaluations it takes: {', '.join(each)}")
        return "\n".join([*lines, *_wrapped(self._notes(len(sound)))])

    @property
    def _sure(self) -> float:
        """How sure the interval is to hold the median."""
        return statistics.median_interval(np.arange(len(self.seeds)), _LEVEL)[2]

    def _notes(self, sound: int) -> str:
        better = "Higher" if self.sign < 0 else "Lower"
        count = f"{len(self.seeds)} seed{'s' * (len(self.seeds) > 1)}"
        interval = f"The interval holds the median with {100 * self._sure:.1f}%, by order statistics."
        if self._sure < _LEVEL:
            interval += " For 95% there must be six seeds."
        pairs, test = sound * (sound - 1) // 2, ""
        if pairs:
            family = f"{pairs} pairs" if pairs > 1 else "one pair"
            test = f" p: Mann–Whitney, two-sided, against the best, corrected by Holm's method for {family}."
        return f"{better} is better; {count}, {self.maxfun} evaluations each. {interval}{test}"

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of the median best value against evaluations, with bands from quartile to quartile;
        written to `path`, if that is given."""
        try:
            import matplotlib as mpl  # noqa: PLC0415 - not part of the core
            from matplotlib.figure import Figure  # noqa: PLC0415
        except ImportError as error:
            raise ModuleNotFoundError("plot needs the package matplotlib: pip install 'gesmr[lab]'") from error
        with mpl.rc_context(STYLE):  # type: ignore[arg-type]
            figure = Figure(figsize=(6.4, 4.0), layout="constrained")
            self._draw(figure.add_subplot())
            if path is not None:
                figure.savefig(_checks.file("path", path), dpi=PIXELS / figure.get_figwidth())
        return figure

    def _draw(self, axes: Any) -> None:
        at = np.unique(np.geomspace(1, self.maxfun, 300).astype(int))
        drawn = []
        for number, name in enumerate(self.methods):
            quartiles = _quantiles(self.values(name, at), (0.25, 0.5, 0.75))
            colour, dashes = _COLOURS[number % len(_COLOURS)], ("-", "--", ":")[number // len(_COLOURS) % 3]
            axes.plot(at, quartiles[1], color=colour, linestyle=dashes, label=name)
            axes.fill_between(at, quartiles[0], quartiles[2], color=colour, alpha=0.18, linewidth=0)
            drawn.append(quartiles[np.isfinite(quartiles)])
        shown = np.concatenate(drawn)
        if shown.size and shown.min() > 0 and shown.max() > 20 * shown.min():
            axes.set_yscale("log")
        axes.set_xscale("log")
        axes.set(xlabel="Evaluations", ylabel=f"Best value, median of {len(self.seeds)} seeds")
        axes.legend()

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with a row for every run."""
        try:
            import pandas  # noqa: PLC0415 - not part of the core
        except ImportError as error:
            raise ModuleNotFoundError("to_dataframe needs the package pandas: pip install pandas") from error
        columns = ("method", "seed", "fun", "evaluations", "seconds", "attempts", "error")
        table = [
            (
                run.method,
                run.seed,
                run.values[-1] if run.values else self.worst,
                *(getattr(run, name) for name in columns[3:]),
            )
            for run in self.runs
        ]
        return pandas.DataFrame(table, columns=list(columns))

    def save(self, path: str | Path) -> None:
        """Write everything as JSON, atomically."""
        content = {"format": FORMAT, "kind": "gesmr comparison", **dataclasses.asdict(self)}
        write_atomically(_checks.file("path", path), json.dumps(content, allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | Path) -> "Comparison":
        """What `save` wrote."""
        path = _checks.file("path", path)
        try:
            content = json.loads(path.read_bytes())
            if not isinstance(content, dict) or content.pop("kind", None) != "gesmr comparison":
                raise ValueError("it is another kind of file")
            if (written := content.pop("format", None)) != FORMAT:
                raise ValueError(f"it has format {written!r}, this version reads {FORMAT}")
            runs = tuple(_run(run) for run in content.pop("runs"))
            return cls(**{**content, "seeds": tuple(content["seeds"]), "targets": tuple(content["targets"])}, runs=runs)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path} is not a saved comparison: {error}") from error


def _run(written: dict[str, Any]) -> Run:
    plain: dict[str, Any] = {name: tuple(of) if isinstance(of, list) else of for name, of in written.items()}
    run = Run(**plain)
    if len(run.improved_at) != len(run.values) or (run.x is None) != (not run.values):
        raise ValueError(f"the run of {run.method} with seed {run.seed} is not whole")
    return run


def _median(values: np.ndarray) -> float:
    """That of values some of which may be infinite: never between a number and infinity."""
    return float(_quantiles(values, (0.5,))[0])


def _quantiles(values: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Over the first axis; of infinite values, a quantile between a number and infinity is infinite."""
    with np.errstate(invalid="ignore"):
        found = np.quantile(values, shares, axis=0)
    return np.where(np.isnan(found), values.flat[np.argmax(np.abs(values))], found)


def _cells(row: Row) -> tuple[str, ...]:
    p = "" if np.isnan(row.p) else f"{row.p:.1e}" if row.p < 0.0005 else f"{row.p:.3f}"
    interval = f"[{row.low:.3g}, {row.high:.3g}]"
    return (
        row.method,
        f"{row.median:.4g}",
        interval,
        str(row.rank),
        p,
        f"{row.evaluations:.0f}",
        f"{row.seconds:.2g}" if row.seconds < 100 else f"{row.seconds:.0f}",
    )


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    first, *rest = (f"{_shortened(cell, width):>{width}}" for cell, width in zip(cells, widths, strict=True))
    return "  ".join([f"{first.strip():<{widths[0]}}", *rest])


def _shortened(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH)
