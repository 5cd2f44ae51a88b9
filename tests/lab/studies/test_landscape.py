"""Changes of value by mutation: closed forms, streaming, densities, claim 8, figures and what users may get wrong.

Statistical tests fix their seeds. Unless they say otherwise they allow five standard errors: a right implementation
fails once in 1.7 million comparisons, and there are a few hundred.
"""

import io
from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from gesmr import analysis
from gesmr.analysis import Bins, Curves, best_rates, bins_for, delta_samples, objective_curves
from gesmr.lab.errors import LabError
from gesmr.lab.loading import load_callable
from gesmr.lab.run import runner
from gesmr.lab.run.store import Store, StoredJob
from gesmr.lab.show.claims import Verdict
from gesmr.lab.show.views import Options
from gesmr.lab.studies import Selection, as_json
from gesmr.lab.studies.landscape import show as view
from gesmr.lab.studies.landscape.runs import DIMS, LandscapeStudy, Panel, from_arrays, to_arrays
from gesmr.lab.studies.mutations import show as mutations_view
from gesmr.lab.studies.mutations.runs import Mutations, MutationsStudy
from gesmr.problems import functions

SURE = 5.0
MIN_OF_TEN = -1.538753  # E of the least of ten standard normals (order statistics, as tabulated)
RATES = np.geomspace(1e-2, 10, 7)


def sphere(x):
    return jnp.sum(x * x, axis=-1)


def curves_of(name, dim, rates=RATES, samples=4000, key=1, **options):
    problem = functions.get(name, dim)
    return objective_curves(problem, problem.init, rates, samples=samples, key=key, **options)


@pytest.mark.parametrize("rate", [0.01, 1.0, 30.0])
def test_changes_of_sphere_have_the_mean_and_variance_of_the_closed_form(rate):
    x = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
    n, dim = 100_000, len(x)
    changes = np.asarray(delta_samples(functions.get("sphere", dim), x, rate, n, 3), np.float64)
    variance = 4 * rate**2 * (x @ x) + 2 * rate**4 * dim
    assert abs(changes.mean() - rate**2 * dim) < SURE * np.sqrt(variance / n)
    fourth = np.mean((changes - changes.mean()) ** 4)
    assert abs(changes.var() - variance) < SURE * np.sqrt((fourth - variance**2) / n)


def test_changes_of_many_points_belong_to_their_points():
    x = np.linspace(-5, 5, 2000, dtype=np.float32)[:, None]
    changes = np.asarray(delta_samples(sphere, x, 1e-3, 2000, 4))
    steps = changes / (2 * x[:, 0])  # to first order σε, except around 0
    far = np.abs(x[:, 0]) > 0.1
    assert abs(steps[far].std() / 1e-3 - 1) < SURE / np.sqrt(2 * far.sum())
    assert np.abs(np.asarray(delta_samples(sphere, np.float32([2.0]), 1e-3, 5, 4))).max() < 0.05


def test_mean_curve_of_sphere_is_the_closed_form_also_where_first_order_noise_would_hide_it():
    dim = 5
    curves = curves_of("sphere", dim)
    expected = RATES**2 * dim
    assert np.all(np.abs(curves.mean - expected) < SURE * curves.mean_error)
    assert np.all(curves.mean_error < 0.1 * expected)  # plain sampling would have 0.045 σ, nine times the mean at 0.01


def test_curves_of_linear_are_those_of_normals():
    dim = 30
    curves = curves_of("linear", dim, samples=20_000)
    size = RATES * np.sqrt(dim)
    assert np.all(np.abs(curves.lowest - MIN_OF_TEN * size) < SURE * curves.lowest_error)
    assert np.all(np.abs(curves.highest + MIN_OF_TEN * size) < SURE * curves.highest_error)
    assert np.all(np.abs(curves.mean) < 1e-4 * size)  # odd in ε: cancels up to rounding
    assert np.allclose(curves.lowest_error, 0.58681 * size / np.sqrt(2000), rtol=0.15)  # sd of that least: 0.58681


