"""An optimiser as JSON and arrays, and back: exactly, or not at all."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _provenance, controllers
from ..bounds import Bounds
from ..ga import Proposal, State
from ..noise import Key
from . import exact
from . import options as setup
from .archive import CheckpointError, read
from .optimizer import Optimizer
from .options import Setup
from .run import First, Ran, Record, Told
from .space import precision
from .stopping import Limits, Progress

_SAME = ("gesmr", "jax", "platform", "device", "compiler")  # what must not differ for a run to go on exactly
_HISTORY = {"elite": "float64", "log_rate": "float64", "evaluations": "int64"}
_CONTROLLERS = controllers.CLASSES


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
        "machine": _machine(),
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


def restore(optimizer: Optimizer, meta: dict[str, Any], arrays: dict[str, np.ndarray], path: str | Path) -> None:
    """Put a checkpoint's content into a fresh optimiser of the same setup."""
    _check_machine(meta.get("machine"))
    with _understood(path), precision(optimizer._setup.space.dtype):
        _restore(optimizer, meta, _Arrays(arrays))
    optimizer._set_limits(optimizer._limits)


def _restore(optimizer: Optimizer, meta: dict[str, Any], arrays: "_Arrays") -> None:
    checked, space, progress = optimizer._setup, optimizer._setup.space, _progress(meta["progress"])
    ga, key = checked.ga(progress.run), checked.key(progress.run)
    members = checked.members(progress.run)
    rows = _population(arrays, checked, members)
    population = jnp.asarray(rows) if optimizer._shards is None else optimizer._shards.shard(rows)
    optimizer._ga, optimizer._progress = ga, progress
    optimizer._record = Record()
    optimizer._record.add(*(arrays.get(f"history.{name}", (progress.nit,), kind) for name, kind in _HISTORY.items()))
    optimizer._champion = None
    if meta["champion"] is not None:
        optimizer._champion = float(meta["champion"]), arrays.get("champion", (space.dim,), space.wide)
    optimizer._handed = optimizer._told = None
    if meta["phase"] == "first":
        optimizer._phase = First(
            population, arrays.get("values", (members,), space.wide), arrays.get("known", (members,), "bool")
        )
    elif meta["phase"] == "ran":
        optimizer._phase = Ran(_state(ga, key, arrays, checked)._replace(population=population))
    elif "before.fitness" in arrays:
        optimizer._take_first(population, arrays.get("before.fitness", (members,), space.wide))
    else:
        optimizer._take_step(_before(ga, key, arrays, checked), population)
    optimizer._progress = _progress(meta["progress"])  # repeating the step has counted again
    optimizer._warned = not np.isfinite(progress.best)


@contextmanager
def _understood(path: str | Path) -> Iterator[None]:
    """A block that reads what somebody may have made up."""
    try:
        yield
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise CheckpointError(
            f"{path} does not hold what a checkpoint must: {type(error).__name__}: {error}"
        ) from error


class _Arrays:
    """The arrays of a checkpoint, each of them looked at before it is used."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def get(self, name: str, shape: tuple[int, ...], dtype: Any, *, below: int | None = None) -> np.ndarray:
        """An array of this shape and dtype, its entries from 0 up to `below` if they count something."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape or array.dtype != np.dtype(dtype):
            found = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
            raise CheckpointError(f"a checkpoint must hold {name} as {np.dtype(dtype)}{list(shape)}, got {found}")
        if below is not None and not ((array >= 0) & (array < below)).all():
            raise CheckpointError(f"a checkpoint must hold {name} from 0 to {below - 1}, got others")
        return array


def _population(arrays: _Arrays, checked: Setup, members: int) -> np.ndarray:
    """Members `f[N+1, d]`, as they are stored: finite, and inside the bounds."""
    narrow = checked.space.dtype == "bfloat16"
    stored = arrays.get("population", (members, checked.space.dim), np.uint16 if narrow else checked.space.dtype)
    rows = stored.view(jnp.bfloat16) if narrow else stored
    wide = rows.astype(checked.space.wide, copy=False)
    bounds = checked.bounds
    inside = np.isfinite(wide) if bounds is None else (bounds.low <= wide) & (wide <= bounds.high) & np.isfinite(wide)
    if not inside.all():
        raise CheckpointError("a checkpoint must hold a population that is finite and within its bounds, got another")
    return rows


