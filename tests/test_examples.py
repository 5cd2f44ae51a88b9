"""The examples run as their readers would run them."""

import subprocess
import sys
from pathlib import Path

import gesmr
from gesmr.problems.functions import FORMULAS

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *options], capture_output=True, encoding="utf-8", timeout=600, check=False
    )


def test_compare_methods_reports_every_method_and_a_winner():
    done = run_example("compare_methods.py", "--dim", "2", "--generations", "12", "--seeds", "2")
    assert done.returncode == 0, done.stderr
    first_words = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    assert {*gesmr.PAPER_NAMES, "OFMR†", "LAMR-100†"} <= first_words
    winner, _, _ = done.stdout.splitlines()[-1].partition(" won:")
    assert winner in gesmr.PAPER_NAMES
    assert "[11/11]" in done.stderr


def test_compare_methods_names_the_functions_it_accepts():
    done = run_example("compare_methods.py", "--function", "unknown")
    assert done.returncode == 2
    assert all(name in done.stderr for name in ("unknown", *FORMULAS))


def test_compare_methods_names_the_option_that_is_out_of_range():
    done = run_example("compare_methods.py", "--function", "rosenbrock", "--dim", "1")
    assert done.returncode == 2
    assert "--dim must be at least 2 for rosenbrock" in done.stderr
