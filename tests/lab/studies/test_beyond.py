"""The study `beyond`: what is planned, moved and turned functions, runs against the library's and evosax's own."""

from collections import Counter
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from scipy.optimize import rosen

import gesmr
from gesmr import noise
from gesmr.lab.errors import LabError
from gesmr.lab.run import peers, runner
from gesmr.lab.run.compilation import Programs
from gesmr.lab.run.lanes import key_of
from gesmr.lab.run.store import Store
from gesmr.lab.show.view import Options
from gesmr.lab.studies import Selection, as_json, content_hash
from gesmr.lab.studies.beyond import methods, runs
from gesmr.lab.studies.beyond.budget import evaluations_of, kept_generations
from gesmr.lab.studies.beyond.methods import CHOSEN, CHOSEN_DEFAULT, GRID, OURS, SharedRates, Variant, ga_of
from gesmr.lab.studies.beyond.moved_task import FUNCTIONS, MovedTask, moved_lanes, rotation_of
from gesmr.lab.studies.beyond.networks import BeyondControl, BeyondImages
from gesmr.lab.studies.beyond.runs import BeyondRun, BeyondStudy, population_of
from gesmr.lab.studies.beyond.show import VIEW
from gesmr.lab.studies.images import runs as images
from gesmr.problems import functions
from helpers.studies import arrays_in

STUDY = BeyondStudy()


@pytest.fixture(scope="module")
def programs():
    with Programs(2) as compiled:
        yield compiled


# What is planned


def on_functions(*asked, **narrowed):
    return [spec for spec in STUDY.specs(Selection(*asked, **narrowed)) if isinstance(spec, BeyondRun)]


def test_the_choice_has_functions_and_seeds_of_its_own():
    choice, paper = on_functions("choice"), on_functions("paper")
    assert {spec.function for spec in choice} == {"ackley", "rosenbrock"}
    assert {spec.seed for spec in choice} == set(range(1000, 1020))
    assert len(choice) == (2 + len(GRID)) * 2 * 2 * 4 * 20
    assert not {spec.seed for spec in choice} & {spec.seed for spec in paper}


def test_the_full_profile():
    specs = on_functions("paper")
    assert len({content_hash(as_json(spec)) for spec in specs}) == len(specs)
    of_main = [spec for spec in specs if (spec.dim, spec.function) == (100, "griewank")]
    for method in ("GESMR", "GESMR-X", "default", *gesmr.PAPER_NAMES, "LAMR-100", "FMR-X", "15MR-X", "SAMR-X"):
        mine = [spec for spec in of_main if spec.method == method]
        assert len(mine) == 2 * 2 * 40, method
        assert {(spec.generations, spec.popsize) for spec in mine} == {(1000, 100)}
    for method in ("DE", "sep-CMA-ES", "SNES", "CR-FM-NES", "CMA-ES"):
        assert {spec.popsize for spec in of_main if spec.method == method} == {100, 0}
    assert {spec.dim for spec in specs if spec.method == "CMA-ES"} == {30, 100}
    seeds = Counter((spec.method, spec.popsize, spec.function, spec.dim, spec.rotated, spec.std) for spec in specs)
    fewer = {(method, dim) for (method, _, _, dim, *_), count in seeds.items() if count == 10}
    assert fewer == {("CMA-ES", 30), ("CMA-ES", 100), ("LAMR-100", 1000)}
    assert set(seeds.values()) == {10, 40}
    assert {spec.function for spec in specs} == set(FUNCTIONS)
    assert specs[0].method == "GESMR"


def test_selections_narrow_it_and_may_name_variants():
    name = "GESMR/share=0.3/K=8/x=0.25/rates=0.5/mates=2"
    specs = on_functions("quick", methods=("GESMR", name), functions=("ackley",), seeds=2)
    assert {(spec.method, spec.function, spec.seed) for spec in specs} == {
        (method, "ackley", seed) for method in ("GESMR", name) for seed in (0, 1)
    }
    with pytest.raises(ValueError, match=r"methods must be one of .*GESMR-X.*CMA-ES"):
        STUDY.specs(Selection("quick", methods=("GESMR/share=0.3",)))


def test_every_run_is_in_one_job():
    specs = STUDY.specs(Selection("paper", dims=(30, 1000), seeds=1))
    jobs = STUDY.jobs(specs, 2**32)
    assert sorted((s for job in jobs for s in job.specs), key=hash) == sorted(specs, key=hash)
    alike = [{replace(s, seed=0, std=0.0) if isinstance(s, BeyondRun) else replace(s, seed=0) for s in job.specs}
             for job in jobs]  # fmt: skip
    assert all(len(runs) == 1 for runs in alike)


