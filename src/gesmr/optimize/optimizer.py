"""The optimiser as an object: ask for candidates, evaluate them anywhere, tell their values."""

from pathlib import Path
from typing import Any, Unpack

import numpy as np

from .. import _checks
from ..generation import Values
from . import checkpoint, options
from .layout import precision, real_values
from .options import SearchOptions
from .phases import First
from .run import Run, begin


class Optimizer:
    """A genetic algorithm that finds its own mutation rate, for evaluations that happen elsewhere.

        opt = gesmr.Optimizer(x0, rng=0, maxiter=100)
        while not opt.stop():
            xs = opt.ask()
            opt.tell(xs, [f(x) for x in xs])
        print(opt.result.x, opt.result.fun)

    The first `ask` returns `popsize` candidates, x0 among them; every later one `popsize − 1`, because the best is kept
    and not evaluated again. Asking again before telling returns the same candidates. They are rows of a read-only
    array, or a list of pytrees if x0 is one.

    Arguments are those of `gesmr.minimize` of the same names, which has them explained.
    """

    def __init__(self, x0: Any, **arguments: Unpack[SearchOptions]):
        if unknown := [name for name in arguments if name not in options.SIGNATURE.parameters]:
            raise TypeError(f"Optimizer.__init__() got an unexpected keyword argument {unknown[0]!r}")
        search, limits = options.split(arguments)
        self._start(begin(options.check(x0, search, limits), limits))

    __init__.__signature__ = options.SIGNATURE  # type: ignore[attr-defined]

    def _start(self, run: Run) -> None:
        self._run = run
        self._handed: Any = None  # the last candidates, and where the run stood
        self._handed_at: Any = None
        self._told: Any = None  # those before

    def ask(self) -> Any:
        """The candidates to evaluate."""
        run, at = self._run, self._place()
        if self._handed_at != at:
            with precision(run.setup.layout.dtype):
                candidates = run.setup.layout.solutions(run.rows())
            self._told, self._handed, self._handed_at = self._handed, candidates, at
        return self._handed

    def tell(self, xs: Any, values: Any) -> None:
        """The values of the candidates that `ask` returned, in their order. NaN and infinities count as the worst."""
        self._check_candidates(xs)
        setup = self._run.setup
        internal = setup.sign * real_values("values", values, len(self._run.rows()), setup.layout.wide)
        self._run.accept(Values(internal), evaluations=len(internal))  # type: ignore[arg-type]

    def _place(self) -> tuple[int, int, bool]:
        """Where the run stands: other candidates are asked for wherever this differs."""
        return self._run.progress.run, self._run.progress.nit, isinstance(self._run.phase, First)

    def _check_candidates(self, xs: Any) -> None:
        if xs is None:
            raise TypeError("xs must be the candidates of the last ask, got NoneType")
        is_told = self._handed_at != self._place()
        if xs is self._handed and not is_told:
            return
        rows, layout = self._run.rows(), self._run.setup.layout
        accepted = f"xs must be the {len(rows)} candidates of the last ask, in their order"
        if xs is (self._handed if is_told else self._told):
            raise ValueError(f"{accepted}, got those of the ask before, which have been told already")
        if not hasattr(xs, "__len__") or not hasattr(xs, "__iter__") or getattr(xs, "shape", None) == ():
            raise TypeError(f"{accepted}, got {type(xs).__name__}")
        if len(xs) != len(rows):
            raise ValueError(f"{accepted}, got {len(xs)}")
        try:
            given = np.asarray(xs) if layout.is_vector else np.stack([layout.flatten(x) for x in xs])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{accepted}, got others: {error}") from error
        with precision(layout.dtype):  # leaves may have less precision than rows
            asked = rows if layout.is_vector else np.stack([layout.flatten(x) for x in self.ask()])
        if not np.array_equal(given, asked):
            raise ValueError(f"{accepted}, got others; were they told already?")

    def stop(self) -> dict[str, Any]:
        """Reasons to stop, by name: empty while there are none."""
        return self._run.stop()

    @property
    def result(self) -> Any:
        """The best so far as a `scipy.optimize.OptimizeResult`; `gesmr.minimize` explains its fields."""
        return self._run.result()

    def save(self, path: str | Path) -> None:
        """Write everything to `path`, atomically; the file that was there becomes `path`.previous."""
        checkpoint.save(self._run, _checks.file("path", path))

    @classmethod
    def load(cls, path: str | Path, *, x0: Any = None, controller: Any = None, **limits: Any) -> "Optimizer":
        """The optimiser that `save` wrote, which goes on exactly as the other would have.

        x0 is needed if it was a pytree: any of the same structure. So is `controller`, if it is one of your own.
        `maxiter`, `maxfun`, `maxtime`, `target` and `patience` replace those of the file.
        """
        optimizer = cls.__new__(cls)
        optimizer._start(checkpoint.load(_checks.file("path", path), x0, controller, limits))
        return optimizer
