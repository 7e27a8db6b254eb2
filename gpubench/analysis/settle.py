"""What an open answer would take: the smallest effect that so many processes show, and how many would settle it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import LEVEL
from gpubench.analysis.certainty.power import settling, smallest_effect
from gpubench.analysis.over_processes import MARGIN, Sample
from gpubench.analysis.varied import unit
from gpubench.basics.rounding import half_up
from gpubench.basics.words import number
from gpubench.schema.row import TableRow

MOST_ROUNDS = 100
"""As many as a sweep goes over its plan at most (`plan/rounds.py`)."""
WIDE_PCT = 1000.0
"""An effect above which nobody would call it one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Further:
    """How a table's rows can be measured again."""

    option: str = "--rounds"
    """What asks for more processes: rounds, or repeats where these have made them."""
    round_s: float | None = None
    """Seconds that one more process of every row takes; None where that is not known."""


NOT_KNOWN = Further()


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenClaim:
    """A comparison that is open."""

    ratio: Interval
    over: Sample
    under: Sample
    factor: float = 1.0
    """What is exact in the ratio: of memory, say."""


def further(rows: Iterable[TableRow]) -> Further:
    """How these rows, a table's, can be measured again, and how long each further process of all of them takes.

    As long as those of the last round; jobs of one group take it together.
    """
    runs = [(row, row.runs) for row in rows if row.runs]
    if not runs:
        return NOT_KNOWN
    rounds = any(run.round > 1 for _, own in runs for run in own)
    took: dict[object, float | None] = {}
    for row, own in runs:
        last = max(own, key=lambda run: (run.round, run.repeat or 0))
        key = (row.group, unit(row)) if row.group else id(row)
        took[key] = last.took_s
    known = [one for one in took.values() if one is not None]
    return Further(
        option="--rounds" if rounds else "--repeats",
        round_s=math.fsum(known) if len(known) == len(took) else None,
    )


def sentence(claims: Sequence[OpenClaim], family: int, how: Further) -> str:
    """What these open claims, of a family of so many, would take; without a full stop. Empty for none."""
    if not claims:
        return ""
    level = LEVEL / family
    effect = 100 * (max(smallest_effect(one.ratio, level) for one in claims) - 1)
    shown = (
        f"so few processes show only a difference of {_per_cent(effect)} or more"
        if effect <= WIDE_PCT
        else "so few processes show hardly any difference"
    )
    wanted = [_wanted(one, level) for one in claims]
    if any(one is None or one > MOST_ROUNDS for one in wanted):
        return f"{shown}; more than {MOST_ROUNDS} rounds would be needed to settle it"
    count = max(one for one in wanted if one)
    return f"{shown}; gpubench sweep … {how.option} {count} would probably settle it{_minutes(claims, count, how)}"


def _wanted(claim: OpenClaim, level: float) -> int | None:
    """Processes a side that would settle a claim; more than there are, for these have not."""
    over = [value * claim.factor for value in claim.over.values]
    found = settling(over, claim.under.values, MARGIN, level=level)
    count = found.fewest if found else None
    return None if count is None else max(count, min(len(claim.over), len(claim.under)) + 1)


def _minutes(claims: Sequence[OpenClaim], count: int, how: Further) -> str:
    if how.round_s is None:
        return ""
    there = min(min(len(one.over), len(one.under)) for one in claims)
    seconds = how.round_s * (count - there)
    words = f"{number(max(1.0, seconds))} s" if seconds < 90 else f"{number(seconds / 60)} min"
    return f", in about {words} more"


def _per_cent(value: float) -> str:
    return f"{half_up(value, 1) if value < 10 else half_up(value)} %"
