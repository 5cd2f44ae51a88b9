"""The pages about recombination and about which optimiser to take are made of the committed results."""

import importlib
import math
from collections import Counter

import pytest

from helpers import ROOT

BENCHMARKS, DOCS = ROOT / "benchmarks", ROOT / "docs"


@pytest.fixture(scope="module")
def load():
    """Modules of the benchmarks find each other in their directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module


@pytest.fixture(scope="module")
def script(load):
    return load("choosing_page")


@pytest.fixture(scope="module")
def coco(load):
    return load("coco_beyond_page")


@pytest.mark.parametrize("page", ["choosing.md", "recombination.md"])
def test_the_pages_are_made_of_the_results(script, coco, page, tmp_path):
    copy = tmp_path / page
    copy.write_bytes((DOCS / page).read_bytes())
    script.write([copy])
    coco.write([copy])
    assert copy.read_text("utf-8") == (DOCS / page).read_text("utf-8"), "run `make choosing-page`"


def test_every_table_has_its_place(script, coco):
    text = "".join((DOCS / page).read_text("utf-8") for page in ("choosing.md", "recombination.md"))
    for name in [*script.PAGES, *coco.PAGES]:
        assert text.count(f"<!-- {name} -->") == text.count(f"<!-- /{name} -->") == 1, name


def test_in_the_map_nobody_has_more_than_two_sizes(script, coco):
    """Whose best of many counts looks better than it is."""
    runs = [run for name in (coco.CONFIRMATION, coco.LARGE) for run in script.read(name)]
    assert any(coco.is_between(run.optimizer) for run in runs)
    for place in script.of_coco():
        sizes = Counter(script.algorithm(name) for name in place.means)
        assert max(sizes.values()) <= 2, place


def test_the_later_instances_are_others(script, coco):
    earlier = {run.instance for name in (coco.CHOICE, coco.CONFIRMATION, coco.LARGE) for run in script.read(name)}
    later = {run.instance for run in script.read(coco.WEAK)}
    assert len(later) == 10
    assert not earlier & later


def test_of_two_sizes_the_better_counts(script):
    means = {"DE": 3.0, "DE, own N": 2.0, "GESMR-X": 5.0, "CR-FM-NES, popsize 100": 4.0}
    assert script.at_the_better_size(means) == {"DE": 2.0, "GESMR-X": 5.0, "CR-FM-NES": 4.0}


def test_a_kind_of_problem_by_hand(script):
    """Ellipsoid, cigar and discus: 1, 10 and 100 are 10 in the geometric mean. Who has two of three is left out."""
    functions = ("ellipsoid", "cigar", "discus")
    found = [
        script.Final(function, 30, True, 1.0, False, method, times * value, 40)
        for method, times in (("GESMR-X", 2.0), ("DE, own N", 1.0), ("LAMR-100", 0.1))
        for function, value in zip(functions, (1.0, 10.0, 100.0), strict=True)
    ]
    found += [script.Final(function, 30, True, 1.0, False, "SNES", 0.1, 40) for function in functions[:2]]
    (place,) = script.by_kind(found)
    assert place.means == pytest.approx({"GESMR-X": 20.0, "DE, own N": 10.0})
    assert place.cells()[:6] == ["ill-conditioned", "30, turned", "30,101", "**DE**", "GESMR-X, 2", "2"]


def test_winners_by_hand(script):
    place = script.Place("rugged", "30", "100·d", {"GESMR-X": 1.0, "DE": 4.0, "GESMR": 8.0}, "")
    found = [
        place,
        place._replace(means={"GESMR-X": 6.0, "DE": 2.0}),
        place._replace(means={"GESMR-X": 5.0, "DE": 1.0}),
    ]
    assert script.winners(found)[2:] == ["| rugged | 3 | DE 2, GESMR-X 1 | 3 (1 to 5) | – | – | 8 (8 to 8) |"]


def test_equals_share_a_place(script):
    place = script.Place("smooth", "30", "100·d", {"GESMR-X": 1.0, "DE": 4.0, "CMA-ES": 1.0}, "")
    assert place.cells()[3:6] == ["**GESMR-X, CMA-ES**", "DE, 4", "1"]
    assert script.winners([place])[2].startswith("| smooth | 1 | GESMR-X 1, CMA-ES 1 |")


def test_numbers_have_three_digits_and_words_stay(script):
    cells = ("1.23456", "12 of 50", "0.5", "1234567.0", "7", "GESMR-X", "")
    assert [script.three_digits(cell) for cell in cells] == [
        "1.23", "12 of 50", "0.5", "1.23e+06", "7", "GESMR-X", ""]  # fmt: skip


def test_ratios(script):
    assert [script.times(ratio) for ratio in (1.0, 1.04, 12.34, 967, 5e7, math.inf)] == [
        "1",
        "1",
        "12",
        "970",
        "5e7",
        "inf",
    ]


def test_claims_of_recombination_rest_on_forty_seeds(script):
    """Counted here from the files, row by row."""
    cells = [line.strip("| ").split(" | ") for line in script.lower_in().splitlines()[2:]]
    found = {name: (rows, far, int(seeds)) for name, rows, far, seeds in cells}
    medians = {(*each[:4], each.method): each.median for each in script.finals() if each.main}
    rows = {row[:4] for row in medians}
    for name in ("GESMR", "LAMR-100"):
        lower = sum(medians[*row, "GESMR-X"] < medians[*row, name] for row in rows)
        assert found[name][0] == f"{lower} of 50"
    assert {seeds for *_, seeds in found.values()} == {40}


def test_means_that_cannot_be_told_apart(script):
    """The standard error of a difference of 3 and 4 is 5."""
    assert script.Mean(0.0, 3.0).like(script.Mean(10.0, 4.0))
    assert not script.Mean(0.0, 3.0).like(script.Mean(10.1, 4.0))