@pytest.mark.parametrize("group", [1, 2, 5])
def test_minimum_is_over_the_group(group):
    expected = {1: 0.0, 2: -1 / np.sqrt(np.pi), 5: -1.162964}[group]
    curves = curves_of("linear", 1, rates=[1.0], samples=20_000, group=group)
    assert abs(curves.lowest[0] - expected) < max(SURE * curves.lowest_error[0], 1e-6)


def test_standard_errors_are_those_of_repetitions():
    """Forty repetitions: their spread is known to 11 %, so 45 % is four standard errors (twice 3e-5 for 14 of them)."""
    repeated = [curves_of("ackley", 2, samples=400, key=seed) for seed in range(40)]
    for name in ("mean", "lowest"):
        spread = np.std([getattr(c, name) for c in repeated], axis=0, ddof=1)
        claimed = np.sqrt(np.mean([getattr(c, f"{name}_error") ** 2 for c in repeated], axis=0))
        assert np.allclose(spread, claimed, rtol=0.45)


def test_batches_change_no_draw():
    one = curves_of("rastrigin", 3, samples=400, bins=20)
    for batch in (20, 2600):
        other = curves_of("rastrigin", 3, samples=400, batch=batch, bins=one.density.bins)
        for name in ("mean", "lowest", "highest", "mean_error", "lowest_error"):
            assert np.allclose(getattr(one, name), getattr(other, name), rtol=2e-5, atol=2e-6), name
        assert np.abs(one.density.linear - other.density.linear).sum() <= 4  # rounding at an edge
        assert np.array_equal(one.counted, other.counted)
    assert not np.allclose(one.mean, curves_of("rastrigin", 3, samples=400, key=2).mean, rtol=1e-3)


def test_one_program_serves_all_batches_and_keys():
    traced = []

    def counting(x):
        traced.append(x.shape)
        return sphere(x)

    problem = functions.get("sphere", 3)
    for seed in (0, 1):
        objective_curves(counting, problem.init, RATES, samples=400, key=seed, batch=200)
    assert 1 < len(traced) <= 3  # up to two checks of shape, which run nothing, and one program for 28 batches


def test_density_counts_every_change_once():
    curves = curves_of("sphere", 2, samples=1000, bins=30)
    for counts in (curves.density.linear, curves.density.symlog):
        assert counts.shape == (len(RATES), 32)
        assert np.array_equal(counts.sum(axis=1), np.full(len(RATES), 1000))
    assert (curves.density.symlog[:, [0, -1]].sum() / 7000) < 0.01  # its bins reach about as far as a few points did


def test_density_is_that_of_normals():
    edges = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    curves = curves_of("linear", 1, rates=[1.0], samples=40_000, bins=Bins(1.0, edges, edges))
    share = curves.density.linear[0] / 40_000
    expected = np.array([0.02275, 0.135905, 0.341345, 0.341345, 0.135905, 0.02275])
    assert np.all(np.abs(share - expected) < SURE * np.sqrt(expected / 20_000))  # mirrored pairs: half as many


def test_bins_reach_what_they_are_made_for():
    changes = np.stack([np.linspace(-2e-3, 2e-3, 1001), np.linspace(-3.0, 400.0, 1001)])
    bins = bins_for(changes, 50)
    assert bins.near == 1e-3
    assert bins.symlog[0] == pytest.approx(-10)
    assert bins.symlog[-1] == pytest.approx(1000)
    assert len(bins.linear) == len(bins.symlog) == 51
    assert bins.linear[-1] <= -7 * bins.linear[0] * 1.001
    constant = bins_for(np.zeros((2, 5)), 4)
    assert constant.linear[0] < 0 < constant.linear[-1]


def test_what_is_not_finite_is_dropped_and_counted():
    def partly(x):
        return jnp.where(x[:, 0] > 1e3, jnp.nan, jnp.where(x[:, 0] < -1e3, jnp.inf, sphere(x)))

    problem = functions.get("sphere", 1)
    curves = objective_curves(partly, problem.init, [1.0, 1e3, 1e9], samples=400, key=0, bins=10)
    assert curves.dropped[0] == 0
    assert 80 < curves.dropped[1] < 180  # 32 % of 400 are beyond one σ: 127, and half as many independent ones
    assert curves.dropped[2] > 390
    assert np.array_equal(curves.counted + curves.dropped, [400, 400, 400])
    assert np.array_equal(curves.density.linear.sum(axis=1), curves.counted)
    assert curves.highest[1] <= 1e6
    assert np.isfinite(curves.mean[:2]).all()
    nowhere = objective_curves(lambda x: x[:, 0] * jnp.nan, problem.init, [1.0], samples=40, key=0)
    assert np.isnan(nowhere.mean[0])
    with pytest.raises(ValueError, match=r"curves must be finite.*NaN for all 1"):
        best_rates(nowhere)


