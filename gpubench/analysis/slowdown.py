"""What sharing the machine costs: jobs together against the same jobs alone."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.varied import Row

PARALLEL = 0.9
CONCURRENT = 0.1
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
    """The overlap gain with every epoch time moved by half its IQR: all against the jobs, and all in favour.

    Rows of the same job have the same place in both. None where an epoch time or its spread is not known, and
    where a spread is as wide as the time itself.
    """
    times = [_spread(row) for row in (*alone, *together)]
    known = [time for time in times if time is not None]
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


def verdict(gain: float) -> str:
    """The word for an overlap gain."""
    if gain >= PARALLEL:
        return "parallel"
    return "merely concurrent" if gain <= CONCURRENT else "partly parallel"


def verdict_between(low: float, high: float) -> str:
    """The word for a range of overlap gains: one where both ends agree, else `between A and B`."""
    words = verdict(low), verdict(high)
    return words[0] if words[0] == words[1] else f"between {words[0]} and {words[1]}"


def _spread(row: Row) -> tuple[float, float] | None:
    """Epoch time and half its IQR in s."""
    time, spread = row.get("epoch_time_s"), row.get("epoch_time_iqr_s")
    return None if not time or spread is None else (time, spread / 2)
