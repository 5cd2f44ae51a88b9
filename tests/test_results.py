"""The committed results: what they must show, and that the page about them is made of them."""

import csv
import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest

from gesmr.lab.functions.agreement import Cell, read_printed
from gesmr.lab.functions.results import Row
from gesmr.studies.lanes import METHODS, ORACLES

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"


def lines(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_is_made_of_the_results():
    spec = importlib.util.spec_from_file_location("reproduction_page", ROOT / "scripts" / "reproduction_page.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run `make reproduction-page`"


@pytest.mark.parametrize("study", ["landscape", "theorem", "groups", "cmaes"])
def test_the_page_about_why_it_works_says_what_was_found(study):
    (claim,) = json.loads((RESULTS / study / "claims.json").read_text(encoding="utf-8"))
    (line,) = [
        row for row in (ROOT / "docs" / "why.md").read_text(encoding="utf-8").splitlines() if f"[{study}]" in row
    ]
    assert line.endswith(f"| {claim['number']} {claim['verdict']} |")


@pytest.mark.parametrize("study", ["landscape", "theorem", "groups", "cmaes", "images", "control"])
def test_the_readme_says_what_was_found(study):
    (claim,) = json.loads((RESULTS / study / "claims.json").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"[claim {claim['number']} {claim['verdict']}](results/{study}/README.md)" in readme


def test_gesmr_learns_mnist_better_than_a_fixed_rate():
    """1,000 images, five seeds, 1,000 generations: the paper does not print its losses, so the bound is ours."""
    rows = lines(RESULTS / "images" / "images_final.csv")
    chosen = [row for row in rows if (row["Set"], row["images"], row["start"]) == ("MNIST", "1000", "uniform")]
    loss = {row["method"]: float(row["training loss"]) for row in chosen}
    assert loss["GESMR"] <= 1.0
    assert loss["GESMR"] < loss["FMR"]


def test_results_are_small():
    assert sum(path.stat().st_size for path in RESULTS.rglob("*")) < 2_000_000


@pytest.mark.parametrize(("table", "least"), [(1, 350), (2, 350), (3, 348)])
def test_agreement_with_the_printed_tables(table, least):
    """By the rule, from the committed means and standard errors and the printed table, not from a stored verdict."""
    (file,) = (ROOT / "tests" / "data").glob(f"table{table}*.csv")
    printed = read_printed(file)
    cells = [
        Cell(row, method, float(line[method]), float(line[f"{method}_se"]), 40, printed.cells[row, method])
        for line in lines(RESULTS / "paper" / f"table{table}.csv")
        for row in [Row(line["function"], int(line["dim"]), float(line["std"]))]
        for method in METHODS
    ]
    counted = [cell for cell in cells if cell.counted]
    assert len(counted) == 360
    assert sum(cell.agrees for cell in counted) >= least


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
