"""How far chance may have moved a row's epoch time: what two rows must differ by before they count as different."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gpubench.analysis.varied import Row
from gpubench.result import FEWEST_TIMES

OWN = (None, "measured")
"""Sources of rows whose processes are known."""

# Half the width over the interquartile range, by how many times the median is of. Simulated with normal noise so that
# of two equal configurations at most one pair in twenty is called different (tests/analysis/test_noise.py).
_FACTORS = {3: 1.4, 4: 1.05, 5: 1.02, 6: 0.76, 7: 0.67, 8: 0.6, 9: 0.58}
_FROM_TEN = 1.65
"""The same times the square root of how many, from ten on."""


def times(row: Row) -> int:
    """How many times a row's epoch time is the median of: its repeats where it has several, else measured epochs.

    0 where that is not known, as in a published log.
    """
    repeats = row.get("repeats") or 0
    return int(repeats if repeats > 1 else row.get("epochs_measured") or 0)


def half_width(row: Row) -> float | None:
    """Half the width, in s, of the interval around a row's epoch time in which chance may have moved it.

    Two rows differ where their intervals do not touch: |time - other time| > the sum of both half widths. None is
    unknown, which is never the same as none: no epoch time, no interquartile range, or fewer than FEWEST_TIMES measured
    epochs (or repeats). Of a row without repeats it tells what one process saw; another process may differ by more.
    """
    spread, count = row.get("epoch_time_iqr_s"), times(row)
    if not row.get("epoch_time_s") or spread is None or count < FEWEST_TIMES:
        return None
    return float(spread) * (_FACTORS.get(count) or _FROM_TEN / math.sqrt(count))


def resting(rows: Iterable[Row]) -> str:
    """What conclusions from these rows rest on, as the end of a sentence, where that is fewer than three processes.

    What differs from process to process shows in none of the figures of one. Empty, too, where any row was not
    measured here: nobody knows what it is of.
    """
    there = list(rows)
    processes = {int(row.get("repeats") or 1) for row in there}
    if not there or min(processes) >= FEWEST_TIMES or any(row.get("source") not in OWN for row in there):
        return ""
    few = "one process" if min(processes) == 1 else "two processes"
    if len(processes) > 1:
        return f"; some rows are of {few} only"
    epochs = {times(row) for row in there} if processes == {1} else set()
    also = {1: " (and one epoch)", 2: " (and two epochs)"}.get(max(epochs, default=0), "")
    return f"; each row is of {few}{also if len(epochs) == 1 else ''} only"
