"""What a run found: scipy's result, as a table and as a picture too."""

from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult


class Result(OptimizeResult):
    """A `scipy.optimize.OptimizeResult` that knows how it came about."""

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), "plot", "to_dataframe"]

    def __repr__(self) -> str:
        return repr(OptimizeResult({name: _shown(value) for name, value in self.items()}))

    def to_dataframe(self) -> Any:
        """The history as a pandas DataFrame, a row for every generation: `nit`, `nfev`, `fun` (the best value then),
        the geometric mean of the mutation rates, the lowest, the highest and that of the group elite, `diversity`."""
        try:
            import pandas  # noqa: PLC0415
        except ImportError as error:
            raise ImportError("to_dataframe needs pandas: pip install pandas") from error
        if "history" not in self:
            raise AttributeError("only the result of a run has a history; what a callback gets has `recent`")
        history = self.history
        return pandas.DataFrame(
            {
                "nit": np.arange(1, len(history.elite) + 1),
                "nfev": history.evaluations,
                "fun": history.elite,
                "mutation_rate": np.exp(history.log_rate),
                "mutation_rate_low": np.exp(history.log_rate_low),
                "mutation_rate_high": np.exp(history.log_rate_high),
                "mutation_rate_elite": np.exp(history.log_rate_elite),
                "diversity": history.diversity,
            }
        )

    def plot(self, **options: Any) -> Any:
        """`gesmr.plot` of it: value, rates and diversity as a matplotlib Figure."""
        from ..plotting import plot  # noqa: PLC0415

        return plot(self, **options)


def _shown(value: Any) -> Any:
    """What scipy can show: not a dictionary without entries, or with names that are not text."""
    if not isinstance(value, dict):
        return value
    plain = value and all(isinstance(name, str) for name in value)
    return {name: _shown(part) for name, part in value.items()} if plain else str(value)
