"""Computes groups on the devices of this machine."""

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

from ... import _provenance as provenance
from ..errors import LabError
from .compilation import Device, Programs, use_cache
from .specs import Job


class Stopped(Exception):
    """Raised in a group's thread when another one has failed or the user has interrupted."""


class Computed(NamedTuple):
    """What came of a group: its arrays, and with what, where and in which time they were computed."""

    arrays: dict[str, np.ndarray]
    record: dict[str, Any]
    seconds: float


class Machine:
    """`slots` groups at a time: `threads` on each of the devices. Where a group is computed changes no bit of it.

    By default all devices, and on a CPU one group per core, on a GPU two, one of which prepares while the other
    computes.
    """

    def __init__(self, devices: int | None = None, threads: int | None = None):
        use_cache()
        self.devices = _first_devices(devices)
        self.threads = threads or _default_threads(len(self.devices))
        self._free: queue.SimpleQueue[Device] = queue.SimpleQueue()
        for _ in range(self.threads):
            for device in self.devices:
                self._free.put(device)
        self._open = ExitStack()
        self._programs = self._open.enter_context(Programs(os.cpu_count() or 1))
        self._open.enter_context(_quick_turns())

    @property
    def slots(self) -> int:
        return len(self.devices) * self.threads

    @property
    def memory(self) -> int:
        """What one group may use, in bytes."""
        return _memory(self.devices) // self.threads

    def prepare(self, groups: Sequence[Job]) -> None:
        """Begin to compile what these groups will need, in their order."""
        for i, group in enumerate(groups):
            self._programs.request(group.programs, self.devices[i % len(self.devices)])

    def compute(
        self, group: Job, stop: threading.Event, started: Callable[[], None], worked: Callable[[float], None]
    ) -> Computed:
        """Compute a group on the device that is free first. Ends with `Stopped` soon after `stop` is set."""
        device = self._free.get()
        try:
            with jax.default_device(device):
                return self._compute(group, device, stop, started, worked)
        finally:
            self._free.put(device)

    def _compute(
        self,
        group: Job,
        device: Device,
        stop: threading.Event,
        started: Callable[[], None],
        worked: Callable[[float], None],
    ) -> Computed:
        def tick(work: float) -> None:
            if stop.is_set():
                raise Stopped
            worked(work)

        def compiled(program: Any) -> Callable:
            if stop.is_set():
                raise Stopped
            return self._programs(program, device)

        for program in group.programs:  # before the clock starts
            compiled(program)
        started()
        start = time.perf_counter()
        arrays = group.run(compiled, tick)
        seconds = time.perf_counter() - start
        where = f"{device.platform}:{device.id}"
        return Computed(arrays, {**provenance.machine(), "label": group.label, "on": where,
                                 "seconds": round(seconds, 3)}, seconds)  # fmt: skip

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_) -> None:
        self._open.close()


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Let threads take turns often: those that feed the device must not wait for those that trace programs."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _first_devices(number: int | None) -> list[Device]:
    devices = jax.local_devices()
    if number is not None and not 1 <= number <= len(devices):
        raise LabError(f"--devices must be from 1 to {len(devices)}, the devices JAX finds here, got {number}")
    return devices[:number]


def _default_threads(devices: int) -> int:
    return max(1, (os.cpu_count() or 1) // devices) if jax.default_backend() == "cpu" else 2


def _memory(devices: Sequence[Device]) -> int:
    """Half of what each device has, in bytes."""
    stats = [device.memory_stats() or {} for device in devices]
    if all("bytes_limit" in stat for stat in stats):
        return min(int(stat["bytes_limit"]) for stat in stats) // 2
    try:  # devices of the host share its memory
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // len(devices)
    except (AttributeError, ValueError, OSError):
        return 2**31
