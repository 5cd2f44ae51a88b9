"""The documentation site: every page is in its navigation, every public name in its API, and it builds strictly."""

import os
import subprocess
import sys

import pytest

import gesmr
from helpers import ROOT

DOCS = ROOT / "docs"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1].split()
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert pages - set(navigation) == set()


def test_every_public_name_has_its_place_in_the_api():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md")).replace("\\_", "_")
    submodules = {"analysis", "comparing", "noise", "problems"}
    names = {f"gesmr.{name}" for name in gesmr.__all__}
    for module in submodules:
        names |= {f"gesmr.{module}.{name}" for name in getattr(getattr(gesmr, module), "__all__", [])}
    names -= {f"gesmr.{module}" for module in submodules} | {"gesmr.comparing.compare"}
    described = {line.split()[1] for line in text.splitlines() if line.startswith(("## ", "::: "))}
    assert names - described == set()


def test_it_builds_strictly_with_no_dead_link_and_nothing_external(tmp_path):
    pytest.importorskip("mkdocs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    check = [sys.executable, str(ROOT / "scripts/check_site.py"), str(tmp_path)]
    for command in (build, check):
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
