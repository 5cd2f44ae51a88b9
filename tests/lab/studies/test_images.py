"""The study of classifying images, on the sample in tests/data: what is run, claim 11, and what it shows."""

import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import gesmr
from gesmr import noise
from gesmr.lab import cli
from gesmr.lab.errors import LabError
from gesmr.lab.run.compilation import Programs
from gesmr.lab.run.lanes import METHODS, ORACLES, key_of
from gesmr.lab.run.store import Store, StoredJob
from gesmr.lab.show.claims import Verdict
from gesmr.lab.show.view import Options
from gesmr.lab.studies import Selection, as_json, content_hash
from gesmr.lab.studies.functions.runs import kept_generations
from gesmr.lab.studies.images import runs as study_module
from gesmr.lab.studies.images.figures import make_figures
from gesmr.lab.studies.images.results import RANKED, Row, Runs, load
from gesmr.lab.studies.images.runs import SETS, ImagesJob, ImagesRun, ImagesStudy
from gesmr.lab.studies.images.show import VIEW, make_tables, summary
from gesmr.problems import datasets, images

STUDY = ImagesStudy()


@pytest.fixture(autouse=True)
def forget_what_was_loaded():
    study_module._load.cache_clear()
    yield
    study_module._load.cache_clear()


def test_the_profiles():
    quick, paper = (STUDY.specs(Selection(profile)) for profile in ("quick", "paper"))
    assert {(s.images, s.init, s.generations) for s in quick} == {(1000, "uniform", 60)}
    assert {s.method for s in quick} == {"FMR", "15MR", "SAMR", "GESMR"}
    assert {s.dataset for s in quick} == {s.dataset for s in paper} == set(SETS) == {"mnist", "fashion-mnist"}
    assert {(s.seed, s.generations) for s in paper} == {(seed, 1000) for seed in range(5)}
    assert {s.pixels for s in quick} == {"unit"}
    in_order = list(dict.fromkeys((s.images, s.init, s.pixels, s.method in ORACLES) for s in paper))
    assert in_order == [
        (5000, "normal", "standardised", False),  # the authors'
        (5000, "uniform", "unit", False),
        (1000, "uniform", "unit", False),
        (1000, "he", "unit", False),
        (1000, "normal", "unit", False),
        (1000, "uniform", "unit", True),
    ]
    for what in in_order:
        sets = SETS[:1] if what[:2] in ((1000, "he"), (1000, "normal")) else SETS
        found = [
            (s.dataset, s.method, s.seed) for s in paper if (s.images, s.init, s.pixels, s.method in ORACLES) == what
        ]
        methods = [m for m in METHODS if (m in ORACLES) == what[3]]
        assert found == [(d, m, seed) for d in sets for m in methods for seed in range(5)]
    assert len({content_hash(as_json(s)) for s in paper}) == len(paper) == 380


def test_selections_narrow_it():
    specs = STUDY.specs(
        Selection("paper", seeds=2, methods=("GESMR", "OFMR"), tasks=("mnist",), images=60_000, init="he")
    )
    assert specs == [ImagesRun("mnist", method, seed, 60_000, "he", 1000) for method in ("GESMR", "OFMR")
                     for seed in (0, 1)]  # fmt: skip
    both = STUDY.specs(Selection("paper", seeds=1, methods=("GESMR", "OFMR"), tasks=("mnist",), images=70))
    assert [(s.method, s.images, s.init, s.pixels) for s in both] == [
        ("GESMR", 70, "normal", "standardised"), ("GESMR", 70, "uniform", "unit"), ("OFMR", 70, "uniform", "unit"),
    ]  # fmt: skip
    for wrong, says in (
        ({"images": 60_001}, "images must be an integer from 1 to 60000, got 60001"),
        ({"init": "zeros"}, "init must be one of 'uniform', 'he', 'normal', got 'zeros'"),
        ({"tasks": ("cifar",)}, "tasks must be one of 'mnist', 'fashion-mnist', got 'cifar'"),
        ({"shifted": True}, "shifted means nothing to the study images"),
    ):
        with pytest.raises(ValueError, match=says):
            STUDY.specs(Selection(**wrong))


