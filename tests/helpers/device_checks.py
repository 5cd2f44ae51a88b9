"""What tests/test_devices.py runs in processes of their own, where JAX has several devices: name → what was measured.

python device_checks.py DEVICES NAME...
python device_checks.py DEVICES --process NUMBER PORT DIRECTORY
"""

import json
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import gesmr

T = 15
HERE, THERE = None, 8  # devices


def start(controller, dim=25, children=13, bounds=None, dtype=None):
    problem = gesmr.problems.functions.get("rastrigin", dim)
    ga = gesmr.GA(controller, children, bounds=bounds)
    population = problem.init(0, children + 1).astype(dtype or jnp.float32)
    return ga, problem, ga.init(0, population, problem(population.astype(jnp.float32)))


def both(controller, devices=THERE, batch_size=None, generations=T, **options):
    """How one run on many devices differs from the same on one."""
    ga, problem, state = start(controller, **options)

    def record(state):
        return ga.ask(state).parents, state.best

    runs = [
        gesmr.evolve(ga, problem, state, generations, record=record, batch_size=batch_size, devices=where)
        for where in (HERE, devices)
    ]
    (one, history), (many, other) = jax.device_get(runs)
    np.asarray(state.population)  # not donated
    return {
        "parents": bool((history.extra[0] == other.extra[0]).all()),
        "population": difference(one.population, many.population),
        "best": difference(history.extra[1], other.extra[1]),
        "values": difference(history.elite, other.elite),
        "rates": difference(history.log_rate, other.log_rate),
        "evaluations": history.evaluations.tolist() == other.evaluations.tolist(),
        "bits": bool((one.population == many.population).all()),
        "spec": str(getattr(runs[1][0].population.sharding, "spec", None)),
    }


def difference(one, other):
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return float(np.max(np.abs(one - other) / (1 + np.abs(one))))


def box(handling):
    return gesmr.Bounds(np.linspace(-1, -0.2, 25, dtype=np.float32), np.float32(0.7), handling)


def noise_itself():
    """Children of zeros are noise times rates: no rounding but that of the product."""
    ga, problem, state = start(gesmr.GESMR(groups=4))
    state = state._replace(population=0 * state.population)
    one, many = (gesmr.evolve(ga, problem, state, 1, devices=d)[0].population for d in (HERE, THERE))
    return {"bits": bool((np.asarray(one) == np.asarray(many)).all()), "moved": bool((np.asarray(one)[1:] != 0).all())}


def begin_seeds(number, controller):
    ga, problem, _ = start(controller)

    def begin(seed):
        population = problem.init(gesmr.noise.fold_in(gesmr.noise.key(0), seed), 14)
        return ga.init(gesmr.noise.fold_in(gesmr.noise.key(1), seed), population, problem(population))

    return ga, problem, jax.vmap(begin)(jnp.arange(number))


def seeds(number, devices, controller):
    ga, problem, states = begin_seeds(number, controller)
    many, other = gesmr.evolve(ga, problem, states, T, devices=devices)
    one, history = jax.vmap(lambda state: gesmr.evolve(ga, problem, state, T))(states)
    return {
        "shape": many.population.shape,
        "population": difference(one.population, many.population),
        "values": difference(history.elite, other.elite),
        "everywhere": other.elite.is_fully_replicated and many.fitness.is_fully_replicated,
        "devices": len(many.population.devices()),
    }


def valley(x):
    return jnp.sum((x - 1) ** 2)


def noisy(x, key):
    return valley(x) + 0.1 * jax.random.normal(key)


def minimised(fun=valley, x0=None, devices=THERE, **options):
    x0 = np.zeros(11) if x0 is None else x0
    options = {"popsize": 14, "maxiter": 30, "rng": 0, **options}
    one, many = (gesmr.minimize(fun, x0, devices=where, **options) for where in (HERE, devices))
    rows, others = (jax.tree.leaves(result.population)[0] for result in (one, many))
    return {
        "nit": one.nit == many.nit,
        "nfev": one.nfev == many.nfev,
        "stop": one.stop == many.stop,
        "restarts": one.restarts,
        "fun": difference(one.fun, many.fun),
        "history": difference(one.history.elite, many.history.elite),
        "population": difference(rows, others),
        "bits": bool((rows == others).all()),
        "path": many.path,
    }


def resumed(first, second, **options):
    """A run that goes on elsewhere, beside one that was never interrupted."""
    options = {"popsize": 14, "rng": 0, **options}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.npz"
        gesmr.minimize(valley, np.zeros(11), devices=first, checkpoint=path, maxiter=10, **options)
        shape = np.load(path)["population"].shape
        kept = {"devices": second, "checkpoint": path, "resume": True}
        result = gesmr.minimize(valley, np.zeros(11), maxiter=30, **kept, **options)
    whole = gesmr.minimize(valley, np.zeros(11), maxiter=30, **options)
    return {
        "shape": shape,
        "nit": result.nit,
        "fun": difference(whole.fun, result.fun),
        "history": difference(whole.history.elite, result.history.elite),
        "bits": bool((whole.population == result.population).all()),
    }


def chosen():
    """The ways to say which devices."""
    ga, problem, state = start(gesmr.GESMR(groups=4), dim=24)
    last = jax.devices()[-3:]
    mesh = jax.make_mesh((3,), ("mine",), devices=last)
    ways = {"number": 2, "all": "all", "list": last, "mesh": mesh}
    finals = {name: gesmr.evolve(ga, problem, state, 1, devices=devices)[0] for name, devices in ways.items()}
    places = {name: sorted(device.id for device in found.population.devices()) for name, found in finals.items()}
    final = finals["mesh"]
    again, _ = gesmr.evolve(ga, problem, final, 1, devices=mesh, donate=True)
    return {**places, "donated": final.population.is_deleted(), "generation": int(again.generation)}


