"""Frozen dataclasses that JAX can look into: float fields are leaves, fields marked `static` shape the program."""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax

T = TypeVar("T")


def static(**kwargs: Any) -> Any:
    """A dataclass field that is part of the compiled program, not of the data (sizes, modes)."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static))
def pytree(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass and a pytree.

    Unflattening skips `__init__`, so `__post_init__` checks what a user wrote and never
    meets the tracers, axis numbers and placeholders that JAX puts in a leaf's place.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a class, got {type(cls).__name__}")
    cls = dataclasses.dataclass(frozen=True)(cls)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    leaves = [f.name for f in fields if not f.metadata.get("static")]
    statics = [f.name for f in fields if f.metadata.get("static")]

    def flatten_with_keys(obj: T):
        children = [(jax.tree_util.GetAttrKey(n), getattr(obj, n)) for n in leaves]
        return children, tuple(getattr(obj, n) for n in statics)

    def flatten(obj: T):
        return [getattr(obj, n) for n in leaves], tuple(getattr(obj, n) for n in statics)

    def unflatten(aux: tuple, children: Any) -> T:
        obj = object.__new__(cls)
        for name, value in (*zip(leaves, children, strict=True), *zip(statics, aux, strict=True)):
            object.__setattr__(obj, name, value)
        return obj

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls
