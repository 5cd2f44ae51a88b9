"""Functions for workers, good and bad ones, in a module that a worker imports quickly."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

BAD = 14.0  # the first number of a candidate that is treated badly


def sphere(x):
    return float(np.sum(np.asarray(x) ** 2))


def tree_sphere(x, scale):
    return scale * sum(sphere(leaf) for leaf in x.values())


def asleep(x, seconds):
    time.sleep(seconds)
    return sphere(x)


def counted(x, path):
    """Leaves a mark for every call at the bad candidate; how many there are."""
    if x[0] == BAD:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write("x")
    return len(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else 0


def raises(x):
    if x[0] >= BAD:
        raise ZeroDivisionError(f"at {x[0]:g}")
    return sphere(x)


class StubbornError(Exception):
    """Cannot be sent."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def raises_stubbornly(x):
    raise StubbornError(1, 2)


class UnspeakableError(Exception):
    """Has no text."""

    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


def raises_unspeakably(x):
    raise UnspeakableError


class ImmovableError(Exception):
    """Cannot even be packed."""

    def __reduce__(self):
        raise ValueError("stays here")


def raises_immovably(x):
    raise ImmovableError("too heavy")


def exits(x):
    sys.exit(3)


def dies(x, path):
    if counted(x, path) and x[0] == BAD:
        os.kill(os.getpid(), signal.SIGKILL)
    return sphere(x)


def dies_once(x, path):
    if counted(x, path) == 1 and x[0] == BAD:
        os.kill(os.getpid(), signal.SIGSEGV)
    return sphere(x)


def hangs(x, path):
    if counted(x, path) and x[0] == BAD:
        time.sleep(1000)
    return sphere(x)


def hangs_once(x, path):
    if counted(x, path) == 1 and x[0] == BAD:
        time.sleep(1000)
    return sphere(x)


def starts_a_program(x, path):
    """One that runs forever, at the bad candidate; its number is left in the file."""
    if x[0] == BAD:
        with subprocess.Popen(["sleep", "1000"]) as program, Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{program.pid}\n")
            file.flush()
            program.wait()
    return sphere(x)


def by_whom(x, directory):
    """A file for every process that has evaluated something."""
    Path(directory, f"worker-{os.getpid()}").touch()
    return asleep(x, 0.05)


def somewhere(x, directory, seconds):
    """Says on which node of a Ray cluster it is evaluated, by a file of that name."""
    import ray  # noqa: PLC0415

    (Path(directory) / ray.get_runtime_context().get_node_id()).touch()
    return asleep(x, seconds)


def text(x):
    return "many" if x[0] == BAD else sphere(x)


def array(x):
    return x if x[0] == BAD else sphere(x)


def spinning(x, rounds):
    """Only the CPU is needed."""
    total = 0
    for i in range(rounds):
        total += i * i
    return sphere(x) + total % 2


class Unloadable:
    """Is sent, and does something else, such as to raise an error, when it is loaded."""

    def __init__(self, does=None, *how):
        self.does, self.how = does or _refuse, how

    def __call__(self, x):
        return 0.0

    def __reduce__(self):
        return (self.does, self.how)


def _refuse():
    raise ImportError("not here")


def kill_this(number):
    os.kill(os.getpid(), number)
