"""How often JAX compiles."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax


@contextmanager
def count_compilations() -> Iterator[Callable[[], int]]:
    """A function that says how many programs have been compiled since the block began, and not after its end."""
    events, active = [], True

    def listen(event: str, duration_secs: float, **_: str | int):
        if active and event.endswith("backend_compile_duration"):
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield lambda: len(events)
    active = False