def test_groups_hold_every_run_once():
    specs = STUDY.specs(Selection("paper"))
    groups = STUDY.jobs(specs, 2**34)
    assert [s for g in groups for s in g.specs] == specs


@pytest.fixture(scope="module")
def programs():
    with Programs(2) as compiled:
        yield compiled


@pytest.mark.slow
def test_a_lane_is_a_run_of_the_library(sample, programs, monkeypatch):
    """With its own images, and scored on the test set after every step and the last generation."""
    monkeypatch.setattr(study_module, "STEP", 4)
    monkeypatch.setattr(study_module, "_STEP_ON_A_CPU", 2)
    group = ImagesJob(tuple(ImagesRun("mnist", "GESMR", seed, 30, "he", 6, "standardised") for seed in (0, 2)))
    worked = []
    arrays = group.run(programs, worked.append)
    assert sum(worked) == pytest.approx(group.work) == 100 * 2140 * 6 * 2 * 30
    assert [(s.seed, s.pixels) for s in group.specs] == [(0, "standardised"), (2, "standardised")]
    key = noise.fold_in(noise.key(2022), 2)
    problem = images.get("mnist", images=30, key=key, initialisation="he", pixels="standardised")

    @jax.jit
    def alone(problem, test):
        ga = gesmr.GA(gesmr.controller("GESMR"), 100)
        population = problem.init(key, 101)
        state = ga.init(key_of("GESMR", key), population, problem(population))
        _, history = gesmr.evolve(ga, problem, state, 6, record=lambda state: state.best)
        return history, test.scores(history.extra[jnp.array([3, 5])])

    history, test = alone(problem, images.get("mnist", "test", pixels="standardised"))
    np.testing.assert_allclose(arrays["elite"][1], history.elite, rtol=1e-4)
    np.testing.assert_allclose(arrays["log_rate"][1], history.log_rate, rtol=1e-4, atol=1e-5)
    assert arrays["final"][1] == arrays["elite"][1][-1]
    np.testing.assert_allclose(arrays["test_loss"][1], test.loss, rtol=1e-4)
    np.testing.assert_allclose(arrays["test_accuracy"][1], test.accuracy, atol=0.011)
    assert arrays["test_loss"].shape == arrays["test_accuracy"].shape == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["OFMR", "LAMR-100", "15MR", "SAMR"])
def test_every_kind_of_method_runs(sample, programs, method):
    job = ImagesJob((ImagesRun("fashion-mnist", method, 0, 10, "uniform", 3),))
    arrays = job.run(programs, lambda work: None)
    assert np.isfinite(arrays["final"]).all()
    assert np.diff(arrays["elite"]).max() <= 0


# What it shows


