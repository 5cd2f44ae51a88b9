"""A study of a few small groups, in a module that workers can import; some fail, wait or end their process."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np

from gesmr.lab.run.compilation import Program, shape
from gesmr.lab.run.specs import Job, Selection


@dataclass(frozen=True)
class Power:
    """One piece of work; `what` happens before it is done."""

    number: int
    what: str = ""
    kind: ClassVar[str] = "power"


def _sine(x: jax.Array) -> jax.Array:
    return jax.numpy.sin(x) @ x


SINE = Program(_sine, (), (shape(1000),))  # the one program of all groups


@dataclass(frozen=True)
class PowerJob(Job[Power]):
    @property
    def programs(self) -> list[Program]:
        return [SINE]

    @property
    def work(self) -> float:
        return 2.0

    @property
    def label(self) -> str:
        return f"power {self.one.number}"

    def run(self, compiled, tick):
        tick(1.0)
        word, _, path = self.one.what.partition(":")
        if word == "raise":
            raise ArithmeticError("no power")
        if word == "exit":
            os._exit(1)
        if word == "take":
            Path(path).rename(f"{path}.taken")
        while word == "wait" and not Path(path).exists():
            Path(f"{path}.{os.getpid()}").touch()
            time.sleep(0.01)
            tick(0.0)
        value = compiled(SINE)(np.arange(1000, dtype=np.float32) / (1 + self.one.number))
        tick(1.0)
        return {"value": np.asarray(value)[None]}


class SmallStudy:
    name: ClassVar[str] = "small"
    title: ClassVar[str] = "a small study"
    profiles: ClassVar[tuple[str, ...]] = ("quick",)

    def specs(self, selection: Selection | None = None):
        return [Power(number) for number in range(8)]

    def jobs(self, specs, memory):
        return [PowerJob((spec,)) for spec in specs]