def test_networks_are_part_of_the_full_profile_or_asked_for():
    full = [spec for spec in STUDY.specs(Selection("paper")) if not isinstance(spec, BeyondRun)]
    tasks = {spec.dataset if isinstance(spec, BeyondImages) else spec.task for spec in full}
    assert tasks == {"mnist", "fashion-mnist", "cartpole", "pendulum", "acrobot", "mountaincar"}
    columns = {(spec.method, spec.popsize) for spec in full}
    assert len(columns) == 8 + 2 * 4
    assert len(full) == len(columns) * (4 * 5 + 2 * 3)
    (one,) = STUDY.specs(Selection("quick", tasks=("mnist",), methods=("GESMR-X",), seeds=1, images=300))
    assert one == BeyondImages("mnist", "GESMR-X", 0, 300, "uniform", 200)
    assert not on_functions("paper", tasks=("cartpole",))


# Methods


@pytest.mark.parametrize("variant", [*GRID[:3], *GRID[-2:], CHOSEN])
def test_the_name_of_a_variant_says_all_of_it(variant):
    assert Variant.named(str(variant)) == variant
    assert Variant.named(f"{variant}/other") is None
    assert ga_of(str(variant), 100) == variant.ga(100)


def test_what_was_chosen():
    assert ga_of("GESMR-X", 100) == CHOSEN.ga(100)
    default, chosen = ga_of("default-X", 100), CHOSEN_DEFAULT.ga(100)
    assert default == replace(chosen, controller=replace(chosen.controller, groups=None))
    assert len(default.controller.init(noise.key(0), 100, 3)) == CHOSEN_DEFAULT.groups


@pytest.mark.parametrize("method", OURS)
def test_every_method_is_a_ga(method):
    assert isinstance(ga_of(method, 100), gesmr.GA)


def test_methods_that_recombine():
    assert ga_of("SAMR-X", 100).controller == gesmr.SAMR(recombine=1.0)
    assert ga_of("15MR-X/0.4", 100).controller == gesmr.OneFifth(recombine=0.4)
    assert ga_of("default", 100).truncation == 0.2
    with pytest.raises(ValueError, match="UCB-X"):
        ga_of("UCB-X", 100)


def test_shared_rates_are_one_class():
    """Every rate may then come from every other, across what copies and what recombines."""
    own, shared = gesmr.GESMR(10, recombine=0.5), SharedRates(10, recombine=0.5)
    assert own.classes(10) == [(0, 5), (5, 10)]
    assert shared.classes(10) == [(0, 10)]
    assert shared.recombining(100) == own.recombining(100) == 50
    np.testing.assert_array_equal(shared.init(noise.key(0), 100, 3), gesmr.GESMR(10).init(noise.key(0), 100, 3))


# Functions


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("rotated", [False, True])
def test_the_optimum_is_a_draw_however_the_function_is_turned(function, rotated):
    lanes = moved_lanes([function] * 2, 7, [10.0, 10.0], [3, 4], rotated)
    objective = MovedTask(7, rotated).objective
    for i in range(2):
        own = jax.tree.map(lambda leaf, i=i: leaf[i], lanes.own)
        value = objective(lanes.shared, own)
        assert float(value(own.optimum[None])[0]) == 0.0
        around = own.optimum + jnp.asarray(np.random.default_rng(i).normal(scale=0.05, size=(50, 7)), jnp.float32)
        assert (value(around) > 0).all()


def test_values_by_hand():
    lanes = moved_lanes(["rosenbrock"], 4, [1.0], [5], True)
    own = jax.tree.map(lambda leaf: leaf[0], lanes.own)
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    turned = (x - np.asarray(own.optimum)) @ rotation_of(4, 5).T + 1
    found = MovedTask(4, True).objective(lanes.shared, own)(jnp.asarray(x))
    np.testing.assert_allclose(found, [rosen(row.astype(np.float64)) for row in turned], rtol=1e-4)


@pytest.mark.parametrize("dim", [2, 30, 100])
def test_rotations_are_orthogonal_and_a_seeds_own(dim):
    rotation = rotation_of(dim, 7).astype(np.float64)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(dim), atol=1e-6)
    assert np.abs(rotation - rotation_of(dim, 8)).max() > 0.1
    np.testing.assert_array_equal(rotation, rotation_of(dim, 7))