def made_up_runs(loss, seeds=5, generations=1000, rate=-4.0):
    """Runs of a method that end at the given loss."""
    points, steps = len(kept_generations(generations)), -(-generations // 100)
    spread = 0.01 * np.arange(seeds)[:, None]
    return Runs(
        loss + spread[:, 0],
        np.linspace(2.3, loss, points) + spread,
        np.linspace(-3.0, rate, points) + spread,
        np.linspace(2.3, loss + 0.1, steps) + spread,
        np.linspace(0.1, 0.9 - 0.2 * loss, steps) - spread,
    )


def made_up(order, images=5000, init="uniform", generations=1000, seeds=5, sets=SETS, pixels="unit", step=0.1):
    """Results in which the methods end in the given order."""
    runs = {method: made_up_runs(0.5 + step * place, seeds, generations) for place, method in enumerate(order)}
    return {Row(name, images, init, generations, pixels): {m: runs[m] for m in METHODS if m in runs} for name in sets}


def authors(order, **options):
    """As the authors ran it."""
    return made_up(order, init="normal", pixels="standardised", **options)


def order(*first):
    return [*first, *(method for method in RANKED if method not in first)]


PAPERS = order("15MR", "GESMR")  # what the paper says


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (made_up(PAPERS), Verdict.HOLDS),
        (made_up(order("GESMR")), Verdict.FAILS),  # 15MR is not ahead of it
        (made_up(order("GESMR", "15MR", "SAMR")), Verdict.FAILS),
        (made_up(order("SAMR", "GESMR")), Verdict.FAILS),
        (made_up(order("15MR", "FMR", "GESMR")), Verdict.FAILS),
        (made_up(PAPERS, step=0.0), Verdict.FAILS),  # equal is not ahead
        (made_up(PAPERS, sets=SETS[:1]) | made_up(order("GESMR"), sets=SETS[1:]), Verdict.FAILS),
        (made_up(order("SAMR")) | made_up(PAPERS, images=60_000), Verdict.HOLDS),
        (made_up(order("SAMR")) | made_up(PAPERS[:-1], images=60_000), Verdict.FAILS),
        (made_up(PAPERS, sets=SETS[:1]), Verdict.UNDECIDED),
        (made_up(PAPERS, seeds=4), Verdict.UNDECIDED),
        (made_up(PAPERS, generations=200), Verdict.UNDECIDED),
        (made_up(PAPERS, init="he"), Verdict.UNDECIDED),
        (made_up(PAPERS, pixels="standardised"), Verdict.UNDECIDED),
        (made_up(PAPERS[:-1]), Verdict.UNDECIDED),
        (authors(PAPERS), Verdict.HOLDS),
        (authors(PAPERS) | made_up(order("GESMR")), Verdict.HOLDS),  # the authors' setting decides
        (authors(order("GESMR")) | made_up(PAPERS), Verdict.FAILS),
        (authors(order("GESMR"), seeds=4) | made_up(PAPERS), Verdict.HOLDS),  # unless it lacks runs
        (authors(order("GESMR"), sets=SETS[:1]) | made_up(PAPERS), Verdict.HOLDS),
    ],
)
def test_claim_11_by_its_rule(results, verdict):
    (claim,) = VIEW.decide(results)
    assert (claim.number, claim.verdict, claim.short) == (11, verdict, "")


def test_claim_11_says_what_was_found_in_both_settings():
    (claim,) = VIEW.decide(made_up(order("GESMR"), step=0.005) | authors(PAPERS))
    theirs, ours = claim.found.split(". In our setting, it ")
    assert theirs.startswith(
        "In the authors' setting, it holds: MNIST, 5,000 images: (a) yes, (b) yes; 15MR 0.520, GESMR 0.620, FMR 0.720"
    )
    assert "GESMR − FMR -0.100 (-0.123 to -0.077), GESMR − 15MR +0.100 (+0.077 to +0.123)" in theirs
    assert theirs.count("no significant difference from none") == 2
    assert ours.startswith("does not hold: MNIST, 5,000 images: (a) yes, (b) no; GESMR 0.520, FMR 0.525")
    alike = ours.split("; ")[3]
    assert "FMR" in alike  # half of a deviation away
    assert "GESMR-FIX" not in alike  # four


def test_claim_11_on_fewer_images_says_so():
    (claim,) = VIEW.decide(made_up(PAPERS, images=1000))
    assert (claim.verdict, claim.short) == (Verdict.HOLDS, "1,000 of 5,000 images")
    assert claim.found.endswith("In the authors' setting, not all runs are there")
    assert VIEW.decide(authors(PAPERS) | made_up(PAPERS, images=1000))[0].short == ""


def test_the_table_of_places():
    results = made_up([*order("15MR", "GESMR"), "OFMR"], images=1000)
    (table,) = make_tables(results)
    lines = {row[5]: row for row in table.rows if row[0] == "MNIST"}
    assert [lines[m][7] for m in ("15MR", "GESMR", "FMR")] == [1, 2, 3]
    assert lines["OFMR†"][7] is None
    assert lines["GESMR"][8] == pytest.approx(0.62)
    assert lines["GESMR"][-1] is None
    assert lines["15MR"][-1] < 1e-4
    assert lines["GESMR"][11] == pytest.approx(100 * (0.9 - 0.12 - 0.02))


