"""A run as JSON and arrays, and back: exactly, or not at all."""

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
from ..devices import Shards, is_first
from ..ga import GA, Proposal, State
from ..generation import Values
from ..noise import Key
from ..spaces import Space
from . import archive, exact, options, phases
from .archive import CheckpointError, Content
from .layout import Layout, precision
from .options import Setup
from .pending import GONE, Pending
from .phases import Before, First, Ran, Told
from .run import Best, History, Record, Run
from .stopping import Found, Limits, Progress

_ARRAYS, _SIDES = (np.ndarray, np.ndarray | None), ("low", "high", "unit", "leaps", "unordered")
_SAME = ("gesmr", "jax", "platform", "device", "compiler")  # what must not differ for a run to go on exactly
_PENDING_SIZES = {"m": "slot", "k": "arrived_values", "q": "queued"}  # of which array they are the length
_PENDING_COUNTS = ("rounds", "evaluations")
_PENDING = {  # arrays of candidates that are out: their length, their dtype, whether they are rows
    **{
        name: ("m", kind, name == "rows")
        for name, kind in (("rows", "f"), ("slot", "int64"), ("handed", "bool"), ("told", "bool"))
    },
    **{
        name: ("n", kind, False)
        for name, kind in (
            ("values", "f"),
            ("violations", "f"),
            ("filled", "bool"),
            ("chosen", "int64"),
            ("foreign", "bool"),
        )
    },
    **{name: ("k", "f", name == "arrived") for name in ("arrived", "arrived_values", "arrived_violations")},
    "queued": ("q", "f", True),
}
_HISTORY = {name: "int64" if name == "evaluations" else "float64" for name in History._fields}


def save(run: Run, path: Path) -> None:
    """Write a run to `path`, atomically."""
    content = snapshot(run)
    if is_first(run.shards):
        archive.write(path, *content)


def load(path: Path, x0: Any, controller: Any, limits: dict[str, Any]) -> Run:
    """The run at `path`, of the setup that is described there, with other `limits` if they are given."""
    meta, arrays = archive.read(path)
    known = [field.name for field in dataclasses.fields(Limits)]
    if unknown := limits.keys() - set(known):
        raise TypeError(f"load takes {', '.join(known)} to replace those of the file, got {sorted(unknown)[0]}")
    with _understood(path):
        _check_sizes(meta, arrays)
        setup, there = _rebuilt(meta["setup"], arrays, x0, controller), Limits(**meta["limits"])
        setup.check_limits(there)
    return resumed(setup, dataclasses.replace(there, **limits), (meta, arrays), path)


def resumed(
    setup: Setup,
    limits: Limits,
    content: Content,
    path: str | Path,
    shards: Shards | None = None,
    compiled: bool | None = None,
) -> Run:
    """The run in a checkpoint; refuses one of another setup, of a function `compiled` or not, or of another machine."""
    meta, arrays = content
    _check_same(setup, meta, arrays, path)
    if compiled not in (None, was_compiled(meta)):
        was, now = ("called", "compiled") if compiled else ("compiled", "called")
        raise CheckpointError(f"{path} is of another run: fun was {was}, now it is {now}")
    _check_machine(meta.get("machine"))
    with _understood(path), precision(setup.layout.dtype):
        parts = _parts(setup, meta, _Arrays(arrays), shards)
    return Run(setup, limits, shards=shards, compiled=was_compiled(meta), path=str(meta.get("path")), **parts)


def _check_same(setup: Setup, meta: dict[str, Any], arrays: dict[str, np.ndarray], path: str | Path) -> None:
    """Refuse a checkpoint of another setup."""
    plain, of_setup = written(setup)
    here, there = json.loads(json.dumps(plain)), meta.get("setup")
    if not isinstance(there, dict):
        raise CheckpointError(f"{path} does not hold what a checkpoint must: setup")
    for name in {**here, **there}:
        if here.get(name) != there.get(name):
            raise CheckpointError(f"{path} is of another run: {name} was {there.get(name)}, now {here.get(name)}")
    for name, array in of_setup.items():
        stored = arrays.get(f"setup.{name}")
        if stored is None or not np.array_equal(stored, array):
            raise CheckpointError(f"{path} is of another run: its {name} is not the same")


