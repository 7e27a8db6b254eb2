"""The order of a sweep's work, by itself: which round and unit is next, and when it goes over the plan once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.plan.state import PlannedUnit
from gpubench.run.schedule import TurnOutcome, run_passes

RAN, COUNTED, THEIRS, WAITS = TurnOutcome.RAN, TurnOutcome.COUNTED, TurnOutcome.THEIRS, TurnOutcome.WAITS
LATE, LEFT = TurnOutcome.LATE, TurnOutcome.LEFT
STOPPED, OVER_BUDGET = TurnOutcome.STOPPED, TurnOutcome.OVER_BUDGET


@dataclass
class Diary:
    """A round that keeps what is asked of it. Units come to these outcomes, and then to COUNTED."""

    outcomes: list[TurnOutcome]
    events: list[str] = field(default_factory=list)

    def begin(self, number: int, planned: Sequence[PlannedUnit], is_first_pass: bool) -> Diary:  # noqa: ARG002
        self.events.append(f"round {number}{'' if is_first_pass else ' again'}")
        return self

    def handle_unit(self, place: int) -> TurnOutcome:
        self.events.append(str(place))
        return self.outcomes.pop(0) if self.outcomes else COUNTED

    def announce_round_end(self) -> None:
        self.events.append("end with figures")


def go(
    outcomes: Sequence[TurnOutcome],
    rounds: int = 1,
    units: int | Callable[[int], int] = 2,
    *,
    may_begin_pass: bool = True,
) -> list[str]:
    """What is asked for, as text. `units`: of each round, or by its number."""
    diary = Diary(list(outcomes))
    item: Any = SimpleNamespace()

    def begin_pass(has_waiting: bool) -> bool:
        diary.events.append("wait" if has_waiting else "once more")
        return may_begin_pass

    has_met_others = run_passes(
        lambda number: [item] * (units(number) if callable(units) else units),
        rounds,
        diary.begin,
        begin_pass,
    )
    assert has_met_others == bool({THEIRS, WAITS} & {*outcomes})
    return diary.events


def test_alone_it_goes_through_each_round_once() -> None:
    assert go([RAN, COUNTED, COUNTED, COUNTED], rounds=2) == [
        "round 1", "0", "1", "end with figures", "round 2", "0", "1",
    ]  # fmt: skip


@pytest.mark.parametrize("outcome", [STOPPED, OVER_BUDGET])
def test_a_stop_and_a_spent_budget_end_the_round_at_once(outcome: TurnOutcome) -> None:
    assert go([RAN, outcome], rounds=3, units=3) == ["round 1", "0", "1"]


def test_a_batch_job_without_time_is_asked_for_shorter_units_of_the_round_and_begins_no_other() -> None:
    assert go([LATE, RAN], rounds=2) == ["round 1", "0", "1"]
    # What no such job can measure keeps nothing back.
    assert go([LEFT, RAN], rounds=2)[3:] == ["end with figures", "round 2", "0", "1"]


def test_a_further_round_of_which_nothing_is_to_be_measured_is_the_last() -> None:
    assert go([RAN, RAN], rounds=5, units=lambda number: 1 if number < 3 else 0) == [
        "round 1", "0", "end with figures", "round 2", "0", "end with figures",
    ]  # fmt: skip
    assert go([], rounds=1, units=0) == ["round 1"], "the first one is begun all the same: its rows are told"


def test_beside_others_it_goes_over_the_plan_until_all_that_is_left_is_theirs() -> None:
    assert go([THEIRS, RAN, THEIRS, COUNTED]) == [
        "round 1", "0", "1", "end with figures", "once more",
        "round 1 again", "0", "1",
    ]  # fmt: skip
    # Nothing was measured, so nothing can have come free.
    assert go([THEIRS, COUNTED])[-1] == "1"


def test_what_waits_is_asked_for_again_however_little_was_measured() -> None:
    assert go([WAITS, COUNTED, RAN, COUNTED]) == [
        "round 1", "0", "1", "wait", "round 1 again", "0", "1", "end with figures",
    ]  # fmt: skip


def test_stopped_while_it_waits_it_ends() -> None:
    assert go([WAITS, COUNTED], may_begin_pass=False)[-1] == "wait"


def test_over_its_budget_it_goes_over_the_first_round_alone() -> None:
    events = go([THEIRS, RAN, OVER_BUDGET, RAN], rounds=3)
    assert events == [
        "round 1", "0", "1", "end with figures", "round 2", "0", "once more", "round 1 again", "0", "1",
    ]  # fmt: skip
