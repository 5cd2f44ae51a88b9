"""A setup as JSON and arrays, and back. What there is to write follows from its fields and their types."""

import dataclasses
from typing import Any

import jax
import numpy as np

from .. import controllers
from ..bounds import Bounds
from . import options
from .archive import CheckpointError, Content
from .options import Setup
from .space import Space

_ARRAYS = (np.ndarray, np.ndarray | None)
_SIDES = ("low", "high", "unit")


def written(setup: Setup) -> Content:
    """A setup as JSON and arrays: every field, as its type says."""
    plain, arrays = {}, {}
    for field in dataclasses.fields(setup):
        name, value = field.name, getattr(setup, field.name)
        if isinstance(value, Space):
            plain |= _described_space(value)
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
    row = arrays["setup.x0"]
    controller = plain["controller"] if controller is None else controller
    fields = dataclasses.fields(Setup)
    given = {field.name: plain[field.name] for field in fields if field.type in (int, float, str)}
    given |= {"dtype": plain["dtype"], "controller": _controller(controller)}
    fresh = options.check(row if plain["structure"] is None else x0, given)
    stored = {field.name: arrays.get(f"setup.{field.name}") for field in fields if field.type in _ARRAYS}
    low, high, unit = (arrays.get(f"setup.{side}") for side in _SIDES)
    bounds = None if plain["bounds"] is None else Bounds(low, high, plain["bounds"], unit)
    return dataclasses.replace(fresh, bounds=bounds, **stored)


def _described_space(space: Space) -> dict[str, Any]:
    return {
        "variables": space.dim,
        "structure": None if space.is_vector else [str(space.treedef), space.shapes, space.dtypes],
        "dtype": space.dtype,
        "x64": bool(jax.config.jax_enable_x64) or space.dtype == "float64",  # type: ignore[attr-defined]
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
