"""Where a run stands, as arrays, and back: members, states, and candidates that are out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..ga import GA, Proposal, State
from ..generation import Values
from ..noise import Key
from .archive import CheckpointError
from .options import Setup
from .pending import GONE, Pending
from .phases import Before, First

_SIZES = {"m": "slot", "k": "arrived_values", "q": "queued"}  # of which array they are the length
PENDING_COUNTS = ("rounds", "evaluations")
PENDING = {  # arrays of candidates that are out: their length, their dtype, whether they are rows
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


class Arrays:
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


def population_of(arrays: Arrays, setup: Setup, members: int) -> np.ndarray:
    """Members `f[N+1, d]`, as they are stored: finite, and inside the bounds."""
    narrow = setup.layout.dtype == "bfloat16"
    stored = arrays.get("population", (members, setup.layout.dim), np.uint16 if narrow else setup.layout.dtype)
    rows = stored.view(jnp.bfloat16) if narrow else stored
    if not _are_inside(rows.astype(setup.layout.wide, copy=False), setup):
        raise CheckpointError("a checkpoint must hold a population that is finite and within its bounds, got another")
    return rows


def _are_inside(rows: np.ndarray, setup: Setup) -> bool:
    bounds, finite = setup.bounds, np.isfinite(rows)
    return bool((finite if bounds is None else finite & (bounds.low <= rows) & (rows <= bounds.high)).all())


def state_arrays(state: State) -> dict[str, Any]:
    leaves = jax.tree.leaves(state.controller)
    plain = {"state.generation": state.generation, "state.fitness": state.fitness}
    plain |= {} if state.violation is None else {"state.violation": state.violation}
    return plain | {f"state.controller.{i}": leaf for i, leaf in enumerate(leaves)}


def first_arrays(first: First) -> dict[str, Any]:
    plain = {"values": first.values, "known": first.known}
    return plain if first.violations is None else plain | {"violations": first.violations}


def first_of(arrays: Arrays, population: Any, setup: Setup) -> First:
    members = (population.shape[0],)
    values, known = arrays.get("values", members, setup.layout.wide), arrays.get("known", members, "bool")
    violations = arrays.get("violations", members, setup.layout.wide) if setup.constrained else None
    return First(population, values, known, violations)


def before_arrays(before: Before | First | None) -> dict[str, Any]:
    if isinstance(before, First):
        return first_arrays(before)
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
    return {f"before.{name}": array for name, array in parts.items() if array is not None} | state_arrays(before.state)


def state_of(ga: GA, key: Key, arrays: Arrays, setup: Setup) -> State:
    """A state without its population. Its controller's structure is the one a fresh state has."""
    fresh = jax.eval_shape(lambda k: ga.controller.init(k, ga.num_children, setup.layout.dim), key)
    leaves, treedef = jax.tree.flatten(fresh)
    stored = [arrays.get(f"state.controller.{i}", leaf.shape, leaf.dtype) for i, leaf in enumerate(leaves)]
    controller = jax.tree.unflatten(treedef, [jnp.asarray(array) for array in stored])
    generation = jnp.asarray(arrays.get("state.generation", (), "int32"))
    names = ("state.fitness", "state.violation") if setup.constrained else ("state.fitness",)
    values = [jnp.asarray(arrays.get(name, (ga.num_children + 1,), setup.layout.wide)) for name in names]
    return State(key, generation, None, values[0], controller, *values[1:])  # type: ignore[arg-type]


def before_of(ga: GA, key: Key, arrays: Arrays, setup: Setup) -> Before:
    n, wide, again = ga.num_children, setup.layout.wide, setup.reevaluate
    state = state_of(ga, key, arrays, setup)
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


def pending_of(counts: dict[str, Any], arrays: Arrays, setup: Setup, phase: Any) -> Pending:
    """Candidates that are out. They must be such as could be, and fit each other."""
    slots = int((~phase.known).sum()) if isinstance(phase, First) else len(phase.state.fitness) - 1
    sizes = {"n": slots} | {size: arrays.length(f"pending.{name}") for size, name in _SIZES.items()}
    found = {}
    for name, (size, kind, is_rows) in PENDING.items():
        shape = (sizes[size], setup.layout.dim) if is_rows else (sizes[size],)
        found[name] = arrays.get(f"pending.{name}", shape, setup.layout.wide if kind == "f" else kind).copy()
    whole = all(type(counts[name]) is int and 0 <= counts[name] < 2**31 for name in PENDING_COUNTS)
    pending = Pending(**found, **{name: counts[name] for name in PENDING_COUNTS})
    inside = all(_are_inside(rows, setup) for rows in (pending.rows, pending.arrived, pending.queued))
    if not whole or not inside or not _fit(pending, np.arange(slots)):
        raise CheckpointError("a checkpoint must hold candidates that can be out, of slots that exist, got others")
    return pending


def _fit(pending: Pending, slots: np.ndarray) -> bool:
    """Whether every slot has its candidates, those that have values have been told, and some have none."""
    slot, chosen, filled = pending.slot, pending.chosen, pending.filled
    if not np.array_equal(slot[: len(slots)], slots) or not ((slot >= GONE) & (slot < len(slots))).all():
        return False
    if filled.all() or not ((chosen >= 0) & (chosen < len(slot))).all():
        return False
    is_due = (slot >= 0) & ~filled[np.maximum(slot, 0)]
    return (
        np.array_equal(slot[chosen], slots)
        and bool(pending.told[chosen[filled]].all())
        and not (is_due & pending.told).any()
    )
