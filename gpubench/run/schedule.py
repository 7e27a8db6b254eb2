"""The order of a sweep's work: round after round, and once more over the plan where others work beside it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

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


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundStart:
    """A round of a pass begins."""

    number: int
    planned: Sequence[PlannedUnit]
    """In the order in which this sweep goes through it."""
    is_first_pass: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitTurn:
    """A unit of the round is next. Its outcome is to be handed back before the next event is asked for."""

    place: int
    """Of the unit in the round, from 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundEnd:
    """A round has been gone through, and a further one may follow."""

    has_run: bool
    """Whether anything was measured in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassEnd:
    """The plan has been gone through and is gone through again, for others work in the same folder."""

    has_waiting: bool
    """Whether it depends on others what is left, so that it is better to wait a little."""


_OTHERS = {TurnOutcome.THEIRS, TurnOutcome.WAITS}

Event = RoundStart | UnitTurn | RoundEnd | PassEnd


class SweepSchedule:
    """Which unit of which round comes next."""

    def __init__(self, list_round: Callable[[int], Sequence[PlannedUnit]], most_rounds: int) -> None:
        """`list_round`: what is to become of the units of a round that begins, by its number."""
        self._list_round = list_round
        self._most_rounds = most_rounds
        self.has_met_others = False
        """Whether another sweep's work was met."""
        self._ran = 0
        self._outcomes: set[TurnOutcome] = set()
        """Of this pass."""
        self._endings: set[TurnOutcome] = set()
        """What has ended a round early, in any pass."""

    def hand_back_outcome(self, outcome: TurnOutcome) -> None:
        """What became of the unit whose turn came last."""
        self._ran += outcome is TurnOutcome.RAN
        self._outcomes.add(outcome)
        self.has_met_others |= outcome in _OTHERS
        self._endings |= {outcome} & {TurnOutcome.STOPPED, TurnOutcome.OVER_BUDGET, TurnOutcome.LATE}

    def __iter__(self) -> Iterator[Event]:
        """Rounds and turns, until nothing is left or only what others who live are at."""
        is_first_pass = True
        while True:
            ran_before = self._ran
            self._outcomes = set()
            yield from self._list_pass_events(is_first_pass)
            is_first_pass = False
            has_waiting = TurnOutcome.WAITS in self._outcomes
            if (
                TurnOutcome.STOPPED in self._endings
                or not self._outcomes & _OTHERS
                or not (self._ran > ran_before or has_waiting)
            ):
                return
            yield PassEnd(has_waiting=has_waiting)
            if TurnOutcome.STOPPED in self._endings:  # while it waited
                return

    def _list_pass_events(self, is_first: bool) -> Iterator[Event]:
        # Where the budget has no room for further rounds, the first one alone is gone over again.
        last = 1 if TurnOutcome.OVER_BUDGET in self._endings else self._most_rounds
        for number in range(1, last + 1):
            planned = self._list_round(number)
            if number > 1 and not planned:
                return
            ran_before = self._ran
            yield RoundStart(number=number, planned=planned, is_first_pass=is_first)
            for place in range(len(planned)):
                yield UnitTurn(place=place)
                if self._outcomes & {TurnOutcome.STOPPED, TurnOutcome.OVER_BUDGET}:
                    return
            if self._endings:
                return
            yield RoundEnd(has_run=self._ran > ran_before)