def test_rotations_have_no_preferred_direction():
    """The first column of a uniform rotation is uniform on the sphere: its mean over seeds is 0, within 5 s.e."""
    columns = np.array([rotation_of(3, seed)[:, 0] for seed in range(300)])
    assert np.abs(columns.mean(axis=0)).max() < 5 * np.sqrt(1 / 3 / 300)


# Runs


def run_of(method, rotated=False, popsize=100, dim=5, generations=120, function="rosenbrock", seed=3):
    return BeyondRun(function, dim, 10.0, rotated, method, seed, generations, popsize)


def compute(programs, *specs):
    worked = []
    (job,) = STUDY.jobs(specs, 2**32)
    arrays = job.run(programs, worked.append)
    assert sum(worked) == pytest.approx(job.work)
    return arrays


def alone(spec):
    """Its objective and key, without other lanes."""
    lanes = moved_lanes([spec.function], spec.dim, [spec.std], [spec.seed], spec.rotated)
    own = jax.tree.map(lambda leaf: leaf[0], lanes.own)
    return MovedTask(spec.dim, spec.rotated).objective(lanes.shared, own), noise.Key(*(half[0] for half in lanes.key))


@pytest.mark.parametrize(("method", "rotated"), [("GESMR-X", True), ("default", False), (str(GRID[-2]), False)])
def test_a_run_is_the_librarys(method, rotated, programs):
    specs = [run_of(method, rotated, function="sphere", generations=15, seed=seed) for seed in (3, 4)]
    arrays = compute(programs, *specs)
    for i, spec in enumerate(specs):
        objective, key = alone(spec)
        population = functions.get("sphere", spec.dim, spec.std).init(key, 101)
        ga = ga_of(method, 100)
        _, history = gesmr.evolve(ga, objective, ga.init(key_of(method, key), population, objective(population)), 15)
        kept = kept_generations(15) - 1
        np.testing.assert_allclose(arrays["best"][i], history.elite[kept], rtol=1e-3)
        np.testing.assert_allclose(arrays["log_rate"][i], history.log_rate[kept], atol=1e-3)
        assert arrays["final"][i] == pytest.approx(float(history.elite[-1]), rel=1e-3)


def test_oracles_look_ahead_on_turned_functions(programs):
    looking = compute(programs, run_of("LAMR-100", rotated=True, function="ackley", generations=100))
    assert looking["final"][0] < compute(programs, run_of("FMR", rotated=True, function="ackley"))["final"][0]


@pytest.mark.parametrize("method", ["GESMR-X", "SNES"])
def test_functions_may_share_a_job(method, programs, monkeypatch):
    """As they do on a GPU, however they are turned: each is what it is by itself."""
    rotated = method == "SNES"
    specs = [run_of(method, rotated, generations=8, function=function, seed=seed)
             for function in ("rosenbrock", "cigar") for seed in (3, 4)]  # fmt: skip
    apart = [compute(programs, *specs[:2]), compute(programs, *specs[2:])]
    monkeypatch.setattr(runs.jax, "default_backend", lambda: "gpu")
    (job,) = STUDY.jobs(specs, 2**32)
    assert job.specs == tuple(specs)
    assert "2 functions d=5" in job.label
    together = job.run(programs, lambda work: None)
    for name, array in together.items():
        np.testing.assert_allclose(array, np.concatenate([each[name] for each in apart]), rtol=1e-3)


