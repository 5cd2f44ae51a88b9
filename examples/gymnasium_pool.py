"""Evolve a policy for a Gymnasium environment, on a pool of processes.

    python examples/gymnasium_pool.py --workers 4
    python examples/gymnasium_pool.py --env Acrobot-v1

The policy is a small network, and to be maximised is its mean return over five episodes. Each process makes its own
environment; the pool's timeout ends one that hangs. Draws the best return of every generation, and prints the returns
of the best policy in episodes that the search has not seen.
"""

import argparse

import numpy as np

import gesmr


def bar(value: float, low: float, high: float, width: int = 40) -> str:
    return "█" * round(width * (value - low) / max(high - low, 1e-9))


def main(quick: bool, env: str, workers: int):
    problem = gesmr.problems.gym.get(env, hidden=16, seed=0)
    popsize, maxiter = (16, 3) if quick else (51, 20)
    best = []  # returns: the value, which is minimised, is minus the mean return
    with gesmr.Pool(workers, timeout=60) as pool:
        result = gesmr.minimize(
            problem,
            problem.x0,
            init=problem.init(0, popsize),
            popsize=popsize,
            maxiter=maxiter,
            target=-500 if env == "CartPole-v1" else None,  # the most there is
            workers=pool,
            callback=lambda so_far: best.append(-so_far.fun),
            rng=0,
        )

    print(f"{env}: {problem.num_genes} weights, {result.nfev} evaluations of 5 episodes by {workers} processes")
    print("generation  best return")
    for generation, value in enumerate(best):
        print(f"{generation:>10}  {value:>11.1f} {bar(value, min(0.0, *best), max(best))}")
    unseen = problem.held_out(20).returns(result.x)
    print(f"20 unseen episodes: mean {np.mean(unseen):.1f}, lowest {min(unseen):.1f}, highest {max(unseen):.1f}")


if __name__ == "__main__":  # the processes of the pool import this file
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run, for a first look")
    parser.add_argument("--env", default="CartPole-v1", help="an environment's name (CartPole-v1)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    main(**vars(parser.parse_args()))
