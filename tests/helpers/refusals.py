"""Calls that must be refused."""

import pytest


def assert_refused(call, exception, words):
    """The call raises `exception`, and its message has all these words."""
    with pytest.raises(exception) as error:
        call()
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{missing} not in: {error.value}"
