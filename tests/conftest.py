import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")  # or tests would write to the user's cache

import jax
import pytest

from helpers.runs import CONTROLLERS
from helpers.samples import sample  # noqa: F401 - a fixture

pytest_plugins = ["helpers.quick"]


@pytest.fixture(params=CONTROLLERS)
def controller(request):
    return CONTROLLERS[request.param]


@pytest.fixture
def x64():
    """Double precision for the length of a test."""
    with jax.enable_x64(True):
        yield
