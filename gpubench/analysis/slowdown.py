"""What sharing the machine costs: jobs together against the same jobs alone, and the verdict on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from gpubench.analysis import noise, over_processes
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import LEVEL
from gpubench.analysis.doubted import beside_others, codes, of_time
from gpubench.analysis.noise import beginning, half_width, resting
from gpubench.basics.rounding import half_up
from gpubench.schema.doubts import FASTER, doubt_of
from gpubench.schema.row import Row
from gpubench.schema.verdict import UNSURE, Sure, Verdict

PARALLEL = 0.9
CONCURRENT = 0.1
WORDS = ("merely concurrent", "partly parallel", "parallel")
"""The verdicts, from the least overlap to the most."""
IMPOSSIBLE = 0.8
"""A job that takes less than this of its time alone was slowed down alone: neighbours don't help."""


def slowdown(together_s: float | None, alone_s: float | None) -> float | None:
    """Epoch time together / alone; None where one of them is not known."""
    if not together_s or not alone_s:
        return None
    return together_s / alone_s


def overlap_gain(slowdowns: Sequence[float | None]) -> float | None:
    """How much of the work of n jobs overlaps: 1 is parallel, 0 merely concurrent.

    None for fewer than two jobs or where a slowdown is not known. Below 0: slower than one after the other.
    """
    there = [value for value in slowdowns if value]
    if len(there) < 2 or len(there) < len(slowdowns):
        return None
    return (sum(1 / value for value in there) - 1) / (len(there) - 1)


def sharing_word(gain: float) -> str:
    """The word for one overlap gain, whatever its doubt."""
    if gain >= PARALLEL:
        return WORDS[2]
    return WORDS[0] if gain <= CONCURRENT else WORDS[1]


def group_verdict(
    gain: float | None,
    alone: Sequence[Row | None],
    together: Sequence[Row],
    before: Sequence[Verdict] = (),
) -> Verdict:
    """The verdict on a group with this overlap gain, and how sure it is.

    Rows of the same job have the same place in `alone` and `together`; None: that row is not known. Both are empty
    where only the gain is. `before`: what was found of the same jobs earlier, of each of their runs, or by the version
    that measured them. It counts where these rows don't tell the range.
    """
    if gain is None:
        return Verdict()
    rows = [row for row in (*alone, *together) if row]
    over = gain_over_processes(alone, together)
    # What these figures say themselves comes first: the figures of one run are not those of the table.
    if why_not := _sped_up(alone, together) or _scattered(rows) or _refused(before):
        return Verdict(why_not=why_not)
    ends = _range(alone, together) if over is None and len(alone) == len(together) else None
    if over is not None:
        ends = (over.low, over.high)
    known = [end for one in before if one.gain_range for end in one.gain_range]
    if ends is None and known:
        # One job's time of one repeat, beside another's of another, may give a gain that no repeat had.
        ends = min(gain, *known), max(gain, *known)
    rests = resting(rows)
    others = 2 * sum(one.beside_others for one in before) >= len(before) if before else False
    others = others or any(map(beside_others, rows))
    unsure: Sure | None = None
    if ends is None and not _loses(alone, together):
        unsure = "spread not known"
    elif rests and any(slowed < FASTER for _, slowed in _slowdowns(alone, together)):
        unsure = "faster than alone"
    elif others:
        unsure = "doubtful"
    first, last = (WORDS.index(sharing_word(end)) for end in (ends or (gain, gain)))
    found = Verdict(
        words=(sharing_word(gain),) if unsure else WORDS[first : last + 1],
        sure=unsure or ("few processes" if rests else "yes"),
        gain_range=ends if ends is None or math.isfinite(ends[1]) else None,
        rests=rests,
        begins=beginning(rows),
        over_processes=over is not None,
        beside_others=others,
    )
    return found if over is None else decided(found, over, word_chance(over) <= LEVEL, 1)


def gain_over_processes(alone: Sequence[Row | None], together: Sequence[Row]) -> Interval | None:
    """The overlap gain with its interval over processes; None where a job, or its trial alone, is of one process."""
    return over_processes.overlap_gain(alone, together) if len(alone) == len(together) else None


def word_chance(gain: Interval) -> float:
    """The p-value of "the word for this gain is wrong", so that a gain whose interval holds one word has at most 0.05.

    Two-sided, as the interval is.
    """
    word = sharing_word(gain.value)
    below, above = gain.chance_at_least(PARALLEL), gain.chance_at_most(CONCURRENT)
    chances = {
        WORDS[0]: gain.chance_at_least(CONCURRENT),
        WORDS[1]: max(below, above),
        WORDS[2]: gain.chance_at_most(PARALLEL),
    }
    return min(1.0, 2 * chances[word])


def decided(found: Verdict, gain: Interval, holds: bool, family: int) -> Verdict:
    """A verdict over processes as it stands among a table's claims: one word, or open between several.

    `holds`: whether its word does, corrected for a family of so many. One with a doubt keeps that.
    """
    if found.sure in UNSURE or not found.words:
        return found
    word = sharing_word(gain.value)
    if holds:
        return replace(found, words=(word,), sure="few processes" if found.rests else "yes")
    wide = replace(gain, confidence=1 - LEVEL / family)
    first, last = (WORDS.index(sharing_word(end)) for end in (wide.low, wide.high))
    return replace(found, words=WORDS[first : last + 1], sure="open")


