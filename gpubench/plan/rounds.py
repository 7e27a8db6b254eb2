"""How many rounds a sweep goes over its plan, and how sure its figures shall be. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpubench.basics.errors import UsageError
from gpubench.plan import values

MOST = 100
"""Rounds that a sweep makes where only a certainty or a budget ends it."""
FEWEST_FOR_CERTAINTY = 3
"""Processes below which nothing is sure enough: how far two lie apart is mostly chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundLimits:
    """When a sweep has gone over its plan often enough: at whichever of these comes first."""

    number: int | None = None
    """As was asked for; None: as many as `most` says."""
    within_pct: float | None = None
    """Half the width of the 95 % interval of an epoch time, in per cent of it. A trial that is as sure drops out."""
    budget_s: float | None = None
    """Seconds within which further rounds stay. The first round is always gone through."""
    repeats: int = 1
    """Processes that the first round starts of each configuration."""

    @property
    def most(self) -> int:
        """Unasked, as many as give each configuration the processes without which nothing is sure."""
        if self.number is not None:
            return self.number
        if self.within_pct is not None or self.budget_s is not None:
            return MOST
        return max(1, math.ceil(FEWEST_FOR_CERTAINTY / self.repeats))

    @property
    def is_open_ended(self) -> bool:
        """Whether nobody knows beforehand how many they will be."""
        return (self.within_pct is not None and self.number != 1) or self.has_no_round_limit

    @property
    def has_no_round_limit(self) -> bool:
        """Whether only a certainty or a budget ends them."""
        return self.number is None and (self.within_pct is not None or self.budget_s is not None)

    @property
    def is_until_answered(self) -> bool:
        """Whether a trial drops out once the table leaves no question open that it takes part in.

        That is so where a budget alone ends them: nothing else says what is enough.
        """
        return self.has_no_round_limit and self.within_pct is None


ONE = RoundLimits(number=1)
UNASKED = RoundLimits()


def parse_rounds(
    number: int | None, within: str | float | None, budget: str | float | None, *, repeats: int = 1
) -> RoundLimits:
    """The rounds that were asked for. Raises UsageError."""
    if number is not None and not 1 <= number <= MOST:
        raise UsageError(f"rounds: {number} is not from 1 to {MOST}")
    return RoundLimits(
        number=number,
        within_pct=None if within is None else values.parse_percent(within, "within"),
        budget_s=None if budget is None else values.parse_seconds(budget, "budget"),
        repeats=repeats,
    )


def override_rounds(
    file_rounds: RoundLimits, number: int | None, within: str | None, budget: str | None, repeats: int
) -> RoundLimits:
    """The rounds of an experiment file with what options say of them; what they don't say stays. Raises UsageError.

    But a file's single round, which no certainty is of, goes where an option asks for certainty or gives a budget.
    """
    if budget is not None and budget.strip().isdecimal():
        raise UsageError(f"--budget {budget}: write {budget}m or {budget}s, for minutes or seconds")
    given = parse_rounds(number, within, budget)
    kept = None if file_rounds.number == 1 and (within, budget) != (None, None) else file_rounds.number
    return RoundLimits(
        number=kept if number is None else number,
        within_pct=file_rounds.within_pct if within is None else given.within_pct,
        budget_s=file_rounds.budget_s if budget is None else given.budget_s,
        repeats=repeats,
    )


def encode_rounds(rounds: RoundLimits) -> dict[str, int | float | str]:
    """What an experiment file says of them: what was asked for."""
    table: dict[str, int | float | str] = {}
    if rounds.number is not None:
        table["rounds"] = rounds.number
    if rounds.within_pct is not None:
        table["within"] = f"{rounds.within_pct:g}%"
    if rounds.budget_s is not None:
        table["budget"] = rounds.budget_s
    return table
