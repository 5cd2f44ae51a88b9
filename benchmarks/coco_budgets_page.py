"""The rule for the population size, and the tables of what `coco_budgets.py` found: nothing is run."""

NAME = "coco-budgets"
BUDGETS = (50, 200, 1000)  # evaluations per variable
DIMS = (2, 3, 5, 10, 20, 40)
SIZES = (6, 9, 13, 21, 31, 51, 101, 201)
TWO_GROUPS = (9, 13, 21)  # sizes that were also tried with two groups of rates


def popsize(maxfun: int) -> int:
    """The rule: half the root of the budget. Chosen on the odd functions, with at least four groups of rates."""
    return min(max(round(maxfun**0.5 / 2), 9), 101, maxfun)
