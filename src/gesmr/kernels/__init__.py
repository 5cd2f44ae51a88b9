"""Kernels of our own for NVIDIA GPUs, in Pallas for Triton: what a generation does to its population, in one pass.

The code without them is the reference and is used everywhere else. The environment variable GESMR_KERNELS, read when
gesmr is imported, says which: `auto`, `off`, or `interpret`, which runs the kernels slowly where there is no GPU.
"""

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import jax

T = TypeVar("T")

_TRACED = threading.local()
_MODES = ("auto", "off", "interpret")
MODE = os.environ.get("GESMR_KERNELS", "auto")
if MODE not in _MODES:
    raise ValueError(f"GESMR_KERNELS must be one of {', '.join(_MODES)}, got {MODE!r}")


def interpreted() -> bool:
    return MODE == "interpret"


def wanted() -> bool:
    """Whether the kernels are used here, if what they are to compute is what they can."""
    return interpreted() or _usable()


@cache
def on_nvidia() -> bool:
    return jax.default_backend() == "gpu" and _is_nvidia(jax.devices()[0])


def _is_nvidia(device: Any) -> bool:
    return device is not None and "nvidia" in device.device_kind.lower()


@cache
def _usable() -> bool:
    from .trial import compile_all  # noqa: PLC0415  it needs what imports this

    return compiles(compile_all)


def compiles(kernels: Callable[[], object]) -> bool:
    """Whether `kernels`, a call that compiles some, works here. If not on a GPU they are meant for, with a warning."""
    if MODE == "off" or not on_nvidia():
        return False
    try:
        kernels()
    except Exception as error:  # whatever the compiler of this version or card does not like
        warnings.warn(f"the fast kernels cannot be compiled and slower code is used: {error}", stacklevel=3)
        return False
    return True


@contextmanager
def traced_for(device: Any) -> Iterator[None]:
    """Programs that are traced here are for this device alone: those for an NVIDIA GPU need no plain code beside."""
    _TRACED.nvidia = _is_nvidia(device)
    try:
        with jax.default_device(device):  # what JAX remembers of a trace, it remembers for this device
            yield
    finally:
        _TRACED.nvidia = False


def either(kernel: Callable[[], T], plain: Callable[[], T]) -> T:
    """What a kernel gives; on other devices of this machine, and on those of programs for elsewhere, plain code."""
    if interpreted() or getattr(_TRACED, "nvidia", False):
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
