"""The loop of a run and what happens between its steps: callbacks, display, checkpoints."""

import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .. import _checks
from .._locks import alone
from .._signals import Interrupts, uninterrupted
from ..devices import Shards, broadcast, is_first
from . import archive, checkpoint
from .optimizer import Optimizer
from .options import Setup
from .stopping import Limits

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


Content = tuple[dict[str, Any], dict[str, Any]]  # of a checkpoint: JSON and arrays


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
    refusal = archive.CheckpointError(f"{path} is in use: another run, of this process or another, writes it")
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
        raise FileExistsError(f"{kept.path} exists already: resume=True goes on from it, or choose another file")
    archive.tidy(kept.path)
    return archive.read(kept.path)


def is_compiled(found: Content) -> bool:
    return str(found[0].get("path")).startswith("jax")


def resumed(
    checked: Setup,
    limits: Limits,
    kept: Checkpoint,
    found: Content,
    compiled: bool,
    shards: Shards | None,
    *,
    any_seed: bool,
) -> Optimizer:
    """The optimiser in the checkpoint, with its seed if any will do."""
    if any_seed:
        checked = dataclasses.replace(checked, seed=found[0]["setup"]["seed"])
    checkpoint.check_same(checked, *found, kept.path)
    if is_compiled(found) != compiled:
        was, now = ("compiled", "called") if is_compiled(found) else ("called", "compiled")
        raise archive.CheckpointError(f"{kept.path} is of another run: fun was {was}, now it is {now}")
    optimizer = Optimizer._of(checked, limits, shards)
    checkpoint.restore(optimizer, *found, kept.path)
    return optimizer


class Step(Protocol):
    """What moves a run."""

    short: bool  # whether it ends soon, so that Ctrl-C can wait for it

    def __call__(self) -> None: ...

    def value(self, row: np.ndarray) -> float:
        """The objective at a solution, as minimised inside. It is not counted."""
        ...


def check_function(optimizer: Optimizer, step: Step, path: str | Path) -> None:
    """Refuse to go on with another function than the one whose best solution the checkpoint holds.

    One evaluation, or two: a function that is not sure of its own value is not asked.
    """
    stored, row = optimizer._best()
    setup = optimizer._setup
    if not np.isfinite(stored) or setup.repeats > 1 or setup.reevaluate != "none":
        return
    elite = optimizer._record.since(0).elite
    reached = elite[np.isfinite(elite)]  # type: ignore[index]
    gained = float(np.ptp(reached)) if reached.size else 0.0

    def differ(a: float, b: float) -> bool:
        """By more than another order of summation could do."""
        size = max(abs(a), abs(b), gained) if np.isfinite([a, b]).all() else 0.0
        return not abs(a - b) <= np.sqrt(np.finfo(setup.space.wide).eps) * size

    now = step.value(row)
    if differ(now, stored) and not differ(now, step.value(row)):
        raise archive.CheckpointError(
            f"{path} is of another run: fun has {setup.sign * now:g} where it had {setup.sign * stored:g}, at the best "
            "solution so far"
        )


def as_callbacks(callback: Any) -> list[Callable]:
    found = [] if callback is None else list(callback) if isinstance(callback, Sequence) else [callback]
    for one in found:
        if not callable(one):
            raise TypeError(f"callback must be callable, or a list of such, got {_checks.show(one)}")
    return found


class Watch:
    """The loop: steps until there is a reason to stop, and what happens between them."""

    def __init__(self, callbacks: list[Callable], disp: bool, kept: Checkpoint | None):
        self._callbacks, self._disp, self._kept = callbacks, disp, kept
        self._shown = self._saved = time.monotonic()
        self._saved_at = self._told_at = 0

    def run(self, optimizer: Optimizer, step: Step, interrupts: Interrupts) -> Any:
        self._saved_at = self._told_at = optimizer._progress.nit
        several = optimizer._shards is not None and optimizer._shards.processes > 1
        interrupts.patient = step.short
        try:
            while not optimizer.stop():
                if interrupts.seen:
                    raise KeyboardInterrupt
                step()
                self._between(optimizer)
        except KeyboardInterrupt:
            if several:  # the others would wait for this one
                raise
            optimizer._progress.events["interrupted"] = True
        except BaseException:
            if not several:
                with suppress(Exception):  # what has gone wrong first is what matters; the last checkpoint stays
                    self._save(optimizer)
            raise
        self._save(optimizer)
        result = optimizer.result
        if self._disp and is_first(optimizer._shards):
            print(f"{result.message} Best value {result.fun:.6g} after {result.nit} generations.", flush=True)
        return result

    def _between(self, optimizer: Optimizer) -> None:
        progress, shards = optimizer._progress, optimizer._shards
        now = time.monotonic()
        if self._disp and is_first(shards) and now - self._shown >= 1.0:
            self._shown = now
            print(f"generation {progress.nit}: best value {optimizer._setup.sign * progress.best:.6g}", flush=True)
        if self._callbacks:
            self._tell(optimizer)
        kept = self._kept
        if kept is None:
            return
        due = kept.every is not None and progress.nit - self._saved_at >= kept.every
        if due or (kept.seconds is not None and broadcast(now - self._saved, shards) >= kept.seconds):
            self._save(optimizer)

    def _tell(self, optimizer: Optimizer) -> None:
        stop = optimizer.stop()
        glance = optimizer._glance(stop)
        glance["recent"] = optimizer._record.since(self._told_at)
        self._told_at = optimizer._progress.nit
        enough = False
        for callback in self._callbacks if is_first(optimizer._shards) else ():
            try:
                callback(glance)
            except StopIteration:
                enough = True
        if broadcast(enough, optimizer._shards):
            optimizer._progress.events["callback"] = True

    def _save(self, optimizer: Optimizer) -> None:
        if self._kept is None:
            return
        try:
            with uninterrupted():
                optimizer.save(self._kept.path)
        except Exception as error:  # whatever it is, what has been found so far is worth more
            warnings.warn(f"a checkpoint was not written, and the run goes on: {error}", RuntimeWarning, stacklevel=2)
        self._saved, self._saved_at = time.monotonic(), optimizer._progress.nit
