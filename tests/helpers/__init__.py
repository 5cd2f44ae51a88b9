"""What test files share, and where things are."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DATA = TESTS / "data"
PRINTED = DATA / "table1_final_elite.csv"  # the paper's Table 1, as printed
