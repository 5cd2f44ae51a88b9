"""COCO's 24 functions of the suite `bbob`, and the files that its own post-processing reads.

    pip install coco-experiment
    python examples/coco_suite.py --out exdata

COCO counts evaluations, knows the optima and writes the records: `pip install cocopp && python -m cocopp exdata/gesmr`
draws its figures from them. Prints how close to the optimum gesmr and random search came on every function. How other
optimisers do on them, many of them better, is in docs/benchmarks.md.
"""

import argparse
from pathlib import Path

import cocoex
import numpy as np

import gesmr

# fmt: off
NAMES = [
    "sphere", "ellipsoid", "Rastrigin", "Büche-Rastrigin", "linear slope",
    "attractive sector", "step ellipsoid", "Rosenbrock", "Rosenbrock, turned",
    "ellipsoid, turned", "discus", "bent cigar", "sharp ridge", "different powers",
    "Rastrigin, turned", "Weierstrass", "Schaffers F7", "Schaffers F7, ill-cond.", "Griewank-Rosenbrock",
    "Schwefel", "Gallagher, 101 peaks", "Gallagher, 21 peaks", "Katsuura", "Lunacek",
]
# fmt: on


def digits(gap: float) -> str:
    """A bar with a block for every power of ten from 1000 down to 10⁻⁸, COCO's last target."""
    return "█" * int(np.clip(np.floor(3 - np.log10(max(gap, 1e-8)) + 1e-9), 0, 11))


def main(out: Path | None, dim: int, budget: int, quick: bool):
    if quick:
        dim, budget = 2, 100
    suite = cocoex.Suite("bbob", "instances: 1", f"dimensions: {dim}")
    options = {"result_folder": "gesmr", "algorithm_name": "gesmr"}
    observer = out and cocoex.Observer("bbob", {"outer_folder": str(out), **options})
    ahead = 0
    print(f"{'f':>2} {'in ' + str(dim) + ' variables':24} {'random':>8} {'gesmr':>8}  digits from 1000 to 1e-8")
    for number, (name, problem) in enumerate(zip(NAMES, suite, strict=True), start=1):
        bare = cocoex.BareProblem("bbob", number, dim, 1)  # for many rows at a time, and neither counted nor recorded
        best = bare.best_value()
        rng = np.random.default_rng(number)
        bounds = list(zip(problem.lower_bounds, problem.upper_bounds, strict=True))
        random = bare(rng.uniform(*np.transpose(bounds), (budget * dim, dim))).min() - best
        if observer:
            problem.observe_with(observer)
        x0 = rng.uniform(*np.transpose(bounds))
        result = gesmr.minimize(problem, x0, bounds=bounds, maxfun=budget * dim, target=best + 1e-8, rng=number)
        problem.free()
        gap = result.fun - best
        ahead += gap < random
        print(f"{number:>2} {name:24} {random:>8.1e} {max(gap, 0):>8.1e}  {digits(gap)}")
    print(f"closer than random search, with {budget * dim} evaluations each, on {ahead} of 24")
    if observer:
        print("wrote", observer.result_folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="directory for the files of COCO's post-processing")
    parser.add_argument("--dim", type=int, default=5, choices=(2, 3, 5, 10, 20, 40), help="variables (5)")
    parser.add_argument("--budget", type=int, default=1000, help="evaluations per variable (1000)")
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    main(**vars(parser.parse_args()))
