"""Small runs that several test files start from."""

import gesmr


def start(controller, function="sphere", dim=3, std=1.0, num_children=12, seed=0, dtype=None, truncation=0.5):
    """A GA, its problem and an evaluated first population."""
    problem = gesmr.problems.functions.get(function, dim, std)
    ga = gesmr.GA(controller, num_children, truncation)
    population = problem.init(seed, num_children + 1, dtype)
    return ga, problem, ga.init(seed, population, problem(population))
