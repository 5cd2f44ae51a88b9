"""Results as scipy's, as tables and as pictures."""

import copy
import pickle
import sys

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

import gesmr
from gesmr.optimize.result import Result
from gesmr.optimize.run import History


def example(length=3):
    rates = (np.full(length, np.log(rate)) for rate in (0.1, 0.01, 1.0, 0.2))
    mean, low, high, elite = rates
    values = np.linspace(5.0, 4.0, length)
    evaluations = 11 + 10 * np.arange(1, length + 1)
    history = History(values, mean, evaluations, low, high, elite, np.full(length, 0.5))
    return Result(x=np.ones(2), fun=4.0, success=True, message="Done.", nit=length, nfev=41, history=history)


def test_is_a_result_of_scipy():
    found = example()
    assert isinstance(found, OptimizeResult)
    assert repr(found) == repr(OptimizeResult(**found))
    assert found.fun == found["fun"] == 4.0
    found.extra = 3
    assert found["extra"] == 3
    del found.extra
    with pytest.raises(AttributeError, match="extra"):
        _ = found.extra
    assert {"x", "fun", "history", "plot", "to_dataframe"} <= set(dir(found))
    assert sorted(found) == ["fun", "history", "message", "nfev", "nit", "success", "x"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))])
def test_copies_are_results_too(copied):
    found = example()
    again = copied(found)
    assert type(again) is Result
    assert repr(again) == repr(found)
    np.testing.assert_array_equal(again.to_dataframe(), found.to_dataframe())


def test_as_a_table():
    table = example().to_dataframe()
    assert table.to_dict("list") == {
        "nit": [1, 2, 3],
        "nfev": [21, 31, 41],
        "fun": [5.0, 4.5, 4.0],
        "mutation_rate": pytest.approx([0.1] * 3),
        "mutation_rate_low": pytest.approx([0.01] * 3),
        "mutation_rate_high": pytest.approx([1.0] * 3),
        "mutation_rate_elite": pytest.approx([0.2] * 3),
        "diversity": [0.5] * 3,
    }


def test_a_table_without_rows():
    table = example(0).to_dataframe()
    assert table.shape == (0, 8)
    assert table.dtypes["nit"] == np.int64


def test_a_table_of_a_run():
    result = gesmr.minimize(lambda x: float(np.sum(x**2)), np.ones(3), popsize=13, maxiter=7, rng=0)
    table = result.to_dataframe()
    assert table["nit"].tolist() == list(range(1, 8))
    assert table["nfev"].tolist() == [13 + 12 * nit for nit in range(1, 8)]
    assert table["fun"].iloc[-1] == result.fun
    assert (table["mutation_rate_low"] <= table["mutation_rate"] * 1.000001).all()
    assert (table["mutation_rate"] <= table["mutation_rate_high"] * 1.000001).all()
    assert (table["diversity"] > 0).all()


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_dataframe needs pandas: pip install pandas"):
        example().to_dataframe()


def test_what_a_callback_gets_has_no_history():
    with pytest.raises(AttributeError, match="recent"):
        Result(fun=1.0).to_dataframe()


def test_as_a_picture(tmp_path):
    figure = example().plot(by="generations", path=tmp_path / "run.png")
    assert figure.axes[0].get_xlabel() == "Generations"
    assert (tmp_path / "run.png").stat().st_size > 1000
