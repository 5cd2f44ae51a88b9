"""Figures: the files, the looks, the data that is plotted and the ranks that are written."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from gesmr.lab.errors import LabError, StorageError
from gesmr.lab.run.lanes import METHODS
from gesmr.lab.show.figures import FORMATS, LEAPING, LINES, save
from gesmr.lab.studies.functions.figures import DEFAULT_ROWS, curves, make_figures, overview, ranks
from gesmr.lab.studies.functions.results import PRINTED, Curves, Results, Row

ACKLEY, LINEAR = Row("ackley", 2, 1.0), Row("linear", 2, 1.0)
GENERATION = np.arange(1, 41)


def results(rows=(ACKLEY, LINEAR), methods=METHODS, seeds=3) -> Results:
    """Elite values that halve with every generation (and then are 0), or on Linear double from −1."""
    rng = np.random.default_rng(0)
    shape = len(rows), len(methods), seeds
    histories = {}
    for row in rows:
        for method in methods:
            factor = np.exp(0.3 * rng.normal(size=(seeds, 1)))
            elite = factor * (-(2.0**GENERATION) if row.function == "linear" else 0.5**GENERATION)
            elite[:, 30:] *= row.function == "linear"
            log_rate = rng.normal(-3, 1, (seeds, len(GENERATION)))
            histories[row, method] = Curves(GENERATION, elite.astype(np.float32), log_rate.astype(np.float32))
    tables = {name: rng.random(shape) for name in ("final", "mean", "rate_error", "log_rate")}
    return Results(PRINTED, tuple(rows), tuple(methods), tuple(range(seeds)), **tables, seconds={},
                   histories=histories, used_rate_error=tables["rate_error"])  # fmt: skip


def plotted(axes, method) -> np.ndarray:
    """x and y of a method's line."""
    return np.array(next(line for line in axes.lines if line.get_label() == method).get_data())


def band(axes, number) -> np.ndarray:
    """Corners `f[.., 2]` of a band."""
    return np.array(axes.collections[number].get_paths()[0].vertices)


def cell_texts(axes) -> dict[tuple[int, int], str]:
    """By line (0: the mean ranks) and column."""
    return {(int(y), int(x)): text.get_text() for text in axes.texts for x, y in [text.get_position()]}


def column_heads(axes) -> list[str]:
    return [text.get_text() for text in axes.get_xticklabels()]


def test_every_method_looks_different():
    assert set(LINES) == set(METHODS)
    assert len({(look.colour, look.dashes) for look in LINES.values()}) == len(LINES)
    assert len({look.marker for look in LINES.values()}) == len(LINES)


def write(data, directory, rows=()) -> list[Path]:
    made = make_figures(data, rows)
    return [path for name, (_, figure) in made.items() for path in save(figure, directory / name)]


def test_files_are_valid_and_the_same_from_every_thread(tmp_path):
    data = results(rows=(ACKLEY,), methods=("LAMR-100", "SAMR", "GESMR"))
    with ThreadPoolExecutor(2) as pool:
        by_default = pool.submit(write, data, tmp_path / "new" / "directory")
        by_name = pool.submit(write, data, tmp_path, ["ackley,2,1"])
    paths, again = by_default.result(), by_name.result()
    assert [path.name for path in paths] == [
        f"{name}.{suffix}" for name in ("curves", "overview") for suffix in FORMATS
    ]
    assert [path.name for path in again[:3]] == [f"curves_ackley-2d-std1.{suffix}" for suffix in FORMATS]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    for pdf, svg, png in (paths[:3], paths[3:]):
        content = pdf.read_bytes()
        assert content.startswith(b"%PDF")
        assert b"/FontFile2" in content  # TrueType
        assert b"/Type3" not in content
        assert ElementTree.fromstring(svg.read_bytes()).tag == "{http://www.w3.org/2000/svg}svg"
        content = png.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert int.from_bytes(content[16:20]) == 7 * 240  # pixels across


def test_a_figure_saved_twice_is_the_same(tmp_path):
    figure = curves(results(rows=(ACKLEY,), methods=("FMR", "GESMR")))
    one, other = ([path.read_bytes() for path in save(figure, tmp_path / name, ("pdf", "svg"))] for name in "ab")
    assert one == other


