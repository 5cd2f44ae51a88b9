"""What --dim, --bounds, --x0 and --space say of a function's variables."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from ...spaces import Space
from ..errors import LabError

OBJECTIVE = "Your function, from a solution to a number; MODULE:FUNCTION too."
Dim = Annotated[int | None, typer.Option(min=1, help="How many variables there are.")]
BoundsText = Annotated[
    str | None, typer.Option(help='Of all variables, as in -5,5 or 0,inf, or of each: "-5,5;0,1;0,inf".')
]
Pairs = tuple[float, float] | list[tuple[float, float]]


@dataclass(frozen=True)
class Variables:
    start: Space | np.ndarray | None  # None: not said
    bounds: Pairs | None  # of all, or of each
    dim: int = 0  # if start is not said

    @classmethod
    def said(cls, request: Any) -> "Variables":
        """By a request with `dim`, `bounds`, `x0` and `space`."""
        if request.space is not None:
            if others := [name for name in ("dim", "bounds", "x0") if getattr(request, name) is not None]:
                raise LabError(f"--space says what the variables are, and cannot be given with --{others[0]}")
            return cls(Space.read(request.space), None)
        bounds = None if request.bounds is None else _pairs(request.bounds)
        dim = request.dim
        if isinstance(bounds, list):
            if dim not in (None, len(bounds)):
                raise LabError(f"--bounds must have one pair or --dim = {dim} of them, got {len(bounds)}")
            dim = len(bounds)
        if dim is None:
            raise LabError("--dim or --space must be given, or --bounds with a pair for each variable")
        return cls(None if request.x0 is None else _given(request.x0, dim), bounds, dim)

    @property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        pairs = np.array((-np.inf, np.inf) if self.bounds is None else self.bounds, float)
        return np.broadcast_to(pairs[..., 0], self.dim), np.broadcast_to(pairs[..., 1], self.dim)

    @property
    def closed(self) -> np.ndarray:
        """Which are bounded on both sides, `bool[d]`."""
        low, high = self._sides
        return np.isfinite(low) & np.isfinite(high)

    def placed(self, normal: np.ndarray | None, generator: np.random.Generator) -> np.ndarray:
        """A start: uniform between two bounds; as far from one as `normal f[d]` is from zero; else `normal` itself."""
        low, high = self._sides
        if normal is None:
            normal = np.zeros(self.dim)
        left, right = _held(np.where(self.closed, low, 0.0), np.where(self.closed, high, 0.0))
        between = generator.uniform(left, right) if self.closed.any() else normal
        beside = np.where(np.isfinite(low), low + np.abs(normal), high - np.abs(normal))
        open = np.where(np.isfinite(low) | np.isfinite(high), beside, normal)
        return np.where(self.closed, between, open)


def _pairs(text: str) -> Pairs:
    try:
        pairs = [tuple(float(side) for side in pair.split(",")) for pair in text.strip(" ;").split(";")]
        found = [(low, high) for low, high in pairs]
    except ValueError as error:
        example = 'as in -5,5 or 0,inf, or a pair for each variable, as in "-5,5;0,1"'
        raise LabError(f"--bounds must be two numbers, {example}, got {text!r}") from error
    if not all(low <= high for low, high in found):
        raise LabError(f"--bounds must have low ≤ high, got {text!r}")
    return found[0] if len(found) == 1 else found


def _held(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What single precision holds of ranges, for functions that are compiled; all of one if that is nothing."""
    largest = float(np.finfo(np.float32).max)
    inner = np.maximum(low, -largest), np.minimum(high, largest)
    some = inner[0] <= inner[1]
    return np.where(some, inner[0], low), np.where(some, inner[1], high)


def _given(text: str, dim: int) -> np.ndarray:
    try:
        x0 = np.load(text, allow_pickle=False) if text.endswith(".npy") else np.full(dim, float(text))
    except (OSError, ValueError) as error:
        raise LabError(f"--x0 must be a number or a .npy file, got {text!r}: {error}") from error
    if x0.shape != (dim,):
        raise LabError(f"--x0 must hold --dim = {dim} numbers, got shape {x0.shape}")
    return x0
