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
def load(monkeypatch):
    """A module of the benchmarks, which find each other in their directory."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.fixture
def page(load):
    return load("coco_page")


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


def test_tables_of_budgets_are_made_of_the_results(load):
    budgets = load("coco_budgets_page")
    text = (ROOT / "docs" / "budgets.md").read_text(encoding="utf-8")
    made = budgets.page(load("coco_summary").read(budgets.NAME))
    assert made in text, "run `python benchmarks/coco_budgets_page.py --write docs/budgets.md`"


@pytest.mark.parametrize(
    ("name", "in_page"), [("MIXINT", "benchmarks"), ("CONSTRAINED", "benchmarks"), ("CHOICE", "spaces")]
)
def test_tables_of_mixed_and_constrained_functions_are_made_of_the_results(load, name, in_page):
    pages, read = load("coco_versus_page"), load("coco_summary").read
    versus = getattr(pages, name)
    made, verdict = (part(read(versus.name)) for part in pages.PAGES[versus])
    assert made in (ROOT / "docs" / f"{in_page}.md").read_text(encoding="utf-8"), f"tables of {versus.name} are old"
    assert verdict[1], verdict[0]


@pytest.mark.parametrize("maxfun", [2, 8, 9, 100, 361, 500, 2_000, 10_000, 40_000, 10**6])
def test_the_library_has_the_rule_of_the_page(load, maxfun):
    asked = gesmr.Optimizer(np.zeros(3), bounds=(-5, 5), maxfun=maxfun, rng=0).ask()
    assert len(asked) == load("coco_budgets_page").popsize(maxfun) <= maxfun


def test_ranks_and_medians_of_budgets_by_hand(load):
    """Of two instances 9 has the gaps 1 and 4, 13 has 2 and 2, the rule 3 and 1e-12, which is solved."""
    budgets, Run = load("coco_budgets_page"), load("coco_summary").Run
    gaps = {"popsize 9": (1.0, 4.0), "popsize 13": (2.0, 2.0), "rule": (3.0, 1e-12)}
    runs = [Run(name, 2, 5, i, 50, gap) for name, each in gaps.items() for i, gap in enumerate(each, 1)]
    found = budgets.gaps(runs)
    assert budgets.ranks(found, 5, 50) == {"popsize 9": 2.0, "popsize 13": 2.0, "rule": 2.0}
    lower, higher, log = budgets.compared(found["popsize 13", 5, 50], found["popsize 9", 5, 50])
    assert (lower, higher) == (1, 0)  # the medians are 2 and 2.5
    assert log == pytest.approx(0.0)  # the geometric means are both 2


def test_a_budget_has_what_whole_generations_within_it_found(load):
    """A run of 100 evaluations notes at 50 what a run of 50 ends with."""
    pytest.importorskip("cocoex", reason="pip install coco-experiment")
    budgets = load("coco_budgets")

    def noted(limits):
        objective = budgets.Passing(8, 3, 1, limits)
        budgets.by_minimize(objective, 3, 7, popsize=9)
        return objective.gaps

    assert noted([50, 100])[50] == noted([50])[50] > noted([50, 100])[100]
    assert noted([5, 50])[5] == np.inf  # the first population is larger


def test_the_optimum_of_coco_is_the_lowest_value(load):
    """Nothing drawn is better, as far as constraints and integers allow."""
    pytest.importorskip("cocoex", reason="pip install coco-experiment")
    problems, rng = load("coco_problems"), np.random.default_rng(0)
    for function in (1, 15, 21):
        problem = problems.problem_of("bbob-mixint", function, 5, 1)
        lowest = problems.optimum(problem)
        drawn = rng.uniform(problem.lower_bounds, problem.upper_bounds, (300, 5)).round()
        assert lowest < min(map(problem, drawn))
    problem = problems.problem_of("bbob-constrained", 1, 5, 1)
    lowest, drawn = problems.optimum(problem), rng.uniform(-5, 5, (300, 5))
    feasible = [x for x in drawn if (problem.constraint(x) <= 0).all()]
    assert feasible
    assert lowest < min(map(problem, feasible))


def test_constrained_problems_count_candidates_and_keep_only_what_is_feasible(load):
    pytest.importorskip("cocoex", reason="pip install coco-experiment")
    problems = load("coco_problems")
    problem = problems.problem_of("bbob-constrained", 3, 5, 1)
    inside, best = problem.initial_solution, problems.optimum(problem)
    outside = next(x for x in np.random.default_rng(0).uniform(-5, 5, (99, 5)) if (problem.constraint(x) > 0).any())
    recorder = problems.Constrained(problem, best, budget=2)
    assert (recorder.constraint(outside) > 0).any()
    recorder(outside)
    assert recorder.gap == np.inf
    recorder.constraint(inside)
    assert recorder(inside) - best == recorder.gap
    assert recorder.violation == 0
    with pytest.raises(problems.Spent):
        recorder.constraint(inside)


def test_recorders_refuse_what_is_no_integer_or_out_of_bounds(load):
    pytest.importorskip("cocoex", reason="pip install coco-experiment")
    problems = load("coco_problems")
    problem = problems.problem_of("bbob-mixint", 1, 5, 1)
    recorder = problems.Recorder(problem, 0.0, budget=10)
    x = problem.initial_solution
    for wrong in (x + 0.5, x + 9 * np.eye(5)[4]):
        with pytest.raises(ValueError, match=r"integers|outside"):
            recorder(wrong)
    assert recorder(x) == recorder.gap


@pytest.fixture
def beyond(load):
    return load("coco_beyond_page")


def test_settings_differ_from_a_centre_in_one_value(beyond):
    for centre in beyond.CENTRES:
        star = beyond.star(centre)
        assert [sum(a != b for a, b in zip(centre, each, strict=True)) for each in star] == [0, *[1] * (len(star) - 1)]
    stars = sum(len(beyond.star(centre)) for centre in beyond.CENTRES)
    assert len(beyond.SETTINGS) == stars + len(beyond.SECOND)  # none has another's name
    assert str(beyond.DEFAULT) in beyond.SETTINGS


@pytest.mark.parametrize("num_children", [1, 3, 10, 38, 70, 100])
def test_groups_of_eight_are_the_default(beyond, num_children):
    state = gesmr.GESMR().init(None, num_children, 5)
    assert beyond.DEFAULT.groups(num_children) == len(state)


def test_the_default_is_one_of_the_settings(load, beyond):
    """The same run, whether `minimize` chooses everything itself or is told."""
    for package in ("cocoex", "cma", "evosax"):
        pytest.importorskip(package, reason="make setup")
    script, tasks = load("coco_beyond"), load("coco_tasks")

    def gaps(optimize):
        objective = script.Passing(3, 5, 1, [300])
        optimize(objective, 5, 7)
        return objective.gaps

    parts, sizes = script.PARTS, beyond.SIZES
    for size in sizes:
        name, told = beyond.sized("default", size), beyond.sized(str(beyond.DEFAULT), size)
        assert gaps(parts[beyond.CONFIRMATION].optimizers[name]) == gaps(parts[beyond.CHOICE].optimizers[told])
    (first, second) = script.run(tasks.Task("SNES", 1, 5, (1, 2), 1000), beyond.CONFIRMATION)
    assert first["gaps"] == sorted(first["gaps"], reverse=True)
    assert first["gaps"][-1] < 1e-7 < first["gaps"][0] != second["gaps"][0]


def test_the_large_suite_begins_where_bbob_ends(load):
    pytest.importorskip("cocoex", reason="pip install coco-experiment")
    problems, rng = load("coco_problems"), np.random.default_rng(0)
    for dim in (40, 80):
        passing = problems.Passing(8, dim, 1, [10])
        rows = rng.uniform(-5, 5, (3, dim))
        values = passing(rows)
        assert values.shape == (3,)
        assert passing(rows[1]) == values[1] >= values.min() == passing.gap + passing.optimum
        assert passing.evaluations == 4


def test_all_settings_were_run_on_odd_functions_alone(load, beyond):
    runs = load("coco_summary").read(beyond.CHOICE)
    assert {run.function for run in runs} == set(range(1, 25, 2))
    tried = {beyond.sized(name, size) for name in beyond.TRIED for size in beyond.SIZES}
    between = {f"{name}, popsize {size}" for name in ("default", "default-X") for size in beyond.BETWEEN}
    assert {run.optimizer for run in runs} == tried | between
    heading, _, *rows = beyond.choice(runs)
    assert len(rows) == len(beyond.TRIED)
    ranks = [float(row.split("|")[heading.split("|").index(" all ")].strip(" *")) for row in rows]
    assert ranks == sorted(ranks)
    assert np.mean(ranks) == pytest.approx((len(rows) + 1) / 2, abs=0.1)
    (default,) = [row for row in rows if "(default)" in row]
    assert default.endswith("| 0 : 0 | 1 | 0 : 0 | 1 |")  # beside itself


def test_tables_of_recombination_by_hand(load, beyond):
    """The first is better by 2 on one function and by 8 on the other, in geometric means by 4; the last has none."""
    Run = load("coco_summary").Run
    gaps = {"first": (1.0, 1.0), "second": (2.0, 8.0)}
    runs = [
        Run(beyond.sized(name, size), function, dim, 1, budget, gap)
        for name, each in gaps.items() for size in beyond.SIZES for dim, budgets in beyond.BUDGETS.items()
        for budget in budgets for function, gap in zip((2, 4), each, strict=True)
    ]  # fmt: skip
    found = load("coco_budgets_page").gaps(runs)
    assert beyond.against(found, "first", "second")[2] == "| 5 | 100·d | 2 : 0 | 4 | 2 : 0 | 4 |"
    assert beyond.against(found, "second", "first")[-1] == "| all |  | 0 : 18 | 0.25 | 0 : 18 | 0.25 |"
    assert beyond.by_function(found, "first", "second")[2].startswith("| 2 Ellipsoid | 2 |")
    names = [beyond.sized(name, beyond.AUTOMATIC) for name in ("first", "second", "third")]
    assert beyond.map_of(found, names)[2] == "| separable | 5 | 100·d | **1** | 4 |  |"
