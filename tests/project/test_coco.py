"""COCO's functions through `minimize`, and the page about them."""

import importlib
import json

import numpy as np
import pytest

import gesmr
from helpers import ROOT

FUNCTIONS = range(1, 25)


class Seen:
    """A COCO problem that counts and looks at what it gets."""

    def __init__(self, function, dim, instance=1):
        cocoex = pytest.importorskip("cocoex", reason="pip install coco-experiment")
        self.problem = cocoex.BareProblem("bbob", function, dim, instance)
        self.optimum = self.problem.best_value()
        self.evaluations, self.lowest, self.highest = 0, np.inf, -np.inf

    def __call__(self, rows):
        self.evaluations += len(rows)
        self.lowest, self.highest = min(self.lowest, rows.min()), max(self.highest, rows.max())
        return self.problem(rows)


@pytest.mark.parametrize("dim", [2, 20])
def test_all_functions_run_and_nothing_leaves_the_bounds(dim):
    for function in FUNCTIONS:
        seen = Seen(function, dim)
        x0 = np.random.default_rng(function).uniform(-5, 5, dim)
        result = gesmr.minimize(seen, x0, bounds=(-5, 5), maxfun=500, rng=function, vectorized=True, jit=False)
        assert seen.evaluations == result.nfev
        assert 400 <= result.nfev <= 500
        assert -5 <= seen.lowest < seen.highest <= 5
        assert result.fun == seen.problem(result.x) >= seen.optimum - 1e-9
        assert result.fun < seen.problem(x0)


@pytest.mark.slow
def test_it_is_better_than_random_search_in_20_d():
    """With all of 1000·d evaluations and three of the five instances, on as many functions as the page must show."""
    better = []
    for function in FUNCTIONS:
        ours, random = [], []
        for instance in (1, 2, 3):
            rng = np.random.default_rng(100 * function + instance)
            seen = Seen(function, 20, instance)
            x0 = rng.uniform(-5, 5, 20)
            result = gesmr.minimize(seen, x0, bounds=(-5, 5), maxfun=20_000, rng=instance, vectorized=True, jit=False)
            ours.append(result.fun - seen.optimum)
            random.append(seen.problem(rng.uniform(-5, 5, (20_000, 20))).min() - seen.optimum)
        better.append(np.median(ours) < np.median(random))
    assert sum(better) >= 22


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("coco_page")


def test_the_page_is_made_of_the_results(page):
    runs, text = page.read(), (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page.page(runs) in text, "run `python benchmarks/coco_page.py --write docs/benchmarks.md`"
    line, met = page.verdict(runs)
    assert met
    assert line in text


def test_targets_are_reached_when_an_improvement_is_as_good(page, tmp_path, monkeypatch):
    """Two improvements, to 50 after 3 evaluations and to 1 exactly after 7: the targets 10², 10^1.8 and 10^1.6 … 1."""

    class Task:
        dim, optimizer, function = 2, "gesmr", 1

        @staticmethod
        def path(out):
            return out / "runs.json"

    points = [[1, 1000.0], [3, 50.0], [7, 1.0]]
    record = {"instance": 1, "evaluations": 10, "seconds": 0.5, "points": points}
    (tmp_path / "runs.json").write_text(json.dumps({"runs": [record]}))
    (tmp_path / "made.json").write_text("{}")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    page.summarise(tmp_path, [Task])
    (run,) = page.read(tmp_path / "results" / "summary.csv.gz")
    assert run.hits == (3, 3, *[7] * 9)
    assert (run.gap, run.evaluations) == (1.0, 10)
    assert page.reached([run]) == pytest.approx(11 / 51)


def test_wins_need_a_lower_median(page):
    def runs(name, function, gaps):
        return [page.Run(name, function, 20, i, 1, 1.0, gap, ()) for i, gap in enumerate(gaps)]

    found = page.medians(
        [*runs("gesmr", 1, (1.0, 2.0, 90.0)), *runs("random", 1, (3.0, 3.0, 3.0)),
         *runs("gesmr", 2, (1e-9,)), *runs("random", 2, (1e-12,))], 20
    )  # fmt: skip
    assert page.wins(found["gesmr"], found["random"]) == [1]  # both have solved the second
