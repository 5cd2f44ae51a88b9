"""GESMR as a sampler of Optuna: Optuna's own tests of samplers, and what they do not ask."""

import copy
import importlib
import math
import pickle
import sys
import warnings

import numpy as np
import pytest

import gesmr

optuna = pytest.importorskip("optuna")
samplers = pytest.importorskip("optuna.testing.pytest_samplers")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from gesmr.optuna import GESMRSampler  # noqa: E402


@pytest.fixture(autouse=True)
def quiet():
    """Without a line on standard error for every trial."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


class TestAsOptunaDoes(
    samplers.BasicSamplerTestCase, samplers.RelativeSamplerTestCase, samplers.SingleOnlySamplerTestCase
):
    """What Optuna asks of samplers for a single objective that sample all parameters together."""

    @pytest.fixture
    def sampler(self):
        return lambda: GESMRSampler(seed=0, popsize=5)


SMALL = {"popsize": 8, "seed": 0}


def mixed(trial):
    x = trial.suggest_float("x", -5, 5)
    lr = trial.suggest_float("lr", 1e-5, 1, log=True)
    layers = trial.suggest_int("layers", 1, 8)
    act = trial.suggest_categorical("act", ["relu", "tanh", "gelu"])
    return (x - 1) ** 2 + (math.log10(lr) + 2) ** 2 + (layers - 3) ** 2 + 2 * (act != "tanh")


def sphere(trial):
    return sum((trial.suggest_float(f"x{i}", -5, 5) - 1) ** 2 for i in range(4))


def study(sampler=None, **options):
    return optuna.create_study(sampler=sampler or GESMRSampler(**SMALL), **options)


def params(of):
    return [trial.params for trial in of.trials]


def best(objective, sampler, n_trials):
    made = study(sampler)
    made.optimize(objective, n_trials=n_trials)
    return made.best_value


@pytest.mark.slow
def test_better_than_drawing_at_random():
    """Lower on at least 30 of 40 studies with fixed seeds: a coin would do that once in a thousand times."""
    won = 0
    for objective in (sphere, mixed):
        for seed in range(20):
            ours = best(objective, GESMRSampler(seed=seed, n_trials=200), 200)
            won += ours < best(objective, optuna.samplers.RandomSampler(seed=seed), 200)
    assert won >= 30


def test_a_seed_repeats_a_study():
    runs = [study(GESMRSampler(popsize=8, seed=seed)) for seed in (0, 0, 1)]
    for run in runs:
        run.optimize(mixed, n_trials=40)
    assert params(runs[0]) == params(runs[1]) != params(runs[2])


def test_maximising_is_minimising_the_negative():
    up, down = study(direction="maximize"), study()
    up.optimize(lambda trial: -mixed(trial), n_trials=30)
    down.optimize(mixed, n_trials=30)
    assert params(up) == params(down)


def test_parameters_are_of_their_distribution():
    space = {
        "a": FloatDistribution(-1, 1),
        "b": FloatDistribution(0.1, 0.7, step=0.1),
        "c": FloatDistribution(1e-8, 1e8, log=True),
        "d": IntDistribution(-10, 10, step=5),
        "e": IntDistribution(1, 1000, log=True),
        "f": CategoricalDistribution([True, 2, None, "x"]),
        "g": IntDistribution(0, 2**60),  # too large to be searched
        "h": FloatDistribution(0, 3, step=1),
        "": FloatDistribution(0, 1),
    }
    made = study(GESMRSampler(popsize=80, seed=0))  # all are draws
    for number in range(80):
        trial = made.ask(space)
        made.tell(trial, float(number))
        for name, value in trial.params.items():
            assert space[name]._contains(space[name].to_internal_repr(value))
            assert type(value) in (float, int, bool, str, type(None))
        assert isinstance(trial.params["d"], int)
    assert len({trial.params["b"] for trial in made.trials}) == 7
    assert {trial.params["h"] for trial in made.trials} == {0.0, 1.0, 2.0, 3.0}
    assert {trial.params["d"] for trial in made.trials} == {-10, -5, 0, 5, 10}
    assert len({str(trial.params["f"]) for trial in made.trials}) == 4


def test_trials_from_elsewhere_are_learnt_from():
    """A solution that was enqueued or is in the storage is the parent of what follows."""
    made = study()
    made.enqueue_trial({f"x{i}": 1.01 for i in range(4)})
    made.optimize(sphere, n_trials=60)
    without = study()
    without.optimize(sphere, n_trials=60)
    assert made.best_value < 4e-4 + 1e-12 < without.best_value
    distributions = {f"x{i}": FloatDistribution(-5, 5) for i in range(4)}
    added = study()
    added.add_trial(
        optuna.create_trial(params=dict.fromkeys(distributions, 1.01), distributions=distributions, value=4e-4)
    )
    added.optimize(sphere, n_trials=40)
    near = [trial for trial in added.trials[1:] if trial.value < 1.0]
    assert len(near) > 5  # about 3 in 1000 are as near by chance: more than 5 of 40 about never


@pytest.mark.slow
def test_a_study_goes_on_in_another_process(tmp_path):
    """With what it knew, from a journal and from a database."""
    journal = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal")))
    for storage in (journal, f"sqlite:///{tmp_path}/study.db"):
        first = study(storage=storage, study_name="study")
        first.optimize(mixed, n_trials=40)
        again = optuna.load_study(storage=storage, study_name="study", sampler=GESMRSampler(popsize=8, seed=1))
        again.optimize(mixed, n_trials=40)
        assert len(again.trials) == 80
        first_half, second_half = ([t.value for t in again.trials[half]] for half in (slice(40), slice(40, 80)))
        assert np.median(second_half) < np.median(first_half)


def test_two_samplers_share_a_study():
    storage = optuna.storages.InMemoryStorage()
    one = study(GESMRSampler(popsize=8, seed=1), storage=storage, study_name="shared")
    two = optuna.load_study(storage=storage, study_name="shared", sampler=GESMRSampler(popsize=8, seed=2))
    for _ in range(50):
        one.optimize(sphere, n_trials=1)
        two.optimize(sphere, n_trials=1)
    values = [trial.value for trial in one.trials]
    assert np.median(values[75:]) < np.median(values[:25]) / 2


def test_many_at_once():
    made = study()
    made.optimize(mixed, n_trials=60, n_jobs=2)
    assert len(made.trials) == 60
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in made.trials)
    assert len({tuple(p.values()) for p in params(made)}) > 50


def test_asking_for_many_before_telling_any():
    made = study()
    space = {"x": FloatDistribution(-1, 1), "y": FloatDistribution(-1, 1)}
    made.tell(made.ask(space), 3.0)
    trials = [made.ask(space) for _ in range(30)]  # more than a population
    assert len({tuple(trial.params.values()) for trial in trials}) == 30
    for trial in reversed(trials):
        made.tell(trial, sum(value**2 for value in trial.params.values()))
    made.optimize(
        lambda trial: trial.suggest_float("x", -1, 1) ** 2 + trial.suggest_float("y", -1, 1) ** 2, n_trials=30
    )
    assert made.best_value < 0.01


def test_pruned_and_failed_trials_count_as_the_worst():
    """Nothing is pruned and nothing fails at x below 0: there the search goes."""

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        if x > 0.5:
            trial.report(-100.0, 0)
            raise optuna.TrialPruned
        if x > 0:
            raise RuntimeError("no value")
        return abs(x + 0.5)

    made = study()
    made.optimize(objective, n_trials=60, catch=RuntimeError)
    states = [trial.state for trial in made.trials]
    assert set(states[:30]) == {optuna.trial.TrialState[name] for name in ("COMPLETE", "PRUNED", "FAIL")}
    assert states[30:].count(optuna.trial.TrialState.COMPLETE) >= 25  # by chance once in 6,000 times


def test_constraints_come_before_values():
    def objective(trial):
        x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)
        trial.set_constraint("outside", 3 - x - y)
        return x**2 + y**2

    made = study()
    made.optimize(objective, n_trials=120)
    feasible = [trial.constraints["outside"] <= 0 for trial in made.trials]
    assert sum(feasible[60:]) > 30  # a quarter of the square is feasible, and the unconstrained optimum is not
    assert made.best_trial.constraints["outside"] <= 0


def test_a_search_space_that_changes():
    """First x alone is common to all trials, later what else there is: history goes along."""

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        return x**2 + (trial.suggest_float("y", 0, 1) if trial.number % 2 else trial.suggest_int("z", 0, 3))

    made = study()
    made.optimize(objective, n_trials=60)
    assert made.best_value < 0.1
    other = study()
    other.optimize(lambda trial: trial.suggest_float("x", 0, 10) ** 2, n_trials=20)
    other.optimize(lambda trial: trial.suggest_float("x", 20, 30), n_trials=20)
    assert min(trial.params["x"] for trial in other.trials[20:]) >= 20


def test_fixing_some_parameters():
    made = study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        made.sampler = optuna.samplers.PartialFixedSampler({"x0": 1.0}, made.sampler)
    made.optimize(sphere, n_trials=80)
    assert {trial.params["x0"] for trial in made.trials} == {1.0}
    assert made.best_value < 3  # the best of 80 draws is above that in most studies: a quarter of them


def test_copies_go_on():
    sampler = GESMRSampler(**SMALL)
    made = study(sampler)
    made.optimize(sphere, n_trials=20)
    for other in (copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
        made.sampler = other
        made.optimize(sphere, n_trials=10)
    assert len(made.trials) == 40


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"popsize": 1}, ValueError, "popsize must be an integer from 2"),
        ({"n_trials": 0}, ValueError, "n_trials must be an integer of at least 2, got 0"),
        ({"seed": -1}, ValueError, "seed must be an integer from 0"),
        ({"controller": "best"}, ValueError, "controller"),
        ({"truncation": 2.0}, ValueError, "truncation must be"),
    ],
)
def test_wrong_options_are_named_at_once(options, kind, message):
    with pytest.raises(kind, match=message):
        GESMRSampler(**options)


def test_one_objective_only():
    made = optuna.create_study(directions=["minimize", "maximize"], sampler=GESMRSampler())
    with pytest.raises(ValueError, match="multi-objective"):
        made.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=2)


def test_without_optuna(monkeypatch):
    monkeypatch.delitem(sys.modules, "gesmr.optuna")
    monkeypatch.setitem(sys.modules, "optuna.distributions", None)
    with pytest.raises(ImportError, match=r"pip install 'gesmr\[optuna\]'"):
        importlib.import_module("gesmr.optuna")


def test_controllers_by_name_and_as_objects():
    for controller in ("SAMR", gesmr.GESMR(groups=3)):
        made = study(GESMRSampler(popsize=7, controller=controller, seed=0))
        made.optimize(sphere, n_trials=40)
        assert len(made.trials) == 40