def test_a_name_keeps_its_dots_and_other_formats_are_refused(tmp_path):
    assert save(Figure(), tmp_path / "std0.5", ("png",)) == [tmp_path / "std0.5.png"]
    with pytest.raises(ValueError, match="formats must be one of 'pdf', 'svg', 'png', got 'gif'"):
        save(Figure(), tmp_path / "x", ("gif",))
    with pytest.raises(StorageError, match=r"could not write .*std0\.5\.png"):
        save(Figure(), tmp_path / "std0.5.png" / "x", ("png",))


def test_curves_show_means_and_standard_errors():
    data = results()
    elite, rate = curves(data, [ACKLEY]).axes
    for method in METHODS:
        history = data.curves(ACKLEY, method)
        np.testing.assert_allclose(plotted(elite, method), [GENERATION, history.elite.mean(0)], rtol=1e-6)
        if method not in LEAPING:
            rates = np.exp(history.log_rate.mean(0))
            np.testing.assert_allclose(plotted(rate, method), [GENERATION, rates], rtol=1e-5)
    corners = band(rate, 0)
    log_rate = data.curves(ACKLEY, METHODS[0]).log_rate.astype(float)
    upper = np.exp(log_rate.mean(0) + log_rate.std(0, ddof=1) / np.sqrt(3))
    np.testing.assert_allclose(corners[corners[:, 0] == 7, 1].max(), upper[6], rtol=1e-5)


def test_scales():
    data = results()
    (ackley, ackley_rate), (linear, linear_rate) = np.reshape(np.array(curves(data, [ACKLEY, LINEAR]).axes), (2, 2))
    assert ackley.get_yscale() == ackley_rate.get_yscale() == linear_rate.get_yscale() == "log"
    assert linear.get_yscale() == "symlog"
    smallest = min(data.curves(ACKLEY, method).elite[:, 29].mean() for method in METHODS)
    assert smallest / 10 < ackley.get_ylim()[0] < smallest  # zeros and bands that reach below leave at the bottom
    assert band(ackley, 0)[:, 1].min() >= ackley.get_ylim()[0]


def test_zero_throughout_infinities_and_huge_rates(tmp_path):
    data = results(methods=("SAMR", "GESMR"))
    elite = np.zeros((3, 40), np.float32)
    data.histories[ACKLEY, "SAMR"] = Curves(GENERATION, elite, np.full((3, 40), 800.0))
    data.histories[ACKLEY, "GESMR"] = Curves(GENERATION, elite, np.full((3, 40), -690.0))
    data.histories[LINEAR, "GESMR"] = Curves(GENERATION, np.full((3, 40), -np.inf), np.full((3, 40), 690.0))
    figure = curves(data)
    assert figure.axes[0].get_yscale() == "linear"
    save(figure, tmp_path / "x", ("pdf",))


def test_one_seed_has_no_bands(tmp_path):
    data = results(seeds=1)
    figure = curves(data)
    assert [len(axes.collections) for axes in figure.axes] == [0, len(LEAPING)] * 2  # those are ranges in time
    assert "± 1 standard error" not in {text.get_text() for text in figure.legends[0].get_texts()}
    np.testing.assert_array_equal(plotted(figure.axes[0], "GESMR")[1], data.curves(ACKLEY, "GESMR").elite[0])
    save(figure, tmp_path / "x", ("png",))


def test_methods_without_runs_are_left_out():
    data = results(rows=DEFAULT_ROWS[:2], methods=("FMR", "SAMR", "GESMR"))
    del data.histories[DEFAULT_ROWS[1], "FMR"], data.histories[DEFAULT_ROWS[0], "SAMR"]
    figure = curves(data)
    labels = [{line.get_label() for line in axes.lines} & set(METHODS) for axes in figure.axes]
    assert labels == [{"FMR", "GESMR"}] * 2 + [{"SAMR", "GESMR"}] * 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["FMR", "SAMR", "GESMR", "± 1 standard error"]


def test_which_rows_are_shown():
    def titles(figure: Figure) -> list[str]:
        return [axes.get_title(loc="left") for axes in figure.axes[::2]]

    some = results(rows=(ACKLEY, *DEFAULT_ROWS[1:3]), methods=("GESMR",))
    assert titles(curves(some)) == ["Griewank 100-D, std 10", "Rastrigin 100-D, std 10"]
    other = results(rows=(ACKLEY, Row("ackley", 30, 1.0), Row("sphere", 30, 1.0)), methods=("GESMR",))
    assert titles(curves(other)) == ["Ackley 30-D, std 1", "Sphere 30-D, std 1"]
    with pytest.raises(
        LabError, match=r"no runs of Sphere 7-D, std 1; .* ackley, griewank, rastrigin; dimensions 2, 100"
    ):
        curves(some, [Row("sphere", 7, 1.0)])
    for rows in ([], [ACKLEY] * 7):
        with pytest.raises(LabError, match=f"1 to 6 rows, got {len(rows)}"):
            curves(some, rows)


