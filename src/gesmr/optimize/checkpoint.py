"""A run as JSON and arrays, and back: exactly, or not at all."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import _provenance
from ..devices import Shards, is_first
from . import archive, exact, phases
from .archive import CheckpointError, Content
from .layout import precision
from .options import Setup
from .phases import First, Ran, Told
from .run import Best, History, Record, Run
from .stopping import Found, Limits, Progress
from .stored_phase import (
    PENDING,
    PENDING_COUNTS,
    Arrays,
    before_arrays,
    before_of,
    first_arrays,
    first_of,
    pending_of,
    population_of,
    state_arrays,
    state_of,
)
from .stored_setup import rebuilt, written

_SAME = ("gesmr", "jax", "platform", "device", "compiler")  # what must not differ for a run to go on exactly
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
        setup, there = rebuilt(meta["setup"], arrays, x0, controller), Limits(**meta["limits"])
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
        parts = _parts(setup, meta, Arrays(arrays), shards)
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
        meta["pending"] = {name: getattr(run.pending, name) for name in PENDING_COUNTS}
    history = run.record.since(0)._asdict()
    arrays: dict[str, Any] = {f"history.{name}": history[name] for name in _HISTORY}
    arrays |= {f"setup.{name}": array for name, array in of_setup.items()}
    if run.pending is not None:
        arrays |= {f"pending.{name}": getattr(run.pending, name) for name in PENDING}
    if run.champion is not None:
        arrays["champion"] = run.champion.row
    if isinstance(phase, First):
        arrays |= first_arrays(phase)
    elif isinstance(phase, Ran):
        arrays |= state_arrays(phase.state)
    else:
        arrays |= before_arrays(phase.before)
    members = run.members()
    if members is not None and members.dtype == jnp.bfloat16:  # numpy can write its bits
        members = members.view(np.uint16)
    arrays["population"] = members
    return meta, {name: np.asarray(array) for name, array in arrays.items()}


def _parts(setup: Setup, meta: dict[str, Any], arrays: Arrays, shards: Shards | None) -> dict[str, Any]:
    """What a checkpoint says of a run of this setup: phase, progress, record, champion, whether it has warned."""
    layout, progress, record = setup.layout, _progress(meta["progress"]), Record()
    ga, begun, members = setup.ga(progress.run), phases.begun(setup, progress.run), setup.members(progress.run)
    key = phases.key(begun)
    rows = population_of(arrays, setup, members)
    population = jnp.asarray(rows) if shards is None else shards.shard(rows)
    columns = (arrays.get(f"history.{name}", (progress.nit,), kind) for name, kind in _HISTORY.items())
    record.extend(History(*columns))
    champion = None
    if meta["champion"] is not None:
        violation, value = map(float, meta["champion"])
        champion = Best(violation, value, arrays.get("champion", (layout.dim,), layout.wide))
    if meta["phase"] == "first":
        phase = first_of(arrays, population, setup)
        if phase.known.all():
            raise CheckpointError("a checkpoint must hold a first population of which not all is known, got all")
    elif meta["phase"] == "ran":
        phase = Ran(state_of(ga, key, arrays, setup)._replace(population=population))
    elif "known" in arrays:  # a first population, after which the next has been asked for
        phase = phases.valued(ga, setup, begun, first_of(arrays, population, setup), ask=shards is None)
    else:
        phase, _, _ = phases.told(ga, population, before_of(ga, key, arrays, setup))
    pending = None if meta.get("pending") is None else pending_of(meta["pending"], arrays, setup, phase)
    parts = {"phase": phase, "progress": progress, "record": record, "champion": champion, "pending": pending}
    parts["handed"] = meta.get("handed") is True
    return parts | {"warned": not np.isfinite(progress.best)}


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