def chosen_by_itself(meta: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What a stored run chose where nothing was given, and keeps: its seed, and its size if the budget is another."""
    stored = meta.get("setup")
    stored = stored if isinstance(stored, dict) else {}
    chosen = {}
    if given.get("rng") is None and given.get("seed") is None and "seed" in stored:
        chosen["rng"] = stored["seed"]
    if given.get("popsize") is None and "popsize" in stored:
        chosen["popsize"] = stored["popsize"]
    return chosen


def was_compiled(meta: dict[str, Any]) -> bool:
    """Whether the function of a stored run was compiled; older checkpoints say it in `path` alone."""
    found = meta.get("compiled", str(meta.get("path")).startswith("jax"))
    if not isinstance(found, bool):
        raise CheckpointError(f"a checkpoint must hold compiled as true or false, got {found!r}")
    return found


def snapshot(run: Run) -> Content:
    """A run as JSON and arrays."""
    run.stop()  # reads the clock
    phase = run.phase
    if isinstance(phase, Told) and phase.before is None:  # asked after compiled generations
        phase = Ran(phase.state)
    plain, of_setup = written(run.setup)
    meta: dict[str, Any] = {
        "setup": plain,
        "limits": dataclasses.asdict(run.limits),
        "progress": {**dataclasses.asdict(run.progress), "events": {}},
        "path": run.path,
        "compiled": run.compiled,
        "handed": run.handed,
        "machine": _machine(),
        "phase": {First: "first", Told: "told", Ran: "ran"}[type(phase)],
        "champion": None if run.champion is None else run.champion[:2],
    }
    if run.pending is not None:
        meta["pending"] = {name: getattr(run.pending, name) for name in _PENDING_COUNTS}
    history = run.record.since(0)._asdict()
    arrays: dict[str, Any] = {f"history.{name}": history[name] for name in _HISTORY}
    arrays |= {f"setup.{name}": array for name, array in of_setup.items()}
    if run.pending is not None:
        arrays |= {f"pending.{name}": getattr(run.pending, name) for name in _PENDING}
    if run.champion is not None:
        arrays["champion"] = run.champion.row
    if isinstance(phase, First):
        arrays |= _first_arrays(phase)
    elif isinstance(phase, Ran):
        arrays |= _state_arrays(phase.state)
    else:
        arrays |= _before_arrays(phase.before)
    members = run.members()
    if members is not None and members.dtype == jnp.bfloat16:  # numpy can write its bits
        members = members.view(np.uint16)
    arrays["population"] = members
    return meta, {name: np.asarray(array) for name, array in arrays.items()}


def _parts(setup: Setup, meta: dict[str, Any], arrays: "_Arrays", shards: Shards | None) -> dict[str, Any]:
    """What a checkpoint says of a run of this setup: phase, progress, record, champion, whether it has warned."""
    layout, progress, record = setup.layout, _progress(meta["progress"]), Record()
    ga, key, members = setup.ga(progress.run), phases.key(setup, progress.run), setup.members(progress.run)
    rows = _population(arrays, setup, members)
    population = jnp.asarray(rows) if shards is None else shards.shard(rows)
    columns = (arrays.get(f"history.{name}", (progress.nit,), kind) for name, kind in _HISTORY.items())
    record.extend(History(*columns))
    champion = None
    if meta["champion"] is not None:
        violation, value = map(float, meta["champion"])
        champion = Best(violation, value, arrays.get("champion", (layout.dim,), layout.wide))
    if meta["phase"] == "first":
        phase = _first(arrays, population, setup)
    elif meta["phase"] == "ran":
        phase = Ran(_state(ga, key, arrays, setup)._replace(population=population))
    elif "known" in arrays:  # a first population, after which the next has been asked for
        phase = phases.valued(ga, setup, key, _first(arrays, population, setup), ask=shards is None)
    else:
        phase, _, _ = phases.told(ga, population, _before(ga, key, arrays, setup))
    pending = None if meta.get("pending") is None else _pending(meta["pending"], arrays, setup, phase)
    parts = {"phase": phase, "progress": progress, "record": record, "champion": champion, "pending": pending}
    parts["handed"] = meta.get("handed") is True
    return parts | {"warned": not np.isfinite(progress.best)}


def _pending(counts: dict[str, Any], arrays: "_Arrays", setup: Setup, phase: Any) -> Pending:
    """Candidates that are out. Numbers of slots and of candidates must be such."""
    slots = int((~phase.known).sum()) if isinstance(phase, First) else len(phase.state.fitness) - 1
    sizes = {"n": slots} | {size: arrays.length(f"pending.{name}") for size, name in _PENDING_SIZES.items()}
    found = {}
    for name, (size, kind, is_rows) in _PENDING.items():
        shape = (sizes[size], setup.layout.dim) if is_rows else (sizes[size],)
        found[name] = arrays.get(f"pending.{name}", shape, setup.layout.wide if kind == "f" else kind).copy()
    whole = all(type(counts[name]) is int and counts[name] >= 0 for name in _PENDING_COUNTS)
    slot, chosen = found["slot"], found["chosen"]
    known = (slot >= GONE) & (slot < slots)
    if not whole or not known.all() or not ((chosen >= 0) & (chosen < sizes["m"])).all() or sizes["m"] < slots:
        raise CheckpointError("a checkpoint must hold candidates of slots that exist, got others")
    return Pending(**found, **{name: counts[name] for name in _PENDING_COUNTS})


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

    def length(self, name: str) -> int:
        return len(self._arrays[name])

    def get(self, name: str, shape: tuple[int, ...], dtype: Any, *, below: int | None = None) -> np.ndarray:
        """An array of this shape and dtype, its entries from 0 up to `below` if they count something."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape or array.dtype != np.dtype(dtype):
            found = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
            raise CheckpointError(f"a checkpoint must hold {name} as {np.dtype(dtype)}{list(shape)}, got {found}")
        if below is not None and not ((array >= 0) & (array < below)).all():
            raise CheckpointError(f"a checkpoint must hold {name} from 0 to {below - 1}, got others")
        return array


def _population(arrays: _Arrays, setup: Setup, members: int) -> np.ndarray:
    """Members `f[N+1, d]`, as they are stored: finite, and inside the bounds."""
    narrow = setup.layout.dtype == "bfloat16"
    stored = arrays.get("population", (members, setup.layout.dim), np.uint16 if narrow else setup.layout.dtype)
    rows = stored.view(jnp.bfloat16) if narrow else stored
    wide = rows.astype(setup.layout.wide, copy=False)
    bounds = setup.bounds
    inside = np.isfinite(wide) if bounds is None else (bounds.low <= wide) & (wide <= bounds.high) & np.isfinite(wide)
    if not inside.all():
        raise CheckpointError("a checkpoint must hold a population that is finite and within its bounds, got another")
    return rows


def _progress(described: dict[str, Any]) -> Progress:
    kinds = {field.name: field.type for field in dataclasses.fields(Progress)}
    for name, value in described.items():
        if name in ("events", "found"):
            continue
        known = type(value) is int or (kinds[name] is float and type(value) is float)
        if not known or not 0 <= value < 2**63:
            raise CheckpointError(f"a checkpoint must hold {name} as a number of at least 0, got {value!r}")
    found = described["found"]
    if not isinstance(found, list) or any(type(number) not in (int, float) for number in found):
        raise CheckpointError(f"a checkpoint must hold what was found as numbers, got {found!r}")
    return Progress(**{**described, "found": Found(*map(float, found)), "events": {}})


def _check_sizes(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Before anything is made as large as the file says: there is a population that is."""
    setup, run = meta["setup"], meta["progress"]["run"]
    doubled = 2 ** min(run, 64) if setup["restart_popsize"] == "double" else 1
    if arrays["population"].shape != (setup["popsize"] * doubled, setup["variables"]):
        raise CheckpointError(f"a checkpoint must hold its population, got {list(arrays['population'].shape)}")


# setups as JSON and arrays


def written(setup: Setup) -> Content:
    """A setup as JSON and arrays: every field, as its type says."""
    plain, arrays = {}, {}
    for field in dataclasses.fields(setup):
        name, value = field.name, getattr(setup, field.name)
        if isinstance(value, Layout):
            plain |= _described_layout(value)
        elif field.type in _ARRAYS:
            arrays[name] = value
        elif field.type == Bounds | None:
            plain[name] = None if value is None else value.handling
            arrays |= {side: getattr(value, side, None) for side in _SIDES}
        elif isinstance(value, int | float | str):
            plain[name] = value
        else:
            plain[name] = _described(value)
    return plain, {name: np.asarray(array) for name, array in arrays.items() if array is not None}


def _rebuilt(plain: dict[str, Any], arrays: dict[str, np.ndarray], x0: Any, controller: Any) -> Setup:
    """The setup that a checkpoint describes."""
    if plain["structure"] is not None and x0 is None:
        raise CheckpointError(f"x0 was a pytree, {plain['structure'][0]}: give one of that structure as x0")
    row = arrays["setup.x0"] if plain["space"] is None else Space.from_dict(plain["space"])
    controller = plain["controller"] if controller is None else controller
    fields = dataclasses.fields(Setup)
    given = {field.name: plain[field.name] for field in fields if field.type in (int, float, str, bool)}
    given |= {"dtype": plain["dtype"], "controller": _controller(controller)}
    fresh = options.check(row if plain["structure"] is None else x0, given)
    stored = {field.name: arrays.get(f"setup.{field.name}") for field in fields if field.type in _ARRAYS}
    sides = {side: arrays.get(f"setup.{side}") for side in _SIDES}
    bounds = None if plain["bounds"] is None else Bounds(handling=plain["bounds"], **sides)
    layout = dataclasses.replace(fresh.layout, integral=tuple(map(bool, plain["integral"])))
    return dataclasses.replace(fresh, bounds=bounds, layout=layout, **stored)


def _described_layout(layout: Layout) -> dict[str, Any]:
    return {
        "variables": layout.dim,
        "structure": None if layout.treedef is None else [str(layout.treedef), layout.shapes, layout.dtypes],
        "space": None if layout.space is None else layout.space.as_dict(),
        "integral": list(map(int, layout.integral)),
        "dtype": layout.dtype,
        "x64": bool(jax.config.jax_enable_x64) or layout.dtype == "float64",  # type: ignore[attr-defined]
    }


def _described(value: Any) -> Any:
    """A controller, or a field of one, as JSON: its class and its fields."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | jax.Array | np.generic):
        return np.asarray(value).tolist()
    kind = type(value)
    known = controllers.CLASSES.get(kind.__name__) is kind
    name = kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"
    if not dataclasses.is_dataclass(value):
        return {"class": name, "repr": repr(value)}
    fields = {field.name: _described(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return {"class": name, "fields": fields}


def _controller(described: Any) -> Any:
    """What `_described` describes; anything else as it is."""
    if not isinstance(described, dict):
        return described
    if described["class"] not in controllers.CLASSES:
        raise CheckpointError(f"the controller was a {described['class']}: give it as controller")
    fields = {name: _controller(field) for name, field in described["fields"].items()}
    return controllers.CLASSES[described["class"]](**fields)


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


def _state_arrays(state: State) -> dict[str, Any]:
    leaves = jax.tree.leaves(state.controller)
    plain = {"state.generation": state.generation, "state.fitness": state.fitness}
    plain |= {} if state.violation is None else {"state.violation": state.violation}
    return plain | {f"state.controller.{i}": leaf for i, leaf in enumerate(leaves)}


def _first_arrays(first: First) -> dict[str, Any]:
    plain = {"values": first.values, "known": first.known}
    return plain if first.violations is None else plain | {"violations": first.violations}


def _first(arrays: "_Arrays", population: Any, setup: Setup) -> First:
    members = (population.shape[0],)
    values, known = arrays.get("values", members, setup.layout.wide), arrays.get("known", members, "bool")
    violations = arrays.get("violations", members, setup.layout.wide) if setup.constrained else None
    return First(population, values, known, violations)


def _before_arrays(before: Before | First | None) -> dict[str, Any]:
    if isinstance(before, First):
        return _first_arrays(before)
    assert before is not None
    values, proposal = before.values, before.proposal
    parts = {
        "values": values.children,
        "parent_values": values.parents,
        "elite_value": values.elite,
        "violations": values.violations,
        "judged": values.judged,
        "count": before.elite_count,
        "elite": proposal.elite,
        "parents": proposal.parents,
        "rates": proposal.rates,
    }
    return {f"before.{name}": array for name, array in parts.items() if array is not None} | _state_arrays(before.state)


def _state(ga: GA, key: Key, arrays: "_Arrays", setup: Setup) -> State:
    """A state without its population. Its controller's structure is the one a fresh state has."""
    fresh = jax.eval_shape(lambda k: ga.controller.init(k, ga.num_children, setup.layout.dim), key)
    leaves, treedef = jax.tree.flatten(fresh)
    stored = [arrays.get(f"state.controller.{i}", leaf.shape, leaf.dtype) for i, leaf in enumerate(leaves)]
    controller = jax.tree.unflatten(treedef, [jnp.asarray(array) for array in stored])
    generation = jnp.asarray(arrays.get("state.generation", (), "int32"))
    names = ("state.fitness", "state.violation") if setup.constrained else ("state.fitness",)
    values = [jnp.asarray(arrays.get(name, (ga.num_children + 1,), setup.layout.wide)) for name in names]
    return State(key, generation, None, values[0], controller, *values[1:])  # type: ignore[arg-type]


def _before(ga: GA, key: Key, arrays: "_Arrays", setup: Setup) -> Before:
    n, wide, again = ga.num_children, setup.layout.wide, setup.reevaluate
    state = _state(ga, key, arrays, setup)
    rates = jax.eval_shape(lambda c: ga.controller.rates(c, jnp.zeros(n, jnp.int32)), state.controller)
    elite = arrays.get("before.elite", (), "int32", below=n + 1)
    parents = arrays.get("before.parents", (n,), "int32", below=n + 1)
    made = [jnp.asarray(array) for array in (elite, parents, arrays.get("before.rates", (n,), rates.dtype))]
    values: Any = (
        arrays.get("before.values", (n,), wide),
        arrays.get("before.parent_values", (n,), wide) if again == "parents" else None,
        None if again == "none" else arrays.get("before.elite_value", (), wide),
        arrays.get("before.violations", (n,), wide) if setup.constrained else None,
        arrays.get("before.judged", (n,), "bool") if "before.judged" in arrays else None,
    )
    count = arrays.get("before.count", (), "int32")
    return Before(state, Proposal(None, *made), Values(*values), count)  # type: ignore[arg-type]
