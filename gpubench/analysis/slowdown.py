"""What sharing the machine costs: jobs together against the same jobs alone."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.noise import half_width
from gpubench.analysis.varied import Row

PARALLEL = 0.9
CONCURRENT = 0.1
WORDS = ("merely concurrent", "partly parallel", "parallel")
"""The verdicts, from the least overlap to the most."""
PERHAPS = "perhaps "
"""Before a verdict whose doubt nobody knows: too few epochs, or a figure of a published log."""
IMPOSSIBLE = 0.8
"""A job that takes less than this of its time alone was not sped up by its neighbours."""


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


def gain_range(alone: Sequence[Row], together: Sequence[Row]) -> tuple[float, float] | None:
    """The overlap gain with every epoch time moved by its `noise.half_width`: all against the jobs, all in favour.

    Rows of the same job have the same place in both. None where an epoch time or how far it spreads is not known
    (fewer than three measured epochs have no spread), and where one spreads by as much as it lasts.
    """
    times = [(row.get("epoch_time_s"), half_width(row)) for row in (*alone, *together)]
    known = [(time, half) for time, half in times if time and half is not None]
    if len(known) < len(times) or any(half >= time for time, half in known):
        return None
    pairs = list(zip(known[: len(alone)], known[len(alone) :], strict=True))
    low = overlap_gain([(t + off_t) / (a - off_a) for (a, off_a), (t, off_t) in pairs])
    high = overlap_gain([(t - off_t) / (a + off_a) for (a, off_a), (t, off_t) in pairs])
    return None if low is None or high is None else (low, high)


def undecidable(slowdowns: Sequence[float | None], times: Sequence[Row]) -> str | None:
    """Why these figures allow no verdict; None where they do. `times`: rows of all jobs, alone and together."""
    impossible = [(place, value) for place, value in enumerate(slowdowns, 1) if value and value < IMPOSSIBLE]
    if impossible:
        place, value = impossible[0]
        return (
            f"job {place} of {len(slowdowns)} took {value:.2f} times as long as alone, which sharing can't do: what it "
            "took alone is wrong; measure it again (--fresh) on a quiet machine"
        )
    if any(half >= time / 2 for time, half in filter(None, map(_spread, times))):
        return "epoch times spread by as much as they last; measure again on a quiet machine"
    return None


def word(
    gain: float | None, gain_range: Sequence[float] | None = None, undecidable: str | None = None
) -> str | None:
    """The verdict on a group, as everything that prints one has it; None where there is none.

    `gain_range`: its lowest and highest overlap gain; where they are not known, the verdict is one that chance may have
    made, and says so. `undecidable`: why the figures allow no verdict.
    """
    if gain is None or undecidable:
        return None
    if gain_range is None:
        return f"{PERHAPS}{verdict(gain)}"
    found = possible(gain_range)
    return found[0] if len(found) == 1 else f"between {found[0]} and {found[-1]}"


def possible(gain_range: Sequence[float] | None) -> tuple[str, ...]:
    """The verdicts that the range of an overlap gain leaves possible, from the least overlap to the most.

    All of them where nobody knows the range.
    """
    if gain_range is None:
        return WORDS
    ends = WORDS.index(verdict(gain_range[0])), WORDS.index(verdict(gain_range[1]))
    return WORDS[ends[0] : ends[1] + 1]


def verdict(gain: float) -> str:
    """The word for one overlap gain, whatever its doubt."""
    if gain >= PARALLEL:
        return WORDS[2]
    return WORDS[0] if gain <= CONCURRENT else WORDS[1]


def _spread(row: Row) -> tuple[float, float] | None:
    """Epoch time and half its IQR in s; also of two epochs, which lie as far apart as they do."""
    time, spread = row.get("epoch_time_s"), row.get("epoch_time_iqr_s")
    return None if not time or spread is None else (time, spread / 2)
