"""A sampler of Optuna: the trials of a study are the candidates of a `gesmr.Optimizer`."""

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _checks
from .optimize.optimizer import Optimizer
from .optimize.options import default_popsize
from .spaces import MOST, MOST_LOG, Choice, Float, Int, Space

try:
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ModuleNotFoundError as error:
    raise ImportError("gesmr.optuna needs Optuna: pip install 'gesmr[optuna]'") from error

__all__ = ["GESMRSampler"]

_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


class GESMRSampler(BaseSampler):
    """A genetic algorithm that finds its own mutation rate, for `optuna.create_study(sampler=…)`.

    It searches the parameters that all finished trials have in common, numbers and categories alike. Trials that it
    did not suggest (of other processes, of an earlier run, enqueued) join its population with their values. Trials that
    were pruned or failed count as the worst; constraints of a trial come before its value. One objective only.

    seed: repeats a study that runs one trial at a time. Give processes that share a study different ones.
    n_trials: about how many trials there will be; from it `popsize` is chosen if that is not given.
    popsize, controller, truncation: as `gesmr.minimize` explains them.
    independent_sampler: for what is not common to all trials, the first among them; `RandomSampler` by default.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_trials: int = 100,
        popsize: int | None = None,
        controller: Any = None,
        truncation: float | None = None,
        independent_sampler: BaseSampler | None = None,
    ):
        if popsize is None:
            popsize = default_popsize(_checks.integer("n_trials", n_trials, 2))
        self._options = {"popsize": popsize, "controller": controller, "truncation": truncation}
        seed = None if seed is None else _checks.integer("seed", seed, 0, 2**32 - 1)
        self._seeds = np.random.default_rng(seed)
        self._independent = RandomSampler(seed=seed) if independent_sampler is None else independent_sampler
        self._common = IntersectionSearchSpace()
        self._search: _Search | None = None
        self._lock = threading.Lock()
        Optimizer(Space(x=Float(0, 1)), **self._options)  # complains now, not at the second trial

    def __getstate__(self) -> dict[str, Any]:
        """For copies in other processes: they learn from the study's trials what this one knows."""
        return vars(self) | {"_lock": None, "_search": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def reseed_rng(self) -> None:
        """Of the independent sampler: threads share the optimiser, which gives none of them what another got."""
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        with self._lock:
            common = self._common.calculate(study)
        return {name: one for name, one in common.items() if not one.single() and _variable(one) is not None}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with self._lock:
            finished = study.get_trials(deepcopy=False, states=_FINISHED)
            if self._search is None or self._search.distributions != search_space:
                direction = "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
                self._search = _Search(search_space, finished, rng=self._seeds, direction=direction, **self._options)
            self._search.learn(finished)
            return self._search.suggest(trial.number)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        self._raise_error_if_multi_objective(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._independent.after_trial(study, trial, state, values)


class _Search:
    """An optimiser of the parameters of one search space, and what it knows of the study's trials."""

    def __init__(
        self,
        distributions: dict[str, BaseDistribution],
        finished: list[FrozenTrial],
        *,
        direction: str,
        popsize: int,
        **options: Any,
    ):
        self.distributions = distributions
        self._names = {name: str(number) for number, name in enumerate(distributions)}  # Optuna's may be empty
        self._space = Space({self._names[name]: _variable(one) for name, one in distributions.items()})
        sign = -1 if direction == "maximize" else 1
        known = [trial for trial in finished if self._used(trial) is not None and math.isfinite(_value(trial))]
        known.sort(key=lambda trial: (_violation(trial), sign * _value(trial)))
        best = known[: popsize - 1]  # all but one of the first population, if there are so many
        self._known = {trial.number for trial in best}  # trials whose value it has
        self._asked: dict[int, dict[str, Any]] = {}  # what was suggested, by the number of its trial
        init = [self._space.decode(self._space.encode(self._used(trial))) for trial in best]  # type: ignore[arg-type]
        options |= {"direction": direction, "popsize": popsize, "init": init or None, "constrained": True}
        self._optimizer = Optimizer(self._space, **options)
        self._optimizer.tell(init, [_value(trial) for trial in best], [_violation(trial) for trial in best])

    def suggest(self, number: int) -> dict[str, Any]:
        """Parameters for the trial with this number."""
        [solution] = self._optimizer.ask(1)
        self._asked[number] = solution
        return {name: _external(one, solution[self._names[name]]) for name, one in self.distributions.items()}

    def learn(self, finished: list[FrozenTrial]) -> None:
        """What came of trials, those of others too. A candidate that was not used as it was suggested, or whose trial
        did not end well, counts as the worst."""
        elsewhere = []
        for trial in finished:
            if trial.number in self._known:
                continue
            self._known.add(trial.number)
            asked, used = self._asked.pop(trial.number, None), self._used(trial)
            came_of_it = _value(trial), _violation(trial)
            is_ours = asked is not None and used is not None and self._is_same(asked, used)
            if asked is not None:
                value, violation = came_of_it if is_ours else (math.nan, math.inf)
                self._optimizer.tell([asked], [value], [violation])
            if used is not None and not is_ours and math.isfinite(came_of_it[0]):
                elsewhere.append((used, *came_of_it))
        if elsewhere:
            self._optimizer.inject(*map(list, zip(*elsewhere, strict=True)))

    def _used(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """The parameters of a trial as a solution, if it has them all."""
        if any(trial.distributions.get(name) != one for name, one in self.distributions.items()):
            return None
        return {self._names[name]: _internal(one, trial.params[name]) for name, one in self.distributions.items()}

    def _is_same(self, a: dict[str, Any], b: dict[str, Any]) -> bool:
        """Whether solutions are equal, but for what a database may make of numbers."""
        return np.allclose(self._space.encode(a), self._space.encode(b), rtol=1e-9, atol=0)


def _variable(distribution: Any) -> Any:
    """What is searched for a parameter: its value, or the number of its step or category. None if it is too large."""
    if isinstance(distribution, CategoricalDistribution):
        return Choice(*range(len(distribution.choices)))
    low, high = distribution.low, distribution.high
    if _has_steps(distribution):
        low, high = 0, round((high - low) / distribution.step)
    elif isinstance(distribution, FloatDistribution):
        return Float(low, high, log=distribution.log)
    return Int(low, high, log=distribution.log) if high <= (MOST_LOG if distribution.log else MOST) else None


def _external(distribution: Any, value: Any) -> Any:
    """The parameter that a value of its variable stands for."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[value]
    return min(distribution.low + value * distribution.step, distribution.high) if _has_steps(distribution) else value


def _internal(distribution: Any, parameter: Any) -> Any:
    """The value of its variable that stands for a parameter."""
    if isinstance(distribution, CategoricalDistribution):
        return int(distribution.to_internal_repr(parameter))
    return round((parameter - distribution.low) / distribution.step) if _has_steps(distribution) else parameter


def _has_steps(distribution: FloatDistribution | IntDistribution) -> bool:
    return distribution.step is not None and not distribution.log


def _value(trial: FrozenTrial) -> float:
    """What a trial came to; NaN if it was pruned or failed."""
    return math.nan if trial.state != TrialState.COMPLETE or trial.value is None else trial.value


def _violation(trial: FrozenTrial) -> float:
    """How far a trial is from keeping its constraints, which are kept where they are not positive."""
    return sum(max(0.0, value) for value in getattr(trial, "constraints", {}).values())
