"""`pytest --quick`: the first case of every test, without those that are on record as taking long.

The record, durations.json, has tests whose first case takes more than 0.7 s of processor time, with what their
fixtures take. `make durations` writes it; a test that is not in it is taken to be quick.
"""

import json
import os
from collections.abc import Generator
from typing import Any

import pytest

from . import TESTS

RECORD = TESTS / "durations.json"
LONG = 0.7  # seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gesmr")
    group.addoption("--quick", action="store_true", help="the first case of every test that does not take long")
    group.addoption("--record-durations", action="store_true", help=f"the first case of every test, into {RECORD.name}")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-durations"):
        config.pluginmanager.register(_Recorder())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    recording, quick = config.getoption("--record-durations"), config.getoption("--quick")
    if not (recording or quick):
        return
    seen = set() if recording else set(json.loads(RECORD.read_text()))
    kept, left = [], []
    for item in items:
        wanted = _test(item) not in seen and item.get_closest_marker("slow") is None
        (kept if wanted else left).append(item)
        if wanted:
            seen.add(_test(item))
    config.hook.pytest_deselected(items=left)
    items[:] = kept


class _Recorder:
    """What tests and their fixtures take. A fixture of a module is counted for every test that uses it: whichever of
    them comes first has to make it."""

    def __init__(self):
        self.fixtures: dict[tuple[str, str], float] = {}
        self.tests: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
        start = _processor_seconds()
        made = yield
        self.fixtures[_file(request.node), fixturedef.argname] = _processor_seconds() - start
        return made

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, Any]:
        start = _processor_seconds()
        done = yield
        fixtures = sum(self.fixtures.get((_file(item), name), 0.0) for name in item.fixturenames)
        self.tests[_test(item)] = _processor_seconds() - start + fixtures
        return done

    def pytest_sessionfinish(self) -> None:
        found = {test: round(seconds, 1) for test, seconds in sorted(self.tests.items()) if seconds > LONG}
        RECORD.write_text(json.dumps(found, indent=1) + "\n")


def _test(item: pytest.Item) -> str:
    """The name of a test without its case."""
    return item.nodeid.partition("[")[0]


def _file(node: pytest.Item) -> str:
    return node.nodeid.partition("::")[0]


def _processor_seconds() -> float:
    """Of this process and the ones that it has started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