def expected(gain: float, alone: Sequence[Row]) -> Verdict:
    """The verdict on a gain that is predicted of jobs with these rows alone: never surer than the rows.

    A prediction has no range into which their spread could go, so every doubt about a time leaves it open.
    """
    others = any(doubt_of(code).of_others for row in alone for code in codes(row))
    if why_not := _scattered(alone):
        return Verdict(why_not=why_not, beside_others=others)
    rests = resting(alone)
    sure: Sure = "few processes" if rests else "yes"
    if any(map(of_time, alone)):
        sure = "doubtful"
    if any(half_width(row) is None for row in alone):
        sure = "spread not known"
    return Verdict(words=(sharing_word(gain),), sure=sure, rests=rests, beside_others=others)


def loss(found: Verdict, gain: float) -> Literal["no", "perhaps", "yes"]:
    """Whether jobs with this verdict and gain took longer together than one after the other."""
    if not found.words or half_up(gain, 2) >= 0:
        return "no"
    open_ = found.sure in UNSURE or found.words != WORDS[:1]
    return "perhaps" if open_ or (found.gain_range is not None and found.gain_range[1] >= 0) else "yes"


def slowest(slowdowns: Sequence[float]) -> float | None:
    """The largest slowdown as people read it; None for none."""
    return float(half_up(max(slowdowns), 2)) if slowdowns else None


def _sped_up(alone: Sequence[Row | None], together: Sequence[Row]) -> str | None:
    """Why jobs that took far less than alone allow no verdict; None where none did."""
    for index, slowed in _slowdowns(alone, together):
        if slowed < IMPOSSIBLE:
            job = together[index].job or f"{index + 1} of {len(together)}"
            return (
                f"job {job} took {slowed:.2f} times as long as alone, which sharing can't do: something slowed it down "
                "alone (other work, low clocks, CPUs at rest); measure both again (--rounds 5)"
            )
    return None


def _refused(before: Sequence[Verdict]) -> str | None:
    """Why half of what was found before, or more, allows no verdict; None where it is less.

    Of several runs it says whose figures these are.
    """
    refused = [one.why_not for one in before if one.why_not]
    if not refused or 2 * len(refused) < len(before):
        return None
    if len(before) == 1:
        return refused[0]
    most = "all" if len(refused) == len(before) else "at least half"
    return f"{most} of its runs allow none by themselves, and of the first of these it is told: {refused[0]}"


def _slowdowns(alone: Sequence[Row | None], together: Sequence[Row]) -> Iterator[tuple[int, float]]:
    """Place and slowdown of each job that has one."""
    for index, row in enumerate(together):
        solo = alone[index] if index < len(alone) else None
        slowed = slowdown(row.epoch_time_s, solo.epoch_time_s) if solo else row.slowdown
        if slowed:
            yield index, slowed


def _scattered(rows: Sequence[Row]) -> str | None:
    """Why epoch times that spread by as much as they last allow no verdict; None where they don't."""
    if any(map(_is_scattered, rows)):
        return "epoch times spread by as much as they last; measure again on a quiet machine"
    return None


def _is_scattered(row: Row) -> bool:
    """Whether chance may have moved an epoch time by as much as it lasts; of two times, whether they lie so far apart.

    False where that is not known: one time has no spread.
    """
    time, half, times = row.epoch_time_s, half_width(row), row.epoch_times_s
    if not time:
        return False
    if half is not None:
        return half >= float(time)
    return len(times) == 2 and max(times) - min(times) >= float(time)


def _loses(alone: Sequence[Row | None], together: Sequence[Row]) -> bool:
    """Whether jobs took longer than one after the other by so much that even two epochs of each leave no doubt."""

    def half(row: Row) -> float | None:
        wide = half_width(row)
        wide = noise.half_width_of_two(row) if wide is None else wide
        return wide if wide is not None and wide < (row.epoch_time_s or 0) else None

    ends = _range(alone, together, half) if len(alone) == len(together) else None
    return ends is not None and ends[1] < 0


def _range(
    alone: Sequence[Row | None],
    together: Sequence[Row],
    half_width: Callable[[Row], float | None] = half_width,
) -> tuple[float, float] | None:
    """How low and how high chance may have moved the overlap gain: every epoch time by its `noise.half_width`.

    Each is moved by itself, and what that does to the gain is put together as `noise.together` does. None where an
    epoch time, or how far it spreads, is not known. No epoch time may spread by as much as it lasts.
    """
    times = [
        (row.epoch_time_s, half_width(row)) if row and row.epoch_time_s else (None, None)
        for row in (*alone, *together)
    ]
    known = [(time, half) for time, half in times if time and half is not None]
    if len(known) < len(times):
        return None

    def gain(moved: int | None = None, by: float = 0.0) -> float:
        took = [time + (by if index == moved else 0.0) for index, (time, _) in enumerate(known)]
        solos, shared = took[: len(alone)], took[len(alone) :]
        found = overlap_gain([slowdown(t, a) for t, a in zip(shared, solos, strict=True)])
        return math.nan if found is None else found

    middle = gain()
    effects = [
        sorted((gain(index, -half) - middle, gain(index, half) - middle))
        for index, (_, half) in enumerate(known)
    ]
    low = middle - noise.together(*(down for down, _ in effects))
    high = middle + noise.together(*(up for _, up in effects))
    return None if math.isnan(middle) else (low, high)
