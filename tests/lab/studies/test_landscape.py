"""The study of changes of value by mutation: its panels, claim 8, its figures, and a user's own function."""

import io
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from gesmr.analysis import Curves, best_rates, objective_curves
from gesmr.lab.errors import LabError
from gesmr.lab.loading import load_callable
from gesmr.lab.run import runner
from gesmr.lab.run.function_task import WITH_OPTIMUM
from gesmr.lab.run.store import Store
from gesmr.lab.show.claims import Verdict
from gesmr.lab.show.view import Options
from gesmr.lab.studies import Selection
from gesmr.lab.studies.landscape import show as view
from gesmr.lab.studies.landscape.runs import DIMS, LandscapeStudy, Panel, from_arrays, to_arrays
from gesmr.lab.studies.mutations import show as mutations_view
from gesmr.lab.studies.mutations.runs import Mutations, MutationsStudy
from gesmr.problems import functions


def made_up(mean, lowest, error=0.01, rates=None):
    mean, lowest = np.asarray(mean, float), np.asarray(lowest, float)
    rates = np.geomspace(1e-3, 1e3, len(mean)) if rates is None else rates
    errors = np.broadcast_to(np.asarray(error, float), mean.shape)
    zeros = np.zeros(len(mean), int)
    return Curves(rates, 10, mean, lowest, 2 * mean + 1, errors, errors, errors, zeros + 100, zeros)


GOOD = made_up([0, 0.1, 0.5, 3, 9], [-0.2, -1, -2, 0, 5])


def test_best_rates_of_known_curves():
    assert best_rates(GOOD) == pytest.approx((1e-3, 1.0))
    assert best_rates(made_up([np.nan, 1, 0.5], [np.nan, 1, 2], rates=np.array([1.0, 2.0, 4.0]))) == (4.0, 2.0)


def claim(panel=GOOD, where=("sphere", 30), without=()):
    results = {(f, d): GOOD for f in WITH_OPTIMUM for d in DIMS} | {where: panel}
    return view.VIEW.decide({key: curves for key, curves in results.items() if key not in without})[0]


def test_claim_holds_when_every_panel_has_the_shape():
    decided = claim()
    assert decided.number == 8
    assert decided.verdict is Verdict.HOLDS
    assert "grows in 20" in decided.found
    assert "(exactly in 20)" in decided.found


@pytest.mark.parametrize(
    ("panel", "found"),
    [
        (made_up([0, 0.1, 3, 0.5, 9], GOOD.lowest), "grows in 19"),
        (made_up([0.2, 0.1, 0.5, 3, 9], GOOD.lowest), "smallest σ within error in 19 (exactly in 19)"),
        (made_up(GOOD.mean, [-0.2, -1, -2, -3, -4]), "then rises in 19; at the largest σ E[Δ] > E[min Δ] > 0 in 19"),
        (made_up(GOOD.mean, [-3, -1, 0, 1, 5]), "then rises in 19"),
        (made_up(GOOD.mean, [-0.2, -1, -0.5, -2, 5]), "then rises in 19"),
        (made_up(GOOD.mean, [-0.2, -1, -2, 0, 0.02]), "> 0 in 19"),
    ],
)
def test_claim_fails_when_a_part_fails_in_a_panel(panel, found):
    decided = claim(panel)
    assert decided.verdict is Verdict.FAILS
    assert found in decided.found


def test_claim_forgives_what_chance_explains():
    shaky = made_up([0.2, 0.1, 0.5, 3, 9], [-0.2, -1, -2, 0, 5], error=0.05)
    decided = claim(shaky)
    assert decided.verdict is Verdict.HOLDS
    assert "(exactly in 19)" in decided.found


def test_claim_is_not_decidable_without_all_panels_and_does_not_need_linear():
    assert claim(without=[("ackley", 2)]).verdict is Verdict.UNDECIDED
    assert "1 of the 20" in claim(without=[("ackley", 2)]).found
    falling = made_up([0, 0, 0, 0, 0], [-1, -2, -3, -4, -5])
    with_linear = claim(falling, ("linear", 2))
    assert with_linear.verdict is Verdict.HOLDS
    assert "largest σ in 1 of 1" in with_linear.found


def test_study_names_its_panels_and_refuses_what_means_nothing_to_it():
    study = LandscapeStudy()
    assert len(study.specs(Selection())) == 24
    assert all(p.points * 2 * p.group * p.num_rates >= 1e5 for p in study.specs(Selection()))
    assert all(p.points * 2 * p.group * p.num_rates >= 1e6 for p in study.specs(Selection("paper")))
    narrow = study.specs(Selection(dims=(2,), functions=("sphere", "ackley")))
    assert [(p.function, p.dim) for p in narrow] == [("ackley", 2), ("sphere", 2)]
    for bad in (Selection(seeds=3), Selection(dims=(3,)), Selection("huge"), Selection(functions=("cube",))):
        with pytest.raises(ValueError, match=r"seeds|dims|profile|functions"):
            study.specs(bad)
    with pytest.raises(ValueError, match="dims means nothing to the study mutations"):
        MutationsStudy().specs(Selection(dims=(2,)))


