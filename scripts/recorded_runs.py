"""Short runs of everything, as digests: to see that a change of the code changes no number.

    python scripts/recorded_runs.py before.json    writes them, where there is no such file
    python scripts/recorded_runs.py before.json    says what differs from them, where there is

By public names and commands alone, so that it runs on both sides of a change. Bits are those of a machine and its
versions: both sides on the same.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gesmr

STUDIES = {
    "functions": "--dims 2,30 --functions ackley,rosenbrock --seeds 2",
    "mutations": "--functions ackley",
    "landscape": "--functions ackley --dims 2",
    "theorem": "--functions ackley --dims 30",
    "groups": "--functions ackley --seeds 2",
    "sensitivity": "--functions ackley,sphere --dims 30 --seeds 2",
    "control": "--tasks cartpole --methods GESMR,15MR --seeds 1",
    "images": "--tasks mnist --methods GESMR --seeds 1 --images 100",
}


def digest(*parts: Any) -> str:
    found = hashlib.sha256()
    for leaf in jax.tree.leaves(parts):
        array = np.asarray(leaf)
        found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:16]


def evolved() -> Iterator[tuple[str, Callable[[], str]]]:
    problem = gesmr.problems.functions.get("ackley", 7)
    population = problem.init(0, 51)
    bounds = {handling: gesmr.Bounds(-1.0, 2.0, handling) for handling in ("reflect", "clip", "resample")}

    def run(controller: Any, dtype: Any = jnp.float32, limits: Any = None, how: Any = gesmr, **options: Any) -> str:
        members = jnp.clip(population, -1, 2).astype(dtype) if limits else population.astype(dtype)
        ga = gesmr.GA(controller, 50, bounds=limits)
        state = ga.init(1, members, problem(members.astype(jnp.float32)))
        state, history = how.evolve(ga, problem, state, 40, **options)
        return digest(state.population.astype(jnp.float32), state.fitness, state.controller, history)

    for name in gesmr.PAPER_NAMES:
        yield f"evolve {name}", lambda name=name: run(gesmr.controller(name, 50))
    for name, limits in bounds.items():
        yield f"evolve, {name}", lambda limits=limits: run(gesmr.Clip(gesmr.GESMR(), 1e-4, 1.0), limits=limits)
    yield "evolve, bfloat16", lambda: run(gesmr.GESMR(), jnp.bfloat16)
    yield "evolve in batches", lambda: run(gesmr.GESMR(), batch_size=7)
    yield "evolve on two devices", lambda: run(gesmr.GESMR(), devices=2)
    yield "evolve on two devices, bounds", lambda: run(gesmr.SAMR(), limits=bounds["reflect"], devices=2)
    for name, oracle in {"OFMR": gesmr.OFMR(), "LAMR": gesmr.LAMR(window=10)}.items():
        yield name, lambda oracle=oracle: run(gesmr.Fixed(), how=oracle)


def by_jax(x: Any) -> Any:
    return jnp.sum((x - 1) ** 2) + jnp.sum(jnp.cos(5 * x))


def by_numpy(x: Any) -> Any:
    return float(np.sum((x - 1) ** 2) + np.sum(np.cos(5 * x)))


def minimized() -> Iterator[tuple[str, Callable[[], str]]]:
    tree = {"a": np.zeros(3, np.float32), "b": [np.ones((2, 2), np.float32)]}

    def of_tree(x: Any) -> Any:
        return sum(jnp.sum((leaf - 2) ** 2) for leaf in jax.tree.leaves(x))

    def keyed(x: Any, key: Any) -> Any:
        return by_jax(x) + jax.random.normal(key)

    variants: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "jax": (by_jax, np.zeros(5), {}),
        "numpy": (by_numpy, np.zeros(5), {}),
        "double precision": (by_jax, np.zeros(5), {"dtype": "float64"}),
        "bfloat16": (by_jax, np.zeros(5), {"dtype": "bfloat16"}),
        "vectorized, jax": (jax.vmap(by_jax), np.zeros(5), {"vectorized": True, "batch_size": 7}),
        "vectorized, numpy": (lambda xs: np.sum(xs**2, 1), np.ones(5), {"vectorized": True}),
        "a pytree": (of_tree, tree, {"init_std": 0.3}),
        "workers": (by_numpy, np.zeros(5), {"workers": map}),
        "processes": (by_numpy, np.zeros(5), {"workers": 2}),
        "devices": (by_jax, np.zeros(5), {"devices": 2, "bounds": (-2, 2)}),
        "bounds": (by_jax, np.zeros(5), {"bounds": [(-1, 1), (0, None), (None, None), (0, 0), (-5, 5)]}),
        "bounds, numpy": (by_numpy, np.zeros(5), {"bounds": gesmr.Bounds(-1, 2, "clip")}),
        "maximized": (by_jax, np.zeros(5), {"direction": "maximize", "bounds": (-3, 3)}),
        "restarts": (by_jax, np.zeros(5), {"patience": 1, "restarts": 3, "restart_popsize": "double"}),
        "SAMR": (by_jax, np.zeros(5), {"controller": "SAMR"}),
        "keyed": (keyed, np.zeros(5), {"keyed": True, "repeats": 2, "reevaluate": "parents"}),
        "reevaluated, numpy": (by_numpy, np.zeros(5), {"repeats": 2, "reevaluate": "elite"}),
        "init": (by_jax, np.zeros(5), {"init": (np.ones((3, 5)), [1.0, 2.0, 3.0]), "init_std": np.arange(1, 6) / 5}),
    }

    def run(fun: Any, x0: Any, options: dict[str, Any]) -> str:
        result = gesmr.minimize(fun, x0, rng=3, popsize=21, maxiter=30, **options)
        rest = result.population_fitness, result.mutation_rates, result.nit, result.nfev
        return digest(result.x, result.fun, result.population, result.history[:3], *rest)

    for name, variant in variants.items():
        yield f"minimize, {name}", lambda variant=variant: run(*variant)
    yield "ask and tell", asked


def asked() -> str:
    opt = gesmr.Optimizer(np.zeros(4), rng=0, popsize=11, bounds=(-2, 2))
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(8):
            xs = opt.ask()
            opt.tell(xs, [by_numpy(x) for x in xs])
            opt.save(Path(directory, "run"))
            opt = gesmr.Optimizer.load(Path(directory, "run"))
    return digest(opt.result.x, opt.result.population, opt.result.history[:3])


def studied() -> Iterator[tuple[str, Callable[[], str]]]:
    def run(name: str, options: str) -> str:
        with tempfile.TemporaryDirectory() as directory:
            said = command("study", "run", name, "--out", directory, *options.split())
            found = sorted(Path(directory, name, "groups").glob("*.json"))
            groups = [json.loads(path.read_text()) for path in found]
            arrays = [dict(np.load(path.with_name(group["arrays"]))) for path, group in zip(found, groups, strict=True)]
            computed = digest([{n: a for n, a in group.items() if "seconds" not in n} for group in arrays])
            to = Path(directory, "shown")
            for verb in ("table", "figure", "export"):
                said += command("study", verb, name, "--out", directory, "--to", str(to / verb))
            return said or f"{computed} shown {shown(to)}"

    def command(*words: str) -> str:
        """The last line of what went wrong."""
        path = str(Path(sys.executable).with_name("gesmr"))
        done = subprocess.run([path, *words], capture_output=True, text=True, check=False)
        return done.stderr.strip().splitlines()[-1] if done.returncode else ""

    def shown(directory: Path) -> str:
        """Of tables, claims and figures; times and machines are in the other files."""
        found = hashlib.sha256()
        for path in sorted(directory.rglob("*")):
            if path.suffix in (".csv", ".tex", ".pdf") or path.name == "claims.json" or "table" in path.parts:
                found.update(path.name.encode() + (path.read_bytes() if path.is_file() else b""))
        return found.hexdigest()[:16]

    for name, options in STUDIES.items():
        yield f"study {name} {options}", lambda name=name, options=options: run(name, options)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="names that contain this")
    given = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", 2)
    before = json.loads(given.file.read_text()) if given.file.exists() else None
    found, different = {}, 0
    for name, run in (*evolved(), *minimized(), *studied()):
        if given.only in name:
            found[name] = run()
            differs = before is not None and before.get(name) != found[name]
            different += differs
            print(f"{'DIFFERENT ' if differs else ''}{name}: {found[name]}", flush=True)
    if before is None:
        given.file.write_text(json.dumps(found, indent=1) + "\n")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