def test_the_authors_setting_is_shown_beside_ours():
    specs = [ImagesRun("mnist", "GESMR", 0, 5000, *how) for how in (("uniform", 200), ("normal", 200, "standardised"))]
    results = load([stored(specs)])
    assert [row.label for row in results] == ["MNIST, 5,000 images, in the authors' setting", "MNIST, 5,000 images"]
    (table,) = make_tables(results)  # these starts are not compared: pixels differ too
    assert [row[2:4] for row in table.rows] == [("standardised", "normal"), ("unit", "uniform")]
    assert set(make_figures(results)) == {"images_curves_5000", "images_curves_authors"}


def test_what_the_initialisation_changes():
    results = made_up(order("15MR", "GESMR")) | made_up(order("15MR", "GESMR"), images=1000)
    results |= made_up(order("15MR", "GESMR")[::-1], images=1000, init="he", sets=("mnist",))
    table = make_tables(results)[1]
    assert [row[:3] for row in table.rows] == [("MNIST", 1000, "uniform"), ("MNIST", 1000, "he")]
    places = dict(zip(table.columns, table.rows[1], strict=True))
    assert (places["15MR"], places["GESMR"], places["τ with uniform"]) == (9, 8, -1.0)
    assert set(make_figures(results)) == {"images_curves_5000", "images_curves_1000", "images_starts"}


def stored(specs, value=lambda spec: 1.0):
    runs = [made_up_runs(value(spec), 1, spec.generations) for spec in specs]
    arrays = {name: np.concatenate([getattr(run, name) for run in runs]) for name in Runs.__dataclass_fields__}
    return StoredJob(tuple(as_json(spec) for spec in specs), {}, arrays)


def test_methods_are_compared_on_shared_seeds():
    specs = [ImagesRun("mnist", m, s, 1000, "uniform", 200) for m in ("GESMR", "FMR") for s in (0, 1, 2)][:-1]
    results = load([stored(specs[:2], lambda spec: 1.0 + spec.seed), stored(specs[2:], lambda spec: 1.0 + spec.seed)])
    (runs,) = results.values()
    np.testing.assert_allclose(runs["GESMR"].final, [1.0, 2.0])
    assert summary(results) == "MNIST; 1,000 training images; 2 methods, 2 seeds, 200 generations"
    apart = [specs[0], ImagesRun("mnist", "FMR", 4, 1000, "uniform", 200)]
    with pytest.raises(LabError, match="no set has runs of the same seeds for every method"):
        load([stored(apart)])


def test_the_view_shows_a_store(tmp_path):
    specs = STUDY.specs(Selection("quick"))
    store = Store(tmp_path / "images", create=True)
    store.write(specs, stored(specs, lambda spec: len(spec.method) / 5).arrays, {})
    said = io.StringIO()
    console = Console(file=said, width=150)
    VIEW.tables(store, Options(), tmp_path / "out", console)
    VIEW.figures(store, Options(), tmp_path / "out", console)
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == {"images_curves_1000.png"}
    assert "Fashion-MNIST" in said.getvalue()
    chapter = VIEW.chapter(tmp_path / "images")
    assert chapter.outcomes[0].claim.verdict == Verdict.UNDECIDED
    assert chapter.runs == 8


def test_the_command_says_where_to_put_images(monkeypatch, tmp_path):
    monkeypatch.setenv("GESMR_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("gesmr.problems._download.WAITS", ())
    for name, source in datasets.SOURCES.items():
        closed = datasets.Source(name, ("https://127.0.0.1:9/",), source.files)
        monkeypatch.setitem(datasets.SOURCES, name, closed)
    result = CliRunner().invoke(cli.app, ["study", "run", "images", "--out", str(tmp_path / "out"), "--seeds", "1"])
    assert result.exit_code == 2
    assert "mnist is not on this machine and cannot be downloaded" in result.stderr
    assert "put train-images-idx3-ubyte.gz" in result.stderr