@pytest.mark.parametrize("count", [1, 6])
def test_any_number_of_rows_fits_its_page(count):
    figure = curves(results(methods=("FMR", "GESMR")), [ACKLEY, LINEAR, ACKLEY, LINEAR, ACKLEY, LINEAR][:count])
    figure.draw_without_rendering()
    page = figure.bbox
    legend = figure.legends[0].get_window_extent()
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box is not None
        assert 0 <= box.x0 < box.x1 <= page.x1
        assert legend.y1 <= box.y0 < box.y1 <= page.y1
    assert figure.get_figheight() <= 9.3


NAN = np.nan


def by_hand() -> Results:
    """Two seeds; means of Ackley: FMR 3, SAMR 1, GESMR 1; of Linear: FMR 5, SAMR missing, GESMR −2 (one seed)."""
    data = results(methods=("LAMR-100", "FMR", "SAMR", "GESMR"), seeds=2)
    final = np.array([[[-9, -9], [2, 4], [1, 1], [0, 2]], [[-9, -9], [4, 6], [NAN, NAN], [-2, NAN]]], dtype=float)
    rate_error = np.stack([final[0, :], np.full_like(final[0], NAN)])
    return dataclasses.replace(data, final=final, mean=-final, rate_error=rate_error)


def test_ranks_by_hand():
    data = by_hand()
    np.testing.assert_array_equal(ranks(data, "final"), [[3, 1.5, 1.5], [2, NAN, 1]])
    np.testing.assert_array_equal(ranks(data, "mean"), [[1, 2.5, 2.5], [1, NAN, 2]])


def test_overview_by_hand(tmp_path):
    figure = overview(by_hand())
    final, mean, rate_error = figure.axes
    assert column_heads(final) == ["GESMR", "SAMR", "FMR"]  # mean ranks 1.25, 1.5, 2.5
    assert [text.get_text() for text in final.get_yticklabels()] == [
        "Mean rank",
        "Ackley",
        "2-D, std 1",
        "Linear",
        "2-D, std 1",
    ]
    cells = cell_texts(final)
    assert [cells[0, column] for column in range(3)] == ["1.2", "1.5", "2.5"]
    assert [cells[2, column] for column in range(3)] == ["1.5", "1.5", "3"]
    assert [cells[4, column] for column in range(3)] == ["1", "–", "2"]
    assert column_heads(mean) == ["FMR", "GESMR", "SAMR"]
    assert not any(line == 4 for line, _ in cell_texts(rate_error))  # Linear has no optimum
    assert len(cell_texts(rate_error)) == 2 * 3
    save(figure, tmp_path / "x", ("png",))


def test_overview_without_data_for_a_table_and_without_methods():
    data = by_hand()
    nothing = overview(dataclasses.replace(data, rate_error=np.full_like(data.final, NAN)))
    assert set(cell_texts(nothing.axes[2]).values()) == {"–"}
    with pytest.raises(LabError, match="only oracles"):
        overview(results(methods=("OFMR", "LAMR-100")))


def test_overview_of_all_rows_is_legible():
    functions = ("ackley", "griewank", "rastrigin", "rosenbrock", "sphere", "linear")
    rows = [Row(function, dim, std) for function in functions for dim in (2, 30, 100, 1000) for std in (1.0, 10.0)]
    figure = overview(
        dataclasses.replace(
            results(),
            rows=tuple(rows),
            **{name: np.random.default_rng(1).random((48, 11, 2)) for name in ("final", "mean", "rate_error")},
        )
    )
    figure.draw_without_rendering()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    cell = axes.bbox.width / 9, axes.bbox.height / 55
    assert all(box.width < cell[0] and box.height < cell[1] for box in boxes)
    labels = [text.get_window_extent() for text in axes.get_yticklabels()]
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(labels))
    assert min(label.x0 for label in labels) >= 0
