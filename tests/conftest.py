import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")  # or tests would write to the user's cache

import jax
import pytest

import gesmr

# One of each kind, for N = 12: K that divides N, K that does not, and as many groups as children.
CONTROLLERS = {
    "FMR": gesmr.controller("FMR"),
    "15MR": gesmr.controller("15MR"),
    "UCB/3": gesmr.controller("UCB/3"),
    "SAMR": gesmr.controller("SAMR"),
    "GESMR": gesmr.GESMR(groups=4),
    "GESMR uneven": gesmr.GESMR(groups=5),
    "GESMR a group each": gesmr.GESMR(groups=12),
    "GESMR-AVG": gesmr.GESMR(groups=4, score="mean"),
    "GESMR-FIX": gesmr.GESMR(groups=4, adapt=False),
    "clipped GESMR": gesmr.Clip(gesmr.GESMR(groups=4), 1e-2, 10.0),
}


@pytest.fixture(params=CONTROLLERS)
def controller(request):
    return CONTROLLERS[request.param]


@pytest.fixture
def x64():
    """Double precision for the length of a test."""
    with jax.enable_x64(True):
        yield
