"""docs/methods.md has every method, and its figures are what its script makes: large, in full colour, small files."""

import re
import subprocess
import sys

import pytest

from gesmr.controllers import PAPER_NAMES
from helpers import ROOT

PAGE = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
PICTURES = sorted((ROOT / "docs/methods").glob("*.png"))


def test_every_method_has_a_section():
    headings = " ".join(re.findall(r"^## (.*)$", PAGE, re.M))
    missing = [name for name in (*PAPER_NAMES, "OFMR", "LAMR-G", "GESMR-X") if name not in headings]
    assert missing == []


def test_the_figures_are_shown_and_good_enough_for_a_large_screen():
    image = pytest.importorskip("PIL.Image")
    assert {f"methods/{path.name}" for path in PICTURES} == set(re.findall(r"!\[.+?\]\((methods/.+?)\)", PAGE))
    for path in PICTURES:
        with image.open(path) as picture:
            assert (picture.width >= 1600, picture.mode) == (True, "RGB"), path.name
    assert sum(path.stat().st_size for path in PICTURES) < 400_000


@pytest.mark.slow
def test_the_script_makes_the_figures(tmp_path):
    pytest.importorskip("matplotlib")
    script = [sys.executable, ROOT / "scripts/method_pictures.py", tmp_path, "--seeds", "2", "--generations", "12"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in sorted(tmp_path.glob("*.png"))] == [path.name for path in PICTURES]
    named = set(re.findall(r"^\| (\S+) (?:\(oracle\) )?\| \S+ \| \S+ \|$", PAGE, re.M))
    assert set(re.findall(r"^\| (\S+) \| \S+ \| \S+ \|$", done.stdout, re.M)) == named