def _progress(described: dict[str, Any]) -> Progress:
    kinds = {field.name: field.type for field in dataclasses.fields(Progress)}
    for name, value in described.items():
        if name == "events":
            continue
        known = type(value) is int or (kinds[name] is float and type(value) is float)
        if not known or (name != "best" and not 0 <= value < 2**63):
            raise CheckpointError(f"a checkpoint must hold {name} as a number of at least 0, got {value!r}")
    return Progress(**{**described, "events": {}})


def load(cls: type[Optimizer], path: str | Path, x0: Any, controller: Any, limits: dict[str, Any]) -> Optimizer:
    """`Optimizer.load`."""
    meta, arrays = read(path)
    unknown = limits.keys() - {field.name for field in dataclasses.fields(Limits)}
    if unknown:
        names = ", ".join(field.name for field in dataclasses.fields(Limits))
        raise TypeError(f"load takes {names} to replace those of the file, got {sorted(unknown)[0]}")
    with _understood(path):
        _check_sizes(meta, arrays)
        optimizer = cls._of(_rebuild(meta["setup"], arrays, x0, controller), Limits(**meta["limits"]))
    optimizer._limits = Limits(**{**dataclasses.asdict(optimizer._limits), **limits})
    check_same(optimizer._setup, meta, arrays, path)
    optimizer._path = str(meta.get("path"))
    restore(optimizer, meta, arrays, path)
    return optimizer


def _check_sizes(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Before anything is made as large as the file says: there is a population that is."""
    setup, run = meta["setup"], meta["progress"]["run"]
    doubled = 2 ** min(run, 64) if setup["restart_popsize"] == "double" else 1
    if arrays["population"].shape != (setup["popsize"] * doubled, setup["variables"]):
        raise CheckpointError(f"a checkpoint must hold its population, got {list(arrays['population'].shape)}")


def check_same(checked: Setup, meta: dict[str, Any], arrays: dict[str, np.ndarray], path: str | Path) -> None:
    """Refuse a checkpoint of another setup."""
    described, there = json.loads(json.dumps(_describe(checked))), meta.get("setup")
    if not isinstance(there, dict):
        raise CheckpointError(f"{path} does not hold what a checkpoint must: setup")
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


def _machine() -> dict[str, Any]:
    """With what and on what, and how it was compiled."""
    return {**_provenance.machine(), "compiler": exact.OPTIONS}


def _check_machine(there: Any) -> None:
    here = _machine()
    if not isinstance(there, dict):
        raise CheckpointError(f"a checkpoint must say on what machine it was written, got {there!r}")
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


def _state(ga: Any, key: Key, arrays: _Arrays, checked: Setup) -> State:
    """A state without its population. Its controller's structure is the one a fresh state has."""
    fresh = jax.eval_shape(lambda k: ga.controller.init(k, ga.num_children, checked.space.dim), key)
    leaves, treedef = jax.tree.flatten(fresh)
    stored = [arrays.get(f"state.controller.{i}", leaf.shape, leaf.dtype) for i, leaf in enumerate(leaves)]
    controller = jax.tree.unflatten(treedef, [jnp.asarray(array) for array in stored])
    generation = jnp.asarray(arrays.get("state.generation", (), "int32"))
    fitness = jnp.asarray(arrays.get("state.fitness", (ga.num_children + 1,), checked.space.wide))
    return State(key, generation, None, fitness, controller)  # type: ignore[arg-type]


def _before(ga: Any, key: Key, arrays: _Arrays, checked: Setup) -> tuple:
    n, wide = ga.num_children, checked.space.wide
    state = _state(ga, key, arrays, checked)
    rates = jax.eval_shape(lambda c: ga.controller.rates(c, jnp.zeros(n, jnp.int32)), state.controller)
    elite = arrays.get("before.elite", (), "int32", below=n + 1)
    parents = arrays.get("before.parents", (n,), "int32", below=n + 1)
    made = [jnp.asarray(array) for array in (elite, parents, arrays.get("before.rates", (n,), rates.dtype))]
    values = arrays.get("before.values", (n,), wide)
    again = checked.reevaluate
    parent_values = arrays.get("before.parent_values", (n,), wide) if again == "parents" else None
    elite_value = None if again == "none" else arrays.get("before.elite_value", (), wide)
    count = arrays.get("before.count", (), "int32")
    return state, Proposal(None, *made), values, parent_values, elite_value, count, False  # type: ignore[arg-type]
