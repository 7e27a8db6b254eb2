"""What an open answer would take: the smallest effect that so many processes show, and how many would settle it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import LEVEL, MeanEstimate
from gpubench.analysis.certainty.power import settling_ratio, smallest_effect
from gpubench.analysis.over_processes import MARGIN
from gpubench.analysis.varied import unit
from gpubench.basics.rounding import half_up
from gpubench.basics.words import number
from gpubench.schema.row import TableRow

MOST_ROUNDS = 100
"""As many as a sweep goes over its plan at most (`plan/rounds.py`)."""
SCATTER = 0.84
"""Standard errors below which four of five estimates lie."""
FEW = 5
"""Processes below which a number of rounds that was foretold from them is called a guess (docs/certainty.md)."""
IF_SEEN = "in four of five cases, if the truth is what was seen"
"""What a power of 0.8 promises; words for whoever foretells what would settle something."""
NODES_APART = (
    "it is not known what nodes differ by, and these rows were measured on unlike ones; measure them on one node, or "
    "in three rounds or more in common on the same nodes"
)
"""Why a comparison between nodes says nothing, and what helps."""
WIDE_PCT = 1000.0
"""An effect above which nobody would call it one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turns:
    """What is measured again as one: a row, or the jobs of one group."""

    there: int
    """Rounds, or repeats, that it has been through."""
    each_s: float | None
    """Seconds that one more of these takes; None where that is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Further:
    """How a table's rows can be measured again."""

    option: str = "--rounds"
    """What asks for more processes: rounds, or repeats where these have made them."""
    each: int = 1
    """Processes of a row that one more of these makes: of repeated rows each round repeats them."""
    turns: tuple[Turns, ...] = ()
    """Of the table's rows; none where it is not known how long they take."""

    @property
    def things(self) -> str:
        """`rounds`."""
        return self.option.removeprefix("--")

    def asks(self, processes: int) -> int:
        """How many rounds, or repeats, make so many processes of each row."""
        return math.ceil(processes / self.each)

    def more_s(self, asked: int) -> float | None:
        """Seconds until every row has been through so many rounds, or repeats; None where that is not known.

        Of rows that have dropped out of rounds more are left than of others.
        """
        left = [(asked - one.there, one.each_s) for one in self.turns if one.there < asked]
        known = [count * each_s for count, each_s in left if each_s is not None]
        return math.fsum(known) if self.turns and len(known) == len(left) else None


NOT_KNOWN = Further()


def further(rows: Iterable[TableRow]) -> Further:
    """How these rows, a table's, can be measured again, and how long that takes.

    Each further process takes as long as those of the last round; jobs of one group take it together.
    """
    runs = [(row, row.runs) for row in rows if row.runs]
    if not runs:
        return NOT_KNOWN
    rounds = any(run.round > 1 for _, own in runs for run in own)
    each = max(len({run.repeat for run in own}) for _, own in runs) if rounds else 1
    turns: dict[object, Turns] = {}
    for row, own in runs:
        last = max(own, key=lambda run: (run.round, run.repeat or 0))
        key = (row.group, unit(row)) if row.group else id(row)
        turns[key] = Turns(
            there=len({run.round if rounds else run.repeat for run in own}),
            each_s=None if last.took_s is None else each * last.took_s,
        )
    return Further(option="--rounds" if rounds else "--repeats", each=each, turns=tuple(turns.values()))


def sentence(claims: Sequence[Interval], family: int, how: Further, *, some_decided: bool = False) -> str:
    """What these open claims (ratios), of a family of so many, would take; without a full stop. Empty for none.

    `some_decided`: whether the same sentence tells of claims that are decided, of which nothing here is said.
    """
    between = sum(not one.is_known for one in claims)
    if between:
        those = "the one that is open" if len(claims) == 1 else "those that are open"
        whose = f"for {those} " if some_decided else ""
        whose = whose if between == len(claims) else f"for {between} of {those if some_decided else 'these'} "
        rest = sentence([one for one in claims if one.is_known], family, how)
        return f"{whose}{NODES_APART}{f'; of the others, {rest}' if rest else ''}"
    if not claims:
        return ""
    level = LEVEL / family
    effect = 100 * (max(smallest_effect(one, level) for one in claims) - 1)
    shown = _shown(effect, len(claims), some_decided=some_decided)
    wanted = [_wanted(one, level) for one in claims]
    if any(one is None or how.asks(one) > MOST_ROUNDS for one in wanted):
        return f"{shown}; more than {MOST_ROUNDS} {how.things} would be needed to settle it"
    count = max(one for one in wanted if one)
    what = "each of these" if len(claims) > 1 else "it"
    return f"{shown}; {_settled(count, min(min(one.processes) for one in claims), how, what)}"


def of_gain(gain: Interval, borders: Sequence[float], family: int, how: Further) -> str:
    """What it would take to tell on which side of these borders an overlap gain lies; without a full stop."""
    if not gain.is_known:
        return NODES_APART
    half = f"{half_up((gain.high - gain.low) / 2, 2)}" if math.isfinite(gain.high) else "nothing"
    shown = (
        f"so few runs tell the gain to ± {half}" if half != "nothing" else "so few runs tell next to nothing"
    )
    near = min(borders, key=lambda border: abs(border - gain.value))
    there = min(gain.processes)
    for count in range(there + 1, how.each * MOST_ROUNDS + 1):
        more = replace(gain, log=_with(gain.log, count - there), confidence=1 - LEVEL / family)
        room = abs(more.log.center - math.log(near / gain.scale + gain.shift))
        # Estimates scatter, too: with this much room four of five such sweeps decide.
        inside = room > more.log.half_width(more.confidence) + SCATTER * more.log.error
        if inside:
            return f"{shown}; {_settled(count, there, how, 'it')}"
    return f"{shown}; more than {MOST_ROUNDS} {how.things} would be needed to settle it"


def _shown(effect_pct: float, count: int, *, some_decided: bool) -> str:
    """Which difference so few processes show, by the least sure of so many open claims."""
    much = (
        f"only a difference of {_per_cent(effect_pct)} or more"
        if effect_pct <= WIDE_PCT
        else "hardly any difference"
    )
    if not some_decided:
        return f"of so few processes {much} would show"
    if count == 1:
        return f"the one that is open would have shown {much}"
    return f"of those that are open, the least sure would have shown {much}"


def _wanted(claim: Interval, level: float) -> int | None:
    """Processes a side that would settle a claim; more than there are, for these have not."""
    count = settling_ratio(claim, MARGIN, level).fewest
    return None if count is None else max(count, min(claim.processes) + 1)


def _with(log: MeanEstimate, more: int) -> MeanEstimate:
    """The estimate from so many more processes of each sample, with the same noise."""
    return MeanEstimate(center=log.center, parts=tuple(part.of_more(part.size + more) for part in log.parts))


def _settled(processes: int, there: int, how: Further, what: str) -> str:
    """`gpubench sweep … --rounds 7 settles it in four of five cases, if …, in about 4 min more (a guess from 3 …)`."""
    asked = how.asks(processes)
    guess = f" (a guess from {there} processes)" if there < FEW else ""
    more = _more(how.more_s(asked))
    return f"gpubench sweep … {how.option} {asked} settles {what} {IF_SEEN}{more}{guess}"


def _more(seconds: float | None) -> str:
    """`, in about 4 min more`."""
    if seconds is None:
        return ""
    words = f"{number(max(1.0, seconds))} s" if seconds < 90 else f"{number(seconds / 60)} min"
    return f", in about {words} more"


def _per_cent(value: float) -> str:
    return f"{half_up(value, 1) if value < 10 else half_up(value)} %"
