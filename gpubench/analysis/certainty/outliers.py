"""Processes that lie further from the others than chance explains. They are flagged; nothing is ever left out. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpubench.analysis.certainty.distributions import t_quantile
from gpubench.analysis.certainty.mean_estimate import LEVEL, mean, variance

FEWEST = 5
"""Among fewer processes nothing tells an outlier from noise."""


def outliers(times: Sequence[float], level: float = LEVEL) -> tuple[int, ...]:
    """Places of the processes whose times are outliers on the log scale; none among fewer than FEWEST.

    The generalized ESD test (Rosner 1983) for up to a third of the processes, with Rosner's limits. Of five to ten
    without any, 5 to 9 % of samples have one flagged; the modified z-score (Iglewicz and Hoaglin 1993) would flag one
    in 12 to 20 %.
    """
    if len(times) < FEWEST:
        return ()
    logs = [math.log(time) for time in times]
    left = list(range(len(logs)))
    taken: list[int] = []
    found = 0
    while len(taken) < len(times) // 3:
        there = [logs[place] for place in left]
        middle, spread = mean(there), math.sqrt(variance(there))
        if not spread:
            break
        place = max(left, key=lambda one: abs(logs[one] - middle))
        left.remove(place)
        taken.append(place)
        if abs(logs[place] - middle) / spread > _limit(len(there), level):
            found = len(taken)
    return tuple(sorted(taken[:found]))


def _limit(count: int, level: float) -> float:
    """How many standard deviations from the mean the farthest of `count` normal values lies at most, mostly."""
    t = t_quantile(1 - level / (2 * count), count - 2)
    return (count - 1) * t / math.sqrt((count - 2 + t * t) * count)
