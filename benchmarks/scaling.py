"""What a generation costs on many workers and many devices: measured here in small, simulated and computed in large.

    python benchmarks/scaling.py --measure                     # three minutes, with ray: results/scaling/measured.json
    python benchmarks/scaling.py --write docs/scaling.md       # tables and figure from that

`simulator.py` is the model of the workers; the other parts are the formulas of docs/scaling.md.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from common import conditions, has_marks, marks, replace_table
from simulator import Cluster, simulate

import gesmr

MEASURED = Path(__file__).parents[1] / "results" / "scaling" / "measured.json"
POOLS, SECONDS, SPREADS = (2, 4, 8, 16), (0.001, 0.01, 0.05), (0.0, 0.5)
CANDIDATES, GENERATIONS = 64, 3
GRAINS = {"pool": 0.002, "ray": 0.02}  # seconds a range of a `gesmr.Pool` or `gesmr.Ray` should last
SENT = (10, 1_000, 100_000)  # variables of what is sent
ASKED = ((100, 10), (100, 1_000), (100, 100_000), (1_000, 10), (1_000, 10_000), (10_000, 10), (10_000, 1_000))
EXCHANGED = ((2, 2**20), (2, 2**26), (4, 2**23), (8, 2**20), (8, 2**23), (8, 2**26))  # devices, bytes of a population


class Point(NamedTuple):
    """Something measured and what the model says."""

    what: str
    measured: float
    predicted: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


# what is measured


def sleeping(x: np.ndarray, mean: float, spread: float) -> float:
    """Lasts a lognormal time, the same for the same x. Its value is how long it did: sleep wakes up late."""
    start = time.perf_counter()
    normal = NormalDist().inv_cdf((zlib.crc32(x.tobytes()) + 0.5) / 2**32)
    time.sleep(mean * math.exp(spread * normal - spread**2 / 2))
    return time.perf_counter() - start


def nothing(_: Any) -> float:
    return 0.0


def best(call: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def ask_and_tell(children: int, dim: int) -> float:
    """Seconds of the optimiser in a generation."""
    optimizer = gesmr.Optimizer(np.zeros(dim, np.float32), popsize=children + 1, rng=0)
    values = np.arange(children + 1.0)

    def generation() -> None:
        rows = optimizer.ask()
        optimizer.tell(rows, values[: len(rows)])

    for _ in range(2):
        generation()  # compiles
    return best(generation, 15)


def generation(pool: Any, function: Callable, args: tuple, x0: np.ndarray, seed: int) -> tuple[float, np.ndarray]:
    """Seconds of a generation of `minimize` by a pool, and its values."""
    stamps = []
    result = gesmr.minimize(function, x0, args=args, popsize=CANDIDATES + 1, rng=seed, maxiter=3, workers=pool,
                            callback=lambda _: stamps.append(time.perf_counter()))  # fmt: skip
    return stamps[-1] - stamps[-2], result.population_fitness[1:]


EXCHANGE = """
import sys, time, json, jax, jax.numpy as jnp
from functools import partial
from jax.sharding import Mesh, PartitionSpec as P
import numpy as np
cases = json.loads(sys.argv[1])
for count, size in cases:
    mesh = Mesh(np.array(jax.devices()[:count]), ("x",))
    whole = jax.device_put(np.zeros((128, size // 512), np.float32), jax.NamedSharding(mesh, P(None, "x")))
    exchange = partial(jax.lax.all_to_all, axis_name="x", split_axis=0, concat_axis=1, tiled=True)
    call = jax.jit(jax.shard_map(exchange, mesh=mesh, in_specs=P(None, "x"), out_specs=P("x", None)))
    call(whole).block_until_ready()
    times = []
    for _ in range(15):
        start = time.perf_counter(); call(whole).block_until_ready(); times.append(time.perf_counter() - start)
    print(min(times))
"""


def exchanges() -> list[float]:
    """Seconds of the all-to-all that makes whole children of parts, on virtual devices of this CPU."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, "-c", EXCHANGE, json.dumps(EXCHANGED)]
    return [float(line) for line in subprocess.check_output(command, env=environment, text=True).split()]


def sent(pool: Any, dim: int) -> float:
    """Seconds of the driver for sending a candidate and taking its value in."""
    seconds = min(generation(pool, nothing, (), np.zeros(dim), seed)[0] for seed in range(5))
    return max(seconds - ask_and_tell(CANDIDATES, dim), 1e-6) / CANDIDATES


def sent_by_ray() -> list[list[float]]:
    """The same for Ray's actors, in a cluster of its own on this machine."""
    import ray  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as directory:
        ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=2**28, _temp_dir=directory)
        try:
            with gesmr.Ray(actors=2, chunk=1) as actors:
                return [[8 * dim, sent(actors, dim)] for dim in SENT]
        finally:
            ray.shutdown()


def measure() -> dict[str, Any]:
    points = []
    with gesmr.Pool(2, chunk=1) as pool:
        ranges = [[8 * dim, sent(pool, dim)] for dim in SENT]
    for workers in POOLS:
        with gesmr.Pool(workers) as pool:
            for mean in SECONDS:
                for spread in SPREADS:
                    found = [
                        generation(pool, sleeping, (mean, spread), np.ones(10), seed) for seed in range(GENERATIONS)
                    ]
                    seconds, times = zip(*found, strict=True)
                    points.append({"workers": workers, "mean": mean, "spread": spread, "seconds": seconds,
                                   "times": [np.round(each, 6).tolist() for each in times]})  # fmt: skip
    return {
        "conditions": conditions(("jax", "numpy"), f"{GENERATIONS} generations of each pool"),
        "ask": [[*case, ask_and_tell(*case)] for case in ASKED],
        "pool": ranges,
        "ray": sent_by_ray(),
        "pools": points,
        "exchange": [[*case, seconds] for case, seconds in zip(EXCHANGED, exchanges(), strict=True)],
    }


# the model


def fitted(columns: Sequence[Sequence[float]], seconds: Sequence[float]) -> np.ndarray:
    """Coefficients ≥ 0 that make the relative errors small."""
    from scipy.optimize import nnls  # noqa: PLC0415

    weights = 1 / np.asarray(seconds)
    return nnls(np.asarray(columns, float) * weights[:, None], np.ones(len(weights)))[0]


class Model:
    """Costs of this machine, fitted to what was measured."""

    def __init__(self, measured: dict[str, Any]):
        self.measured = measured
        asked, exchanged = measured["ask"], measured["exchange"]
        self.per_generation, self.per_child, self.per_gene = fitted(
            [(1, children, children * dim) for children, dim, _ in asked], [seconds for *_, seconds in asked]
        )
        self.sending = {}  # seconds per range and per byte
        for kind in GRAINS:
            sizes, seconds = zip(*measured[kind], strict=True)
            self.sending[kind] = fitted([(1, size) for size in sizes], seconds)
        self.per_exchange, self.per_exchanged = fitted(
            [(count, size) for count, size, _ in exchanged], [seconds for *_, seconds in exchanged]
        )

    def ask(self, children: int, dim: int) -> float:
        return self.per_generation + self.per_child * children + self.per_gene * children * dim

    def sent(self, kind: str, size: int) -> float:
        """Seconds of the driver for a range of so many bytes, the answer included."""
        per_range, per_byte = self.sending[kind]
        return per_range + per_byte * size

    def cluster(
        self, workers: int, candidates: int, evaluation: float, dim: int = 10, kind: str = "pool", **options: Any
    ) -> Cluster:
        """Workers as they are here, but as many as one likes. Sending and receiving cost half each."""
        each = self.sent(kind, 8 * dim) / 2
        costs = {"serial": self.ask(candidates, dim), "send": each, "receive": each, "grain": GRAINS[kind]}
        return Cluster(workers, candidates, evaluation, **{**costs, **options})

    def points(self, seed: int) -> Iterator[Point]:
        rng = np.random.default_rng(seed)
        for children, dim, seconds in self.measured["ask"]:
            yield Point(f"ask and tell, N = {children:,}, d = {dim:,}", seconds, self.ask(children, dim))
        for kind, name in (("pool", "a process"), ("ray", "an actor of Ray")):
            for size, seconds in self.measured[kind]:
                yield Point(f"to {name} and back, {size:,} bytes", seconds, self.sent(kind, size))
        for point in self.measured["pools"]:
            cluster = self.cluster(point["workers"], CANDIDATES, point["mean"], spread=point["spread"])
            predicted = np.mean([simulate(cluster, rng, np.array(times)).seconds for times in point["times"]])
            spread = f", spread {point['spread']}" if point["spread"] else ""
            what = f"generation, {point['workers']} processes, {1e3 * point['mean']:g} ms{spread}"
            yield Point(what, float(np.mean(point["seconds"])), float(predicted))
        for count, size, seconds in self.measured["exchange"]:
            predicted = self.per_exchange * count + self.per_exchanged * size
            yield Point(f"exchange, {count} virtual devices, {size / 2**20:g} MiB", seconds, predicted)


def efficiency(cluster: Cluster, seed: int, generations: int = 5) -> float:
    """The share of worker time that is useful, over several generations."""
    found = [simulate(cluster, np.random.default_rng([seed, i])) for i in range(generations)]
    return sum(g.useful for g in found) / (cluster.workers * sum(g.seconds for g in found))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure this machine anew")
    parser.add_argument("--seed", type=int, default=0, help="of the simulations (0)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the tables in it")
    args = parser.parse_args()
    if args.write and not has_marks(args.write, "scaling"):
        parser.error(f"--write needs a file with {' and '.join(marks('scaling'))}, got {args.write}")
    if not args.measure and not MEASURED.exists():
        parser.error(f"{MEASURED} is not there: --measure makes it")
    return args


def main() -> int:
    args = arguments()
    if args.measure:
        MEASURED.parent.mkdir(parents=True, exist_ok=True)
        MEASURED.write_text(json.dumps(measure(), indent=None) + "\n", encoding="utf-8")
    import scaling_page  # noqa: PLC0415

    model = Model(json.loads(MEASURED.read_text(encoding="utf-8")))
    text = scaling_page.page(model, args.seed)
    if args.write:
        scaling_page.draw(model, args.seed)
        replace_table(args.write, "scaling", text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.modules["scaling"] = sys.modules["__main__"]
    sys.exit(main())
