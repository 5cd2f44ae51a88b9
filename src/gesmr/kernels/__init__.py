"""Kernels of our own for NVIDIA GPUs, in Pallas for Triton: what a generation does to its population, in one pass.

The code without them is the reference and is used everywhere else. The environment variable GESMR_KERNELS, read when
gesmr is imported, says which: `auto`, `off`, or `interpret`, which runs the kernels slowly where there is no GPU.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import jax

T = TypeVar("T")

_MODES = ("auto", "off", "interpret")
MODE = os.environ.get("GESMR_KERNELS", "auto")
if MODE not in _MODES:
    raise ValueError(f"GESMR_KERNELS must be one of {', '.join(_MODES)}, got {MODE!r}")


def interpreted() -> bool:
    return MODE == "interpret"


def wanted() -> bool:
    """Whether the kernels are used here, if what they are to compute is what they can."""
    return interpreted() or (MODE == "auto" and _usable())


@cache
def on_nvidia() -> bool:
    return jax.default_backend() == "gpu" and "nvidia" in jax.devices()[0].device_kind.lower()


@cache
def _usable() -> bool:
    """Whether the kernels can be compiled here. If not on a GPU for which they are meant, with a warning."""
    if not on_nvidia():
        return False
    from .trial import compile_all  # noqa: PLC0415  it needs what imports this

    try:
        compile_all()
    except Exception as error:  # whatever the compiler of this version or card does not like
        told(error)
        return False
    return True


def told(error: Exception) -> None:
    """Warn that slower code is used."""
    warnings.warn(f"the fast kernels cannot be compiled and slower code is used: {error}", stacklevel=3)


def either(kernel: Callable[[], T], plain: Callable[[], T]) -> T:
    """What a kernel gives; on other devices of this machine, and on those of programs for elsewhere, plain code."""
    if interpreted():
        return kernel()
    return jax.lax.platform_dependent(cuda=kernel, default=plain)


def options(warps: int) -> dict[str, Any]:
    """How `pallas_call` is to compile a kernel."""
    if interpreted():
        return {"interpret": True}
    from jax.experimental.pallas import triton  # noqa: PLC0415 - absent where there is no GPU

    return {"compiler_params": triton.CompilerParams(num_warps=warps, num_stages=1)}


def load(ref: Any, mask: Any = None) -> Any:
    """What a reference holds, 0 where the mask is false."""
    from jax.experimental.pallas import triton  # noqa: PLC0415

    return triton.load(ref, mask=mask, other=None if mask is None else 0)


def store(ref: Any, value: Any, mask: Any = None) -> None:
    from jax.experimental.pallas import triton  # noqa: PLC0415

    triton.store(ref, value, mask=mask)


def barrier() -> None:
    """Wait for all threads of a program."""
    if not interpreted():
        from jax.experimental.pallas import triton  # noqa: PLC0415

        triton.debug_barrier()