def test_memory_bounds_a_study_and_changes_nothing_in_it():
    panel = Panel("ackley", 30, points=4, num_rates=5)
    results = []
    for memory in (2**20, 2**40):
        group: Any
        (group,) = LandscapeStudy().jobs([panel], memory)
        assert group.lanes * 21 * 30 * 4 <= memory
        ticks = []
        results.append(group.run(lambda program: program.compile(), ticks.append))
        assert sum(ticks) == group.work
    for name, array in results[0].items():
        assert array.shape[0] == 1
        if "counts" not in name:
            assert np.allclose(array, results[1][name], rtol=1e-4, atol=1e-5), name


def test_curves_survive_the_store():
    problem = functions.get("ackley", 2)
    curves = objective_curves(problem, problem.init, np.geomspace(1e-2, 10, 7), samples=40, key=1, bins=10)
    panel = Panel("ackley", 2, points=2, low=1e-2, high=10.0, num_rates=7)
    back = from_arrays(panel, {name: array[0] for name, array in to_arrays(curves).items()})
    for field in fields(Curves):
        if field.name != "density":
            assert np.allclose(getattr(back, field.name), getattr(curves, field.name))
    assert np.array_equal(back.density.linear, curves.density.linear)
    assert np.array_equal(back.density.bins.symlog, curves.density.bins.symlog)
    with pytest.raises(ValueError, match="density"):
        to_arrays(replace(curves, density=None))


def test_studies_from_runner_to_report(tmp_path):
    quiet = Console(quiet=True)
    small = [Panel(f, d, points=3, num_rates=5) for f, d in (("ackley", 2), ("linear", 30))]
    more = Panel("ackley", 2, points=5, num_rates=5)
    mutations = [Mutations("rosenbrock", 50, rates=(0.1, 1.0), shown=7), Mutations("rosenbrock", 40, rates=(0.1,))]
    for study, specs, shown in (
        (LandscapeStudy(), [*small, more], view.VIEW),
        (MutationsStudy(), mutations, mutations_view.VIEW),
    ):
        store = Store(tmp_path / study.name, create=True)
        assert runner.run(study, specs, store, console=quiet, threads=2) == len(specs)
        assert runner.run(study, specs, store, console=quiet) == 0
        to = tmp_path / "shown" / study.name
        shown.tables(store, Options(), to, quiet)
        chapter = shown.chapter(store.directory)
        assert chapter.runs == len(specs)
        assert len(chapter.sections[0].context["images"]) == (2 if study.name == "landscape" else 1)
        assert (to / f"{study.name}.csv").read_text().count("\n") == 3
    loaded = view.load(list(Store(tmp_path / "landscape").jobs()))
    assert list(loaded) == [("ackley", 2), ("linear", 30)]
    assert loaded["ackley", 2].counted[0] == 100  # the panel with more points


def test_landscape_of_a_users_function(tmp_path, monkeypatch):
    (tmp_path / "mine_for_landscape.py").write_text(
        "import jax.numpy as jnp\nthree = 3\ndef bowl(x):\n    return jnp.sum(x**4, axis=-1)\n"
        "def flat(x):\n    return jnp.sum(x)\nclass Holder:\n    bowl = staticmethod(bowl)\n"
    )
    (tmp_path / "broken_for_landscape.py").write_text("import no_such_thing_at_all\n")
    monkeypatch.chdir(tmp_path)
    objective = load_callable("mine_for_landscape:bowl")
    console = Console(record=True, width=200, file=io.StringIO())
    view.show_landscape(objective, 3, tmp_path / "shown", console, samples=41, group=5, std=2.0)
    printed = console.export_text()
    assert "bowl, 3-D" in printed
    assert {path.suffix for path in (tmp_path / "shown").iterdir()} == {".csv", ".pdf", ".svg", ".png"}
    lines = (tmp_path / "shown" / "landscape.csv").read_text().splitlines()
    assert len(lines) == 62
    assert lines[1].split(",")[-2] == "50"  # 41, rounded up to whole points
    assert load_callable("mine_for_landscape:Holder.bowl") is objective
    for name, words in {
        "mine_for_landscape": "module:function",
        "mine_for_landscape:": "module:function",
        "absent_for_landscape:f": "no module 'absent_for_landscape'",
        "broken_for_landscape:f": "broken_for_landscape cannot be imported.*no_such_thing_at_all",
        "mine_for_landscape:absent": "has no 'absent'",
        "mine_for_landscape:three": "must be a function.*int",
    }.items():
        with pytest.raises(LabError, match=words):
            load_callable(name)
    flat = load_callable("mine_for_landscape:flat")
    with pytest.raises(LabError, match=r"objective must return floats of shape \[3\].*shape \[\]"):
        view.show_landscape(flat, 3, tmp_path / "shown", console)
    with pytest.raises(LabError, match="group"):
        view.show_landscape(objective, 3, tmp_path / "shown", console, group=0)
