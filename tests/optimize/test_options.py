"""Options: each declared once, and the same wherever it is seen."""

import inspect
from typing import get_type_hints

import numpy as np
import pytest

import gesmr
from gesmr.optimize.options import NAMES, SearchOptions
from gesmr.optimize.stopping import LimitOptions, Limits

OPTIMIZER = inspect.signature(gesmr.Optimizer).parameters
MINIMIZE = inspect.signature(gesmr.minimize).parameters


@pytest.mark.parametrize("name", [name for name in OPTIMIZER if name not in ("x0", "constrained")])
def test_an_option_is_the_same_for_minimize_and_the_optimizer(name):
    assert OPTIMIZER[name].default == MINIMIZE[name].default
    assert OPTIMIZER[name].annotation == MINIMIZE[name].annotation
    assert OPTIMIZER[name].kind == MINIMIZE[name].kind == inspect.Parameter.KEYWORD_ONLY


def test_every_option_is_there():
    """What type checkers are told is what there is, and `minimize` takes all of it."""
    assert list(get_type_hints(LimitOptions)) == list(inspect.signature(Limits).parameters)
    assert set(OPTIMIZER) == {"x0", *get_type_hints(SearchOptions)}
    assert set(MINIMIZE) >= (NAMES | set(OPTIMIZER)) - {"constrained"}  # which is whether there are constraints


@pytest.mark.parametrize("name", ["nonsense", "repeats", "self", "callback"])
def test_names_that_an_optimizer_does_not_have(name):
    with pytest.raises(TypeError, match=name):
        gesmr.Optimizer(np.zeros(2), **{name: 1})
