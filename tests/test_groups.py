"""The study of K: a controller whose K is data is GESMR, runs together are runs alone, and the claim's rule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from scipy.stats import mannwhitneyu

import gesmr
from gesmr import noise
from gesmr.controllers.group_elite import group_of_child
from gesmr.lab.claims import Verdict
from gesmr.lab.compilation import Programs
from gesmr.lab.errors import LabError
from gesmr.lab.groups import VIEW, Curve, Row, decide, fit, load, log10, losses, make_tables, recommended
from gesmr.lab.store import Store, StoredGroup
from gesmr.lab.views import Options
from gesmr.problems import functions
from gesmr.studies import Selection, as_json, content_hash
from gesmr.studies.groups import FUNCTIONS, SIZES, GroupsRun, GroupsStudy, divisors
from gesmr.studies.lanes import Advance
from gesmr.studies.masked import MaskedGESMR
from gesmr.studies.sweep import SweepGroup

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
    assert mannwhitneyu(masked, plain).pvalue > 1e-3
    assert mannwhitneyu(masked, other).pvalue < 1e-3  # the test could have told


def test_bad_numbers_of_groups():
    with pytest.raises(ValueError, match="groups must be an integer of at least 1, got 0"):
        MaskedGESMR(0)
    with pytest.raises(ValueError, match=r"groups must be at most num_children \(12\), got 13"):
        MaskedGESMR(13).init(noise.key(0), 12, 3)


# The study


def test_the_paper_profile_is_every_divisor():
    specs = STUDY.specs(Selection("paper"))
    assert len(specs) == (6 + 12 + 16 + 24 + 32 + 48) * 4 * 2 * 10
    for size in SIZES:
        found = {s.groups for s in specs if s.num_children == size}
        assert found == {k for k in range(1, size + 1) if size % k == 0}
    assert {(s.dim, s.generations, s.std) for s in specs} == {(100, 1000, 1.0), (100, 1000, 10.0)}
    assert {s.function for s in specs} == {"ackley", "griewank", "rosenbrock", "sphere"}


def test_the_quick_profile_is_part_of_the_papers():
    quick, paper = (STUDY.specs(Selection(profile)) for profile in ("quick", "paper"))
    assert set(quick) < set(paper)
    assert {s.num_children for s in quick} == {12, 60, 120, 360}
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
    groups = STUDY.groups(specs, 2**34)
    assert sorted((s for g in groups for s in g.specs), key=hash) == sorted(specs, key=hash)
    advances = {p for g in groups for p in g.programs if isinstance(p, Advance)}
    assert sorted(p.task.num_children for p in advances) == [12, 60, 120, 360]
    smaller = STUDY.groups(specs, 2**24)
    assert all(len(g.specs) * 16 * (g.specs[0].num_children + 1) * 100 <= 2**24 for g in smaller)


def test_lanes_are_runs_of_the_library(programs):
    specs = tuple(
        GroupsRun("rosenbrock", 12, k, std, seed, 5, 130) for k, std, seed in ((3, 1.0, 0), (3, 10.0, 1), (12, 1.0, 2))
    )
    worked = []
    group = SweepGroup(specs)
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


def results_with(best, sizes=(16, 256, 4096), names=FUNCTIONS, seeds=3):
    """Curves whose lowest point is at the divisor nearest to `best(N)`, or half of it for std 10.

    They rise by a decade for each factor of e from there.
    """
    curves = {}
    for name in names:
        for std in (1.0, 10.0):
            for n in sizes:
                k = np.array(divisors(n))
                mean = np.abs(np.log(k / best(n) * (1 if std == 1.0 else 2)))
                curves[Row(name, std, n)] = Curve(k, np.repeat(mean[:, None], seeds, axis=1))
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
    assert line.slope == pytest.approx(slope)
    assert (line.low, line.high) == pytest.approx((slope - 2.0739 * error, slope + 2.0739 * error), rel=1e-3)  # t(22)
    assert line.ratio == pytest.approx(np.exp(np.mean(y - x / 2)))


@pytest.mark.parametrize(
    ("best", "verdict"),
    [
        (lambda n: n**0.5, Verdict.HOLDS),
        (lambda n: n**0.75, Verdict.HOLDS),
        (lambda n: n, Verdict.FAILS),  # too steep
        (lambda n: 3, Verdict.FAILS),  # too flat
        (lambda n: 0.25 * n**0.5, Verdict.FAILS),  # as steep as √N, but far below it
    ],
)
def test_claim_10_is_decided_by_slope_and_level(best, verdict):
    assert decide(results_with(best))[0].verdict == verdict


def test_claim_10_needs_three_sizes_and_all_functions():
    assert decide(results_with(np.sqrt, sizes=(16, 256)))[0].verdict == Verdict.UNDECIDED
    assert decide(results_with(np.sqrt, names=FUNCTIONS[:3]))[0].verdict == Verdict.UNDECIDED


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
    return StoredGroup(tuple(as_json(s) for s in specs), {}, {"final": final, "mean_elite": final})


def test_rows_count_when_every_k_has_run():
    specs = [s for s in STUDY.specs(Selection(functions=("sphere",))) if s.num_children < 120]
    results = load([stored(specs)])
    assert list(results) == [Row("sphere", std, n) for std in (1.0, 10.0) for n in (12, 60)]
    assert results[Row("sphere", 1.0, 60)].best == 12
    fewer = [s for s in specs if (s.std, s.num_children, s.groups, s.seed) != (1.0, 60, 5, 2)]
    assert load([stored(fewer)])[Row("sphere", 1.0, 60)].log_final.shape == (12, 2)
    fewer = [s for s in specs if (s.std, s.num_children, s.groups) != (1.0, 60, 5)]
    assert Row("sphere", 1.0, 60) not in load([stored(fewer)])
    with pytest.raises(LabError, match="no population size has runs for every number of groups"):
        load([stored(specs[:3])])


def test_the_view_shows_a_store(tmp_path):
    specs = [s for s in STUDY.specs(Selection(seeds=2)) if s.num_children <= 120]
    group = stored(specs)
    store = Store(tmp_path / "groups", create=True)
    store.write(specs, group.arrays, {})
    console = Console(quiet=True)
    VIEW.tables(store, Options(), tmp_path / "out", console)
    VIEW.figures(store, Options(), tmp_path / "out", console)
    lines = (tmp_path / "out" / "groups.csv").read_text().splitlines()
    assert len(lines) == 1 + 4 * 2 * 3
    assert lines[1].startswith("Ackley,1.0,12,4,")
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == {"groups.png", "groups_best.png"}
    chapter = VIEW.chapter(tmp_path / "groups")
    assert [outcome.claim.number for outcome in chapter.outcomes] == [10]
    assert chapter.summary == "4 functions in 100-D, 1000 generations, N = 12, 60, 120, 2 seeds"
