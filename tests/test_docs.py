"""Every Python example in the README and the docs runs as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{i}")
    for page in PAGES
    for i, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M))
]


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("source", EXAMPLES)
def test_example(source):
    names = {"__name__": "example"}
    exec(compile(source, "example", "exec"), names)
    assert "state" in names or "table" in names
