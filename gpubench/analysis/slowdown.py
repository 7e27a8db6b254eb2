"""What sharing the machine costs: jobs together against the same jobs alone."""

from __future__ import annotations

from collections.abc import Sequence

PARALLEL = 0.9
CONCURRENT = 0.1


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


def verdict(gain: float) -> str:
    """The word for an overlap gain."""
    if gain >= PARALLEL:
        return "parallel"
    return "merely concurrent" if gain <= CONCURRENT else "partly parallel"
