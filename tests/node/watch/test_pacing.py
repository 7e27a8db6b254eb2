from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.node.watch.pacing import Schedule, TimeBudget


def test_everything_is_due_at_the_start_and_once_a_slot() -> None:
    schedule = Schedule({"fast": 0.1, "slow": 1.0}, start=100.0)
    assert schedule.take_due(100.0) == ["fast", "slow"]
    assert schedule.take_due(100.05) == []
    assert schedule.next_deadline == pytest.approx(100.1)
    assert schedule.take_due(100.1) == ["fast"]


def test_a_late_tick_skips_slots_and_keeps_to_the_grid() -> None:
    schedule = Schedule({"fast": 0.1}, start=0.0)
    schedule.take_due(0.0)
    assert schedule.take_due(0.57) == ["fast"]
    assert schedule.skipped == {"fast": pytest.approx([0.1, 0.2, 0.3, 0.4])}
    assert schedule.take_due(0.57) == []
    assert schedule.next_deadline == pytest.approx(0.6)


def test_slots_do_not_drift_over_an_hour() -> None:
    schedule = Schedule({"fast": 0.1}, start=12345.678)
    taken = 0
    while schedule.next_deadline < 12345.678 + 3600 - 1e-6:
        taken += len(schedule.take_due(schedule.next_deadline))
    assert taken == 36_000
    assert schedule.skipped == {"fast": []}


@given(st.floats(0, 1e7), st.lists(st.floats(0, 3), max_size=60))
def test_never_twice_in_a_slot_and_never_lost(start: float, sleeps: list[float]) -> None:
    schedule, now, taken = Schedule({"x": 0.1}, start), start, 0
    for sleep in [0.0, *sleeps]:
        now += sleep
        taken += len(schedule.take_due(now))
        assert schedule.take_due(now) == []
        assert now < schedule.next_deadline <= now + 0.1 + 1e-6
    slots_passed = (now - start) / 0.1
    assert taken + len(schedule.skipped["x"]) == pytest.approx(slots_passed, abs=1.01)


def test_what_has_used_up_its_time_is_owed_once() -> None:
    budget = TimeBudget(share=0.01, most_s=0.03, fresh_s=0.1)
    assert budget.request_turn(10.0)
    budget.note_spent(10.0, 10.02)
    assert not budget.request_turn(10.1), "a fresh one is there"
    assert not budget.is_request_due(10.11)
    assert budget.request_turn(10.2), "10 ms were left"
    budget.note_spent(10.2, 10.25)
    assert not budget.request_turn(10.5)
    # 38 ms too much were spent.
    assert not budget.is_request_due(13.0)
    assert budget.is_request_due(15.0)
    budget.note_spent(15.0, 15.01)
    assert not budget.is_request_due(99.0), "nobody has asked since"


def test_over_a_long_time_no_more_is_spent_than_the_share() -> None:
    budget, t, spent = TimeBudget(share=0.005, most_s=0.1, fresh_s=0.0), 0.0, 0.0
    while t < 100:
        if budget.request_turn(t):
            budget.note_spent(t, t + 0.014)
            spent += 0.014
        t += 0.1
    assert 0.4 < spent < 0.005 * 100 + 0.1 + 0.014
