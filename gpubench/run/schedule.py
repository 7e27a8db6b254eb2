"""The order of a sweep's work: round after round, and once more over the plan where others work beside it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Protocol

from gpubench.plan.state import PlannedUnit


class TurnOutcome(Enum):
    """What became of a unit when its turn came."""

    RAN = auto()
    COUNTED = auto()
    """It need not run: it is done, skipped, or has failed before."""
    THEIRS = auto()
    """Another sweep measures it now, or has done so since this one began."""
    WAITS = auto()
    """Whether it is to run is not known yet: it may be the other sweep's, or not fit."""
    LATE = auto()
    """The batch job ends before it would; another job has the time."""
    LEFT = auto()
    """It is left for good: too long for any such job, or this sweep has tried it in an earlier pass."""
    STOPPED = auto()
    """Somebody stopped the sweep, before it or while it ran."""
    OVER_BUDGET = auto()
    """The budget of further rounds has no room for it."""


_OTHERS = {TurnOutcome.THEIRS, TurnOutcome.WAITS}
_ENDS_AT_ONCE = {TurnOutcome.STOPPED, TurnOutcome.OVER_BUDGET}


class Round(Protocol):
    """A round that has begun. A unit's place is its number in it, from 0."""

    def handle_unit(self, place: int) -> TurnOutcome: ...
    def announce_round_end(self) -> None: ...


def run_passes(
    list_round: Callable[[int], Sequence[PlannedUnit]],
    most_rounds: int,
    begin_round: Callable[[int, Sequence[PlannedUnit], bool], Round],
    may_begin_pass: Callable[[bool], bool],
) -> bool:
    """Runs rounds and units, until nothing is left or only what others who live are at.

    `list_round`: what is to become of the units of a round, by its number. `begin_round`: is also told whether this is
    the first pass over the plan. `may_begin_pass`: is asked before each further one, and told whether what is left
    depends on others, so that it is better to wait a little. Returns whether another sweep's work was met.
    """
    ended_by: set[TurnOutcome] = set()
    """What has ended a round early, in any pass."""

    def run_pass(is_first: bool) -> set[TurnOutcome]:
        outcomes: set[TurnOutcome] = set()
        # Where the budget has no room for further rounds, the first one alone is gone over again.
        for number in range(1, 2 if TurnOutcome.OVER_BUDGET in ended_by else most_rounds + 1):
            planned = list_round(number)
            if number > 1 and not planned:
                break
            current, of_round = begin_round(number, planned, is_first), set[TurnOutcome]()
            for place in range(len(planned)):
                of_round.add(current.handle_unit(place))
                if of_round & _ENDS_AT_ONCE:
                    break
            outcomes |= of_round
            ended_by.update(of_round & {*_ENDS_AT_ONCE, TurnOutcome.LATE})
            if ended_by:
                break
            if TurnOutcome.RAN in of_round:
                current.announce_round_end()
        return outcomes

    has_met_others, is_first = False, True
    while True:
        outcomes = run_pass(is_first)
        is_first, has_waiting = False, TurnOutcome.WAITS in outcomes
        has_met_others |= bool(outcomes & _OTHERS)
        may_find_more = bool(outcomes & _OTHERS) and (has_waiting or TurnOutcome.RAN in outcomes)
        if TurnOutcome.STOPPED in ended_by or not may_find_more or not may_begin_pass(has_waiting):
            return has_met_others
