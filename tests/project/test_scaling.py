"""The simulator of many workers, where its answer is known."""

import importlib
import json
import math

import numpy as np
import pytest

from helpers import ROOT

BENCHMARKS = ROOT / "benchmarks"


def load(name):
    """A module of the benchmarks, which find each other in their directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module(name)


simulator = load("simulator")
Cluster, simulate = simulator.Cluster, simulator.simulate


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def mean_seconds(generations=40, **options):
    rng = np.random.default_rng(1)
    return np.mean([simulate(Cluster(**options), rng).seconds for _ in range(generations)])


@pytest.mark.parametrize("chunk", [1, 7, None])
def test_one_worker_is_one_after_the_other(rng, chunk):
    cluster = Cluster(1, 50, 0.2, spread=0.7, chunk=chunk)
    times = simulator.durations(cluster, rng)
    found = simulate(cluster, rng, times)
    assert found.seconds == pytest.approx(times.sum())
    assert found.efficiency(cluster) == pytest.approx(1.0)


@pytest.mark.parametrize("workers", [1, 2, 7, 64, 100, 1000])
def test_without_costs_and_spread_it_is_division_rounded_up(rng, workers):
    found = simulate(Cluster(workers, 100, 0.5, chunk=1), rng)
    assert found.seconds == pytest.approx(0.5 * math.ceil(100 / workers))


def test_costs_of_the_driver_add_up_by_hand(rng):
    """Two workers, two candidates of 1 s: asked at 3, sent at 3.1 and 3.2, answers at 4.4 and 4.5, taken until 4.9."""
    cluster = Cluster(2, 2, 1.0, chunk=1, serial=3.0, send=0.1, receive=0.2, latency=0.15)
    assert simulate(cluster, rng).seconds == pytest.approx(3.1 + 0.15 + 1.0 + 0.15 + 0.2 + 0.2)


def test_a_driver_that_is_too_slow_is_the_limit(rng):
    """However many workers there are, 500 ranges of 1 ms to send and 1 ms to take in need a second."""
    for workers in (50, 500):
        found = simulate(Cluster(workers, 500, 0.01, chunk=1, send=1e-3, receive=1e-3), rng)
        assert found.seconds == pytest.approx(1.0, rel=0.03)


@pytest.mark.parametrize(("workers", "candidates"), [(8, 8), (8, 40), (50, 100)])
def test_more_spread_is_never_faster(workers, candidates):
    found = [mean_seconds(workers=workers, candidates=candidates, evaluation=1.0, spread=s) for s in (0, 0.3, 0.6, 1.2)]
    assert found == sorted(found)


def test_waiting_for_the_slowest_is_the_mean_maximum(rng):
    """As many workers as candidates: the generation is as long as its longest evaluation."""
    cluster = Cluster(30, 30, 1.0, spread=0.5)
    for _ in range(5):
        times = simulator.durations(cluster, rng)
        assert simulate(cluster, rng, times).seconds == pytest.approx(times.max())


def test_no_schedule_is_better_than_the_bounds(rng):
    for chunk in (1, 5, None):
        cluster = Cluster(7, 90, 1.0, spread=0.8, chunk=chunk)
        times = simulator.durations(cluster, rng)
        found = simulate(cluster, rng, times)
        assert found.seconds >= max(times.max(), times.sum() / 7) - 1e-9
        assert found.busy == pytest.approx(times.sum())


@pytest.mark.parametrize("late", [3.0, math.inf])
def test_every_candidate_gets_one_value_whatever_happens(rng, late):
    trouble = {"stall": 0.1, "deaths": 0.05, "noticed": 2.0, "recovery": 5.0, "late": late}
    cluster = Cluster(20, 200, 1.0, spread=0.5, send=1e-3, receive=1e-3, latency=0.01, **trouble)
    found = simulate(cluster, rng)
    assert found.valued == 200
    assert found.deaths > 0
    assert found.busy >= found.useful


def test_copies_help_against_slow_workers_and_not_against_slow_candidates():
    cluster = {"workers": 50, "candidates": 200, "evaluation": 1.0}
    stalls = {**cluster, "stall": 0.05}
    assert mean_seconds(**stalls, late=3.0) < 0.8 * mean_seconds(**stalls)
    slow = {**cluster, "spread": 1.0}
    assert mean_seconds(**slow, late=3.0) > 0.9 * mean_seconds(**slow)


def test_durations_have_the_mean_that_was_asked_for(rng):
    times = simulator.durations(Cluster(1, 200_000, 2.0, spread=0.5), rng)
    assert times.mean() == pytest.approx(2.0, rel=0.01)
    assert np.log(times).std() == pytest.approx(0.5, rel=0.01)


@pytest.mark.slow
def test_the_page_is_what_the_model_says():
    scaling, page = load("scaling"), load("scaling_page")
    model = scaling.Model(json.loads(scaling.MEASURED.read_text(encoding="utf-8")))
    text = (BENCHMARKS.parent / "docs" / "scaling.md").read_text(encoding="utf-8")
    assert page.page(model, 0) in text, "run `python benchmarks/scaling.py --write docs/scaling.md`"


def test_costs_are_fitted_with_small_relative_errors():
    """Costs of 2 s and 3 s per unit are found again, though the largest is 10⁴ times the smallest."""
    scaling = load("scaling")
    columns = [(1, size) for size in (0.1, 1, 100, 10_000)]
    assert scaling.fitted(columns, [2 + 3 * size for _, size in columns]) == pytest.approx([2, 3])
