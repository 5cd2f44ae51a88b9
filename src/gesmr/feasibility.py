"""Solutions under constraints: feasible before infeasible, infeasible by how far, and what a change of them is worth.

A violation is how far a solution is from satisfying all constraints, 0 if it does. What is infeasible has no value: its
fitness is `inf`, whatever the objective says there.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array


def cleaned(fitness: Array, violation: Array | None) -> tuple[Array, Array | None]:
    """Fitness and violation `f[n]` as states hold them: no NaN, and no fitness of what is infeasible."""
    fitness = jnp.where(jnp.isfinite(fitness), fitness, jnp.inf)
    if violation is None:
        return fitness, None
    violation = jnp.where(jnp.isfinite(violation), jnp.maximum(violation, 0), jnp.inf).astype(fitness.dtype)
    return jnp.where(violation > 0, jnp.inf, fitness), violation


def best(fitness: Array, violation: Array | None) -> Array:
    """The index `i32[]` of the best."""
    if violation is None:
        return jnp.argmin(fitness)
    least = violation == jnp.min(violation)
    return jnp.argmin(jnp.where(least, jnp.minimum(fitness, np.finfo(fitness.dtype).max), jnp.inf))


def comparable(
    parent_fitness: Array, parent_violation: Array | None, child_fitness: Array, child_violation: Array | None
) -> tuple[Array, Array]:
    """Numbers `f[N]` for parents and their children, whose differences mean the same for all of a generation.

    They are the fitness of what is feasible. What is not lies above the worst feasible of all, by its violation. Where
    both are infeasible, the violations themselves: that worst may be so large that they would be lost beside it.
    """
    if parent_violation is None or child_violation is None:
        return parent_fitness, child_fitness
    both = jnp.concatenate([parent_fitness, child_fitness])
    worst = jnp.max(jnp.where(jnp.isfinite(both), both, -jnp.inf))
    worst = jnp.where(jnp.isfinite(worst) & ((parent_violation == 0) | (child_violation == 0)), worst, 0)

    def on_scale(fitness: Array, violation: Array) -> Array:
        return jnp.where(violation > 0, worst + violation, fitness)

    return on_scale(parent_fitness, parent_violation), on_scale(child_fitness, child_violation)
