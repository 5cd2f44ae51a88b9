"""Mutations of points on the way: what is drawn, and claim 17."""

from dataclasses import replace

import numpy as np
import pytest

from gesmr.lab.errors import LabError
from gesmr.lab.run.store import StoredJob
from gesmr.lab.show.claims import Verdict
from gesmr.lab.studies import as_json
from gesmr.lab.studies.mutations import show as mutations_view
from gesmr.lab.studies.mutations.runs import Mutations, MutationsStudy


def test_mutations_are_those_of_the_point_at_the_rates():
    spec = Mutations("sphere", 4000, point=(3.0, -1.0), rates=(0.01, 2.0))
    (group,) = MutationsStudy().jobs([spec], 2**30)
    arrays = group.run(lambda program: program.compile(), lambda work: None)
    assert arrays["mutants"].shape == (1, 2, 100, 2)
    assert arrays["changes"].shape == (1, 2, 4000)
    assert np.allclose(
        arrays["changes"][0, :, :100], np.sum(arrays["mutants"][0] ** 2, axis=-1) - 10, rtol=1e-4, atol=1e-5
    )
    rates = np.array(spec.rates)
    error = np.sqrt((4 * rates**2 * 10 + 2 * rates**4 * 2) / 4000)
    assert np.all(np.abs(arrays["changes"][0].astype(float).mean(axis=1) - 2 * rates**2) < 5 * error)
    assert as_json(spec)["point"] == (3.0, -1.0)


def reached(*counts, samples=2000):
    """Made-up mutants of (1.5, 1.0), where Ackley is 6.22: of each rate so many below 2.5, others just above."""
    below = np.arange(samples) < np.array(counts)[:, None]
    spec = Mutations("ackley", samples, rates=tuple(10.0**i for i in range(len(counts))))
    return {"ackley": mutations_view.Result(spec, np.zeros((len(counts), 1, 2)), np.where(below, -3.73, -3.71))}


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (reached(0, 20, 0), Verdict.HOLDS),
        (reached(2, 100, 20, 10), Verdict.HOLDS),
        (reached(2, 100, 20, 11), Verdict.FAILS),  # less than ten times
        (reached(0, 10, 20), Verdict.FAILS),  # largest at the end
        (reached(20, 10, 0), Verdict.FAILS),
        (reached(0, 3, 0), Verdict.FAILS),  # may be chance
        (reached(0, 0, 0), Verdict.FAILS),
        ({}, Verdict.UNDECIDED),
    ],
)
def test_claim_17_needs_a_moderate_rate_far_above_both_ends(results, verdict):
    (decided,) = mutations_view.VIEW.decide(results)
    assert (decided.number, decided.verdict, decided.short) == (17, verdict, "")


def test_shares_have_intervals_of_clopper_and_pearson():
    shares = mutations_view.reaching(reached(0, 20)["ackley"])
    assert shares[0] == pytest.approx((0.0, 0.0, 1 - 0.025 ** (1 / 2000)))
    assert shares[1] == pytest.approx((0.01, 0.00612, 0.01540), rel=1e-3)


def test_mutations_of_another_revision_do_not_count():
    spec = Mutations("sphere", 5, rates=(1.0,))
    arrays = {"mutants": np.zeros((1, 1, 5, 2)), "changes": np.zeros((1, 1, 5))}
    assert list(mutations_view.load([StoredJob((as_json(spec),), {}, arrays)])) == ["sphere"]
    with pytest.raises(LabError, match="older version"):
        mutations_view.load([StoredJob((as_json(replace(spec, revision=0)),), {}, arrays)])
