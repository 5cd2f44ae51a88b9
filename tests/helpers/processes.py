"""Programs in processes of their own: started, waited for, interrupted, killed and looked for."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gesmr

from . import TESTS

Condition = Callable[[], object]
Command = list[Any]


def wait_until(condition: Condition, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "this took too long"
        time.sleep(0.05)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """A block that is cut off, rather than to hang."""

    def cut_off(*_):
        pytest.fail(f"not within {seconds} s")

    before = signal.signal(signal.SIGALRM, cut_off)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def heeding(*arguments: Any) -> Command:
    """Python with these arguments, which can be interrupted: a shell's background jobs, and what they start, ignore
    Ctrl-C."""
    heed = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", heed, sys.executable, *arguments]


def finding_helpers() -> dict[str, str]:
    """An environment in which other processes, wherever they are, can import what is here."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


# Killed (SIGKILL) at random moments


def finish(command: Command, **options: Any) -> None:
    """Run the command, left alone."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == 0, done.stderr


def seconds_since(begun: Condition, command: Command, **options: Any) -> float:
    """How long the command went on after `begun` was true, left alone."""
    with _started(command, begun, **options) as process:
        start = time.monotonic()
        assert process.wait(timeout=300) == 0
        return time.monotonic() - start


def kill_at_random(
    command: Command, begun: Callable[[], Condition], seconds: float, kills: int, **options: Any
) -> float:
    """Start the command so often, each killed within `seconds` of when it has `begun`; the share of times that it was
    at work."""
    generator, at_work = random.Random(0), 0
    for _ in range(kills):
        with _started(command, begun(), **options) as process:
            time.sleep(generator.uniform(0, seconds))
            process.send_signal(signal.SIGKILL)
        at_work += process.returncode == -signal.SIGKILL
    return at_work / kills


def _started(command: Command, begun: Condition, **options: Any) -> subprocess.Popen:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    deadline = time.monotonic() + 120
    while not begun() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    return process


# What is left behind


def is_running(pid: int | str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def marked(mark: str) -> list[tuple[int, str]]:
    """Processes with this mark in their environment, and their commands."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes() and is_running(place.name):
                found.append((int(place.name), (place / "cmdline").read_text().replace("\0", " ")))
        except OSError:
            continue
    return found


class Program:
    """A script in a process of its own, with a temporary directory of its own and a mark that its children inherit."""

    def __init__(self, source: str, directory: Path, *arguments: object):
        script = directory / "script.py"
        script.write_text(source)
        self.temporary = Path(tempfile.mkdtemp(prefix="g", dir="/tmp"))  # short: Ray has sockets in it
        self.mark = f"GESMR_MARK={directory}"
        self.shared = set(os.listdir("/dev/shm"))
        path = os.pathsep.join([str(Path(gesmr.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = {"GESMR_MARK": str(directory), "TMPDIR": str(self.temporary), "PYTHONPATH": path}
        self.process = subprocess.Popen(
            [sys.executable, str(script), *map(str, arguments)],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self) -> tuple[str, str, int]:
        """What it printed, what it said, and its exit status."""
        out, err = self.process.communicate(timeout=120)
        return out, err, self.process.returncode

    def assert_nothing_left(self) -> None:
        wait_until(lambda: not marked(self.mark), seconds=120.0)
        wait_until(lambda: not os.listdir(self.temporary))
        self.temporary.rmdir()
        assert set(os.listdir("/dev/shm")) <= self.shared
