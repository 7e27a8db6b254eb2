"""Processes that lie further from the others of their row than chance explains. They are flagged, never dropped."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpubench.stats.distributions import compute_t_quantile
from gpubench.stats.estimates import ALPHA

FEWEST_OUTLIERS = 5
"""Among fewer processes nothing tells an outlier from noise."""


def find_outliers(times: npt.NDArray[np.float64]) -> list[int]:
    """Places of the times that are outliers by the generalized ESD test (Rosner 1983) on the log scale.

    A third of the times at most; they are above 0.
    """
    logs = np.log(times)
    is_left = np.ones(len(times), dtype=bool)
    taken: list[int] = []
    outliers = 0
    while len(taken) < len(times) // 3:
        rest = logs[is_left]
        spread = 0.0 if rest.min() == rest.max() else float(rest.std(ddof=1))
        if not spread:
            break
        distance = np.where(is_left, np.abs(logs - rest.mean()), -1.0)
        place = int(np.argmax(distance))
        t = float(compute_t_quantile(1 - ALPHA / (2 * len(rest)), len(rest) - 2))
        limit = (len(rest) - 1) * t / np.sqrt((len(rest) - 2 + t * t) * len(rest))
        is_left[place] = False
        taken.append(place)
        if distance[place] / spread > limit:
            outliers = len(taken)
    return taken[:outliers]
