"""An optimiser as JSON and arrays, and back: exactly, or not at all."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _provenance, controllers, setup
from .archive import CheckpointError, read
from .bounds import Bounds
from .ga import Proposal, State
from .noise import Key
from .optimizer import Optimizer
from .phases import First, Ran, Record, Told
from .setup import Setup
from .space import precision
from .stopping import Limits, Progress

_SAME = ("gesmr", "jax", "platform", "device")  # what must not differ for a run to go on exactly
_HISTORY = ("elite", "log_rate", "evaluations")
_CONTROLLERS = {name: getattr(controllers, name) for name in ("Clip", "Fixed", "GESMR", "OneFifth", "SAMR", "UCB")}


def snapshot(optimizer: Optimizer) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """An optimiser as JSON and arrays."""
    checked, phase, progress = optimizer._setup, optimizer._phase, optimizer._progress
    optimizer.stop()  # reads the clock
    if isinstance(phase, Told) and phase.before is None:  # asked after compiled generations
        phase = Ran(phase.state)
    kind = {First: "first", Told: "told", Ran: "ran"}[type(phase)]
    meta: dict[str, Any] = {
        "setup": _describe(checked),
        "limits": dataclasses.asdict(optimizer._limits),
        "progress": {**dataclasses.asdict(progress), "events": {}},
        "path": optimizer._path,
        "machine": _provenance.machine(),
        "phase": kind,
        "champion": None if optimizer._champion is None else optimizer._champion[0],
    }
    history = optimizer._record.since(0)._asdict()
    arrays: dict[str, Any] = {f"history.{name}": history[name] for name in _HISTORY}
    arrays |= {f"setup.{name}": array for name, array in _setup_arrays(checked).items()}
    if optimizer._champion is not None:
        arrays["champion"] = optimizer._champion[1]
    if isinstance(phase, First):
        population = phase.population
        arrays |= {"values": phase.values, "known": phase.known}
    elif isinstance(phase, Ran):
        population = phase.state.population
        arrays |= _state_arrays(phase.state)
    else:
        population = phase.state.population
        arrays |= _before_arrays(phase.before or ())
    arrays["population"] = _as_stored(optimizer._members(population))
    return meta, {name: np.asarray(array) for name, array in arrays.items()}


def restore(optimizer: Optimizer, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Put a checkpoint's content into a fresh optimiser of the same setup."""
    _check_machine(meta["machine"])
    checked, progress = optimizer._setup, Progress(**meta["progress"])
    ga = checked.ga(progress.run)
    key = checked.key(progress.run)
    with precision(checked.space.dtype):
        rows = arrays["population"].view(checked.space.dtype)
        population = jnp.asarray(rows) if optimizer._spread is None else optimizer._spread.population(rows)
        optimizer._ga, optimizer._progress = ga, progress
        optimizer._record = Record()
        optimizer._record.add(*(arrays[f"history.{name}"] for name in _HISTORY))
        optimizer._champion = None if meta["champion"] is None else (meta["champion"], arrays["champion"])
        optimizer._handed = optimizer._told = None
        if meta["phase"] == "first":
            optimizer._phase = First(population, arrays["values"], arrays["known"])
        elif meta["phase"] == "ran":
            optimizer._phase = Ran(_state(ga, key, arrays, checked.space.dim)._replace(population=population))
        elif "before.fitness" in arrays:
            optimizer._take_first(population, arrays["before.fitness"])
        else:
            optimizer._take_step(_before(ga, key, arrays, checked.space.dim), population)
    optimizer._progress = Progress(**meta["progress"])  # repeating the step has counted again
    optimizer._warned = not np.isfinite(progress.best)
    optimizer._set_limits(optimizer._limits)


def load(cls: type[Optimizer], path: str | Path, x0: Any, controller: Any, limits: dict[str, Any]) -> Optimizer:
    """`Optimizer.load`."""
    meta, arrays = read(path)
    unknown = limits.keys() - meta["limits"].keys()
    if unknown:
        raise TypeError(
            f"load takes {', '.join(meta['limits'])} to replace those of the file, got {sorted(unknown)[0]}"
        )
    optimizer = cls._of(_rebuild(meta["setup"], arrays, x0, controller), Limits(**{**meta["limits"], **limits}))
    check_same(optimizer._setup, meta, arrays, path)
    optimizer._path = meta["path"]
    restore(optimizer, meta, arrays)
    return optimizer


def check_same(checked: Setup, meta: dict[str, Any], arrays: dict[str, np.ndarray], path: str | Path) -> None:
    """Refuse a checkpoint of another setup."""
    described, there = json.loads(json.dumps(_describe(checked))), meta["setup"]
    for name in {**described, **there}:
        if described.get(name) != there.get(name):
            raise CheckpointError(f"{path} is of another run: {name} was {there.get(name)}, now {described.get(name)}")
    for name, array in _setup_arrays(checked).items():
        stored = arrays.get(f"setup.{name}")
        if stored is None or not np.array_equal(stored, array):
            raise CheckpointError(f"{path} is of another run: its {name} is not the same")


def _describe(checked: Setup) -> dict[str, Any]:
    space = checked.space
    return {
        "variables": space.dim,
        "structure": None if space.is_vector else [str(space.treedef), space.shapes, space.dtypes],
        "dtype": space.dtype,
        "x64": bool(jax.config.jax_enable_x64) or space.dtype == "float64",  # type: ignore[attr-defined]
        "popsize": checked.popsize,
        "controller": checked.controller if isinstance(checked.controller, str) else describe(checked.controller),
        "truncation": checked.truncation,
        "seed": checked.seed,
        "bounds": None if checked.bounds is None else checked.bounds.handling,
        **{name: getattr(checked, name) for name in _PLAIN},
    }