TREE = {"matrix": np.zeros((2, 3), np.float32), "vector": np.ones(5, np.float32)}


def of_tree(tree):
    return jnp.sum((tree["matrix"] - 1) ** 2) + jnp.sum(tree["vector"] ** 2)


CHECKS = {
    "GESMR": lambda: both(gesmr.GESMR(groups=4), batch_size=1),
    "SAMR": lambda: both(gesmr.SAMR(), devices=3),
    "UCB": lambda: both(gesmr.UCB(arms=3), devices=2, batch_size=3),
    "by genes": lambda: both(gesmr.GESMR(groups=4), dim=24),
    "fewer genes than devices": lambda: both(gesmr.GESMR(groups=4), dim=3, children=30),
    "reflect": lambda: both(gesmr.GESMR(groups=4), bounds=box("reflect")),
    "resample": lambda: both(gesmr.GESMR(groups=4), devices=3, bounds=box("resample")),
    "1CMR": lambda: both(gesmr.controller("1CMR")),
    "bfloat16": lambda: both(gesmr.GESMR(groups=4), dtype=jnp.bfloat16, batch_size=1),
    "bfloat16 in a box": lambda: both(gesmr.GESMR(groups=4), dtype=jnp.bfloat16, bounds=box("clip")),
    "noise": noise_itself,
    "children": lambda: both(gesmr.GESMR(groups=4), bounds=box("clip")),
    "seeds": lambda: seeds(11, 4, gesmr.controller("1CMR")),
    "seeds that fit": lambda: seeds(16, 8, gesmr.GESMR(groups=4)),
    "minimize": minimised,
    "batches": lambda: minimised(bounds=(-2, 2), batch_size=2),
    "init": lambda: minimised(init=(np.eye(11)[:3], np.full(3, 10.0)), init_std=np.linspace(0.1, 1, 11)),
    "valued init": lambda: minimised(init=(np.eye(11)[[*range(11), 0, 1, 2]], np.arange(14.0))),
    "keyed": lambda: minimised(noisy, keyed=True, reevaluate="parents", repeats=2),
    "restarts": lambda: minimised(
        controller=gesmr.GESMR(), restarts=2, patience=3, restart_popsize="double", maxiter=100
    ),
    "double precision": lambda: minimised(dtype="float64", devices=3),
    "half precision": lambda: minimised(dtype="bfloat16", batch_size=2),
    "tree": lambda: minimised(of_tree, TREE),
    "8 to 1": lambda: resumed(THERE, HERE),
    "1 to 8": lambda: resumed(HERE, THERE),
    "8 to 3, bfloat16": lambda: resumed(THERE, 3, dtype="bfloat16", bounds=(-2, 2)),
    "chosen": chosen,
}


def in_this_process(directory):
    """What every process of a group finds; the same whether there is one or there are two."""
    options = {"popsize": 14, "devices": "all"}
    path = Path(directory) / "run.npz"
    lines = Path(directory) / "run.jsonl"
    plain = gesmr.minimize(valley, np.zeros(11), maxiter=30, rng=0, bounds=(-3, 3), **options)
    timed = gesmr.minimize(
        valley, np.zeros(11), maxtime=0.5, checkpoint=path, callback=gesmr.JSONLines(lines), **options
    )
    longer = gesmr.minimize(valley, np.zeros(11), maxiter=timed.nit + 10, checkpoint=path, resume=True, **options)

    def enough(result):
        if result.nit >= 20:
            raise StopIteration

    stopped = gesmr.minimize(valley, np.zeros(11), rng=0, callback=enough, chunk=10, controller="UCB/3", **options)
    ga, problem, state = start(gesmr.SAMR())
    _, history = gesmr.evolve(ga, problem, state, T, devices="all")
    ga, problem, state = start(gesmr.GESMR(groups=4), dim=24)
    by_gene, first = gesmr.evolve(ga, problem, state, T, devices="all")
    _, second = gesmr.evolve(ga, problem, by_gene, T, devices="all")  # goes on from where it is
    return {
        "plain": [plain.fun, plain.x.tolist(), plain.history.elite.tolist()],
        "timed": [timed.seed, timed.nit, timed.fun, list(timed.stop)],
        "longer": [longer.seed, longer.nit - timed.nit, longer.fun],
        "logged": len(lines.read_text().splitlines()) == timed.nit if jax.process_index() == 0 else None,
        "stopped": [stopped.nit, stopped.fun, list(stopped.stop), stopped.mutation_rates.tolist()],
        "evolve": np.asarray(history.elite).tolist(),
        "seeds": np.asarray(gesmr.evolve(*begin_seeds(6, gesmr.GESMR(groups=4)), T, devices="all")[1].elite).tolist(),
        "by gene": [np.asarray(part.elite).tolist() for part in (first, second)],
        "population": plain.population is None,
        "devices": jax.device_count(),
        "writes": sorted(p.name for p in Path(directory).iterdir()),
    }


if __name__ == "__main__":
    count, *names = sys.argv[1:]
    jax.config.update("jax_num_cpu_devices", int(count))
    if names[0] == "--process":
        number, port, directory = int(names[1]), names[2], names[3]
        if number >= 0:  # else there is only one
            jax.distributed.initialize(f"localhost:{port}", 2, number)
        found = in_this_process(directory)
    else:
        found = {name: CHECKS[name]() for name in names}
    print("\n" + json.dumps(found))
