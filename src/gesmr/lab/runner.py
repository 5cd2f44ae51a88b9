"""Computes what a study asks for and the store does not have yet."""

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager

import jax
from rich.console import Console

from .. import _provenance as provenance
from ..studies import Group, Spec, Study, as_json, content_hash
from .compilation import Programs, use_cache
from .progress import Display, display
from .store import Store


class _Stopped(Exception):
    """Raised in a group's thread when another one has failed or the user has interrupted."""


def run(
    study: Study,
    specs: Sequence[Spec],
    store: Store,
    *,
    console: Console | None = None,
    threads: int | None = None,
    memory: int | None = None,
) -> int:
    """Compute and store every group of `specs` that is missing; how many runs that were.

    `threads` groups run at a time (on a CPU one per core, on a GPU two, one of which prepares while the other
    computes); `memory` bytes is what one may use. Neither changes a random draw.
    """
    start = time.perf_counter()
    use_cache()
    console = console or Console(stderr=True)
    threads = threads or default_threads()
    memory = memory or default_memory() // threads
    done = store.done()
    missing = [spec for spec in specs if content_hash(as_json(spec)) not in done]
    groups = study.groups(missing, memory)
    together = [group for group in groups if not group.alone]
    alone = [group for group in groups if group.alone]
    work = sum(group.work for group in groups)
    with Programs(os.cpu_count() or 1) as programs, display(console, len(groups), work) as shown, _quick_turns():
        for group in [*together, *alone]:
            programs.request(group.programs)
        for batch, workers in ((together, threads), (alone, 1)):
            _run_all(batch, workers, store, programs, shown)
    if missing:
        took = round(time.perf_counter() - start, 1)
        store.log({**provenance.machine(), "groups": len(groups), "runs": len(missing), "wall_seconds": took})
    return len(missing)


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Let threads take turns often: those that feed the device must not wait for those that trace programs."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def default_threads() -> int:
    return (os.cpu_count() or 1) if jax.default_backend() == "cpu" else 2


def default_memory() -> int:
    """Half of what there is, in bytes."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"]) // 2
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2**31


def _run_all(groups: Sequence[Group], workers: int, store: Store, programs: Programs, shown: Display) -> None:
    stop = threading.Event()
    with ThreadPoolExecutor(workers, thread_name_prefix="run") as pool:
        futures = [pool.submit(_run_group, group, store, programs, shown, stop) for group in groups]
        try:
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
        finally:  # also when interrupted: what is under way ends at its next tick, what waits is dropped
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    errors = [error for future in finished if (error := future.exception()) is not None]
    for error in errors:
        if not isinstance(error, _Stopped):
            raise error


def _run_group(group: Group, store: Store, programs: Programs, shown: Display, stop: threading.Event) -> None:
    def tick(work: float) -> None:
        if stop.is_set():
            raise _Stopped
        shown.worked(work)

    def compiled(program):
        if stop.is_set():
            raise _Stopped
        return programs(program)

    while not store.has(group.specs):
        with store.claim(group.specs) as mine:
            if not mine:
                if stop.wait(0.2):
                    raise _Stopped
                continue
            if store.has(group.specs):  # finished by another process just before the claim
                break
            for program in group.programs:  # before the clock starts
                compiled(program)
            shown.started(group.label)
            start = time.perf_counter()
            arrays = group.run(compiled, tick)
            seconds = time.perf_counter() - start
            record = {**provenance.machine(), "label": group.label, "seconds": round(seconds, 3)}
            store.write(group.specs, arrays, record)
            shown.finished(group.label, seconds)
            return
    shown.skipped(group.label, group.work)