@pytest.mark.parametrize("name", peers.PEERS)
def test_a_peer_is_evosaxs_own_loop(name, programs):
    """A few generations, before what is rounded otherwise has grown."""
    spec = run_of(name, rotated=True, function="ackley", generations=8)
    arrays = compute(programs, spec)
    (objective, key), size, theirs = alone(spec), population_of(spec), peers.extra()
    kind = {"DE": "DifferentialEvolution", "sep-CMA-ES": "Sep_CMA_ES", "CR-FM-NES": "CR_FM_NES"}.get(name, name)
    algorithm = getattr(theirs, kind)(size, jnp.zeros(spec.dim))
    start = jax.random.wrap_key_data(jnp.stack(key_of(name, key)))
    params, first = algorithm.default_params, jax.random.fold_in(start, 0)
    budget, best = evaluations_of(8), []
    if name == "DE":
        population = functions.get("sphere", spec.dim, spec.std).init(key, size)
        state = algorithm.init(first, population, objective(population), params)
        budget -= size
    else:
        state = algorithm.init(first, jnp.zeros(spec.dim), params.replace(std_init=spec.std))
    for i in range(budget // size):
        ask, tell = jax.random.split(jax.random.fold_in(start, i + 1))
        population, state = algorithm.ask(ask, state, params)
        state, _ = algorithm.tell(tell, population, objective(population), state, params)
        best.append(float(state.best_fitness))
    assert arrays["final"][0] == pytest.approx(best[-1], rel=1e-3)
    reached = (evaluations_of(kept_generations(8)) - size * (name == "DE")) // size
    for found, place in zip(arrays["best"][0], reached, strict=True):
        if place > 0:
            assert found == pytest.approx(best[place - 1], rel=1e-3)


def test_nothing_is_known_before_a_large_first_population(programs):
    arrays = compute(programs, run_of("DE", dim=40, popsize=0, generations=20))
    begun = evaluations_of(kept_generations(20)) >= 400
    np.testing.assert_array_equal(np.isfinite(arrays["best"][0]), begun)
    assert 0 < begun.sum() < len(begun)


def test_cmaes_has_double_precision_and_goes_on_when_it_has_converged(programs):
    """2,000 generations of six: it stops by itself after a tenth of them."""
    arrays = compute(programs, run_of("CMA-ES", rotated=True, popsize=0, dim=2, function="sphere"))
    assert arrays["final"][0] < 1e-12
    assert (np.diff(arrays["best"][0]) <= 0).all()


def test_populations_of_other_algorithms():
    assert population_of(run_of("SNES", popsize=0, dim=100)) == 17
    assert population_of(run_of("CR-FM-NES", popsize=0, dim=100)) == 18
    assert population_of(run_of("DE", popsize=0, dim=30)) == 300
    assert population_of(run_of("DE", popsize=0, dim=1000)) == 400
    assert population_of(run_of("CMA-ES", popsize=100, dim=100)) == 100


def test_without_evosax_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "evosax.algorithms", None)
    STUDY.jobs([run_of("GESMR")], 2**30)
    with pytest.raises(ModuleNotFoundError, match=r"need the package evosax: pip install 'gesmr\[peers\]'"):
        STUDY.jobs([run_of("GESMR"), run_of("SNES")], 2**30)


# Networks


@pytest.mark.parametrize(("method", "popsize"), [("GESMR-X", 100), ("SNES", 0)])
def test_policies_evolve(method, popsize, programs):
    spec = BeyondControl("cartpole", method, 0, 6, popsize=popsize)
    arrays = compute(programs, spec)
    best = arrays["best"][0]
    assert (np.diff(best) >= 0).all()
    assert 0 < best[0] <= best[-1] == arrays["final"][0] <= 500
    assert 0 < arrays["held_out"][0] <= 500


@pytest.fixture
def forget_what_was_loaded():
    images._load.cache_clear()
    yield
    images._load.cache_clear()


@pytest.mark.usefixtures("sample", "forget_what_was_loaded")
@pytest.mark.parametrize("method", ["GESMR-X", "DE"])
def test_networks_learn_images(method, programs):
    arrays = compute(programs, BeyondImages("mnist", method, 0, 20, "uniform", 6))
    assert (np.diff(arrays["best"][0]) <= 0).all()
    assert arrays["final"][0] == arrays["best"][0, -1]
    assert 0 <= arrays["test_accuracy"][0] <= 1


# Stored and shown


@pytest.fixture(scope="module")
def small():
    return [replace(run_of(method, rotated, seed=seed), generations=20)
            for method in ("GESMR", "GESMR-X", "SNES") for rotated in (False, True) for seed in (0, 1)]  # fmt: skip


@pytest.mark.slow
def test_what_is_stored_does_not_depend_on_when(small, tmp_path):
    quiet = Console(quiet=True)
    whole, pieces = (Store(tmp_path / name, create=True) for name in ("whole", "pieces"))
    assert runner.run(STUDY, small, whole, console=quiet) == len(small)
    for part in (small[:4], small[:8], small):
        runner.run(STUDY, part, pieces, console=quiet)
    assert runner.run(STUDY, small, pieces, console=quiet) == 0
    assert arrays_in(tmp_path / "whole") == arrays_in(tmp_path / "pieces") != {}
    results = VIEW.results(whole, Options())
    assert [(row.rotated, list(columns)) for row, columns in results.rows.items()] == [
        (rotated, ["GESMR-X", "GESMR", "SNES"]) for rotated in (False, True)
    ]
    assert VIEW.summary(results) == "2 rows (0 of the 50 main ones), 3 methods, 2 seeds"


def test_an_empty_store_says_what_to_run(tmp_path):
    with pytest.raises(LabError, match="gesmr study run beyond"):
        VIEW.results(Store(tmp_path / "beyond", create=True), Options())


def test_the_table_of_methods_has_no_name_twice():
    assert len(set(methods.OURS)) == len(methods.OURS)
