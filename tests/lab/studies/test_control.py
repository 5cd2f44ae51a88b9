"""The control study: what is run, runs together are runs alone, the claim's rule, tables, pictures, `gesmr watch`."""

import re
from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import gesmr
from gesmr import noise
from gesmr.lab.cli import app
from gesmr.lab.errors import LabError
from gesmr.lab.run.compilation import Programs
from gesmr.lab.run.lanes import METHODS, ORACLES, key_of
from gesmr.lab.run.store import Store, StoredJob
from gesmr.lab.show.claims import Verdict
from gesmr.lab.show.figures import style
from gesmr.lab.show.view import Options
from gesmr.lab.studies import Selection, as_json, content_hash
from gesmr.lab.studies.control.results import MethodRuns, Row, load
from gesmr.lab.studies.control.runs import ControlJob, ControlRun, ControlStudy, control_lanes
from gesmr.lab.studies.control.show import VIEW, make_tables
from gesmr.lab.studies.control.watch import animation, strip
from gesmr.problems import control
from helpers.policies import GOOD

STUDY = ControlStudy()


# The study


def test_the_profiles():
    quick, paper = (STUDY.specs(Selection(profile)) for profile in ("quick", "paper"))
    fixed, fresh = ([s for s in paper if s.fresh is how] for how in (False, True))
    assert len(fixed) == 4 * 11 * 5
    assert len(fresh) == 4 * 9 * 5
    assert paper == [*fixed, *fresh]
    assert not {s.method for s in fresh} & set(ORACLES)
    assert {(s.generations, s.episodes, s.num_children) for s in paper} == {(100, 5, 100)}
    assert len(quick) == 4 * 9 * 3
    assert not {s.method for s in quick} & set(ORACLES)
    assert {(s.generations, s.fresh) for s in quick} == {(50, False)}
    assert len({content_hash(as_json(s)) for s in (*quick, *paper)}) == len(quick) + len(paper)


def test_selections():
    specs = STUDY.specs(Selection(tasks=("acrobot", "cartpole"), methods=("GESMR",), seeds=2))
    assert [(s.task, s.seed) for s in specs] == [("cartpole", 0), ("cartpole", 1), ("acrobot", 0), ("acrobot", 1)]
    with pytest.raises(ValueError, match=r"tasks must be one of 'cartpole', .*, got 'pong'"):
        STUDY.specs(Selection(tasks=("pong",)))
    with pytest.raises(ValueError, match="dims means nothing to the study control"):
        STUDY.specs(Selection(dims=(2,)))


def test_groups_hold_every_run_once_and_few_populations_at_a_time():
    specs = STUDY.specs(Selection("paper"))
    groups: list[Any] = list(STUDY.jobs(specs, 2**33))
    assert sorted(content_hash(as_json(s)) for g in groups for s in g.specs) == sorted(
        content_hash(as_json(s)) for s in specs
    )
    assert groups[0].task.name == "acrobot"
    fresh = [group.task.fresh for group in groups]
    assert fresh == sorted(fresh)
    for group in groups:
        oracles = len(set(group.methods) & set(ORACLES))
        assert len(group.lanes) * (len(group.methods) + 9 * oracles) <= 10


def job_of(method, task, seeds, generations, **how):
    return ControlJob(tuple(ControlRun(task, method, seed, generations, **how) for seed in seeds))


@pytest.fixture(scope="module")
def group():
    return job_of("GESMR", "mountaincar", (0, 3), 3)


@pytest.fixture(scope="module")
def computed(group):
    done = []
    with Programs(2) as programs:
        arrays = group.run(programs, done.append)
    assert np.isclose(sum(done), group.work)
    return arrays


