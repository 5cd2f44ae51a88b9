"""What the page shows is what the library computes."""

import base64
import json

import numpy as np
import pytest

import gesmr
from gesmr.lab.playground import simulation
from gesmr.lab.playground.settings import METHODS, Place, Setting, read
from gesmr.lab.playground.simulation import PIXELS, elites, frames, landscape_json, problem, run_json
from helpers.compilations import count_compilations

SMALL = {"children": 12, "groups": 4, "generations": 9, "seed": 3}


@pytest.mark.parametrize("method", ["GESMR", "SAMR", "UCB/5", "GESMR-X"])
def test_a_run_is_that_of_evolve(method):
    setting = Setting(method, "ackley", dim=5, std=3.0, **SMALL)
    objective = problem("ackley", 5, 3.0, moved=True)
    chosen = {"GESMR": gesmr.GESMR(4), "GESMR-X": gesmr.GESMR(4, recombine=0.4)}.get(method) or gesmr.controller(method)
    ga = gesmr.GA(chosen, num_children=12)
    population = objective.init(3, 13)
    start = ga.init(3, population, objective(population))
    state, history = gesmr.evolve(ga, objective, start, 9)
    run = frames(setting)
    np.testing.assert_array_equal(run.best[1:], history.elite)
    np.testing.assert_array_equal(run.members[0], population[:, :2])
    np.testing.assert_array_equal(run.members[-1], state.population[:, :2])
    np.testing.assert_allclose(run.log_rates[:-1].mean(axis=1), history.log_rate, rtol=1e-4, atol=1e-6)
    proposal = ga.ask(start)
    np.testing.assert_array_equal(run.parents[0], [int(proposal.elite), *proposal.parents])


def test_the_page_gets_the_same_numbers():
    setting = Setting("SAMR", "sphere", **SMALL)
    run, sent = frames(setting), json.loads(run_json(setting))
    members = np.frombuffer(base64.b64decode(sent["members"]), "<f4").reshape(10, 13, 2)
    rates = np.frombuffer(base64.b64decode(sent["rates"]), "<f4").reshape(sent["shape"][0], sent["shape"][2])
    np.testing.assert_array_equal(members, run.members)
    np.testing.assert_allclose(10.0**rates, np.exp(run.log_rates), rtol=1e-5)
    assert sent["best"] == run.best.tolist()


@pytest.mark.parametrize(("method", "marked"), [("GESMR", [0]), ("GESMR-X", [0, 2]), ("GESMR-FIX", []), ("15MR", [])])
def test_rates_that_were_kept_are_marked(method, marked):
    assert elites(Setting(method, "sphere", **SMALL)) == marked


def test_another_seed_compiles_nothing():
    frames(Setting("15MR", "sphere", **SMALL))
    with count_compilations() as compiled:
        frames(Setting("15MR", "sphere", **SMALL | {"seed": 4}, std=2.0))
    assert compiled() == 0


def test_programs_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(simulation, "_PROGRAMS", 2)
    for dim in (2, 3, 4):
        frames(Setting("FMR", "sphere", dim, **SMALL))
        assert len(simulation._compiled) <= 2
    with count_compilations() as compiled:
        frames(Setting("FMR", "sphere", 4, **SMALL | {"seed": 5}))
        assert compiled() == 0
        frames(Setting("FMR", "sphere", 3, **SMALL))
        assert compiled() > 0


@pytest.mark.parametrize("function", ["rastrigin", "rosenbrock", "linear"])
@pytest.mark.parametrize("zoom", [1, 4])
def test_a_landscape_is_lowest_at_the_optimum(function, zoom):
    sent = json.loads(landscape_json(Place(function, dim=3, std=4.0, zoom=zoom)))
    shades = np.frombuffer(base64.b64decode(sent["shades"]), np.uint8).reshape(PIXELS, PIXELS)
    if function == "linear":
        assert sent["optimum"] is None
        assert (shades[-1, 0], shades[0, -1]) == (0, 255)  # the corners below on the left and above on the right
        return
    pixel = 2 * sent["half"] / (PIXELS - 1)
    (x, y), (middle_x, middle_y), half = sent["optimum"], sent["centre"], sent["half"]
    row, column = round((middle_y + half - y) / pixel), round((x - middle_x + half) / pixel)
    assert shades[row, column] <= 1
    objective = problem(function, 3, 4.0, moved=True)
    assert float(objective(objective.optimum)) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Setting, {"method": "ES"}, r"method must be one of 'GESMR', .*, got 'ES'"),
        (Setting, {"function": "<b>"}, r"function must be one of .*, got '<b>'"),
        (Setting, {"dim": 1}, "dim must be an integer from 2 to 100, got 1"),
        (Setting, {"dim": True}, "dim must be an integer from 2 to 100, got True"),
        (Setting, {"std": "4"}, "std must be a number from 0.01 to 100, got '4'"),
        (Setting, {"std": float("nan")}, "std must be a number from 0.01 to 100, got nan"),
        (Setting, {"children": 3}, "children must be an integer from 4 to 400, got 3"),
        (Setting, {"children": 5, "groups": 6}, r"groups must be at most children \(5\), got 6"),
        (Setting, {"children": 400, "generations": 500}, "must be at most 60,000, got 400 × 500 = 200,000"),
        (Setting, {"seed": None}, "seed must be an integer from 0 to 2147483647, got None"),
        (Setting, {"moved": 1}, "moved must be true or false, got 1"),
        (Setting, {"speed": 1}, "parameters must be among method, .*, got 'speed'"),
        (Setting, [], "a request must be a JSON object, got list"),
        (Place, {"zoom": 3}, "zoom must be one of 1, 4, 16, got 3"),
        (Place, {"zoom": [1]}, r"zoom must be one of 1, 4, 16, got \[1\]"),
    ],
)
def test_what_is_not_accepted_is_named(kind, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read(kind, given)


def test_every_method_is_the_librarys():
    for method in METHODS:
        gesmr.controller(method)
