"""What no table of looks knows is drawn all the same: a controller or a function that was added to the library."""

import numpy as np
from matplotlib.figure import Figure

from gesmr.lab.show.figures import LINES, colour_of, draw, in_order, legend, look, style
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
