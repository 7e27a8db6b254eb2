"""What the benchmarks say of alternating pairs: the median ratio with its 95 % interval. No assumption on noise."""

from __future__ import annotations

import math
from collections.abc import Sequence


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """(median, low, high): the interval is that of order statistics, which holds for any distribution.

    The k-th smallest and k-th largest value enclose the median with a probability of at least 95 %, where
    k − 1 is the largest count with P(Binomial(n, 1/2) ≤ k − 1) ≤ 2.5 %. With fewer than six values: all of them.
    """
    ordered = sorted(values)
    n = len(ordered)
    below, k = 0.0, 0
    while below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    place = max(k - 1, 0)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return middle, ordered[place], ordered[n - 1 - place]
