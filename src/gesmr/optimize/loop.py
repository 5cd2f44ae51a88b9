"""The loop of a run and what happens between its steps: callbacks, display, checkpoints."""

import dataclasses
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from .. import _checks
from .._locks import alone
from .._signals import Interrupts, uninterrupted
from ..devices import broadcast, is_first
from . import archive, checkpoint
from .archive import CheckpointError, Content
from .called import CalledStep
from .compiled import CompiledStep
from .display import Display
from .run import Run

_SAVE_SECONDS = 10.0


@dataclasses.dataclass
class Checkpoint:
    """Where and how often to keep a run: after every so many generations or seconds, and at its end."""

    path: str | Path
    every: int | None = None
    seconds: float | None = None

    def __post_init__(self):
        if not isinstance(self.path, str | Path) or not str(self.path):
            raise TypeError(f"checkpoint must be a file name or a gesmr.Checkpoint, got {_checks.show(self.path)}")
        _checks.file("checkpoint", self.path)
        if self.every is not None:
            _checks.integer("every", self.every, 1)
        if self.seconds is not None:
            _checks.number("seconds", self.seconds, 0.0)
        if self.every is None and self.seconds is None:
            self.seconds = _SAVE_SECONDS


def as_checkpoint(given: Any) -> Checkpoint | None:
    return given if given is None or isinstance(given, Checkpoint) else Checkpoint(given)


@contextmanager
def held(kept: Checkpoint | None) -> Iterator[None]:
    """A block in which no other process writes the checkpoint."""
    if kept is None:
        yield
        return
    path = Path(kept.path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"checkpoint must be in a directory that exists, got {path}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"checkpoint must be in a directory that can be written, got {path}")
    refusal = CheckpointError(f"{path} is in use: another run, of this process or another, writes it")
    with alone(path.with_name(f"{path.name}.lock"), refusal):
        yield


def read_if_resumed(kept: Checkpoint | None, resume: bool) -> Content | None:
    """What is in the checkpoint, if there is one and it is wanted; complains if it is there and not wanted."""
    resume = _checks.flag("resume", resume)
    if kept is None:
        if resume:
            raise ValueError("resume needs a checkpoint to go on from")
        return None
    if not archive.exists(kept.path):
        return None
    if not resume:
        raise FileExistsError(f"{kept.path} exists already: resume=True continues from it, or choose another file")
    archive.tidy(kept.path)
    return archive.read(kept.path)


Step = CalledStep | CompiledStep


def check_function(run: Run, step: Step, path: str | Path) -> None:
    """Refuse to go on with another function than the one whose best solution the checkpoint holds.

    One evaluation, or two: a function that is not sure of its own value is not asked.
    """
    _, stored, row = run.best()
    setup = run.setup
    if not np.isfinite(stored) or setup.repeats > 1 or setup.reevaluate != "none":
        return
    elite = np.asarray(run.record.since(0).elite)
    reached = elite[np.isfinite(elite)]
    gained = float(np.ptp(reached)) if reached.size else 0.0

    def differ(a: float, b: float) -> bool:
        """By more than another order of summation could do."""
        size = max(abs(a), abs(b), gained) if np.isfinite([a, b]).all() else 0.0
        return a != b and not abs(a - b) <= np.sqrt(np.finfo(setup.layout.wide).eps) * size

    def value() -> float:
        found = step.value(row)
        return found if np.isfinite(found) else np.inf

    now = value()
    if differ(now, stored) and not differ(now, value()):
        raise CheckpointError(
            f"{path} is of another run: fun has {setup.sign * now:g} where it had {setup.sign * stored:g}, at the best "
            "solution so far"
        )


def as_callbacks(callback: Any) -> list[Callable]:
    found = [] if callback is None else list(callback) if isinstance(callback, Sequence) else [callback]
    for one in found:
        if not callable(one):
            raise TypeError(f"callback must be callable, or a list of such, got {_checks.show(one)}")
    return found


class Loop:
    """The loop: steps until there is a reason to stop, and what happens between them."""

    def __init__(self, callbacks: list[Callable], disp: bool, kept: Checkpoint | None):
        self._callbacks, self._disp, self._kept = callbacks, disp, kept
        self._saved = time.monotonic()
        self._saved_at = self._told_at = 0

    def __call__(self, run: Run, step: Step, interrupts: Interrupts) -> Any:
        if not self._disp or not is_first(run.shards):
            return self._run(run, step, interrupts, None)
        with Display(sys.stdout, run.limits.in_force) as display:
            result = self._run(run, step, interrupts, display)
        display.finish(result)
        return result

    def _run(self, run: Run, step: Step, interrupts: Interrupts, display: Display | None) -> Any:
        self._saved_at = self._told_at = run.progress.nit
        several = run.shards is not None and run.shards.processes > 1
        interrupts.patient = step.short
        try:
            while not run.stop():
                if interrupts.seen:
                    raise KeyboardInterrupt
                step()
                self._between(run, display)
        except KeyboardInterrupt:
            if several:  # the others would wait for this one
                raise
            run.progress.events["interrupted"] = True
        except BaseException:
            if not several:
                with suppress(Exception):  # what has gone wrong first is what matters; the last checkpoint stays
                    self._save(run)
            raise
        self._save(run)
        return run.result()

    def _between(self, run: Run, display: Display | None) -> None:
        progress, shards = run.progress, run.shards
        now = time.monotonic()
        if self._disp and broadcast(display is not None and display.is_due, shards):
            glance = run.glance({})  # by all processes together
            glance["recent"] = run.record.since(max(progress.nit - 1, 0))
            if display is not None:
                display(glance)
        if self._callbacks:
            self._tell(run)
        kept = self._kept
        if kept is None:
            return
        due = kept.every is not None and progress.nit - self._saved_at >= kept.every
        if due or (kept.seconds is not None and broadcast(now - self._saved, shards) >= kept.seconds):
            self._save(run)

    def _tell(self, run: Run) -> None:
        stop = run.stop()
        glance = run.glance(stop)
        glance["recent"] = run.record.since(self._told_at)
        self._told_at = run.progress.nit
        enough = False
        for callback in self._callbacks if is_first(run.shards) else ():
            try:
                enough |= callback(glance) is True
            except StopIteration:
                enough = True
        if broadcast(enough, run.shards):
            run.progress.events["callback"] = True

    def _save(self, run: Run) -> None:
        if self._kept is None:
            return
        try:
            with uninterrupted():
                checkpoint.save(run, Path(self._kept.path))
        except Exception as error:  # whatever it is, what has been found so far is worth more
            warnings.warn(f"a checkpoint was not written, and the run goes on: {error}", RuntimeWarning, stacklevel=2)
        self._saved, self._saved_at = time.monotonic(), run.progress.nit
