"""`gesmr.compare`: its table, what is kept, and what it refuses."""

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from gesmr.comparing import Comparison, compare, method
from helpers.references import mann_whitney
from helpers.refusals import assert_refused


def bowl(x):
    return float(np.sum((x - 1) ** 2))


def small(fun=bowl, **options):
    given = {"methods": ["gesmr", "DE", "random"], "seeds": 6, "maxfun": 120, "bounds": (-5, 5), **options}
    return compare(fun, [2.0, -3.0], **given)


def same(one, other):
    """All but the clock."""
    ones, others = ([dataclasses.replace(run, seconds=0.0) for run in of.runs] for of in (one, other))
    return ones == others


@pytest.fixture(scope="module")
def found():
    return small(targets=[0.5, 1e-9])


def test_the_table_is_what_scipy_says(found):
    rows = {row.method: row for row in found.rows}
    best = found.rows[0].method
    single = {(a, b): mann_whitney(found.values(a), found.values(b))
              for i, a in enumerate(found.methods) for b in list(found.methods)[i + 1 :]}  # fmt: skip
    order = sorted(single, key=lambda pair: single[pair])
    holm, most = {}, 0.0
    for number, pair in enumerate(order):
        most = max(most, min(1.0, single[pair] * (3 - number)))
        holm[frozenset(pair)] = most
    for name, row in rows.items():
        assert row.median == np.median(found.values(name))
        assert (row.low, row.high) == stats.quantile_test(found.values(name), p=0.5).confidence_interval(0.95)
        assert row.evaluations == 120
        assert np.isnan(row.p) if name == best else row.p == pytest.approx(holm[frozenset((name, best))])
    assert [row.rank for row in found.rows] == [1, 2, 3]
    assert sorted(row.median for row in found.rows) == [row.median for row in found.rows]


def test_what_is_printed(found):
    text = str(found)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["method", "median", "95%", "interval", "rank", "p", "evals", "sec"]
    for line, row in zip(lines[1:], found.rows, strict=False):
        assert line.startswith(row.method)
        assert f"{row.median:.4g}" in line
        assert f"[{row.low:.3g}, {row.high:.3g}]" in line
    rest = " ".join(lines[4:])
    assert "gesmr 0/6, DE 0/6, random 0/6" in rest
    assert "Mann–Whitney, two-sided, against the best, corrected by Holm's method for 3 pairs" in rest
    assert "96.9%" in rest
    assert "75.0%, by order statistics. For 95% there must be six seeds." in " ".join(str(small(seeds=3)).split())


def test_targets(found):
    for name, (met, evaluations) in found.reached(0.5).items():
        values = [run.best(np.arange(1, 121), np.inf) for run in found.of(name)]
        first = [int(np.argmax(value <= 0.5)) + 1 if (value <= 0.5).any() else None for value in values]
        assert met == sum(at is not None for at in first)
        if met:
            assert evaluations == sum(120 if at is None else at for at in first) / met


def test_traces_are_what_was_evaluated():
    """Against a record of every value, in order."""
    record = []

    def recorded(x):
        record.append(bowl(x))
        return record[-1]

    found = small(recorded, seeds=[3], methods=["gesmr"])
    np.testing.assert_array_equal(found.values("gesmr", np.arange(1, 121))[0], np.minimum.accumulate(record))
    assert found.values("gesmr", 0) == np.inf
    assert bowl(found.best.x) == found.best.fun == min(record)


def test_seeds_and_more_of_them(found):
    assert found.seeds == (0, 1, 2, 3, 4, 5)
    three = small(seeds=[5, 0, 9])
    assert three.values("gesmr")[0] == found.values("gesmr")[5]
    assert three.seeds == (5, 0, 9)


def test_saving_and_loading_exactly(found, tmp_path):
    found.save(tmp_path / "kept.json")
    again = Comparison.load(tmp_path / "kept.json")
    assert again == found
    assert str(again) == str(found)
    assert json.loads((tmp_path / "kept.json").read_text())["maxfun"] == 120


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"kind": "gesmr comparison", "format": 9}',
                                     '{"kind": "gesmr comparison", "format": 1, "runs": [{"x": 1}]}'])  # fmt: skip
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "other").write_text(content)
    with pytest.raises(ValueError, match="is not a saved comparison"):
        Comparison.load(tmp_path / "other")


def test_going_on(found, tmp_path):
    """Killed in the middle, it computes what is missing, and no more."""
    path, calls = tmp_path / "runs.json", []

    def mortal(x):
        calls.append(x)
        if len(calls) == 800:
            raise KeyboardInterrupt
        return bowl(x)

    with pytest.raises(KeyboardInterrupt):
        small(mortal, save=path)
    kept = Comparison.load(path)
    assert len(kept.runs) == 800 // 120
    assert not [left for left in tmp_path.iterdir() if left != path]
    small(mortal, save=path)
    assert len(calls) == 800 + (18 - 6) * 120 + 2  # two, to see that it is the same function
    assert same(small(mortal, save=path), found)
    assert len(calls) == 800 + (18 - 6) * 120 + 4


def test_more_methods_and_seeds_join_a_file(tmp_path):
    path = tmp_path / "runs.json"
    small(save=path, seeds=2)
    more = small(save=path, methods=["random", "SAMR"], seeds=[1, 2])
    assert [(run.method, run.seed) for run in more.runs] == [("random", 1), ("random", 2), ("SAMR", 1), ("SAMR", 2)]
    whole = Comparison.load(path)
    assert list(whole.methods) == ["gesmr", "DE", "random", "SAMR"]
    assert len(whole.runs) == 6 + 3