def test_points_come_from_where_they_are_said_to():
    def elsewhere(key, n):
        return jnp.full((n, 2), 3.0)

    curves = objective_curves(sphere, elsewhere, [1e-2], samples=20_000, key=0)
    expected = MIN_OF_TEN * 1e-2 * np.sqrt(4 * 18) + 2e-4  # a first-order minimum, and σ²d to second order
    assert abs(curves.lowest[0] - expected) < SURE * curves.lowest_error[0]


def test_everything_is_computed_in_the_dtype_of_the_points(x64):
    problem = functions.get("sphere", 2)
    seen = []

    def noting(x):
        seen.append(x.dtype)
        return sphere(x)

    objective_curves(noting, lambda key, n: problem.init(key, n, jnp.float32), [1.0], samples=40, key=0)
    assert set(seen) == {jnp.float32.dtype}
    exact = objective_curves(sphere, problem.init, [1e-6], samples=400, key=0)
    assert abs(exact.mean[0] - 2e-12) < SURE * exact.mean_error[0] < 1e-12


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
    results = {(f, d): GOOD for f in view.WITH_MINIMUM for d in DIMS} | {where: panel}
    return view.decide({key: curves for key, curves in results.items() if key not in without})[0]


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
    curves = curves_of("ackley", 2, samples=40, bins=10)
    panel = Panel("ackley", 2, points=2, low=1e-2, high=10.0, num_rates=7)
    back = from_arrays(panel, to_arrays(curves))
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


def test_mutations_are_those_of_the_point_at_the_rates():
    spec = Mutations("sphere", 4000, point=(3.0, -1.0), rates=(0.01, 2.0))
    (group,) = MutationsStudy().jobs([spec], 2**30)
    arrays = group.run(lambda program: program.compile(), lambda work: None)
    assert arrays["mutants"].shape == (1, 2, 100, 2)
    assert arrays["changes"].shape == (1, 2, 4000)
    assert np.allclose(arrays["changes"][0, :, :100], sphere(arrays["mutants"][0]) - 10, rtol=1e-4, atol=1e-5)
    rates = np.array(spec.rates)
    error = np.sqrt((4 * rates**2 * 10 + 2 * rates**4 * 2) / 4000)
    assert np.all(np.abs(arrays["changes"][0].astype(float).mean(axis=1) - 2 * rates**2) < SURE * error)
    assert as_json(spec)["point"] == (3.0, -1.0)


def reached(*counts, samples=2000):
    """Made-up mutants of (1.5, 1.0), where Ackley is 6.22: of each rate so many below 2.5, others just above."""
    below = np.arange(samples) < np.array(counts)[:, None]
    spec = Mutations("ackley", samples, rates=tuple(10.0**i for i in range(len(counts))))
    return {"ackley": mutations_view.Result(spec, np.zeros((len(counts), 1, 2)), np.where(below, -3.73, -3.71))}


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (reached(0, 20, 0), Verdict.HOLDS),
        (reached(2, 100, 20, 10), Verdict.HOLDS),
        (reached(2, 100, 20, 11), Verdict.FAILS),  # less than ten times
        (reached(0, 10, 20), Verdict.FAILS),  # largest at the end
        (reached(20, 10, 0), Verdict.FAILS),
        (reached(0, 3, 0), Verdict.FAILS),  # may be chance
        (reached(0, 0, 0), Verdict.FAILS),
        ({}, Verdict.UNDECIDED),
    ],
)
def test_claim_17_needs_a_moderate_rate_far_above_both_ends(results, verdict):
    (decided,) = mutations_view.decide(results)
    assert (decided.number, decided.verdict, decided.short) == (17, verdict, "")


