"""Rules: one test each, on the host and in a compiled loop."""

import itertools

import jax
import numpy as np
import pytest

from gesmr.optimize.stopping import RULES, Counts, Limits, any_reached, marks_of_a_chunk, reasons

LIMITS = {
    "nothing": Limits(),
    "generations": Limits(maxiter=7),
    "evaluations": Limits(maxfun=10**12 + 35),
    "target": Limits(target=0.5, maxfun=10**13),
    "patience": Limits(patience=3, maxiter=2**40),
    "all": Limits(maxiter=7, maxfun=10**12 + 55, target=0.5, patience=3, maxtime=1e9),
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_a_compiled_loop_stops_where_the_host_does(limits):
    """Generation by generation, from counts that 32 bits do not hold: a chunk goes on exactly as long as the host."""
    marks, compiled = limits.marks(1, np.float32), jax.jit(any_reached)
    for values in itertools.product((2.0, 0.25, np.inf), repeat=4):
        now = Counts(4, 10**12, 11, 0.0, np.inf, 0, 0)
        inside = Counts.of_a_chunk(np.float32(np.inf), np.int32(0), np.int32(0))
        rules = marks_of_a_chunk(marks, now, np.float32)
        for value in map(np.float32, values):
            assert bool(compiled(inside, rules)) == bool(reasons(limits, marks, now))
            now, inside = now.after(value, 11), inside.after(value, inside.cost)
            assert (now.best, now.stale, now.blind) == (inside.best, inside.stale, inside.blind)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_what_is_sure_to_be_run_is_run(limits):
    """If no rule is reached at the worst, none is after any generations, whatever they find."""
    marks = limits.marks(1, np.float32)
    for more, start in itertools.product((1, 2, 3), (0, 1, 2)):
        inside = Counts.of_a_chunk(np.float32(np.inf), np.int32(start), np.int32(start))
        rules = marks_of_a_chunk(marks, Counts(4, 10**12, 11, 0.0, np.inf, start, start), np.float32)
        sure = not any_reached(inside.at_worst(more), rules)
        ends = False
        for values in itertools.product((2.0, 0.25, np.inf), repeat=more):
            after = inside
            for value in map(np.float32, values):
                after = after.after(value, after.cost)
                ends |= bool(any_reached(after, rules))
        assert not (sure and ends)
        assert sure or limits.target is not None or ends


def test_numbers_of_reasons_stay():
    """They are in what was written: `status` of a result."""
    order = ["target", "nonfinite", "patience", "maxiter", "maxfun", "maxtime", "callback", "interrupted"]
    assert [rule.status for rule in RULES.values()] == list(range(len(order)))
    assert list(RULES) == order
