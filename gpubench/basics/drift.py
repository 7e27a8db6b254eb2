"""How much slower a series of times begins than it ends."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

FEWEST = 10


def drift_pct(times: Sequence[float]) -> float | None:
    """By how many per cent the median of the first fifth is longer than that of the last half; None of too few.

    Medians: a step that stalls now and then says nothing of the beginning.
    """
    if len(times) < FEWEST:
        return None
    first, last = times[: len(times) // 5], times[-(len(times) // 2) :]
    return 100 * (statistics.median(first) / statistics.median(last) - 1)