def test_a_group_keeps_returns_rates_and_the_best_policies(group, computed):
    assert {name: array.shape for name, array in computed.items()} == {
        "elite": (2, 3), "log_rate": (2, 3), "best": (2, 771), "held_out": (2, 100)}  # fmt: skip
    assert [spec.seed for spec in group.specs] == [0, 3]
    own = jax.tree.map(lambda leaf: leaf[1], control_lanes([run.seed for run in group.lanes]).own)
    returns = jax.jit(lambda best: group.task.objective(None, own).returns(best))(computed["best"][1])
    np.testing.assert_allclose(np.mean(returns), computed["elite"][1, -1], rtol=0.02)  # rounding may change a step
    assert (np.diff(computed["elite"], axis=1) >= 0).all()
    assert ((computed["held_out"] >= -200) & (computed["held_out"] <= -1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("task", ["mountaincar", "pendulum"])  # actions are sampled, or numbers
def test_fresh_runs_repeat_and_are_those_of_the_library(task):
    """Every policy has draws of its own; a lane is what `evolve` computes, given the keys of the run."""
    group = job_of("15MR", task, (0, 3), 3, episodes=2, fresh=True)
    with Programs(2) as programs:
        arrays, again = (group.run(programs, lambda work: None) for _ in range(2))
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    assert all(spec.fresh for spec in group.specs)
    lanes = control_lanes([run.seed for run in group.lanes])
    key = jax.tree.map(lambda leaf: leaf[1], lanes.key)
    problem = control.get(task, 2, sample=task == "mountaincar", apart=True)

    @jax.jit
    def run():
        population = problem.init(key, 101)
        fitness = problem(population, noise.fold_in(key, 2**29 + 1, 2**32 - 1))
        ga = gesmr.GA(gesmr.controller("15MR"))
        state = ga.init(key_of("15MR", key), population, fitness)
        return gesmr.evolve(ga, problem, state, 3, keyed=True)

    state, history = run()
    np.testing.assert_allclose(arrays["elite"][1], -history.elite, rtol=1e-4)
    held_out = jax.jit(lambda best: problem.held_out(100).returns(best))(state.best)
    np.testing.assert_allclose(arrays["held_out"][1].mean(), np.mean(held_out), rtol=0.02)  # rounding may cost a step


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GESMR", "LAMR-100", "OFMR"])
def test_runs_together_are_runs_alone(method):
    """A lane is what the library's own functions compute on the same problem; single precision may differ in a tie."""
    group = job_of(method, "cartpole", (1, 4), 2)
    with Programs(2) as programs:
        arrays = group.run(programs, lambda work: None)
    lanes = control_lanes([run.seed for run in group.lanes])
    for i in range(2):
        own, key = (jax.tree.map(lambda leaf, i=i: leaf[i], keys) for keys in (lanes.own, lanes.key))
        problem = control.get("cartpole", key=own)
        population = problem.init(key, 101)
        search = {"LAMR-100": gesmr.LAMR(), "OFMR": gesmr.OFMR()}.get(method)
        ga = gesmr.GA(gesmr.Fixed() if search else gesmr.controller(method))
        state = ga.init(key_of(method, key), population, jax.jit(lambda p, x: p(x))(problem, population))
        run = search.evolve if search else gesmr.evolve
        _, history = run(ga, problem, state, 2)
        np.testing.assert_allclose(arrays["elite"][i], -history.elite, rtol=1e-6)
        np.testing.assert_allclose(arrays["log_rate"][i], history.log_rate, atol=1e-5)


# What it shows


def made_up(level, seeds=5, generations=100, fresh=False):
    """Results where a method's return at every generation is `level[task][method]`, plus a little for each seed."""
    return {
        Row(task, fresh): {
            method: MethodRuns(
                tuple(range(seeds)),
                value + np.arange(seeds)[:, None] + np.zeros((seeds, generations)),
                np.zeros((seeds, generations)),
                np.tile(GOOD.get(task, np.zeros(641)), (seeds, 1)).astype(np.float32),
                np.full((seeds, 100), value) - np.arange(seeds)[:, None],
            )
            for method, value in methods.items()
        }
        for task, methods in level.items()
    }


OTHERS = [method for method in METHODS if method not in (*ORACLES, "GESMR")]


def levels(*ahead):
    """GESMR above `ahead` of the eight other methods, task by task; the oracles above all."""
    return {
        task: dict.fromkeys(ORACLES, 9.0) | {m: float(i) for i, m in enumerate(OTHERS)} | {"GESMR": count - 0.5}
        for task, count in zip(control.TASKS, ahead, strict=True)
    }


@pytest.mark.parametrize(
    ("ahead", "verdict"),
    [
        ((5, 8, 5, 4), Verdict.HOLDS),  # above half of them is not ahead
        ((5, 8, 5, 5), Verdict.FAILS),
        ((4, 8, 8, 0), Verdict.FAILS),
        ((8, 8, 4, 0), Verdict.FAILS),
    ],
)
@pytest.mark.parametrize("fresh", [False, True])
def test_claim_12(ahead, verdict, fresh):
    claim = VIEW.decide(made_up(levels(*ahead), fresh=fresh))[0]
    assert (claim.number, claim.verdict, claim.short) == (12, verdict, "")
    assert f"CartPole {'ahead' if ahead[0] > 4 else 'not ahead'}, above {ahead[0]} of 8 others" in claim.found
    which = "fixed episodes" if fresh else "sampled actions and fresh episodes"
    assert claim.found.endswith(f"With {which}, not all runs are there")


def at_the_ceiling(results, but):
    """The results, but on CartPole all methods end at 200, save `but` in one seed."""
    for method, runs in results[Row("cartpole")].items():
        runs.elite[:, -1] = 200.0
        if method == but:
            runs.elite[0, -1] = 199.8
    return results


@pytest.mark.parametrize(
    ("ahead", "but", "verdict"),
    [
        ((0, 5, 5, 4), None, Verdict.HOLDS),  # CartPole, where all are equal at the end, is left out
        ((0, 5, 5, 4), "FMR", Verdict.FAILS),
        ((0, 5, 5, 4), "OFMR", Verdict.HOLDS),  # an oracle is not compared
        ((8, 4, 5, 4), None, Verdict.FAILS),
    ],
)
def test_where_all_end_at_the_maximum_there_is_nothing_to_be_ahead_of(ahead, but, verdict):
    claim = VIEW.decide(at_the_ceiling(made_up(levels(*ahead)), but))[0]
    assert claim.verdict is verdict
    assert ("CartPole not decidable, every run ends at 200" in claim.found) == (but != "FMR")


def test_the_authors_way_decides_and_both_are_said():
    ours, authors = made_up(levels(5, 5, 5, 4), seeds=3), made_up(levels(5, 4, 5, 4), fresh=True, generations=50)
    claim = VIEW.decide(ours | authors)[0]
    assert (claim.verdict, claim.short) == (Verdict.FAILS, "50 of 100 generations")
    assert claim.found.startswith("With sampled actions and fresh episodes, it does not hold: CartPole ahead")
    assert ". With fixed episodes, it holds: CartPole ahead" in claim.found
    assert VIEW.decide(ours)[0].short == "3 of 5 seeds"


def test_the_lead_is_over_the_median_of_the_others_with_an_interval():
    """Others at 0 … 7 have the median 3.5; seeds add the same to all, so resampling them changes nothing."""
    results = made_up(levels(5, 8, 5, 4))
    assert "Pendulum ahead, above 8 of 8 others, +4.0 (+4.0 to +4.0) from their median" in VIEW.decide(results)[0].found
    results[Row("pendulum")]["GESMR"].elite[0] -= 5.0  # one seed of five
    assert "Pendulum ahead, above 7 of 8 others, +3.0 (+1.0 to +4.0) from" in VIEW.decide(results)[0].found


def test_claim_12_needs_every_task_and_method():
    everything = made_up(levels(5, 5, 5, 4))
    few = {row: methods for row, methods in everything.items() if row.task in ("cartpole", "acrobot")}
    assert VIEW.decide(few)[0].verdict is Verdict.UNDECIDED
    fewer = {t: {m: r for m, r in methods.items() if m != "SAMR"} for t, methods in everything.items()}
    assert VIEW.decide(fewer)[0].verdict is Verdict.UNDECIDED


def test_the_table_marks_the_best_and_says_where_there_was_nan():
    results = made_up({"pendulum": {"OFMR": -100.0, "SAMR": -300.0, "GESMR": -200.0}}, seeds=3)
    table = make_tables(results)[0]
    assert [row[1:3] for row in table.rows] == [("fixed", "OFMR †"), ("fixed", "SAMR"), ("fixed", "GESMR *")]
    assert table.rows[2][3] == pytest.approx(-199.0)
    assert table.rows[2][7] == pytest.approx(-201.0)
    assert "NaN" not in table.note
    assert "luckiest" not in table.note
    results[Row("pendulum")]["SAMR"].held_out[1, 3] = np.nan
    assert "returned NaN, which counts as the worst, on Pendulum under SAMR" in make_tables(results)[0].note


def stored(task="mountaincar", methods=("SAMR", "GESMR"), seeds=2, generations=4, fresh=False):
    specs = [ControlRun(task, method, seed, generations, fresh=fresh) for method in methods for seed in range(seeds)]
    best = np.tile(GOOD[task], (len(specs), 1)).astype(np.float32)
    held_out = np.full((len(specs), 100), 100.0, np.float32) + np.arange(len(specs))[:, None]
    curve = np.linspace(50, 200, generations) * np.ones((len(specs), 1))
    return specs, {"elite": curve, "log_rate": -curve, "best": best, "held_out": held_out}


def test_loading_takes_the_longest_runs_on_the_seeds_that_all_share():
    groups = []
    for specs, arrays in (stored(generations=2), stored(seeds=3), stored(methods=("FMR",), seeds=2)):
        groups.append(StoredJob(tuple(map(as_json, specs)), {}, arrays))
    results = load(groups)
    (row,) = results
    assert list(results[row]) == ["FMR", "SAMR", "GESMR"]
    assert {(runs.seeds, runs.elite.shape) for runs in results[row].values()} == {((0, 1), (2, 4))}
    with pytest.raises(LabError, match="no task has runs"):
        load([])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")
    store = Store(directory / "control", create=True)
    store.write(*stored(), {"label": "made up"})
    store.write(*stored(methods=("GESMR",), fresh=True), {"label": "made up"})
    return directory


def test_tables_and_figures(home, tmp_path):
    store = Store(home / "control")
    VIEW.tables(store, Options(), tmp_path, Console(quiet=True))
    assert (tmp_path / "control.csv").read_text().startswith("Task,Episodes,Method,final return")
    results = VIEW.results(store)
    assert results[Row("mountaincar")]["GESMR"].best_seed == 1
    assert (
        VIEW.summary(results)
        == "1 control tasks, 2 methods, 2 seeds, 4 generations; also with sampled actions and fresh episodes"
    )
    assert [row[1] for row in make_tables(results)[0].rows] == ["fixed", "fixed", "fresh"]
    assert "luckiest" in make_tables(results)[0].note
    with style():
        figures = VIEW.make_figures(results)
    assert list(figures) == ["control", "control_fresh", "control_strips"]
    assert len(figures["control"][1].axes) == 2
    assert len(figures["control_strips"][1].axes) == 8


def test_watch_writes_an_animation_and_a_strip(home, tmp_path):
    result = CliRunner().invoke(app, ["watch", str(home / "control"), "--to", str(tmp_path), "--seed", "0"])
    assert result.exit_code == 0, result.output
    steps = int(
        re.search(r"MountainCar, GESMR, seed 0, held-out episode 0: return -(\d+).0 in \1 steps", result.output)[1]
    )
    assert 80 < steps < 130  # pushing the way it rolls gets the car up
    with Image.open(tmp_path / "mountaincar-GESMR-seed0-episode0.gif") as animation:
        assert getattr(animation, "n_frames", 1) == steps + 1
        assert animation.info["duration"] == 30
    with Image.open(tmp_path / "mountaincar-GESMR-seed0-episode0.png") as strip:
        assert strip.size[0] > 5 * strip.size[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "pong"), "--task must be one of mountaincar, which have been run, got 'pong'"),
        (("--method", "FMR"), "--method must be one of SAMR, GESMR, which have been run, got 'FMR'"),
        (("--seed", "9"), "--seed must be one of 0, 1, which have been run, got 9"),
    ],
)
def test_watch_says_what_there_is(home, arguments, message):
    result = CliRunner().invoke(app, ["watch", str(home), *arguments])
    assert result.exit_code == 2
    assert message in result.stderr


def test_watch_without_results(tmp_path):
    result = CliRunner().invoke(app, ["watch", str(tmp_path)])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize("task", control.TASKS)
def test_every_scene_can_be_drawn(task):
    variables = {
        "cartpole": ("x", "theta"), "pendulum": ("theta",), "acrobot": ("joint_angle1", "joint_angle2"),
        "mountaincar": ("position",)}[task]  # fmt: skip
    states = {name: np.array([0.1, 0.2, 0.4]) for name in variables}
    seen = control.Trajectory(states, np.array([0, 1]), np.array([-1.0, -1.0]))
    assert len(strip({task: seen}).axes) == 8
    assert animation(task, seen).startswith(b"GIF89a")
