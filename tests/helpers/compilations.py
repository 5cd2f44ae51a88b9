"""How often JAX compiles."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax


@contextmanager
def count_compilations() -> Iterator[Callable[[], int]]:
    """A function that says how many programs have been compiled since the block began, and not after its end."""
    events, active = [], True

    def listen(name: str, *_, **__):
        if active and name.endswith("backend_compile_duration"):
            events.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield lambda: len(events)
    active = False
