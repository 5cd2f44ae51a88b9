"""Named variables of different kinds: what solutions they make, and the genes a population holds for them."""

import json
import math
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from . import _checks

MOST = 2**53  # integers up to here are exact as genes
MOST_LOG = 2**46  # and up to here if a gene is their logarithm
_OPTIONS = (str, int, float, bool, type(None))


class _Variable(ABC):
    """A variable has `size` genes in double precision, in `[low, high]` of `genes()`."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @abstractmethod
    def genes(self) -> tuple[float, float]:
        """The lowest and the highest a gene can be."""

    @abstractmethod
    def values(self, genes: Any, xp: Any = np) -> Any:
        """What genes of any shape stand for, as an array of numbers or options. `xp` is numpy or jax.numpy."""

    @abstractmethod
    def encoded(self, name: str, value: Any) -> np.ndarray:
        """Genes of a value, of the variable's shape; refuses what is none of its values."""

    def plain(self, numbers: np.ndarray) -> list[Any]:
        """What solutions hold for numbers `f64[n, *shape]` of it: Python values, arrays if there is a shape."""
        return list(numbers) if self.shape else numbers.tolist()

    def as_dict(self) -> dict[str, Any]:
        """The variable in words for JSON or TOML, of which its type can be made again."""
        kind = type(self).__name__.lower()
        given = {key: getattr(self, key) for key in _KEYS[kind]}
        listed = {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
        return {"type": kind} | {key: value for key, value in listed.items() if key in _NEEDED or value}

    def _number(self, name: str, value: Any, kinds: str, accepted: str) -> np.ndarray:
        """`value` as an array of the variable's shape, if it holds numbers of these kinds within [low, high]."""
        low, high = self.low, self.high  # type: ignore[attr-defined]
        accepted = f"{accepted} from {low} to {high}" + (f" of shape {self.shape}" if self.shape else "")
        array = _checks.array(name, value, accepted)
        if array.dtype.kind not in kinds:
            raise TypeError(f"{name} must be {accepted}, got {_checks.described(value)}")
        if array.shape != self.shape or not ((array >= low) & (array <= high)).all():
            raise ValueError(f"{name} must be {accepted}, got {_checks.show(value)}")
        return array


@dataclass(frozen=True)
class Float(_Variable):
    """A real number in [low, high]; `log` searches its logarithm. With a `shape`, an array of them."""

    low: float
    high: float
    _: KW_ONLY
    log: bool = False
    shape: tuple[int, ...] = ()

    def __post_init__(self):
        _set(self, low=_checks.number("low", self.low), high=_checks.number("high", self.high))
        _set(self, log=_checks.flag("log", self.log), shape=_shape(self.shape))
        _checks.ordered(self.low, self.high)
        if self.log and self.low <= 0:
            raise ValueError(f"low must be above 0 if log=True, got {self.low}")

    def genes(self) -> tuple[float, float]:
        low, high = self.low, self.high
        if not self.log:
            return low, high
        more = 0.0 if low == high else 1.0  # so that some genes stand for low and high themselves
        return math.log(low) - more * _step(low), math.log(high) + more * _step(high)

    def values(self, genes: Any, xp: Any = np) -> Any:
        return xp.clip(_exp(genes, xp) if self.log else genes, *_inward(self.low, self.high, genes.dtype))

    def encoded(self, name: str, value: Any) -> np.ndarray:
        values = self._number(name, value, "iuf", "a number").astype(np.float64)
        if not self.log:
            return values
        near = np.log(values) + _step(values) * np.arange(-3, 4).reshape(-1, *[1] * values.ndim)
        genes = np.clip(near, *self.genes())
        best = np.argmin(np.abs(self.values(genes) - values), axis=0)  # the value itself, if any gene stands for it
        return np.take_along_axis(genes, best[None], axis=0)[0]


@dataclass(frozen=True)
class Int(_Variable):
    """An integer from low to high, both included; `log` searches its logarithm. With a `shape`, an array of them."""

    low: int
    high: int
    _: KW_ONLY
    log: bool = False
    shape: tuple[int, ...] = ()

    def __post_init__(self):
        _set(self, log=_checks.flag("log", self.log), shape=_shape(self.shape))
        least, most = (1, MOST_LOG) if self.log else (-MOST, MOST)
        _set(self, low=_checks.integer("low", self.low, least, most=most))
        _set(self, high=_checks.integer("high", self.high, least, most=most))
        _checks.ordered(self.low, self.high)

    def genes(self) -> tuple[float, float]:
        low, high = self.low - 0.5, self.high + 0.5
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def values(self, genes: Any, xp: Any = np) -> Any:
        kind = np.int64 if xp is np or genes.dtype == np.float64 else np.int32
        if max(-self.low, self.high) > np.iinfo(kind).max:
            raise ValueError(f"{self} needs 64-bit integers: set jax_enable_x64, or compute with NumPy")
        whole = xp.round(_exp(genes, xp) if self.log else genes)
        return xp.clip(xp.clip(whole, float(self.low), float(self.high)).astype(kind), self.low, self.high)

    def plain(self, numbers: np.ndarray) -> list[Any]:
        return super().plain(numbers.astype(np.int64))

    def encoded(self, name: str, value: Any) -> np.ndarray:
        values = self._number(name, value, "iu", "an integer").astype(np.float64)
        return np.log(values) if self.log else values


@dataclass(frozen=True, init=False, repr=False)
class Choice(_Variable):
    """One of some options without an order: strings, numbers, booleans or None. With a `shape`, an array of them."""

    options: tuple[Any, ...]
    shape: tuple[int, ...]
    _types: tuple[type, ...]  # True, 1 and 1.0 are equal, but three options

    def __init__(self, *options: Any, shape: tuple[int, ...] = ()):
        plain = tuple(map(_plain, options))
        for option in plain:
            if type(option) not in _OPTIONS or (isinstance(option, float) and not math.isfinite(option)):
                shown = _checks.described(option)
                raise TypeError(f"options must be strings, finite numbers, booleans or None, one by one, got {shown}")
        _set(self, options=plain, shape=_shape(shape), _types=tuple(map(type, plain)))
        if not plain or len(self._numbers) != len(plain):
            raise ValueError(f"options must be one or more, each given once, got {_checks.show(plain)}")

    def __repr__(self) -> str:
        shape = [f"shape={self.shape}"] if self.shape else []
        return f"Choice({', '.join([*map(repr, self.options), *shape])})"

    @cached_property
    def _numbers(self) -> dict[tuple[type, Any], int]:
        return {(type(option), option): number for number, option in enumerate(self.options)}

    @property
    def is_numeric(self) -> bool:
        return set(self._types) <= {int, float}

    @cached_property
    def _table(self) -> np.ndarray:
        """The options; as numbers, booleans or strings if all are that."""
        table = np.array(self.options) if len(set(self._types)) == 1 else None
        if table is None or tuple(table.tolist()) != self.options or table.dtype.kind not in "ifbU":
            table = np.empty(len(self.options), object)
            table[:] = self.options
        return table

    def genes(self) -> tuple[float, float]:
        return -0.5, len(self.options) - 0.5

    def values(self, genes: Any, xp: Any = np) -> Any:
        if xp is np and not self.is_numeric:
            return self._table[self._number_of(genes)]
        if not self.is_numeric:
            raise TypeError(f"{self} has options that are not numbers, which a compiled function cannot get")
        kind = np.int64 if xp is np else np.int32
        is_whole = self._table.dtype.kind == "i" and np.abs(self._table).max() <= np.iinfo(kind).max
        return xp.asarray(self.options, kind if is_whole else genes.dtype)[self._number_of(genes, xp)]

    def encoded(self, name: str, value: Any) -> np.ndarray:
        array = np.asarray(value, object) if self.shape else None
        if array is not None and array.shape != self.shape:
            raise ValueError(f"{name} must have shape {self.shape}, got {_checks.show(value)}")
        given = [_plain(option) for option in ([value] if array is None else array.ravel())]
        for option in given:
            if type(option) not in _OPTIONS or (type(option), option) not in self._numbers:
                accepted = ", ".join(map(repr, self.options))
                raise ValueError(
                    f"{name} must be one of {_checks.shortened(accepted)}, got {_checks.described(option)}"
                )
        numbers = [self._numbers[type(option), option] for option in given]
        return np.array(numbers, np.float64).reshape(self.shape)

    def plain(self, numbers: np.ndarray) -> list[Any]:
        found = numbers.astype(np.int64)
        return list(self._table[found]) if self.shape else [self.options[number] for number in found.tolist()]

    def _number_of(self, genes: Any, xp: Any = np) -> Any:
        return xp.clip(xp.round(genes), 0, len(self.options) - 1).astype(np.int32)


_TYPES = {"float": Float, "int": Int, "choice": Choice}
_KEYS = {
    "float": ("low", "high", "log", "shape"),
    "int": ("low", "high", "log", "shape"),
    "choice": ("options", "shape"),
}
_NEEDED = {"low", "high", "options"}


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """Variables by name. A solution is a dictionary with a value of each, in their order.

        gesmr.Space(lr=gesmr.Float(1e-5, 1, log=True), layers=gesmr.Int(1, 8), act=gesmr.Choice("relu", "tanh"))

    A mapping as the only argument is for names that are no identifiers. What the population holds are genes,
    `f64[dim]` within `low` and `high`: a Float's value or its logarithm, an Int before it is rounded, the number of an
    option before it is rounded.
    """

    names: tuple[str, ...]
    variables: tuple[Float | Int | Choice, ...]

    def __init__(self, mapping: Mapping[str, Float | Int | Choice] | None = None, /, **variables: Float | Int | Choice):
        if mapping is not None and (variables or not isinstance(mapping, Mapping)):
            raise TypeError(
                f"a Space takes one mapping or variables by name, got {_checks.show(mapping)} and {variables}"
            )
        given = variables if mapping is None else dict(mapping)
        if not given:
            raise ValueError("a Space must have at least one variable, got none")
        for name, variable in given.items():
            if not isinstance(name, str) or not name:
                raise TypeError(f"names of variables must be non-empty strings, got {_checks.described(name)}")
            if not isinstance(variable, _Variable):
                raise TypeError(f"{name} must be a Float, an Int or a Choice, got {_checks.described(variable)}")
        _set(self, names=tuple(map(str, given)), variables=tuple(given.values()))
        _checks.integer("the number of genes of a Space", self.dim, 1, most=_checks.MOST)

    def __repr__(self) -> str:
        return f"Space({{{', '.join(f'{name!r}: {variable}' for name, variable in self._items())}}})"

    @cached_property
    def dim(self) -> int:
        return sum(variable.size for variable in self.variables)

    @cached_property
    def low(self) -> np.ndarray:
        return self._per_gene([variable.genes()[0] for variable in self.variables])

    @cached_property
    def high(self) -> np.ndarray:
        return self._per_gene([variable.genes()[1] for variable in self.variables])

    @cached_property
    def unordered(self) -> np.ndarray:
        """Which genes are choices."""
        return self._per_gene([isinstance(variable, Choice) for variable in self.variables])

    @cached_property
    def integral(self) -> np.ndarray:
        """Which genes are integers."""
        return self._per_gene([isinstance(variable, Int) for variable in self.variables])

    @cached_property
    def discrete(self) -> np.ndarray:
        """Which genes are choices, or integers of which one unit is the step to the next."""
        steps = [
            isinstance(variable, Choice | Int) and not getattr(variable, "log", False) for variable in self.variables
        ]
        return self._per_gene(steps)

    @property
    def is_numeric(self) -> bool:
        """Whether every option of every choice is a number, as compiled functions need it."""
        return all(variable.is_numeric for variable in self.variables if isinstance(variable, Choice))

    def encode(self, solution: Mapping[str, Any]) -> np.ndarray:
        """Genes `f64[dim]` of a solution; refuses what is not in the space."""
        if not isinstance(solution, Mapping):
            raise TypeError(f"a solution must be a mapping of {self._listed()}, got {_checks.described(solution)}")
        _check_keys("a solution", solution, self.names, self.names)
        return np.concatenate([variable.encoded(name, solution[name]).ravel() for name, variable in self._items()])

    def decode(self, row: Any) -> dict[str, Any]:
        """The solution of genes `f[dim]`, of plain values."""
        if np.shape(row) != (self.dim,):
            raise ValueError(f"row must have {self.dim} genes, got shape {np.shape(row)}")
        return self.decode_all(np.asarray(row)[None])[0]

    def decode_all(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """The solutions of rows `f[n, dim]`."""
        numbers = np.array(rows, np.float64)
        log, whole, low, high = self._reading
        if log.size:
            numbers[:, log] = _exp(numbers[:, log])
        if whole.size:
            numbers[:, whole] = np.round(numbers[:, whole])
        np.minimum(np.maximum(numbers, low, out=numbers), high, out=numbers)
        columns = [variable.plain(part) for _, variable, part in self._parts(numbers)]
        return list(map(dict, map(zip, repeat(self.names), zip(*columns, strict=True))))

    @cached_property
    def _reading(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """How genes are read: which are logarithms, which are rounded, and the range of what they stand for."""
        log = self._per_gene([getattr(variable, "log", False) for variable in self.variables])
        ranges = [(0, len(v.options) - 1) if isinstance(v, Choice) else (v.low, v.high) for v in self.variables]
        low, high = (self._per_gene([float(side[i]) for side in ranges]) for i in (0, 1))
        return np.flatnonzero(log), np.flatnonzero(self.integral | self.unordered), low, high

    def stacked(self, rows: Any, xp: Any = np) -> dict[str, Any]:
        """Solutions of rows `f[..., dim]` as one, whose arrays have the rows' leading axes. With jax.numpy as `xp` the
        rows may be traced, and options must be numbers."""
        if rows.shape[-1:] != (self.dim,):
            raise ValueError(f"rows must have {self.dim} genes on their last axis, got shape {rows.shape}")
        return {name: variable.values(part, xp) for name, variable, part in self._parts(rows)}

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """The space in words, as files have it: `from_dict` makes it again, also after JSON."""
        return {name: variable.as_dict() for name, variable in self._items()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Space":
        """The space of a table per variable, with its `type` ("float", "int" or "choice") and its arguments."""
        if not isinstance(description, Mapping):
            raise TypeError(f"a space must be a table of variables, got {_checks.described(description)}")
        return cls({name: _variable(name, given) for name, given in description.items()})

    @classmethod
    def read(cls, path: str | Path) -> "Space":
        """The space that a .toml or .json file describes as `from_dict` has it."""
        path = _checks.file("path", path)
        if path.suffix not in (".toml", ".json"):
            raise ValueError(f"the file of a space must end in .toml or .json, got {_checks.show(str(path))}")
        text = path.read_bytes()
        try:
            whole = text.decode()
            given = tomllib.loads(whole) if path.suffix == ".toml" else json.loads(whole, object_pairs_hook=_table)
            return cls.from_dict(given)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} does not describe a space: {error}") from error

    def _items(self) -> Iterator[tuple[str, Float | Int | Choice]]:
        return zip(self.names, self.variables, strict=True)

    def _listed(self) -> str:
        return _checks.shortened(", ".join(self.names))

    def _per_gene(self, values: list[Any]) -> np.ndarray:
        """A value of each variable, once per gene of it."""
        array = np.repeat(np.array(values), [variable.size for variable in self.variables])
        array.setflags(write=False)
        return array

    def _parts(self, rows: Any) -> Iterator[tuple[str, Float | Int | Choice, Any]]:
        """The genes of each variable in its shape, after the rows' leading axes."""
        end = 0
        for name, variable in self._items():
            start, end = end, end + variable.size
            yield name, variable, rows[..., start:end].reshape((*rows.shape[:-1], *variable.shape))


def _variable(name: str, given: Any) -> Float | Int | Choice:
    if not isinstance(given, Mapping):
        raise TypeError(
            f"variable {name!r} must be a table with its type and arguments, got {_checks.described(given)}"
        )
    arguments = dict(given)
    kind = arguments.pop("type", None)
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueError(
            f"variable {name!r} must have a type, {', '.join(map(repr, _TYPES))}, got {_checks.show(kind)}"
        )
    _check_keys(f"variable {name!r}", arguments, _KEYS[kind], [key for key in _KEYS[kind] if key in _NEEDED])
    options = arguments.pop("options", [])
    try:
        if not isinstance(options, list | tuple):
            raise TypeError(f"options must be a list, got {_checks.described(options)}")
        return _TYPES[kind](*options, **arguments)
    except (TypeError, ValueError) as error:
        raise type(error)(f"variable {name!r}: {error}") from error


def _check_keys(what: str, given: Mapping, accepted: Any, needed: Any) -> None:
    if unknown := [key for key in given if key not in accepted]:
        raise ValueError(f"{what} must have only {', '.join(accepted)}, got {_checks.show(unknown[0])} too")
    if missing := [key for key in needed if key not in given]:
        raise ValueError(f"{what} must have {', '.join(needed)}, got no {missing[0]!r}")


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are there once."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError(f"an object has the same name twice among {', '.join(map(repr, table))}")
    return table


def _set(frozen: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def _shape(given: Any) -> tuple[int, ...]:
    if not isinstance(given, tuple | list):
        raise TypeError(f"shape must be a tuple of positive integers, got {_checks.described(given)}")
    return tuple(_checks.integer("shape", size, 1, most=_checks.MOST) for size in given)


def _plain(value: Any) -> Any:
    """A number of NumPy's or JAX's as Python's."""
    is_number = hasattr(value, "item") and getattr(value, "shape", None) == () and not _checks.is_key(value)
    return value.item() if is_number else value


def _exp(genes: Any, xp: Any = np) -> Any:
    with np.errstate(over="ignore"):
        return xp.exp(genes)


def _step(values: Any) -> Any:
    """How far logarithms of these values are from those of the next, in double precision."""
    return np.maximum(np.spacing(np.abs(np.log(values))), 2.0**-52)


def _inward(low: float, high: float, dtype: Any) -> tuple[Any, Any]:
    """The bounds in `dtype`, never wider than given; the nearest numbers if there are none between."""
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore"):
        near_low, near_high = kind(low), kind(high)
        inner_low = np.nextafter(near_low, kind(np.inf)) if float(near_low) < low else near_low
        inner_high = np.nextafter(near_high, kind(-np.inf)) if float(near_high) > high else near_high
    return (inner_low, inner_high) if inner_low <= inner_high else (near_low, near_low)
