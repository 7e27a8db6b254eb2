from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.node.watch.pacing import Schedule


def test_everything_is_due_at_the_start_and_once_a_slot() -> None:
    schedule = Schedule({"fast": 0.1, "slow": 1.0}, start=100.0)
    assert schedule.due(100.0) == ["fast", "slow"]
    assert schedule.due(100.05) == []
    assert schedule.next_deadline == pytest.approx(100.1)
    assert schedule.due(100.1) == ["fast"]


def test_a_late_tick_skips_slots_and_keeps_to_the_grid() -> None:
    schedule = Schedule({"fast": 0.1}, start=0.0)
    schedule.due(0.0)
    assert schedule.due(0.57) == ["fast"]
    assert schedule.skipped == {"fast": pytest.approx([0.1, 0.2, 0.3, 0.4])}
    assert schedule.due(0.57) == []
    assert schedule.next_deadline == pytest.approx(0.6)


@given(st.floats(0, 1e7), st.lists(st.floats(0, 3), max_size=60))
def test_never_twice_in_a_slot_and_never_lost(start: float, sleeps: list[float]) -> None:
    schedule, now, taken = Schedule({"x": 0.1}, start), start, 0
    for sleep in [0.0, *sleeps]:
        now += sleep
        taken += len(schedule.due(now))
        assert schedule.due(now) == []
        assert now < schedule.next_deadline <= now + 0.1 + 1e-6
    slots_passed = (now - start) / 0.1
    assert taken + len(schedule.skipped["x"]) == pytest.approx(slots_passed, abs=1.01)
