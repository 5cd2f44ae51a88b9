"""The committed results: what they must show, and that the page about them is made of them."""

import csv
import importlib.util
import json
from collections import Counter

import pytest

from gesmr.lab.run.lanes import METHODS, ORACLES
from gesmr.lab.studies.functions.agreement import Cell, read_printed
from gesmr.lab.studies.functions.results import Row
from helpers import ROOT

RESULTS = ROOT / "results"


def lines(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_is_made_of_the_results():
    spec = importlib.util.spec_from_file_location("reproduction_page", ROOT / "scripts" / "reproduction_page.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run `make reproduction-page`"


def claims_of(study):
    return json.loads((RESULTS / study / "claims.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("study", ["mutations", "landscape", "theorem", "groups", "cmaes"])
def test_the_page_about_why_it_works_says_what_was_found(study):
    found = ", ".join(f"{claim['number']} {claim['verdict']}" for claim in claims_of(study))
    (line,) = [
        row for row in (ROOT / "docs" / "why.md").read_text(encoding="utf-8").splitlines() if f"[{study}]" in row
    ]
    assert line.endswith(f"| {found} |")


@pytest.mark.parametrize("study", ["mutations", "landscape", "theorem", "groups", "cmaes", "images", "control"])
def test_the_page_of_the_studies_says_what_was_found(study):
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    for claim in claims_of(study):
        assert f"[claim {claim['number']} {claim['verdict']}](../results/{study}/README.md)" in page


def test_every_claim_has_a_verdict_and_the_readme_counts_them():
    studies = ("paper", "mutations", "landscape", "theorem", "groups", "cmaes", "images", "control")
    verdicts = {claim["number"]: claim["verdict"] for study in studies for claim in claims_of(study)}
    assert sorted(verdicts) == list(range(1, 19))
    counts = Counter(verdicts.values())
    assert {number for number, verdict in verdicts.items() if verdict == "does not hold"} == {2, 10, 11, 12, 13, 16}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{counts['holds']} of 18 hold, {counts['does not hold']} do not (2, 10–13, 16), 1 is not" in readme


def test_the_readme_says_what_adapting_costs():
    (found,) = [claim["found"] for claim in claims_of("paper") if claim["number"] == 14]
    small, *_, large = (float(part.split()[0]) for part in found.split(", "))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{large:.2f} times as long as with a fixed rate in 1,000 dimensions, and {small:.2f} times in 2" in readme


def test_the_readme_says_how_many_cells_agree():
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    first, second = ([agreeing(half, table) for table in (1, 2, 3)] for half in ("", "seeds-40-79"))
    assert "Of the printed cells {} of 528, {} of 528 and {} of 400 agree with ours".format(*first) in readme
    assert "and {}, {} and {} on forty other seeds".format(*second) in readme


def agreeing(half, table):
    return sum(line["agrees"] == "1" for line in lines(RESULTS / "paper" / half / f"agreement_table{table}.csv"))


def test_gesmr_learns_mnist_better_than_a_fixed_rate():
    """1,000 images, five seeds, 1,000 generations: the paper does not print its losses, so the bound is ours."""
    rows = lines(RESULTS / "images" / "images_final.csv")
    chosen = [row for row in rows if (row["Set"], row["images"], row["start"]) == ("MNIST", "1000", "uniform")]
    loss = {row["method"]: float(row["training loss"]) for row in chosen}
    assert loss["GESMR"] <= 1.0
    assert loss["GESMR"] < loss["FMR"]


def test_results_are_small():
    """Pictures are in full colour and 1,680 pixels wide, so that they weigh more than the numbers."""
    pictures = [path.stat().st_size for path in RESULTS.rglob("*.png")]
    assert max(pictures) < 700_000
    assert sum(pictures) < 10_000_000
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.suffix != ".png") < 2_500_000


@pytest.mark.parametrize("half", ["", "seeds-40-79"])
@pytest.mark.parametrize(("table", "cells", "least"), [(1, 528, 515), (2, 528, 515), (3, 400, 375)])
def test_agreement_with_the_printed_tables(table, cells, least, half):
    """By the rule, from the committed means and standard errors and the printed table, not from a stored verdict."""
    (file,) = (ROOT / "tests" / "data").glob(f"table{table}*.csv")
    printed = read_printed(file)
    found = [
        Cell(row, method, float(line["ours"]), float(line["se"]), int(line["seeds"]), printed.cells[row, method])
        for line in lines(RESULTS / "paper" / half / f"agreement_table{table}.csv")
        for row, method in [(Row(line["function"], int(line["dim"]), float(line["std"])), line["method"])]
    ]
    assert len({(cell.row, cell.method) for cell in found}) == len(found) == cells
    assert {cell.seeds for cell in found} == {40}
    assert sum(cell.agrees for cell in found) >= least


@pytest.mark.parametrize("table", [1, 2, 3])
def test_the_compared_means_are_those_of_the_tables(table):
    means = {
        (line["function"], line["dim"], line["std"], method): line[method]
        for line in lines(RESULTS / "paper" / f"table{table}.csv")
        for method in METHODS
    }
    for line in lines(RESULTS / "paper" / f"agreement_table{table}.csv"):
        assert means[line["function"], line["dim"], line["std"], line["method"]] == line["ours"]


@pytest.mark.parametrize("variant", ["paper", "shifted"])
@pytest.mark.parametrize(("table", "least"), [(1, 22), (2, 22), (3, 27)])
def test_gesmr_is_the_best_in_most_rows(variant, table, least):
    best = Counter(
        line["best"] for line in lines(RESULTS / variant / f"table{table}.csv") if line["function"] != "linear"
    )
    assert best.total() == 40
    assert best["GESMR"] >= least


@pytest.mark.parametrize("variant", ["paper", "shifted"])
def test_the_order_of_the_methods_on_linear(variant):
    rows = [line for line in lines(RESULTS / variant / "table1.csv") if line["function"] == "linear"]
    ranked = [method for method in METHODS if method not in ORACLES]
    assert len(rows) == 8
    for row in rows:
        assert sorted(ranked, key=lambda method: float(row[method]))[:3] == ["15MR", "GESMR", "SAMR"]