def test_shares_have_intervals_of_clopper_and_pearson():
    shares = mutations_view.reaching(reached(0, 20)["ackley"])
    assert shares[0] == pytest.approx((0.0, 0.0, 1 - 0.025 ** (1 / 2000)))
    assert shares[1] == pytest.approx((0.01, 0.00612, 0.01540), rel=1e-3)


def test_mutations_of_another_revision_do_not_count():
    spec = Mutations("sphere", 5, rates=(1.0,))
    arrays = {"mutants": np.zeros((1, 1, 5, 2)), "changes": np.zeros((1, 1, 5))}
    assert list(mutations_view.load([StoredJob((as_json(spec),), {}, arrays)])) == ["sphere"]
    with pytest.raises(LabError, match="older version"):
        mutations_view.load([StoredJob((as_json(replace(spec, revision=0)),), {}, arrays)])


PROBLEM = functions.get("sphere", 3)


def measure(objective=sphere, draw_point=PROBLEM.init, rates=(0.1, 1.0), samples=40, **options):
    return objective_curves(objective, draw_point, rates, samples=samples, key=0, **options)


CASES = {
    "a sum over everything": (lambda: measure(jnp.sum), ["objective", "[84]", "[]"]),
    "a value too many": (lambda: measure(lambda x: x), ["objective", "[84]", "[84, 3]"]),
    "integers": (lambda: measure(lambda x: jnp.argmax(x, -1)), ["objective", "floats", "int32"]),
    "a pair": (lambda: measure(lambda x: (sphere(x), 0)), ["objective", "tuple"]),
    "numpy": (lambda: measure(lambda x: np.linalg.norm(x, axis=-1)), ["objective", "JAX", "Tracer"]),
    "no function": (lambda: measure(3), ["objective", "3"]),
    "points of no dimension": (lambda: measure(draw_point=lambda key, n: jnp.zeros(n)), ["draw_point", "[1, d]"]),
    "points that are none": (lambda: measure(draw_point=None), ["draw_point", "None"]),
    "a group that does not divide": (lambda: measure(samples=50), ["samples", "20", "50"]),
    "too few samples": (lambda: measure(samples=20), ["samples", "40", "20"]),
    "a group of none": (lambda: measure(group=0), ["group", "1", "0"]),
    "a batch without a group": (lambda: measure(batch=19), ["batch", "20", "19"]),
    "rates that fall": (lambda: measure(rates=[1.0, 0.1]), ["rates", "increasing", "0.1"]),
    "a rate of zero": (lambda: measure(rates=[0.0, 1.0]), ["rates", "above 0", "0.0"]),
    "no bins": (lambda: measure(bins=0), ["bins", "1", "0"]),
    "edges that fall": (lambda: Bins(1.0, [1.0, 0.0], [0.0, 1.0]), ["linear", "increasing"]),
    "too many points": (lambda: delta_samples(sphere, np.zeros((3, 2)), 1.0, 4, 0), ["x", "n = 4", "(3, 2)"]),
    "a number for a point": (lambda: delta_samples(sphere, 1.0, 1.0, 4, 0), ["x", "()"]),
    "many rates": (lambda: delta_samples(sphere, np.zeros(2), [1.0, 2.0], 4, 0), ["rate", "(2,)"]),
    "a negative rate": (lambda: delta_samples(sphere, np.zeros(2), -1.0, 4, 0), ["rate", "above 0", "-1.0"]),
    "a wrong objective": (lambda: delta_samples(jnp.sum, np.zeros(2), 1.0, 4, 0), ["objective", "[5]"]),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named_before_any_work(name):
    call, words = CASES[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)


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


def test_an_objective_that_is_a_network():
    def loss(weights):
        hidden = jax.nn.relu(jnp.ones((weights.shape[0], 1, 2)) @ weights[:, :4].reshape(-1, 2, 2))
        return jnp.mean((hidden @ weights[:, 4:, None] - 1.0) ** 2, axis=(1, 2))

    curves = view.landscape_of(loss, 6, samples=400)
    _, lowest = best_rates(curves)
    assert 1e-3 < lowest < 10
    assert view.shape(curves).mean_grows


def test_names_are_public():
    assert {"Curves", "best_rates", "delta_samples", "objective_curves"} <= set(analysis.__all__)
