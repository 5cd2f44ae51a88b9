"""How figures look: methods and functions that no table of looks knows too, and what is kept of them as an image."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from gesmr.lab.show.figures import LEAPING, LINES, colour_of, draw, draw_rate, in_order, legend, look, save_small, style
from gesmr.lab.show.resolution import resolved


def test_a_new_method_is_drawn_and_comes_last_in_the_legend():
    x = np.arange(1, 9)
    with style():
        figure = Figure()
        axes = figure.subplots()
        for method in ("MINE", "GESMR"):
            draw(axes, method, x, x, x - 1, x + 1)
        legend(figure, ["MINE", "GESMR"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GESMR", "MINE"]
    assert in_order(["MINE", *reversed(LINES), "MINE"]) == [*LINES, "MINE"]
    assert look("MINE") == look("MINE")
    assert look("MINE") not in LINES.values()


def test_a_new_function_has_a_colour_and_a_floor():
    assert colour_of("mine").startswith("#")
    np.testing.assert_array_equal(resolved("mine", np.array([-1.0, 0.0, 1.0])), [1e-10, 1e-10, 1.0])


def test_a_kept_figure_is_large_and_its_lines_keep_their_colours(tmp_path):
    x = np.arange(50)
    with style():
        figure = Figure(figsize=(4.0, 3.0))
        axes = figure.subplots()
        for i, method in enumerate(LINES):
            axes.plot(x, 0 * x + i, color=look(method).colour, linewidth=3)
    save_small(figure, tmp_path / "kept.png")
    with Image.open(tmp_path / "kept.png") as image:
        assert image.width >= 1600
        assert image.mode == "RGB"
        there = np.array([colour for _, colour in image.getcolors(1 << 24) or ()])
    for own in LINES.values():
        assert np.abs(there - 255 * np.array(to_rgb(own.colour))).max(axis=1).min() <= 4.5


def test_a_rate_that_leaps_is_a_band_with_a_smooth_line():
    x, leaps = np.arange(200), np.where(np.arange(200) % 2, 1e-3, 1e-1)
    with style():
        figure = Figure()
        leaping, steady = figure.subplots(1, 2)
        for axes, method in ((leaping, LEAPING[0]), (steady, "SAMR")):
            axes.set_yscale("log")
            axes.set_ylim(1e-4, 1)
            draw_rate(axes, method, x, leaps, leaps, leaps)
        legend(figure, [LEAPING[0], "SAMR"], bands="± 1 standard error", rates=True)
    (line,) = leaping.get_lines()
    assert np.log10(line.get_ydata()[20:-20]) == pytest.approx(-2, abs=0.2)
    band = leaping.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((1e-3, 1e-1))
    np.testing.assert_array_equal(steady.get_lines()[-1].get_ydata(), leaps)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [LEAPING[0], "SAMR", "± 1 standard error", "Range of UCB's rate"]


def test_the_lab_draws_in_the_style_of_the_library():
    from gesmr.plotting import STYLE  # noqa: PLC0415

    with style():
        assert {name: matplotlib.rcParams[name] for name in STYLE if name != "font.family"} == {
            name: value for name, value in STYLE.items() if name != "font.family"
        }
