"""Programs compiled once, in parallel threads, and kept on disk between processes."""

import hashlib
import os
import platform
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ... import _compilation, kernels, noise

Device = Any  # jax.Device, which type checkers take for a variable
# Tracing is Python: many threads at it would only keep those that run programs from their turn.
_TRACING = threading.Lock()


@dataclass(frozen=True)
class Program:
    """`function`, whose first arguments are `fixed`, to be compiled for others of `shapes`; equal ones once.

    Of the others, those at the places `donate` lend their memory to the results.
    """

    function: Callable
    fixed: tuple[Any, ...]
    shapes: tuple[Any, ...]
    donate: tuple[int, ...] = ()

    def compile(self) -> Callable:
        with _TRACING:
            lowered = jax.jit(partial(self.function, *self.fixed), donate_argnums=self.donate).lower(*self.shapes)
        return lowered.compile(_compilation.OPTIONS)


def shape(*sizes: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def keys_shape(*lanes: int) -> noise.Key:
    return noise.Key(shape(*lanes, dtype=jnp.uint32), shape(*lanes, dtype=jnp.uint32))


class Programs(AbstractContextManager):
    """Compiles what is requested, in the order of the requests, in `threads` threads; equal programs once per device.

    A program is for the device it was compiled on. Other devices that need it wait until the first one has it, and
    then mostly find it in the cache on disk.
    """

    def __init__(self, threads: int):
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="compile")
        self._first: dict[Hashable, tuple[Device, Future[Callable]]] = {}
        self._again: dict[tuple[Hashable, Device], Future[Callable]] = {}
        self._lock = threading.Lock()

    def request(self, programs: Sequence[Program], device: Device = None) -> None:
        with self._lock:
            for program in programs:
                if program not in self._first:
                    self._first[program] = device, self._pool.submit(_compile, program, device)

    def __call__(self, program: Program, device: Device = None) -> Callable:
        """The compiled program for a device (None: JAX's default), once it is there."""
        self.request([program], device)
        first, future = self._first[program]
        compiled = future.result()
        return compiled if first == device else self._compile_again(program, device)

    def _compile_again(self, program: Program, device: Device) -> Callable:
        with self._lock:
            mine = (program, device) not in self._again
            future = self._again.setdefault((program, device), Future())
        if mine:
            try:
                future.set_result(_compile(program, device))
            except BaseException as error:
                future.set_exception(error)
        return future.result()

    def __exit__(self, *_) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _compile(program: Program, device: Device) -> Callable:
    with kernels.traced_for(device):
        return program.compile()


def use_cache() -> None:
    """Keep compiled programs on disk, unless the user has told JAX where (or not) to keep them.

    The directory's name depends on the processor: programs for a CPU run on that kind of CPU only.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) or os.environ.get("JAX_ENABLE_COMPILATION_CACHE") == "0":
        return
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = base / "gesmr" / f"programs-{_processor()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a read-only home: compile every time
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            features = next(line for line in file if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        features = platform.processor()
    return hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()[:12]
