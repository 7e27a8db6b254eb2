"""Welch's t-test: whether the mean of one small sample lies further below that of another than a margin. Pure.

It takes runs of one configuration for independent and normally distributed, and lets the two samples differ in their
variance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from gpubench.analysis.certainty.distributions import t_above


def chance_of_no_more(
    before: Sequence[float], after: Sequence[float], margin: float, least_sd: float
) -> float:
    """The p-value of "the mean falls by no more than `margin`": how probable such samples are where it just does.

    Near 0: it falls by more. Near 1: it falls by less, and 1 minus it is the p-value of the opposite. Two values or
    more on each side; all in one unit. `least_sd`: a standard deviation below which the figures can't resolve one.
    Raises ValueError for fewer values.
    """
    if min(len(before), len(after)) < 2:
        raise ValueError("a variance takes two values or more")
    fall = statistics.fmean(before) - statistics.fmean(after)
    parts = [max(statistics.variance(one), least_sd**2) / len(one) for one in (before, after)]
    squares = sum(part**2 / (len(one) - 1) for part, one in zip(parts, (before, after), strict=True))
    if not squares:
        return 0.5 if fall == margin else float(fall < margin)
    return t_above((fall - margin) / math.sqrt(sum(parts)), sum(parts) ** 2 / squares)


def holm(chances: Sequence[float], level: float) -> list[bool]:
    """Which of several p-values may be rejected together, with at most `level` for any false rejection (Holm 1979)."""
    rejected = [False] * len(chances)
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > level / (len(chances) - rank):
            break
        rejected[index] = True
    return rejected