_PLAIN = ("direction", "repeats", "reevaluate", "restarts", "restart_popsize")


def _setup_arrays(checked: Setup) -> dict[str, np.ndarray]:
    arrays = {name: getattr(checked, name) for name in ("x0", "init", "init_values", "init_std")}
    if checked.bounds is not None:
        arrays |= {name: getattr(checked.bounds, name) for name in ("low", "high", "unit")}
    return {name: np.asarray(array) for name, array in arrays.items() if array is not None}


def _rebuild(described: dict[str, Any], arrays: dict[str, np.ndarray], x0: Any, controller: Any) -> Setup:
    """The setup that a checkpoint describes."""
    row = arrays["setup.x0"]
    if described["structure"] is not None and x0 is None:
        raise CheckpointError(f"x0 was a pytree, {described['structure'][0]}: give one of that structure as x0")
    given = described["controller"] if controller is None else controller
    stored = {name: arrays.get(f"setup.{name}") for name in ("init", "init_values", "init_std", "low", "high", "unit")}
    fresh = setup.check(
        row if described["structure"] is None else x0,
        dtype=described["dtype"],
        popsize=described["popsize"],
        rng=described["seed"],
        controller=_controller(given) if isinstance(given, dict) else given,
        truncation=described["truncation"],
        **{name: described[name] for name in _PLAIN},
    )
    bounds = (
        None
        if described["bounds"] is None
        else Bounds(stored["low"], stored["high"], described["bounds"], stored["unit"])
    )
    kept = {name: stored[name] for name in ("init", "init_values", "init_std")}
    return dataclasses.replace(fresh, x0=row, bounds=bounds, **kept)


def describe(controller: Any) -> Any:
    """A controller as JSON: its class and its fields."""
    if not dataclasses.is_dataclass(controller):
        return {"class": _name(controller), "repr": repr(controller)}
    fields = {field.name: _plain(getattr(controller, field.name)) for field in dataclasses.fields(controller)}
    return {"class": _name(controller), "fields": fields}


def _name(controller: Any) -> str:
    kind = type(controller)
    return kind.__name__ if _CONTROLLERS.get(kind.__name__) is kind else f"{kind.__module__}.{kind.__qualname__}"


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | jax.Array | np.generic):
        return np.asarray(value).tolist()
    return describe(value)


def _controller(described: dict[str, Any]) -> Any:
    if described["class"] not in _CONTROLLERS:
        raise CheckpointError(f"the controller was a {described['class']}: give it as controller")
    fields = {n: _controller(v) if isinstance(v, dict) else v for n, v in described["fields"].items()}
    return _CONTROLLERS[described["class"]](**fields)


def _check_machine(there: dict[str, Any]) -> None:
    here = _provenance.machine()
    for name in _SAME:
        if here[name] != there.get(name):
            raise CheckpointError(
                f"the checkpoint was written with {name} {there.get(name)}, this is {here[name]}: going on would not "
                "be exact. Its solutions can start a new run: init=numpy.load(file)['population']"
            )


# states as arrays


def _as_stored(population: Any) -> Any:
    """A population as numpy can write it: bfloat16 as its bits."""
    if population is None or population.dtype != jnp.bfloat16:
        return population
    return population.view(np.uint16)


def _state_arrays(state: State) -> dict[str, Any]:
    leaves = jax.tree.leaves(state.controller)
    plain = {"state.generation": state.generation, "state.fitness": state.fitness}
    return plain | {f"state.controller.{i}": leaf for i, leaf in enumerate(leaves)}


def _before_arrays(before: tuple) -> dict[str, Any]:
    if len(before) == 1:
        return {"before.fitness": before[0]}
    state, proposal, values, parent_values, elite_value, count, _ = before
    told = {"values": values, "parent_values": parent_values, "elite_value": elite_value, "count": count}
    made = {name: getattr(proposal, name) for name in ("elite", "parents", "rates")}
    parts = {f"before.{name}": array for name, array in (told | made).items() if array is not None}
    return parts | _state_arrays(state)


def _state(ga: Any, key: Key, arrays: dict[str, np.ndarray], dim: int) -> State:
    """A state without its population. Its controller's structure is the one a fresh state has."""
    members = ga.num_children + 1
    fresh = jax.eval_shape(lambda k: ga.controller.init(k, ga.num_children, dim), key)
    leaves, treedef = jax.tree.flatten(fresh)
    stored = [arrays.get(f"state.controller.{i}") for i in range(len(leaves))]
    fits = all(
        s is not None and s.shape == leaf.shape and s.dtype == leaf.dtype
        for s, leaf in zip(stored, leaves, strict=True)
    )
    if not fits or arrays["state.fitness"].shape != (members,):
        raise CheckpointError("the checkpoint holds the state of another controller or population size")
    controller = jax.tree.unflatten(treedef, [jnp.asarray(array) for array in stored])
    generation, fitness = (jnp.asarray(arrays[f"state.{name}"]) for name in ("generation", "fitness"))
    return State(key, generation, None, fitness, controller)  # type: ignore[arg-type]


def _before(ga: Any, key: Key, arrays: dict[str, np.ndarray], dim: int) -> tuple:
    told = {name: arrays.get(f"before.{name}") for name in ("values", "parent_values", "elite_value")}
    elite, parents, rates = (jnp.asarray(arrays[f"before.{name}"]) for name in ("elite", "parents", "rates"))
    proposal = Proposal(None, elite, parents, rates)  # type: ignore[arg-type]
    return (_state(ga, key, arrays, dim), proposal, *told.values(), arrays["before.count"], False)
