"""The optimiser as an object: ask for candidates, evaluate them anywhere, tell their values."""

from pathlib import Path
from typing import Any, Unpack

import numpy as np

from .. import _checks
from ..generation import Values
from . import checkpoint, options
from .layout import precision, real_values
from .options import SearchOptions, within_bounds
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
    and not evaluated again. They are rows of a read-only array, or a list if x0 is a pytree or a space. `ask(n)` is for
    workers that want a few at a time, and `tell` takes values in any order and in parts.

    Arguments are those of `gesmr.minimize` of the same names, which has them explained; `constrained` says that `tell`
    is given violations.
    """

    def __init__(self, x0: Any, **arguments: Unpack[SearchOptions]):
        if unknown := [name for name in arguments if name not in options.SIGNATURE.parameters]:
            raise TypeError(f"Optimizer.__init__() got an unexpected keyword argument {unknown[0]!r}")
        search, limits = options.split(arguments)
        self._start(begin(options.check(x0, search, limits), limits))

    __init__.__signature__ = options.SIGNATURE  # type: ignore[attr-defined]

    def _start(self, run: Run) -> None:
        self._run = run
        self._handed: Any = None  # the candidates of the last whole ask, and where the run stood
        self._handed_at: Any = None

    def ask(self, n: int | None = None) -> Any:
        """The candidates to evaluate: all that have no value yet, or the next n that have not been handed out.

        Asked again before telling, it returns the same. `ask(n)` always returns n: when the whole generation has been
        handed out, siblings follow of those that have no value yet, with the same parents and rates.
        """
        run, layout = self._run, self._run.setup.layout
        with precision(layout.dtype):
            if n is not None:
                return layout.solutions(self._next(_checks.integer("n", n, 1, most=_checks.MOST)))
            if self._handed_at != self._place():
                rows = run.rows()
                if run.pending is None:
                    run.handed = True
                else:
                    rows = run.pending.rows[: len(rows)][~run.pending.filled]
                    run.pending.handed[: len(run.pending.filled)] = True
                self._handed, self._handed_at = layout.solutions(rows), self._place()
        return self._handed

    def _next(self, n: int) -> np.ndarray:
        pending, found = self._run.out(), []
        while (missing := n - sum(map(len, found))) > 0:
            numbers = pending.next(missing)
            if not len(numbers):
                self._run.more_candidates()
            pending.handed[numbers] = True
            found.append(pending.rows[numbers])
        return np.concatenate(found)

    def tell(self, xs: Any, values: Any, violations: Any = None) -> None:
        """The values of candidates that `ask` returned, in any order and in any part. NaN and infinities count as the
        worst. If the optimiser is `constrained`, `violations` says how far each is from satisfying its constraints, 0
        if it does; the values of what does not are not looked at.

        When all have their values, a generation is done. What is told after that, or for a candidate in whose place
        another has been told, is late: it may enter the population, but teaches the rates nothing.
        """
        run = self._run
        if xs is not None and xs is self._handed and self._handed_at == self._place() and run.pending is None:
            values, violations = self._checked(values, violations, len(run.rows()))
            given = violations if run.setup.constrained else None
            run.accept(Values(values, violations=given), evaluations=len(values))  # type: ignore[arg-type]
            return
        keys = [(row + 0.0).tobytes() for row in self._rows(xs)]  # of two zeros the positive
        values, violations = self._checked(values, violations, len(keys))
        pending = run.out()
        try:
            numbers = pending.find(keys, run.setup.layout)
        except KeyError as error:
            raise ValueError(
                "xs must be candidates that ask returned and that have not been told yet, got another at position "
                f"{error.args[0]}; inject takes candidates from elsewhere"
            ) from None
        run.take(numbers, values, violations)

    def inject(self, xs: Any, values: Any = None, violations: Any = None) -> None:
        """Solutions from elsewhere. With their values they take the places of the worst of the generation in progress,
        if they are better; without, `ask` returns them next, and `tell` takes their values. The rates learn nothing
        from them."""
        setup = self._run.setup
        rows = self._rows(xs)
        if not np.isfinite(rows).all():
            bad = int((~np.isfinite(rows)).any(axis=1).sum())
            raise ValueError(f"xs must be finite, got NaN or infinity in {bad} solutions")
        rows = within_bounds("xs", rows, setup.bounds, setup.layout)
        if values is None:
            if violations is not None:
                raise ValueError("violations must come with values")
            self._run.out().propose(rows)
        else:
            self._run.out().arrive(rows, *self._checked(values, violations, len(rows)))
        self._handed_at = None

    @property
    def best(self) -> Any:
        """The best so far, with `x` and `fun`, of all that has been told or injected with a value."""
        return self._run.glance(self._run.stop())

    def _place(self) -> tuple[int, int, bool, int]:
        """Where the run stands: other candidates are asked for wherever this differs."""
        run, pending = self._run, self._run.pending
        filled = 0 if pending is None else int(pending.filled.sum())
        return run.progress.run, run.progress.nit, isinstance(run.phase, First), filled

    def _checked(self, values: Any, violations: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Values as minimised inside, and violations, zeros if there are none."""
        setup = self._run.setup
        if setup.constrained != (violations is not None):
            wanted = "must be given for an optimiser that is" if setup.constrained else "need an optimiser that is"
            raise ValueError(f"violations {wanted} constrained=True")
        internal = setup.sign * real_values("values", values, n, setup.layout.wide)
        if violations is None:
            return internal, np.zeros_like(internal)
        given = real_values("violations", violations, n, setup.layout.wide)
        if (given < 0).any():
            raise ValueError(f"violations must be at least 0, got {given.min()}")
        violations = np.where(np.isfinite(given), given, np.inf).astype(given.dtype)
        return np.where(violations > 0, np.inf, internal).astype(internal.dtype), violations

    def _rows(self, xs: Any) -> np.ndarray:
        """Solutions as rows `f[n, d]`."""
        layout, accepted = self._run.setup.layout, "xs must be a sequence of solutions"
        if xs is None or not hasattr(xs, "__len__") or not hasattr(xs, "__iter__") or getattr(xs, "shape", None) == ():
            raise TypeError(f"{accepted}, got {type(xs).__name__}")
        if isinstance(xs, dict):
            raise TypeError(f"{accepted}, got one: put it into a list")
        try:
            with precision(layout.dtype):
                rows = [layout.flatten(x) for x in xs]
        except (TypeError, ValueError) as error:
            raise ValueError(f"{accepted}, got others: {error}") from error
        return np.stack(rows) if rows else np.empty((0, layout.dim), layout.wide)

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
        """The optimiser that `save` wrote, which continues exactly as that one would have.

        x0 is needed if it was a pytree: any of the same structure. So is `controller`, if it is one of your own.
        `maxiter`, `maxfun`, `maxtime`, `target`, `patience`, `ftol` and `xtol` replace those of the file.
        """
        optimizer = cls.__new__(cls)
        optimizer._start(checkpoint.load(_checks.file("path", path), x0, controller, limits))
        return optimizer
