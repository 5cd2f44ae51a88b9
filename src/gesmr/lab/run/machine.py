"""Computes jobs on the devices of this machine."""

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from ... import _provenance as provenance
from ..errors import LabError
from .compilation import Device, Programs, use_cache
from .specs import Job, Spec, Study


class Stopped(Exception):
    """Raised in a job's thread when another one has failed or the user has interrupted."""


class Computed(NamedTuple):
    """What came of a job: its arrays, and with what, where and in which time they were computed."""

    arrays: dict[str, np.ndarray]
    record: dict[str, Any]
    seconds: float


class Plan(NamedTuple):
    """Jobs and the work of each, as a machine would do them, and what that machine is."""

    facts: dict[str, Any]
    jobs: list[tuple[Job, float]]


class Machine:
    """The first `devices` devices of this machine, `threads` jobs at a time on each. Which one changes no bit.

    By default all devices, and on a CPU one job per core, on a GPU two, one of which prepares while the other computes.
    """

    def __init__(self, devices: int | None = None, threads: int | None = None):
        use_cache()
        there = jax.local_devices()
        if devices is not None and not 1 <= devices <= len(there):
            raise LabError(f"--devices must be from 1 to {len(there)}, the devices JAX finds here, got {devices}")
        self.devices = there[:devices]
        on_a_cpu = jax.default_backend() == "cpu"
        self.threads = threads or (max(1, (os.cpu_count() or 1) // len(self.devices)) if on_a_cpu else 2)
        self._switch_interval = sys.getswitchinterval()
        self._programs = Programs(os.cpu_count() or 1)
        self._new = [DevicePlace(self._programs, device) for _ in range(self.threads) for device in self.devices]

    def plan(self, study: Study, specs: Sequence[Spec], memory: int | None) -> Plan:
        """What is to be done, if a job may use `memory` bytes; by default what there is for each."""
        jobs = study.jobs(specs, memory or _memory(self.devices) // self.threads)
        return Plan(provenance.machine(), [(job, job.work) for job in jobs])

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Begin to compile what these jobs will need, in their order."""
        for i, job in enumerate(jobs):
            self._programs.request(job.programs, self.devices[i % len(self.devices)])

    def places(self) -> list["DevicePlace"]:
        """All, when first asked."""
        new, self._new = self._new, []
        return new

    def __enter__(self) -> "Machine":
        sys.setswitchinterval(2e-4)  # those that feed the device must not wait for those that trace programs
        return self

    def __exit__(self, *error) -> None:
        sys.setswitchinterval(self._switch_interval)
        self._programs.__exit__(*error)


class DevicePlace:
    """A device, for one job at a time."""

    gone: ClassVar[bool] = False

    def __init__(self, programs: Programs, device: Device):
        self._programs, self._device = programs, device

    def compute(
        self, job: Job, stop: threading.Event, started: Callable[[], None], worked: Callable[[float], None]
    ) -> Computed:
        """Ends with `Stopped` soon after `stop` is set."""

        def tick(work: float) -> None:
            if stop.is_set():
                raise Stopped
            worked(work)

        def compiled(program: Any) -> Callable:
            if stop.is_set():
                raise Stopped
            return self._programs(program, self._device)

        with jax.default_device(self._device):
            for program in job.programs:  # before the clock starts
                compiled(program)
            started()
            start = time.perf_counter()
            arrays = job.run(compiled, tick)
            seconds = time.perf_counter() - start
        where = f"{self._device.platform}:{self._device.id}"
        record = {**provenance.machine(), "label": job.label, "on": where, "seconds": round(seconds, 3)}
        return Computed(arrays, record, seconds)


def _memory(devices: Sequence[Device]) -> int:
    """Half of what each device has, in bytes."""
    stats = [device.memory_stats() or {} for device in devices]
    if all("bytes_limit" in stat for stat in stats):
        return min(int(stat["bytes_limit"]) for stat in stats) // 2
    try:  # devices of the host share its memory
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // len(devices)
    except (AttributeError, ValueError, OSError):
        return 2**31
