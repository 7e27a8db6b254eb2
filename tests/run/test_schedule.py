"""The order of a sweep's work, by itself: which round and unit is next, and when it goes over the plan once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.run.schedule import PassEnd, RoundEnd, RoundStart, SweepSchedule, TurnOutcome, UnitTurn

RAN, COUNTED, THEIRS, WAITS = TurnOutcome.RAN, TurnOutcome.COUNTED, TurnOutcome.THEIRS, TurnOutcome.WAITS
LATE, LEFT, STOPPED, OVER_BUDGET = (
    TurnOutcome.LATE,
    TurnOutcome.LEFT,
    TurnOutcome.STOPPED,
    TurnOutcome.OVER_BUDGET,
)


def go(
    outcomes: Sequence[TurnOutcome],
    rounds: int = 1,
    units: int = 2,
    on_pass_end: Callable[[SweepSchedule], None] = lambda _: None,
) -> list[str]:
    """What a schedule asks for, as text, where these outcomes are handed back, and then none but COUNTED."""
    item: Any = SimpleNamespace()
    schedule = SweepSchedule(lambda _: [item] * units, rounds)
    to_come, events = list(outcomes), list[str]()
    for event in schedule:
        match event:
            case RoundStart(number=number, is_first_pass=is_first_pass):
                events.append(f"round {number}{'' if is_first_pass else ' again'}")
            case UnitTurn(place=place):
                events.append(str(place))
                schedule.hand_back_outcome(to_come.pop(0) if to_come else COUNTED)
            case RoundEnd(has_run=has_run):
                events.append(f"end{' with figures' if has_run else ''}")
            case PassEnd(has_waiting=has_waiting):
                events.append("wait" if has_waiting else "once more")
                on_pass_end(schedule)
    return events


def test_alone_it_goes_through_each_round_once() -> None:
    assert go([RAN, COUNTED, COUNTED, COUNTED], rounds=2) == [
        "round 1", "0", "1", "end with figures", "round 2", "0", "1", "end",
    ]  # fmt: skip


@pytest.mark.parametrize("outcome", [STOPPED, OVER_BUDGET])
def test_a_stop_and_a_spent_budget_end_the_round_at_once(outcome: TurnOutcome) -> None:
    assert go([RAN, outcome], rounds=3, units=3) == ["round 1", "0", "1"]


def test_a_batch_job_without_time_is_asked_for_shorter_units_of_the_round_and_begins_no_other() -> None:
    assert go([LATE, RAN], rounds=2) == ["round 1", "0", "1"]
    # What no such job can measure keeps nothing back.
    assert go([LEFT, RAN], rounds=2)[-2:] == ["1", "end"]


def test_a_further_round_of_which_nothing_is_to_be_measured_is_the_last() -> None:
    item: Any = SimpleNamespace()
    planned = {1: [item], 2: [item], 3: []}
    schedule = SweepSchedule(lambda number: planned[number], 5)
    numbers = []
    for event in schedule:
        if isinstance(event, RoundStart):
            numbers.append(event.number)
        elif isinstance(event, UnitTurn):
            schedule.hand_back_outcome(RAN)
    assert numbers == [1, 2]
    assert go([], rounds=2, units=0) == ["round 1", "end"]


def test_beside_others_it_goes_over_the_plan_until_all_that_is_left_is_theirs() -> None:
    assert go([THEIRS, RAN, THEIRS, COUNTED]) == [
        "round 1", "0", "1", "end with figures", "once more",
        "round 1 again", "0", "1", "end",
    ]  # fmt: skip
    # Nothing was measured, so nothing can have come free.
    assert go([THEIRS, COUNTED])[-1] == "end"


def test_what_waits_is_asked_for_again_however_little_was_measured() -> None:
    assert go([WAITS, COUNTED, RAN, COUNTED]) == [
        "round 1", "0", "1", "end", "wait", "round 1 again", "0", "1", "end with figures",
    ]  # fmt: skip


def test_stopped_while_it_waits_it_ends() -> None:
    events = go([WAITS, COUNTED], on_pass_end=lambda schedule: schedule.hand_back_outcome(STOPPED))
    assert events[-1] == "wait"


def test_over_its_budget_it_goes_over_the_first_round_alone() -> None:
    events = go([THEIRS, RAN, OVER_BUDGET, RAN], rounds=3)
    assert events == [
        "round 1", "0", "1", "end with figures", "round 2", "0", "once more", "round 1 again", "0", "1",
    ]  # fmt: skip


def test_others_that_were_met_in_any_pass_are_remembered() -> None:
    item: Any = SimpleNamespace()
    schedule = SweepSchedule(lambda _: [item], 1)
    outcomes = [THEIRS]
    for event in schedule:
        if isinstance(event, UnitTurn):
            schedule.hand_back_outcome(outcomes.pop() if outcomes else COUNTED)
    assert schedule.has_met_others
