"""The study of K: a controller whose K is data is GESMR, runs together are runs alone, and the claims' rules."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import gesmr
from gesmr import noise
from gesmr.controllers.group_elite import group_of_child
from gesmr.lab.errors import LabError
from gesmr.lab.run.compilation import Programs
from gesmr.lab.run.masked import MaskedGESMR
from gesmr.lab.run.store import Store, StoredJob
from gesmr.lab.run.sweep import SweepJob
from gesmr.lab.show.claims import Verdict
from gesmr.lab.show.resolution import log10
from gesmr.lab.show.view import Options
from gesmr.lab.studies import Selection, as_json, content_hash
from gesmr.lab.studies.groups.results import Curve, Row, fit, growth, load, losses
from gesmr.lab.studies.groups.runs import AUTHORS_SIZES, FUNCTIONS, SIZES, GroupsRun, GroupsStudy, divisors
from gesmr.lab.studies.groups.show import VIEW, make_tables, recommended
from gesmr.problems import functions
from helpers.references import mann_whitney

STUDY = GroupsStudy()


@pytest.fixture(scope="module")
def programs():
    with Programs(2) as compiled:
        yield compiled


# The controller


@pytest.mark.parametrize("n", [1, 12, 17, 60])
def test_children_belong_to_the_groups_they_have_in_gesmr(n):
    for groups in range(1, n + 1):
        np.testing.assert_array_equal(MaskedGESMR(groups).group_of_child(n), group_of_child(n, groups))


@pytest.mark.parametrize("groups", [1, 2, 5, 12, 60])
def test_the_rates_start_where_those_of_gesmr_do(groups):
    state = MaskedGESMR(groups).init(noise.key(0), 60, 3)
    expected = gesmr.GESMR(groups).init(noise.key(0), 60, 3)
    np.testing.assert_allclose(state[:groups], expected, atol=2e-6)
    np.testing.assert_allclose(state[0], 0.0 if groups == 1 else np.log(1e-3), atol=1e-6)


def feedback(n, kind):
    values = np.random.default_rng(n)
    child, parent = (values.normal(size=n).astype(np.float32) for _ in range(2))
    if kind == "ties":
        child, parent = np.round(child), np.zeros(n, np.float32)
    if kind == "not finite":
        child[::3] = np.inf
        parent[: n // 2] = np.inf
    parents = jnp.asarray(values.integers(0, n + 1, n), jnp.int32)
    return gesmr.Feedback(jnp.int32(0), parents, jnp.ones(n), jnp.asarray(parent), jnp.asarray(child))


@pytest.mark.parametrize(("n", "groups"), [(12, 1), (12, 4), (12, 12), (60, 15), (60, 7)])
def test_a_generation_changes_the_rates_exactly_as_in_gesmr(n, groups):
    """The same survivors, the same ties, the same mutations, whatever the unused slots hold.

    To rounding, which compilers may do otherwise in the two programs; another draw would differ by far more.
    """
    rates = jnp.asarray(np.random.default_rng(groups).normal(size=groups), jnp.float32)
    filled = jnp.concatenate([rates, jnp.full(n - groups, 1e9, jnp.float32)])
    keys = noise.fold_in(noise.key(1), jnp.arange(20))

    @jax.jit
    def both(told):
        def one(key):
            return gesmr.GESMR(groups).update(key, rates, told), MaskedGESMR(groups).update(key, filled, told)

        return jax.vmap(one)(keys)

    for kind in ("any", "ties", "not finite"):
        expected, found = both(feedback(n, kind))
        np.testing.assert_allclose(found[:, :groups], expected, rtol=1e-5, atol=1e-6, err_msg=kind)


def test_the_best_rate_survives_and_the_others_come_from_the_best_half():
    n, groups = 12, 4
    rates = jnp.asarray([0.0, 10.0, 20.0, 30.0, *[1e9] * 8])
    child = jnp.asarray([5.0, 5.0, 1.0, 4.0, -3.0, 9.0, 4.0, 4.0, 4.0, 9.0, 9.0, -2.0])  # minima 1, −3, 4, −2
    told = gesmr.Feedback(jnp.int32(0), jnp.zeros(n, jnp.int32), jnp.ones(n), jnp.zeros(n), child)
    update = jax.jit(jax.vmap(lambda key: MaskedGESMR(groups).update(key, rates, told)[:groups]))
    drawn = np.asarray(update(noise.fold_in(noise.key(0), jnp.arange(64))))
    assert (drawn[:, 0] == 10.0).all()
    parents = np.round(drawn[:, 1:] / 10) * 10
    assert set(np.unique(parents)) == {10.0, 30.0}
    assert 0 < np.abs(drawn[:, 1:] - parents).max() <= np.log(2) + 1e-4


def test_a_run_is_gesmrs_for_every_k_at_once():
    problem = functions.get("ackley", 5)
    population = problem.init(3, 13)

    def run(groups):
        ga = gesmr.GA(MaskedGESMR(groups), 12)
        return gesmr.evolve(ga, problem, ga.init(3, population, problem(population)), 80)[1]

    together = jax.vmap(run)(jnp.asarray(divisors(12)))
    for groups in (1, 3, 12):
        i = divisors(12).index(groups)
        ga = gesmr.GA(gesmr.GESMR(groups), 12)
        _, alone = gesmr.evolve(ga, problem, ga.init(3, population, problem(population)), 80)
        np.testing.assert_allclose(together.elite[i], alone.elite, rtol=1e-3)
        np.testing.assert_allclose(together.log_rate[i], alone.log_rate, atol=1e-3)


@pytest.mark.slow
def test_final_values_are_distributed_as_gesmrs():
    """Independent seeds on both sides; were the two equal, one in a thousand such tests would fail."""
    problem = functions.get("griewank", 6, 10.0)

    def finals(controller, first_seed):
        ga = gesmr.GA(controller, 12)

        def final(seed):
            key = noise.fold_in(noise.key(5), seed)
            population = problem.init(key, 13)
            return gesmr.evolve(ga, problem, ga.init(key, population, problem(population)), 60)[0].best_fitness

        return np.asarray(jax.vmap(final)(first_seed + jnp.arange(200)))

    masked, plain, other = finals(MaskedGESMR(4), 0), finals(gesmr.GESMR(4), 1000), finals(gesmr.GESMR(1), 1000)
    assert mann_whitney(masked, plain) > 1e-3
    assert mann_whitney(masked, other) < 1e-3  # the test could have told


def test_bad_numbers_of_groups():
    with pytest.raises(ValueError, match="groups must be an integer of at least 1, got 0"):
        MaskedGESMR(0)
    with pytest.raises(ValueError, match=r"groups must be at most num_children \(12\), got 13"):
        MaskedGESMR(13).init(noise.key(0), 12, 3)


# The study


def test_the_paper_profile_is_every_divisor():
    specs = STUDY.specs(Selection("paper"))
    assert len(specs) == (6 + 12 + 16 + 24 + 32 + 48) * 4 * 2 * 10 + (6 + 9 + 12 + 15 + 18 + 21 + 24) * 4 * 10
    for size in (*SIZES, *AUTHORS_SIZES):
        found = {s.groups for s in specs if s.num_children == size}
        assert found == {k for k in range(1, size + 1) if size % k == 0}
    of_sizes = {(s.num_children, s.dim, s.generations, s.std) for s in specs}
    assert of_sizes == {(n, 100, 1000, std) for n in SIZES for std in (1.0, 10.0)} | {
        (n, 100, 500, 5.0) for n in (50, 100, 200, 400, 800, 1600, 3200)}  # fmt: skip
    assert {s.function for s in specs} == {"ackley", "griewank", "rosenbrock", "sphere"}


def test_the_quick_profile_is_part_of_the_papers():
    quick, paper = (STUDY.specs(Selection(profile)) for profile in ("quick", "paper"))
    assert set(quick) < set(paper)
    assert {(s.num_children, s.generations) for s in quick} == {(n, 1000) for n in (12, 60, 120, 360)}
    assert len(quick) == (6 + 12 + 16 + 24) * 4 * 2 * 3
    assert len({content_hash(as_json(s)) for s in quick}) == len(quick)


def test_selections_narrow_it():
    specs = STUDY.specs(Selection(functions=("sphere", "ackley"), seeds=1))
    assert {(s.function, s.seed) for s in specs} == {("ackley", 0), ("sphere", 0)}
    with pytest.raises(ValueError, match="dims means nothing to the study groups, which takes --functions, --seeds"):
        STUDY.specs(Selection(dims=(30,)))
    with pytest.raises(ValueError, match="functions must be one of"):
        STUDY.specs(Selection(functions=("linear",)))


def test_one_program_serves_all_functions_and_groups_of_a_size():
    specs = STUDY.specs(Selection("quick"))
    groups = STUDY.jobs(specs, 2**34)
    assert sorted((s for g in groups for s in g.specs), key=hash) == sorted(specs, key=hash)
    advances = {p for g in groups for p in g.programs if p.function.__name__ == "_advance"}
    assert sorted(p.fixed[1].num_children for p in advances) == [12, 60, 120, 360]
    smaller = STUDY.jobs(specs, 2**24)
    assert all(len(g.specs) * 16 * (g.specs[0].num_children + 1) * 100 <= 2**24 for g in smaller)


def test_lanes_are_runs_of_the_library(programs):
    specs = tuple(
        GroupsRun("rosenbrock", 12, k, std, seed, 5, 130) for k, std, seed in ((3, 1.0, 0), (3, 10.0, 1), (12, 1.0, 2))
    )
    worked = []
    group = SweepJob(specs)
    arrays = group.run(programs, worked.append)
    assert sum(worked) == pytest.approx(group.work) == pytest.approx(12 * 5 * 130 * 3)
    for i, spec in enumerate(specs):
        problem = functions.get("rosenbrock", 5, spec.std)
        key = noise.fold_in(noise.key(2022), spec.seed)
        ga = gesmr.GA(gesmr.GESMR(spec.groups), 12)
        population = problem.init(key, 13)
        _, history = gesmr.evolve(ga, problem, ga.init(key, population, problem(population)), 130)
        elite = np.asarray(history.elite, np.float64)
        assert arrays["final"][i] == pytest.approx(elite[-1], rel=1e-3)
        assert arrays["mean_elite"][i] == pytest.approx(elite.mean(), rel=1e-3)


# What it shows


def results_with(best, sizes=(16, 64, 256, 4096), names=FUNCTIONS, seeds=3, steepness=1.0, generations=1000):
    """Curves whose lowest point is at the divisor nearest to `best(N)`, or half of it for std 10.

    They rise by `steepness` decades for each factor of e from there.
    """
    curves = {}
    for name in names:
        for std in (1.0, 10.0) if generations == 1000 else (5.0,):
            for n in sizes:
                k = np.array(divisors(n))
                mean = steepness * np.abs(np.log(k / best(n) * (2 if std == 10.0 else 1)))
                curves[Row(name, std, n, generations)] = Curve(k, np.repeat(mean[:, None], seeds, axis=1))
    return curves


def test_a_curve_by_hand():
    curve = Curve(np.array([1, 2, 4]), np.array([[3.0, 5.0], [0.0, 2.0], [2.0, 2.0]]))
    assert curve.best == 2
    assert curve.at(2) == 1.0
    assert curve.at(4**0.75) == pytest.approx(1.5)  # half-way from 2 to 4
    assert curve.loss(4**0.75) == pytest.approx(0.5)
    assert curve.loss(2) == 0.0


def test_the_fit_against_polyfit():
    results = results_with(lambda n: n**0.6)
    x = np.log([row.num_children for row in results])
    y = np.log([curve.best for curve in results.values()])
    slope, intercept = np.polyfit(x, y, 1)
    residuals = y - intercept - slope * x
    error = np.sqrt(np.sum(residuals**2) / (len(x) - 2) / np.sum((x - x.mean()) ** 2))
    line = fit(results)
    assert line is not None
    assert line.slope.value == pytest.approx(slope)
    assert (line.slope.low, line.slope.high) == pytest.approx(
        (slope - 2.0423 * error, slope + 2.0423 * error), rel=1e-3
    )  # t(30)


def claim(number, *settings):
    (found,) = (
        c for c in VIEW.decide({row: curve for rows in settings for row, curve in rows.items()}) if c.number == number
    )
    return found


def flat(loss, sizes=(50, 200, 3200), seeds=5, generations=500):
    """Curves that are lowest at √N (or the divisor below) and `loss(n, K)` decades higher elsewhere."""
    curves = {}
    for name in FUNCTIONS:
        for n in sizes:
            k = np.array(divisors(n))
            best = k[k <= n**0.5][-1]
            mean = np.array([0.0 if each == best else loss(n, each) for each in k])
            curves[Row(name, 5.0, n, generations)] = Curve(k, np.repeat(mean[:, None], seeds, axis=1))
    return curves


@pytest.mark.parametrize(
    ("best", "steepness", "verdict"),
    [
        (lambda n: n**0.5, 0.5, Verdict.HOLDS),
        (lambda n: n**0.75, 0.01, Verdict.HOLDS),  # elsewhere, but next to nothing is lost
        (lambda n: n**0.75, 1.0, Verdict.FAILS),
        (lambda n: 3, 1.0, Verdict.FAILS),
    ],
)
def test_claim_10_is_decided_by_what_the_root_loses(best, steepness, verdict):
    decided = claim(10, results_with(best, steepness=steepness))
    assert decided.verdict == verdict
    assert "not decidable from N up to 4,096" in decided.found
    assert "N = 64: " in decided.found


def test_claim_10_allows_a_factor_of_two():
    """K* is N; √N is half-way from 1 to N in log K, and so is its value."""
    edge = np.log10(2)
    just = {Row(f, 1.0, n): Curve(np.array([1, n]), np.array([[2 * edge] * 5, [0.0] * 5]))
            for f in FUNCTIONS for n in (64, 256, 1024)}  # fmt: skip
    assert claim(10, just).verdict is Verdict.HOLDS
    more = {row: Curve(curve.groups, curve.log_final * 1.01) for row, curve in just.items()}
    decided = claim(10, more)
    assert decided.verdict is Verdict.FAILS
    assert "K = √N ends 2.01 (2.01–2.01) times" in decided.found
    assert "N = 64: 8 (8–8), 2.83 (2.83–2.83)" in decided.found


def test_claims_need_three_sizes_all_functions_and_two_seeds():
    for lacking in ({"sizes": (16, 64, 256)}, {"names": FUNCTIONS[:3]}, {"seeds": 1}):
        for number in (10, 15):
            decided = claim(number, results_with(np.sqrt, **lacking))
            assert (decided.verdict, decided.short) == (Verdict.UNDECIDED, "")


def test_claims_say_where_they_fall_short():
    ours = results_with(np.sqrt, sizes=(60, 120, 360))
    assert claim(10, ours).short == claim(15, ours).short == "3 of 5 seeds, 360 of 3,200 children"
    assert claim(10, flat(lambda n, k: 1.0)).short == ""


def test_claims_hold_if_they_do_in_both_settings():
    ours, theirs = results_with(np.sqrt, steepness=0.5), flat(lambda n, k: 0.1)
    assert claim(15, ours).verdict is Verdict.HOLDS
    decided = claim(15, ours, theirs)
    assert decided.verdict is Verdict.FAILS
    assert "In our setting (std 1 and 10, 1000 generations) this holds: K = 1 ends " in decided.found
    theirs_found = "In the authors' setting (std 5, 500 generations) this does not hold: K = 1 ends 1.26 (1.26–1.26)"
    assert theirs_found in decided.found
    assert decided.found.endswith("0 of 12 drop. The settings differ")
    assert "differ" not in claim(10, ours, theirs).found


@pytest.mark.parametrize(
    ("loss", "verdict"),
    [
        (lambda n, k: np.log10(2.01), Verdict.HOLDS),
        (lambda n, k: np.log10(1.99), Verdict.FAILS),
        (lambda n, k: 1.0 if k == n else 0.1, Verdict.FAILS),  # K = 1 drops nowhere
        (lambda n, k: 1.0 if k == 1 else 0.1, Verdict.FAILS),  # K = N drops nowhere
        (lambda n, k: 1.0 if n > 100 else 0.1, Verdict.FAILS),  # in exactly half of the rows
        (lambda n, k: 1.0 if n > 50 else 0.1, Verdict.HOLDS),
    ],
)
def test_claim_15_needs_a_drop_on_both_sides_in_more_than_half_of_the_rows(loss, verdict):
    few = flat(lambda n, k: 0.0, sizes=(12,))  # does not count
    assert claim(15, flat(loss, sizes=(50, 100, 200, 400)), few).verdict is verdict


def test_the_growth_of_the_best_k_has_intervals_from_seeds():
    assert growth(results_with(lambda n: n**0.75, sizes=(16, 256)))[256][1] == pytest.approx((2**-0.5,) * 3)
    noisy = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.9], [0.5, 0.5, 0.0], [2.0, 2.0, 2.0]])  # seed 2 is best at 4
    found = growth({Row("sphere", 1.0, 16): Curve(np.array([1, 2, 4, 16]), noisy)})
    assert found == {16: (pytest.approx((0.5, 0.5, 1.0)), pytest.approx((0.25, 0.25, 0.5)))}


def test_the_recommendation_changes_only_on_evidence():
    assert recommended(results_with(np.sqrt)) == "√N"
    steeper = results_with(lambda n: 2**0.5 * n**0.75)
    assert recommended(steeper) == "N^(3/4)"
    assert losses(steeper)["√N"].mean() > losses(steeper)["N^(2/3)"].mean() > losses(steeper)["N^(3/4)"].mean()
    one = dict(list(steeper.items())[:1])
    assert recommended(one) == "√N"  # a single row proves nothing
    assert "make K ≈ N^(3/4) the default" in make_tables(steeper)[1].note


def test_values_below_what_single_precision_resolves_are_equal():
    np.testing.assert_allclose(log10("ackley", np.array([-1e-7, 0.0, 1e-3])), [-5, -5, -3])
    np.testing.assert_allclose(log10("sphere", np.array([1e-20])), [-20])
    np.testing.assert_allclose(log10("sphere", np.array([1e-20]), shifted=True), [-10])


def stored(specs):
    final = np.array([1 + abs(np.log(s.groups / s.num_children**0.6)) + 0.01 * s.seed for s in specs])
    return StoredJob(tuple(as_json(s) for s in specs), {}, {"final": final, "mean_elite": final})


def test_rows_count_when_every_k_has_run():
    specs = [s for s in STUDY.specs(Selection(functions=("sphere",))) if s.num_children < 120]
    results = load([stored(specs)])
    assert list(results) == [Row("sphere", std, n) for std in (1.0, 10.0) for n in (12, 60)]
    assert results[Row("sphere", 1.0, 60)].best == 12
    fewer = [s for s in specs if (s.std, s.num_children, s.groups, s.seed) != (1.0, 60, 5, 2)]
    assert load([stored(fewer)])[Row("sphere", 1.0, 60)].log_final.shape == (12, 2)
    fewer = [s for s in specs if (s.std, s.num_children, s.groups) != (1.0, 60, 5)]
    assert Row("sphere", 1.0, 60) not in load([stored(fewer)])
    shorter = [replace(s, generations=500, std=5.0) for s in specs if s.std == 1.0]
    assert list(load([stored([*shorter, *specs])])) == [*results, *(Row("sphere", 5.0, n, 500) for n in (12, 60))]
    with pytest.raises(LabError, match="no population size has runs"):
        load([stored([replace(s, revision=0) for s in specs])])
    with pytest.raises(LabError, match="no population size has runs for every number of groups"):
        load([stored(specs[:3])])


def test_the_view_shows_a_store(tmp_path):
    specs = [s for s in STUDY.specs(Selection("paper", seeds=2)) if s.num_children <= 120]
    group = stored(specs)
    store = Store(tmp_path / "groups", create=True)
    store.write(specs, group.arrays, {})
    console = Console(quiet=True)
    VIEW.export(store, Options(), tmp_path / "out", console)
    lines = (tmp_path / "out" / "groups.csv").read_text().splitlines()
    assert len(lines) == 1 + 4 * (2 * 3 + 2)
    assert lines[1].startswith("Ackley,1.0,1000,12,4,")
    tables = {"groups.csv", "groups_rules.csv", "groups_rules_500.csv", "groups_growth.csv"}
    assert {path.name for path in (tmp_path / "out").glob("*.csv")} == tables
    figures = {"groups.png", "groups_500.png", "groups_best.png"}
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == figures
    chapter = VIEW.chapter(tmp_path / "groups")
    assert [outcome.claim.number for outcome in chapter.outcomes] == [10, 15]
    lengths = "1000 generations, N = 12, 60, 120; 500 generations, N = 50, 100"
    assert chapter.summary == f"4 functions in 100-D, {lengths}, 2 seeds"
