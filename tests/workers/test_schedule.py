"""Who evaluates what, without any worker: the logic alone."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gesmr.workers.schedule import Answer, Schedule, range_length


def schedule(size=2, count=100, *, tries=3, timeout=None, chunk=None, grain=0.0, forgiving=True):
    plan = Schedule(size, tries=tries, timeout=timeout, chunk=chunk, grain=grain)
    plan.begin(count, forgiving=forgiving)
    return plan


def answer(task, seconds=0.0):
    """The value of candidate i is i²."""
    return Answer(np.array([float(row) ** 2 for row in task.rows]), [], seconds)


def finish(plan, workers=("a", "b"), seconds=0.0):
    """Everybody works in turn; the ranges in the order in which they were handed out."""
    ranges = []
    while not plan.done:
        tasks = [(worker, plan.hand_out(worker, 0.0)) for worker in workers]
        ranges += [task.rows for _, task in tasks if task is not None]
        for worker, task in tasks:
            if task is not None:
                plan.answered(worker, task.number, answer(task, seconds * len(task.rows)))
    return ranges


def test_every_candidate_is_handed_out_once_in_ranges_that_become_smaller():
    plan = schedule()
    ranges = finish(plan)
    assert [row for rows in ranges for row in rows] == list(range(100))
    lengths = [len(rows) for rows in ranges]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (13, 1)
    np.testing.assert_array_equal(plan.values, np.arange(100.0) ** 2)


def test_ranges_of_quick_candidates_are_longer():
    plan = schedule(grain=1.0)
    finish(plan, seconds=0.05)
    plan.begin(100, forgiving=True)
    assert [len(rows) for rows in finish(plan, seconds=0.05)] == [
        25,
        25,
        25,
        25,
    ]  # a second each
    plan.begin(10, forgiving=True)
    assert [len(rows) for rows in finish(plan, seconds=0.05)] == [5, 5]  # nobody stays idle


def test_a_given_length_is_kept():
    assert [len(rows) for rows in finish(schedule(chunk=30))] == [30, 30, 30, 10]


def test_candidates_of_a_lost_worker_are_tried_one_by_one_before_all_others():
    plan = schedule()
    plan.hand_out("a", 0.0)
    plan.lost("a", "it died")
    assert [plan.hand_out(worker, 0.0).rows for worker in "bcd"] == [range(0, 1), range(1, 2), range(2, 3)]


def test_what_kills_three_workers_is_given_up_and_others_are_not():
    plan, tried = schedule(count=8, chunk=4), 0
    while not plan.done:
        task = plan.hand_out("a", 0.0)
        if 2 in task.rows:
            tried += 1
            plan.lost("a", "it died")
        else:
            plan.answered("a", task.number, answer(task))
    assert tried == 3
    assert plan.errors == {2: "it died, in the last of 3 tries"}
    np.testing.assert_array_equal(plan.values, [0.0, 1.0, np.nan, *(np.arange(3.0, 8.0) ** 2)])


def test_a_loss_that_is_nobodys_fault_does_not_count():
    plan = schedule(count=1)
    for _ in range(10):
        assert plan.hand_out("a", 0.0) is not None
        plan.lost("a", "its node is gone", blame=False)
    assert not plan.done


def test_the_first_of_several_failures_counts_and_nothing_after_it_is_waited_for():
    plan = schedule(count=8, chunk=2, forgiving=False)
    tasks = {worker: plan.hand_out(worker, 0.0) for worker in "abc"}
    plan.answered("c", tasks["c"].number, Answer(np.array([16.0]), [], 0.0, b"candidate 5"))
    plan.answered("b", tasks["b"].number, Answer(np.array([]), [], 0.0, b"candidate 2"))
    assert not plan.done  # candidate 0 or 1 may fail too
    assert plan.hand_out("b", 0.0) is None
    plan.answered("a", tasks["a"].number, answer(tasks["a"]))
    assert plan.done
    assert plan.failure == (2, b"candidate 2")


def test_times_are_up_one_candidate_at_a_time():
    plan = schedule(timeout=5.0)
    task = plan.hand_out("a", 10.0)
    assert len(task.rows) == 1  # nothing is known yet
    assert plan.next_deadline() == 15.0
    assert plan.overdue(14.9) == []
    assert plan.overdue(15.1) == [("a", "no answer within 5 s")]
    plan.answered("a", task.number, answer(task, seconds=1.0))
    task = plan.hand_out("a", 20.0)
    assert len(task.rows) == 5  # as many as should not take longer than one may
    assert plan.overdue(34.9) == []  # 5 s and twice the 5 s expected
    assert [worker for worker, _ in plan.overdue(35.1)] == ["a"]


def late():
    """Two candidates, each with a worker: "b" has answered, "a" has not, which it should have after a second."""
    plan = schedule(count=2, chunk=1)
    first, second = plan.hand_out("a", 0.0), plan.hand_out("b", 0.0)
    plan.answered("b", second.number, answer(second, seconds=1.0))
    return plan, first


def test_somebody_idle_does_the_work_of_somebody_late_and_the_first_answer_counts():
    plan, first = late()
    assert plan.hand_out("b", 2.9) is None
    copy = plan.hand_out("b", 3.1)
    assert copy.rows == first.rows
    assert plan.hand_out("c", 3.1) is None  # one copy is enough
    plan.answered("b", copy.number, Answer(np.array([7.0]), [], 1.0))
    assert plan.done
    plan.answered("a", first.number, answer(first))
    np.testing.assert_array_equal(plan.values, [7.0, 1.0])


def test_a_worker_nobody_waits_for_is_ended_when_it_does_not_return():
    plan, _ = late()
    copy = plan.hand_out("b", 3.1)
    plan.answered("b", copy.number, answer(copy, seconds=1.0))
    plan.begin(2, forgiving=True)
    assert "a" in plan._running
    assert plan.overdue(9.0) == []
    assert plan.overdue(11.0) == [("a", "overtaken by another")]
    plan.lost("a", "overtaken by another")
    assert "a" not in plan._running


def test_answers_of_the_population_before_are_not_taken_for_those_of_this_one():
    plan = schedule(count=4, chunk=4)
    task = plan.hand_out("a", 0.0)
    plan.begin(4, forgiving=True)
    plan.answered("a", task.number, answer(task))
    assert "a" not in plan._running
    assert not plan.done
    assert plan.hand_out("a", 0.0).rows == range(0, 4)


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(
    st.integers(1, 5), st.integers(0, 60), st.sets(st.integers(0, 59), max_size=3), st.randoms(), st.integers(1, 4)
)  # fmt: skip
def test_whatever_happens_all_but_the_poisoned_get_their_values(size, count, poisoned, random, tries):
    """Workers die of poisoned candidates, and sometimes for no reason; answers come in any order, at any time."""
    plan, now, attempts = schedule(size, count, tries=tries), 0.0, np.zeros(60, int)
    running = {}
    for _ in range(10000):
        if plan.done:
            break
        now += random.random()
        for worker in range(size):
            if worker not in plan._running and (task := plan.hand_out(worker, now)) is not None:
                running[worker] = task
        worker = random.choice(sorted(running))
        task = running.pop(worker)
        if poisoned & set(task.rows):
            attempts[list(task.rows)] += 1
            plan.lost(worker, "poisoned")
        elif random.random() < 0.1:
            plan.lost(worker, "no reason", blame=False)
        else:
            plan.answered(worker, task.number, answer(task, seconds=0.1 * len(task.rows)))
    assert plan.done
    expected = np.arange(float(count)) ** 2
    given_up = sorted(plan.errors)
    assert set(given_up) <= {row for row in range(count) if attempts[row] >= tries}
    if tries > 1:  # one try is not enough to find out which of a range it was
        assert given_up == sorted(row for row in poisoned if row < count)
    expected[given_up] = np.nan
    np.testing.assert_array_equal(plan.values, expected)


def test_many_workers_get_ranges_that_last_while_all_are_sent_one():
    lengths = [range_length(10_000, 10_000, size, 0.01, 0.002) for size in (2, 10, 100, 1000)]
    assert lengths == [1250, 250, 25, 10]
    assert [range_length(100, 10_000, size, 0.01, 0.002) for size in (2, 10, 100, 1000)] == [13, 3, 4, 10]