def other_bowl(x):
    return bowl(x) + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxfun": 121}, "maxfun was 120, now 121"),
        ({"bounds": (-5, 6)}, "high was"),
        ({"direction": "maximize"}, "direction was 'minimize'"),
        ({"fun": other_bowl}, "fun was"),
        ({"methods": {"random": "DE"}}, "random was 'random', now 'DE'"),
    ],
)
def test_a_file_of_another_comparison_is_refused(tmp_path, options, words):
    path = tmp_path / "runs.json"
    small(save=path, methods=["random"], seeds=1)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is of another comparison") as error:
        small(**{"save": path, "methods": ["random"], "seeds": 1, **options})
    assert words in str(error.value)
    assert path.read_bytes() == before


def test_another_function_of_the_same_name_is_refused(tmp_path):
    path = tmp_path / "runs.json"

    def made(shift):
        return lambda x: bowl(x) + shift

    small(made(0), save=path, methods=["random"], seeds=1)
    with pytest.raises(ValueError, match=r"of another problem: fun has .* where it had"):
        small(made(1), save=path, methods=["random"], seeds=1)


def test_a_method_that_fails_has_a_line_and_is_tried_again(tmp_path):
    broken = [True]

    def frail(objective, problem):
        objective(problem.x0)
        if broken[0] and problem.seed == 1:
            raise RuntimeError("no such luck")
        objective.many(problem.draw(problem.rng(), 200))

    def idle(objective, problem):
        return None

    methods = {"frail": frail, "idle": idle, "random": "random"}
    found = small(methods=methods, seeds=3, save=tmp_path / "runs")
    assert [(row.method, row.rank, row.failed) for row in found.rows] == [
        ("random", 1, 0), ("frail", None, 1), ("idle", None, 3),
    ]  # fmt: skip
    text = str(found)
    assert "failed in 1 of 3 runs: RuntimeError: no such luck" in text
    assert "it ended without a single evaluation" in text
    broken[0] = False
    again = small(methods=methods, seeds=3, save=tmp_path / "runs")
    assert next(row for row in again.rows if row.method == "frail").failed == 0


@pytest.mark.parametrize("name", ["gesmr", "DE", "CMA-ES", "optuna:TPE"])
def test_errors_of_the_function_come_through(name):
    def faulty(x):
        raise ValueError("my own fault")

    if name.startswith("optuna"):
        pytest.importorskip("optuna")
    with pytest.raises(ValueError, match=r"^my own fault$"):
        small(faulty, methods=[name])
    with pytest.raises(TypeError, match="fun must return one real number"):
        small(lambda x: "high", methods=[name])


def test_values_that_are_not_finite(tmp_path):
    """Half of the space has none: they are the worst. All of it: so is the result."""
    half = small(lambda x: bowl(x) if x[0] > 0 else np.nan)
    assert all(np.isfinite(row.median) for row in half.rows)
    none = small(lambda x: np.nan, methods=["random", "DE", "CMA-ES"], seeds=2, save=tmp_path / "none")
    assert none.best is None
    assert [row.median for row in none.rows] == [np.inf] * 3
    assert "inf" in str(none)
    assert Comparison.load(tmp_path / "none") == none
    none.plot()


def test_progress(capsys):
    small(methods=["random"], seeds=2, disp=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["1/2  random, seed 0", "2/2  random, seed 1"]
    assert "after 120 evaluations" in lines[0]


def test_the_figure(found, tmp_path):
    pytest.importorskip("matplotlib")
    figure = found.plot(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert list(lines) == ["gesmr", "DE", "random"]
    at, shown = lines["DE"].get_data()
    np.testing.assert_allclose(shown, np.median(found.values("DE", at), axis=0))
    assert at[-1] == 120


def test_the_data_frame(found):
    pytest.importorskip("pandas")
    frame = found.to_dataframe()
    assert frame.groupby("method")["fun"].median().to_dict() == {row.method: row.median for row in found.rows}
    assert len(frame) == 18


@pytest.mark.parametrize(
    ("options", "exception", "words"),
    [
        ({"maxfun": 0}, ValueError, ["maxfun must be an integer of at least 1, got 0"]),
        ({"maxfun": 20, "methods": [method("GESMR", popsize=30)]}, ValueError, ["maxfun must be at least 30"]),
        ({"seeds": 0}, ValueError, ["seeds must be"]),
        ({"seeds": [1, 1]}, ValueError, ["seeds must be one or more, each given once"]),
        ({"seeds": [-1]}, ValueError, ["seeds must be an integer from 0"]),
        ({"seeds": "many"}, TypeError, ["seeds must be a number of seeds or a list"]),
        ({"fun": 3}, TypeError, ["fun must be callable"]),
        ({"bounds": (5, -5)}, ValueError, ["low ≤ high"]),
        ({"bounds": (-2, 2)}, ValueError, ["x0 must be within bounds", "-3.0 in variable 1"]),
        ({"direction": "up"}, ValueError, ["direction must be one of 'minimize', 'maximize'"]),
        ({"targets": "low"}, TypeError, ["targets must be"]),
        ({"integrality": [1, 0, 1]}, ValueError, ["integrality must be"]),
        ({"constraints": 3}, TypeError, ["constraints must be"]),
        ({"save": "absent/runs.json"}, FileNotFoundError, ["save must be in a directory that exists"]),
        ({"disp": 1}, TypeError, ["disp must be True or False"]),
    ],
)
def test_bad_arguments(options, exception, words):
    assert_refused(lambda: small(**options), exception, words)
