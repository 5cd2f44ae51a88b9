"""E[Δ], E[min Δ] and E[max Δ] as functions of the mutation rate, sampled in batches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from .. import _checks, noise
from ..evolution import Objective, as_pytree
from .density import MOST_BINS, Bins, Density, bins_for
from .samples import DrawPoint, check_draw_point, check_objective, lane_deltas

Step = Callable[[noise.Key, Array], Array]  # keys u32[L] and rates f[L] to changes f[L, 2, q]

_GENES_AT_ONCE = 2**22
_PILOT_POINTS = 8  # per rate, to choose bins by


@dataclass(frozen=True)
class Curves:
    """Means over points x of what mutation does to f(x), for each of S rates, with their standard errors.

    All arrays are `[S]`. Every point has two groups of q mutants. Points and groups are drawn anew for every rate, so
    the errors of different rates are independent.
    """

    rates: np.ndarray
    group: int  # q
    mean: np.ndarray  # E[Δ]
    lowest: np.ndarray  # E[min of q]
    highest: np.ndarray  # E[max of q]
    mean_error: np.ndarray
    lowest_error: np.ndarray
    highest_error: np.ndarray
    counted: np.ndarray  # i64, changes that are finite
    dropped: np.ndarray  # i64, changes that are not
    density: Density | None = None


def objective_curves(
    objective: Objective,
    draw_point: DrawPoint,
    rates: Any,
    *,
    samples: int,
    group: int = 10,
    key: Any,
    batch: int | None = None,
    bins: Bins | int | None = None,
) -> Curves:
    """E[Δ], E[min_q Δ] and E[max_q Δ] for every rate of `rates f[S]`, which increase.

    `objective` maps `f[N, d]` to `f[N]`; `draw_point(key, n)` draws n points `f[n, d]` from a `noise.Key`, as `init` of
    a problem does. For every rate there are `samples` mutants: of samples / 2q points, each mutated by q independent
    steps ε and by the same steps turned round. `bins` adds the density of Δ; a number of bins lets a few points
    choose the range. Everything is computed in the dtype of the points.

    A change that is not finite is dropped: a group's mean, minimum and maximum are those of its finite changes, a
    group or point without any is left out, and where nothing is left the curves are NaN. `dropped` says how many.

    `batch` mutants are made at a time (by default four million genes' worth), which changes no draw. Memory is
    about 6 · batch · d numbers and what `objective` needs for so many. One program per batch, d and q.
    """
    _checks.real("rates", rates, 0.0)
    given, rates = rates, np.asarray(rates, np.float64)
    if rates.ndim != 1 or rates.size == 0 or (np.diff(rates) <= 0).any():
        raise ValueError(f"rates must be one or more increasing numbers, got {_checks.show(given)}")
    group = _checks.integer("group", group, 1, most=_checks.MOST)
    samples = _checks.integer("samples", samples, 4 * group, most=2**63 - 1)
    if samples % (2 * group):
        raise ValueError(f"samples must be a multiple of 2 · group = {2 * group}, got {samples}")
    dim, dtype = check_draw_point(draw_point)
    batch = max(_GENES_AT_ONCE // dim, 2 * group) if batch is None else batch
    batch = _checks.integer("batch", batch, 2 * group, most=2**63 - 1)
    if bins is not None and not isinstance(bins, Bins):
        bins = _checks.integer("bins", bins, 1, most=MOST_BINS)
    points = samples // (2 * group)
    lanes = min(batch // (2 * group), points * len(rates))
    check_objective(objective, dim, lanes * (1 + 2 * group), dtype)
    step = partial(_lane_deltas, as_pytree(objective), _as_pytree(draw_point), group)
    return stream(step, noise.key(key), rates, points, group, lanes, bins)


def best_rates(curves: Curves) -> tuple[float, float]:
    """(σ*_mean, σ*_min): the rates at which E[Δ] and E[min Δ] are lowest. Rates where these are NaN do not count."""
    if not isinstance(curves, Curves):
        raise TypeError(f"curves must be what objective_curves returns, got {type(curves).__name__}")
    found = []
    for name in ("mean", "lowest"):
        values = np.asarray(getattr(curves, name))
        if np.isnan(values).all():
            raise ValueError(f"curves must be finite for some rate, got {name} = NaN for all {len(values)}")
        found.append(float(curves.rates[np.nanargmin(values)]))
    return found[0], found[1]


def stream(
    step: Step,
    key: noise.Key,
    rates: np.ndarray,
    points: int,
    group: int,
    lanes: int,
    bins: Bins | int | None,
    tick: Callable[[int], None] = lambda lanes: None,
) -> Curves:
    """Curves from `points` points for each rate, `lanes` points in one call of `step`. `tick` hears of each call."""
    if isinstance(bins, int):
        far_end = np.uint32(2**32 - 1) - np.arange(_PILOT_POINTS, dtype=np.uint32)
        pilot = np.concatenate([changes for _, changes in _batches(step, key, rates, far_end, lanes)])
        by_rate = pilot.reshape(_PILOT_POINTS, len(rates), 2 * group).swapaxes(0, 1)
        bins = bins_for(by_rate.reshape(len(rates), -1).astype(np.float64), bins)
    totals: list[np.ndarray] = []
    for rate, changes in _batches(step, key, rates, np.arange(points, dtype=np.uint32), lanes):
        more = _totals(rate, changes, len(rates), bins)
        totals = [a + b for a, b in zip(totals, more, strict=True)] if totals else more
        tick(len(rate))
    sums, (counted, dropped), *histograms = totals
    number, total, squares = sums.transpose(1, 0, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = total / number
        variance = np.maximum(squares - number * middle**2, 0) / (number - 1)
        error = np.sqrt(variance / number)
    density = None if bins is None else Density(bins, *histograms)
    return Curves(rates, group, *middle, *error, counted, dropped, density)  # type: ignore[call-arg] - three of each


def _batches(
    step: Step, key: noise.Key, rates: np.ndarray, points: np.ndarray, lanes: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Indices `i[L]` of rates and changes `f[L, 2, q]` of all points at all rates, L = `lanes` or what is left.

    The last call is filled up with repetitions, so that all have one shape. Results are fetched one call late, so
    that the device need not wait.
    """
    total = len(points) * len(rates)
    waiting: tuple[np.ndarray, Array] | None = None
    for start in range(0, total, lanes):
        point, rate = np.divmod(np.minimum(np.arange(start, start + lanes), total - 1), len(rates))
        keys = _lane_keys(key, points[point], rate.astype(np.uint32))
        result = rate[: total - start], step(keys, jnp.asarray(rates[rate], float))
        if waiting is not None:
            yield waiting[0], np.asarray(waiting[1])[: len(waiting[0])]
        waiting = result
    if waiting is not None:
        yield waiting[0], np.asarray(waiting[1])[: len(waiting[0])]


_lane_deltas = jax.jit(lane_deltas, static_argnums=2)
_lane_keys = jax.jit(noise.fold_in)  # apart from the step, which derives from them: see docs/noise.md


def _as_pytree(draw_point: DrawPoint) -> DrawPoint:
    """As `as_pytree`; of a method, such as the `init` of a problem, the object is data."""
    owner = getattr(draw_point, "__self__", None)
    return as_pytree(draw_point) if owner is None else Partial(draw_point.__func__, owner)  # type: ignore[attr-defined]


def _totals(rate: np.ndarray, changes: np.ndarray, size: int, bins: Bins | None) -> list[np.ndarray]:
    """What adds up over batches, for each of S = `size` rates, from indices `i[L]` of rates and changes `f[L, 2, q]`.

    Of mean, lowest and highest how many points, sum and sum of squares, `f64[3, 3, S]`; how many changes are finite and
    how many are not, `i64[2, S]`; histograms on the axes of `bins`, `i64[S, B+2]`.
    """
    changes = changes.astype(np.float64)
    finite = np.isfinite(changes)
    number = finite.sum(axis=(1, 2))
    groups = finite.any(axis=2)
    many = np.maximum(groups.sum(axis=1), 1)
    mean = np.where(finite, changes, 0).sum(axis=(1, 2)) / np.maximum(number, 1)
    lowest = np.where(groups, np.where(finite, changes, np.inf).min(axis=2), 0).sum(axis=1) / many
    highest = np.where(groups, np.where(finite, changes, -np.inf).max(axis=2), 0).sum(axis=1) / many
    moments = [(number > 0, values, values**2) for values in (mean, lowest, highest)]
    sums = np.array([[np.bincount(rate, weights, size) for weights in three] for three in moments])
    counted = np.array([np.bincount(rate, n, size) for n in (number, finite[0].size - number)]).astype(np.int64)
    histograms = []
    if bins is not None:
        which = np.broadcast_to(rate[:, None, None], changes.shape)[finite]
        for edges in (bins.linear, bins.symlog):
            place = np.searchsorted(edges, changes[finite], side="right") + which * (len(edges) + 1)
            histograms.append(np.bincount(place, minlength=size * (len(edges) + 1)).reshape(size, -1))
    return [sums, counted, *histograms]
