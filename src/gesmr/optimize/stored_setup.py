"""A setup as JSON and arrays, and back."""

import dataclasses
from typing import Any

import jax
import numpy as np

from .. import controllers
from ..bounds import Bounds
from ..spaces import Space
from . import options
from .archive import CheckpointError, Content
from .layout import Layout
from .options import Setup

_ARRAYS, _SIDES = (np.ndarray, np.ndarray | None), ("low", "high", "unit", "leaps", "unordered")


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


def rebuilt(plain: dict[str, Any], arrays: dict[str, np.ndarray], x0: Any, controller: Any) -> Setup:
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
