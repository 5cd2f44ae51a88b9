"""Computes what a study asks for and the store does not have yet."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from rich.console import Console

from ... import _provenance as provenance
from .machine import Computed, Machine, Stopped
from .progress import Display, display
from .specs import Job, Spec, Study, as_json, content_hash
from .store import Store


def run(
    study: Study,
    specs: Sequence[Spec],
    store: Store,
    *,
    console: Console | None = None,
    devices: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
) -> int:
    """Compute and store every group of `specs` that is missing; how many runs that were.

    On the first `devices` devices, or all, `threads` groups run at a time on each; `memory` bytes is what one may use.
    None of these changes a random draw.
    """
    start = time.perf_counter()
    console = console or Console(stderr=True)
    with Machine(devices, threads) as machine:
        missing = missing_in(store, specs)
        groups = study.jobs(missing, memory or machine.memory)
        together = [group for group in groups if not group.alone]
        alone = [group for group in groups if group.alone]
        with display(console, len(groups), sum(group.work for group in groups)) as shown:
            machine.prepare([*together, *alone])
            for batch, at_a_time in ((together, machine.slots), (alone, 1)):
                _run_all(batch, at_a_time, store, machine, shown)
        if missing:
            store.log(session(provenance.machine(), len(groups), len(missing), start))
    return len(missing)


def missing_in(store: Store, specs: Sequence[Spec]) -> list[Spec]:
    done = store.done()
    return [spec for spec in specs if content_hash(as_json(spec)) not in done]


def finish(group: Job, computed: Computed, store: Store, shown: Display) -> None:
    """What happens to a group that was computed, here or elsewhere."""
    store.write(group.specs, computed.arrays, computed.record)
    shown.finished(group.label, computed.seconds)


def session(machine: Mapping[str, Any], groups: int, runs: int, start: float) -> dict[str, Any]:
    """A line for the store's log about what was computed since `start`."""
    return {**machine, "groups": groups, "runs": runs, "wall_seconds": round(time.perf_counter() - start, 1)}


def _run_all(groups: Sequence[Job], at_a_time: int, store: Store, machine: Machine, shown: Display) -> None:
    stop = threading.Event()
    with ThreadPoolExecutor(at_a_time, thread_name_prefix="run") as pool:
        futures = [pool.submit(_run_group, group, store, machine, shown, stop) for group in groups]
        try:
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
        finally:  # also when interrupted: what is under way ends at its next tick, what waits is dropped
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    errors = [error for future in finished if (error := future.exception()) is not None]
    for error in errors:
        if not isinstance(error, Stopped):
            raise error


def _run_group(group: Job, store: Store, machine: Machine, shown: Display, stop: threading.Event) -> None:
    while not store.has(group.specs):
        with store.claim(group.specs) as mine:
            if not mine:
                if stop.wait(0.2):
                    raise Stopped
                continue
            if store.has(group.specs):  # finished by another process just before the claim
                break
            finish(group, machine.compute(group, stop, lambda: shown.started(group.label), shown.worked), store, shown)
            return
    shown.skipped(group.label, group.work)
