"""Welch's t-test: whether the mean of one small sample lies further below that of another than a margin. Pure.

It takes runs of one configuration for independent and normally distributed, and lets the two samples differ in their
variance. The t distribution's tail is worked out from the incomplete beta function; scipy would be a dependency of
many MiB for this one number.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

MOST_TERMS = 1_000
"""The continued fraction settles in tens; this only keeps it from running for ever."""
CLOSE = 1e-14


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
    return upper_tail((fall - margin) / math.sqrt(sum(parts)), sum(parts) ** 2 / squares)


def upper_tail(t: float, freedom: float) -> float:
    """The probability of a value above `t` under Student's distribution with so many degrees of freedom."""
    half = _beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
    return half if t >= 0 else 1 - half


def holm(chances: Sequence[float], level: float) -> list[bool]:
    """Which of several p-values may be rejected together, with at most `level` for any false rejection (Holm 1979)."""
    rejected = [False] * len(chances)
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > level / (len(chances) - rank):
            break
        rejected[index] = True
    return rejected


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where its fraction settles slowly, the other side's does not
        return 1 - _beta(1 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 1 + d1/(1 + d2/(1 + ...)) of I_x(a, b), by Lentz's method."""
    value, upper, lower = 1.0, 1.0, 0.0
    for term in range(1, MOST_TERMS):
        m = term // 2
        if term % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / (1 + d * lower)
        upper = 1 + d / upper
        value *= upper * lower
        if abs(upper * lower - 1) < CLOSE:
            break
    return value
