"""`gesmr compare`, as a user types it."""

import json
import re

import numpy as np
import pytest

from gesmr.comparing import Comparison, compare
from helpers.command_line import gesmr, put_module

MODULE = """
import numpy as np

def bowl(x):
    print("looking")
    return float(np.sum((x - 1) ** 2))

def hill(x):
    return -float(np.sum((x - 1) ** 2))

def named(s):
    return abs(s["width"] - 0.3) + (s["kind"] != "b")

def broken(x):
    raise ValueError("my own fault")

def halfway(objective, problem):
    objective.many(problem.draw(problem.rng(), 20))

def hopeless(objective, problem):
    raise RuntimeError("not today")
"""
SPACE = """
[width]
type = "float"
low = 0.0
high = 1.0
[kind]
type = "choice"
options = ["a", "b"]
"""
SMALL = ["--dim", "2", "--bounds", "-5,5", "--methods", "gesmr,DE,random", "--seeds", "6", "--maxfun", "120"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    put_module(monkeypatch, tmp_path, "mine_to_compare", MODULE)
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


def run(name, *arguments):
    return gesmr("compare", f"mine_to_compare:{name}", *arguments)


def test_the_table_is_the_librarys(here):
    code, out, said = run("bowl", *SMALL, "--save", "runs.json", "--plot", "figure.png", "--targets", "0.5,1e-9")
    assert code == 0
    kept = Comparison.load("runs.json")
    assert out.strip() == str(kept)
    assert "18/18  random, seed 5" in said
    assert (here / "figure.png").stat().st_size > 5000

    def bowl(x):
        return float(np.sum((x - 1) ** 2))

    drawn = compare(bowl, lambda rng: rng.uniform(-5, 5, 2), ["gesmr", "DE", "random"], 6, 120, bounds=(-5, 5))
    assert [row.median for row in drawn.rows] == [row.median for row in kept.rows]
    _, again, said = run("bowl", *SMALL, "--save", "runs.json", "--targets", "0.5,1e-9")
    assert again == out
    assert said.count("(kept)") == 18


def test_json(here):
    code, out, _ = run("hill", *SMALL[:-2], "--maxfun", "150", "--json", "--direction", "maximize", "--targets=-0.5")
    assert code == 0
    found = json.loads(out)
    assert [row["rank"] for row in found["rows"]] == [1, 2, 3]
    assert found["rows"][0]["p"] is None
    assert found["rows"][0]["median"] >= found["rows"][1]["median"]
    assert found["best"]["fun"] == pytest.approx(-np.sum((np.array(found["best"]["x"]) - 1) ** 2))
    assert set(found["reached"]["-0.5"]) == {"gesmr", "DE", "random"}


def test_a_space_and_a_method_of_ones_own(here):
    options = ["--space", "space.toml", "--seeds", "3-5", "--maxfun", "50", "--json"]
    code, out, _ = run("named", "--methods", "mine_to_compare:halfway,random", *options)
    assert code == 0
    found = json.loads(out)
    assert found["seeds"] == [3, 4, 5]
    assert {row["method"] for row in found["rows"]} == {"mine_to_compare:halfway", "random"}
    assert found["best"]["x"]["kind"] == "b"


def test_bounds_of_each_variable_and_a_file(here):
    options = ["--bounds", "2,5;-5,0.5;0,inf", "--methods", "gesmr,random", "--seeds", "2", "--maxfun", "200", "--json"]
    code, out, said = gesmr("compare", "mine_to_compare.py:bowl", *options)
    assert code == 0, said
    x = json.loads(out)["best"]["x"]
    assert 2 <= x[0] <= 5
    assert -5 <= x[1] <= 0.5
    assert x[2] >= 0


def test_failures(here):
    code, out, _ = run("bowl", "--dim", "2", "--methods", "mine_to_compare:hopeless,random", "--maxfun", "30")
    assert code == 1
    assert "failed in 10 of 10 runs: RuntimeError: not today" in out
    code, out, said = run("broken", *SMALL)
    assert (code, out) == (1, "")
    assert "ValueError: my own fault" in said
    assert set(re.findall(r'File ".*/(.+?)"', said)) == {"mine_to_compare.py"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--dim or --space must be given"),
        (["--dim", "2", "--space", "space.toml"], "cannot be given with --dim"),
        (["--dim", "2", "--methods", "DE"], "DE needs bounds"),
        (["--dim", "2", "--methods", "DEE"], "methods must be among gesmr"),
        (["--dim", "2", "--methods", "mine_to_compare:absent"], "has no 'absent'"),
        (["--dim", "2", "--seeds", "x"], "--seeds must be"),
        (["--dim", "2", "--targets", "low"], "--targets must be numbers"),
        (["--dim", "2", "--bounds", "5,1"], "low ≤ high"),
        (["--dim", "2", "--bounds", "0,1;0,1;0,1"], "--dim = 2 of them, got 3"),
        (["--dim", "2", "--maxfun", "0"], "maxfun must be"),
        (["--dim", "2", "--save", "absent/runs"], "save must be in a directory"),
        (["--dim", "2", "--direction", "up"], "direction must be one of"),
    ],
)
def test_bad_options_end_in_one_line(here, arguments, words):
    code, out, said = run("bowl", *arguments)
    assert code == 2
    assert words in said
    assert not out
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("plot", "words"),
    [
        ("figure.foo", "--plot must end in .png, .pdf or .svg, got figure.foo"),
        ("absent/figure.png", "--plot must be in a directory that exists, got absent/figure.png"),
    ],
)
def test_a_figure_that_cannot_be_written_is_refused_before_anything_runs(plot, words):
    code, out, said = run("bowl", *SMALL, "--plot", plot)
    assert (code, out, said.strip()) == (2, "", f"error: {words}")


def test_the_table_is_printed_before_a_figure_fails(here):
    (here / "figure.png").mkdir()
    code, out, said = run("bowl", *SMALL, "--plot", "figure.png")
    assert code == 1
    assert "median" in out
    assert "figure.png" in said


def test_a_negative_spread_is_refused():
    code, _, said = run("bowl", "--dim", "2", "--init-std", "-1", "--maxfun", "40", "--seeds", "1")
    assert code == 2
    assert "init_std must be a finite number above 0" in said
