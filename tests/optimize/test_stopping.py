"""Rules: one test each, on the host and in a compiled loop."""

import itertools

import jax
import numpy as np
import pytest

from gesmr.optimize.stopping import RULES, Counts, Found, Limits, Seen, any_reached, marks_of_a_chunk, reasons

LIMITS = {
    "nothing": Limits(),
    "generations": Limits(maxiter=7),
    "evaluations": Limits(maxfun=10**12 + 35),
    "target": Limits(target=0.5, maxfun=10**13),
    "patience": Limits(patience=3, maxiter=2**40),
    "ftol": Limits(ftol=0.5, patience=2, maxiter=2**40),
    "xtol": Limits(xtol=0.3, maxiter=2**40),
    "all": Limits(maxiter=7, maxfun=10**12 + 55, target=0.5, patience=3, maxtime=1e9),
}


NOTHING = Found(*(np.float32(number) for number in Found()))


def seen(value):
    """A generation; the population is as wide as its best value is high."""
    return Seen(value, np.float32(0), value)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_a_compiled_loop_stops_where_the_host_does(limits):
    """Generation by generation, from counts that 32 bits do not hold: a chunk goes on exactly as long as the host."""
    marks, compiled = limits.marks(1, np.float32), jax.jit(any_reached)
    for values in itertools.product((2.0, 0.25, np.inf), repeat=4):
        now = Counts(4, 10**12, 11, 0.0, Found(), 0, 0)
        inside = Counts.of_a_chunk(NOTHING, np.int32(0), np.int32(0))
        rules = marks_of_a_chunk(marks, now, np.float32)
        for value in map(np.float32, values):
            assert bool(compiled(inside, rules)) == bool(reasons(limits, marks, now))
            now = now.after(seen(value), 11, limits.tolerance)
            inside = inside.after(seen(value), inside.cost, np.float32(limits.tolerance))
            assert (now.best, now.stale, now.blind) == (inside.best, inside.stale, inside.blind)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_what_is_sure_to_be_run_is_run(limits):
    """If no rule is reached at the worst, none is after any generations, whatever they find."""
    marks = limits.marks(1, np.float32)
    for more, start in itertools.product((1, 2, 3), (0, 1, 2)):
        inside = Counts.of_a_chunk(NOTHING, np.int32(start), np.int32(start))
        rules = marks_of_a_chunk(marks, Counts(4, 10**12, 11, 0.0, Found(), start, start), np.float32)
        sure = not any_reached(inside.at_worst(more), rules)
        ends = False
        for values in itertools.product((2.0, 0.25, np.inf), repeat=more):
            after = inside
            for value in map(np.float32, values):
                after = after.after(seen(value), after.cost, np.float32(limits.tolerance))
                ends |= bool(any_reached(after, rules))
        assert not (sure and ends)
        assert sure or limits.target is not None or limits.xtol is not None or ends


def test_numbers_of_reasons_stay():
    """They are in what was written: `status` of a result."""
    order = [
        "target",
        "nonfinite",
        "patience",
        "maxiter",
        "maxfun",
        "maxtime",
        "callback",
        "interrupted",
        "ftol",
        "xtol",
    ]
    assert [rule.status for rule in RULES.values()] == list(range(len(order)))
    assert list(RULES) == order


def test_what_ends_a_run_if_nothing_is_said():
    assert Limits().in_force == {"maxiter": 1000, "ftol": 1e-12, "nonfinite": 100}
    assert Limits(target=1.0).in_force == {"target": 1.0, "maxiter": 1000, "ftol": 1e-12, "nonfinite": 100}
    assert Limits(patience=7).in_force == {"patience": 7, "maxiter": 1000, "nonfinite": 7}
    assert Limits(maxfun=7).in_force == {"maxfun": 7, "nonfinite": 100}


def found_after(values, ftol, violations=None):
    """What is found, and how many generations are stale, after generations with these best values."""
    violations = np.zeros(len(values)) if violations is None else violations
    now = Counts(0, 0, 1, 0.0, Found.at_first(values[0], violations[0]), 0, 0)
    for value, violation in zip(values[1:], violations[1:], strict=True):
        now = now.after(Seen(value, violation, 1.0), 1, ftol)
    return now.found, int(now.stale)


def test_what_is_better_depends_on_ftol():
    """Without it every lower value is; with it steps that add up to enough since the last that was."""
    falling = [10.0, 5.0, 4.999, 4.998, 4.997]
    assert found_after(falling, 0.0)[1] == 0
    assert found_after(falling, 1e-2)[1] == 3
    assert found_after([*falling, 4.9], 1e-2)[1] == 0
    assert found_after(falling, 1e-2)[0].best == 4.997


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_ftol_does_not_end_what_still_gains(scale):
    """Whatever the units, and wherever zero is, halving the distance to the optimum is better until 1e-6 of it."""
    for lowest in (0.0, -1.0, 1e3):
        values = [scale * (lowest + 2.0**-i) for i in range(15)]
        assert found_after(values, 1e-6 if lowest < 1e3 or scale < 1 else 1e-9)[1] == 0


def test_a_start_far_above_does_not_hide_what_is_gained_below():
    assert found_after([1e30, 2.0, 1.0, 0.5, 0.25], 1e-6)[1] == 0


def test_less_infeasible_is_better_and_no_value_counts_before_it_is_feasible():
    inf = np.inf
    found, stale = found_after([inf, inf, inf, 7.0], 0.0, [3.0, 2.0, 2.0, 0.0])
    assert (found.best, found.violation, found.first, stale) == (7.0, 0.0, 7.0, 0)
    found, stale = found_after([inf, inf, inf], 0.0, [3.0, 2.0, 2.0])
    assert (found.best, found.violation, stale) == (inf, 2.0, 1)
