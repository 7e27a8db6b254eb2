"""How long a sweep in rounds still takes: to the last round, to a certainty, or to the end of its budget. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpubench.plan.estimate import format_seconds
from gpubench.plan.rounds import FEWEST_FOR_CERTAINTY, RoundLimits


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeLeft:
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
class SweepOutlook:
    """What is before a sweep after the round that it is in."""

    rounds: RoundLimits
    number: int
    """Of that round."""
    each_s: float = 0.0
    """Of each round after it."""

    def estimate_time_left(self, round_s: float, elapsed_s: float, pace: float = 1.0) -> TimeLeft:
        """`round_s`: what is left of this round. `pace`: by how much `each_s` was missed until now."""
        budget_s, within_pct = self.rounds.budget_s, self.rounds.within_pct
        after: float = self.rounds.most - self.number
        is_certainty = within_pct is not None and after > 0
        if is_certainty:  # nobody knows how many it takes, but no fewer than these
            after = max(0, min(after, FEWEST_FOR_CERTAINTY - self.number))
        elif self.rounds.has_no_round_limit:
            after = math.inf
        later_s = self.each_s * after * pace if math.isfinite(after) else math.inf
        seconds = round_s + later_s
        if budget_s is not None and (rest := max(0.0, budget_s - elapsed_s)) < seconds:
            if self.number == 1 and rest < round_s:  # the first round is always gone through
                return TimeLeft(seconds=round_s)
            return TimeLeft(seconds=rest, until="of the budget", at_most=self.rounds.is_until_answered)
        until = f"to ± {within_pct:g} %" if within_pct is not None else ""
        return TimeLeft(seconds=seconds, until=until, at_least=is_certainty)


def format_round_number(number: int, rounds: RoundLimits) -> str:
    """`round 2 of 5`; `round 2` where nobody knows how many they will be."""
    return f"round {number}" if rounds.has_no_round_limit else f"round {number} of {rounds.most}"
