"""Time of a generation's evaluation of convolutional networks, beside `vmap` of plain convolutions, in one run.

    python benchmarks/images.py

On a CPU the figure is the ratio of the two, best of five calls each by turns. On a GPU it is also the time for 100
networks and 5,000 images and what share of the card's measured rate it reaches. Exit status 1 if one is missed.
"""

import argparse
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from gesmr.problems.datasets import Labelled
from gesmr.problems.images import Images, problem_of
from gesmr.problems.networks import ConvNet

RATIO_ON_A_CPU, MILLISECONDS_ON_A_GPU = 4.0, 40.0
SEEN, WHOLE = 2 * (400 * 90 + 64 * 900 + 4 * 900 + 200), 2 * (676 * 90 + 121 * 900 + 9 * 900 + 200)  # operations


@jax.jit
def plain(parameters: Array, images: Array, labels: Array) -> Array:
    """Losses `f[N]` as one would write them: a network for whole images `f[n, 28, 28, 1]`, under vmap."""

    def loss(vector: Array) -> Array:
        *convolutions, hidden, last = ConvNet().unpack(vector)
        x = images
        for weights, biases in convolutions:
            axes = ("NHWC", "OIHW", "NHWC")
            x = lax.conv_general_dilated(x, weights, (1, 1), "VALID", dimension_numbers=axes, precision="highest")
            window = (1, 2, 2, 1)
            x = jnp.maximum(lax.reduce_window(x + biases, -jnp.inf, lax.max, window, window, "VALID"), 0)
        x = jnp.maximum(jnp.matmul(x[:, 0, 0], hidden[0].T, precision="highest") + hidden[1], 0)
        x = jnp.matmul(x, last[0].T, precision="highest") + last[1]
        return -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(len(labels)), labels])

    return jax.vmap(loss)(parameters)


@jax.jit
def ours(parameters: Array, problem: Images) -> Array:
    return problem(parameters)


def seconds(call: Callable[[], Array]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def rate() -> float:
    """Operations per second of a large product in full precision."""
    size = 1024 if jax.default_backend() == "cpu" else 8192
    matrix = jnp.ones((size, size))
    product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
    product(matrix).block_until_ready()
    return 2 * size**3 / min(seconds(lambda: product(matrix)) for _ in range(5))


def main() -> int:
    on_a_cpu = jax.default_backend() == "cpu"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=20 if on_a_cpu else 100)
    parser.add_argument("--images", type=int, default=500 if on_a_cpu else 5000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    raw = random.integers(0, 256, (options.images, 28, 28)).astype(np.uint8)
    labels = random.integers(0, 10, options.images).astype(np.uint8)
    problem = problem_of(Labelled(raw, labels))
    population = 2 * problem.init(0, options.networks)
    whole = jnp.asarray(raw[..., None] / np.float32(255))
    calls = {
        "vmap of plain convolutions": lambda: plain(population, whole, problem.labels),
        "gesmr": lambda: ours(population, problem),
    }
    losses = [np.asarray(call()) for call in calls.values()]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    times = {name: [] for name in calls}
    for _ in range(options.repeats):
        for name, call in calls.items():
            times[name].append(seconds(call))
    best = {name: min(taken) for name, taken in times.items()}
    peak, evaluations = rate(), options.networks * options.images
    print(
        f"{jax.devices()[0].device_kind}, jax {jax.__version__}: {options.networks} networks, {options.images} images"
    )
    for name, operations in (("vmap of plain convolutions", WHOLE), ("gesmr", SEEN)):
        share = evaluations * operations / best[name] / peak
        print(f"{name:28s} {1e3 * best[name]:9.2f} ms (median {1e3 * np.median(times[name]):.2f}), {share:.0%} of the "
              f"rate of a large product ({peak / 1e12:.2f} TFLOP/s)")  # fmt: skip
    ratio = best["vmap of plain convolutions"] / best["gesmr"]
    print(f"ratio {ratio:.1f}" + (f", required {RATIO_ON_A_CPU:g}" if on_a_cpu else ""))
    if on_a_cpu:
        return int(ratio < RATIO_ON_A_CPU)
    if (options.networks, options.images) != (100, 5000):
        return 0
    print(f"required: at most {MILLISECONDS_ON_A_GPU:g} ms")
    return int(1e3 * best["gesmr"] > MILLISECONDS_ON_A_GPU)


if __name__ == "__main__":
    sys.exit(main())
