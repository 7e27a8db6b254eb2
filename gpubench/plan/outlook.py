"""How long a sweep in rounds still takes: to the last round, to a certainty, or to the end of its budget. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.plan.estimate import format_seconds
from gpubench.plan.rounds import FEWEST_FOR_CERTAINTY, Rounds
from gpubench.stats.power import find_processes


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """What is left of a sweep."""

    seconds: float
    until: str = ""
    """What ends it, where that is not its last round: `to ± 2 %`, `of the budget`."""
    at_least: bool = False
    """Whether nobody knows yet how much more it may be."""
    at_most: bool = False
    """Whether it may end earlier: when the table leaves no question open."""

    def __str__(self) -> str:
        about = "at least" if self.at_least else "at most" if self.at_most else "about"
        return " ".join(filter(None, [about, format_seconds(self.seconds), "left", self.until]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ahead:
    """What further rounds have before them of one unit."""

    each_s: float
    """Of its process in one of them."""
    samples: tuple[tuple[float, ...], ...] = ()
    """Times of each of its configurations until now, one a process."""
    turns: int = 0
    """Processes of each that are still to come in this round."""

    @property
    def is_known(self) -> bool:
        """Whether anybody knows how far its processes lie apart."""
        return all(len(times) > 1 for times in self.samples)

    def more(self, within_pct: float) -> float:
        """Processes in further rounds after which it should be as sure as that; infinite for more than there may be."""
        counts = [self._more(times, within_pct) for times in self.samples]
        return max(0.0, max(counts, default=FEWEST_FOR_CERTAINTY) - self.turns)

    def _more(self, times: Sequence[float], within_pct: float) -> float:
        known = len(times) > 1
        enough = find_processes(times, within_pct) if known else FEWEST_FOR_CERTAINTY
        return math.inf if enough is None else max(enough, FEWEST_FOR_CERTAINTY) - len(times)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What is before a sweep after the round that it is in."""

    rounds: Rounds
    number: int
    """Of that round."""
    later_s: float = 0.0
    """Of the rounds after it; infinite where only a budget ends them."""
    at_least: bool = False

    def left(self, round_s: float, elapsed_s: float, pace: float = 1.0) -> Left:
        """`round_s`: what is left of this round. `pace`: by how much `later_s` was missed until now."""
        seconds = round_s + self.later_s * pace
        budget_s, within_pct = self.rounds.budget_s, self.rounds.within_pct
        if budget_s is not None and (rest := max(0.0, budget_s - elapsed_s)) < seconds:
            if self.number == 1 and rest < round_s:  # the first round is always gone through
                return Left(seconds=round_s)
            return Left(seconds=rest, until="of the budget", at_most=self.rounds.until_answered)
        until = f"to ± {within_pct:g} %" if within_pct is not None else ""
        return Left(seconds=seconds, until=until, at_least=self.at_least)


def outlook(rounds: Rounds, number: int, ahead: Sequence[Ahead]) -> Outlook:
    """The outlook from round `number`. `ahead`: each unit that may be measured in further rounds."""
    after = rounds.most - number
    if rounds.within_pct is None:
        later_s = math.inf if rounds.is_endless else after * sum(unit.each_s for unit in ahead)
        return Outlook(rounds=rounds, number=number, later_s=later_s)
    later_s = sum(unit.each_s * min(unit.more(rounds.within_pct), after) for unit in ahead)
    at_least = after > 0 and not all(unit.is_known for unit in ahead)
    return Outlook(rounds=rounds, number=number, later_s=later_s, at_least=at_least)


def place(number: int, rounds: Rounds) -> str:
    """`round 2 of 5`; `round 2` where nobody knows how many they will be."""
    return f"round {number}" if rounds.is_endless else f"round {number} of {rounds.most}"
