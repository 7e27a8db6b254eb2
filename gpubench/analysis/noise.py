"""How far chance may have moved a row's epoch time: what two rows must differ by before they count as different.

What is taken for granted: that the times of a row are drawn independently of each other, from something near a normal
distribution, and that they are processes where the conclusion is about processes. Then at most one pair in twenty of
equal configurations is called different, whatever their spreads and however many times each row has
(`tests/analysis/test_noise.py` draws such pairs). Elsewhere it is more, of three to thirty epochs: 6 to 16 % where each
epoch resembles the one before it (a correlation of 0.5; at 0.8 it is 19 to 40 %), and 10 to 63 % where rows of one
process each are compared and processes differ by as much as epochs do: more epochs make that worse, for they narrow the
interval around a time that is the process's own. So what rests on one process says so (`resting`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpubench.analysis.certainty.interval import Interval, interval
from gpubench.schema.epoch_times import FEWEST_TIMES
from gpubench.schema.row import Row

ONE = "one process"
OWN = (None, "measured")
"""Sources of rows whose processes are known."""

# Half the width over the interquartile range, by how many times the median is of: of so many normal times all but one
# median in twenty lie nearer to the truth. Simulated; the quartiles of five times leave out both ends, so they miss
# more than those of four.
_FACTORS = {
    3: 2.68, 4: 1.85, 5: 2.1, 6: 1.31, 7: 1.06, 8: 0.93, 9: 0.93, 10: 0.79, 11: 0.73, 12: 0.67, 13: 0.67, 14: 0.6,
    15: 0.58, 16: 0.55, 17: 0.54, 18: 0.51, 19: 0.5, 20: 0.48,
}  # fmt: skip
_BEYOND = 2.1
"""Above twenty times: half the width over the interquartile range, times the square root of how many times."""
_OF_TWO = 6.35
"""Half the width over the distance of two times: 12.71 (t of 95 %) / 2."""


def processes(row: Row) -> int:
    """How many processes a row's epoch time is of: its repeats that have one; 1 where nothing was repeated."""
    return len(row.epoch_times_s) if _repeated(row) else 1


def times(row: Row) -> int:
    """How many times a row's epoch time is the median of: its repeats that have one, else its measured epochs.

    0 where that is not known, as in a published log.
    """
    return processes(row) if _repeated(row) else int(row.epochs_measured or 0)


def half_width(row: Row) -> float | None:
    """Half the width, in s, of the interval around a row's epoch time in which chance may have moved it.

    Two rows differ where their times lie further apart than `together` of both half widths. None is unknown, which is
    never the same as none: no epoch time, or one process without an interquartile range or with fewer than FEWEST_TIMES
    measured epochs. Of several processes it is half their 95 % interval; of one it tells what that one saw, and another
    may differ by more.
    """
    if (known := process_interval(row)) is not None:
        return (known.high - known.low) / 2
    spread, count = row.epoch_time_iqr_s, times(row)
    if not row.epoch_time_s or spread is None or count < FEWEST_TIMES:
        return None
    return float(spread) * (_FACTORS.get(count) or _BEYOND / math.sqrt(count))


def process_interval(row: Row) -> Interval | None:
    """The epoch time with its 95 % interval over processes; None where it is of one."""
    return interval(row.epoch_times_s) if _repeated(row) else None


def half_width_of_two(row: Row) -> float | None:
    """Half the width, in s, of the interval around an epoch time that is of two times; None where there are not two.

    Their distance is all that is known of how they spread. By Student's t with one degree of freedom: they say little,
    but of jobs that lose much by sharing they say enough.
    """
    found = row.epoch_times_s
    return _OF_TWO * float(max(found) - min(found)) if len(found) == 2 else None


def together(*halves: float) -> float:
    """How far chance moves what figures with these half widths come to: it seldom moves all of them its way at once."""
    return math.hypot(*halves)


def resting(rows: Iterable[Row]) -> str:
    """What conclusions from these rows rest on, as the end of a sentence, where that is fewer than three processes.

    What differs from process to process shows in none of the figures of one. Empty, too, where any row was not
    measured here: nobody knows what it is of.
    """
    few, every = _few(list(rows))
    if not few:
        return ""
    return f"; each row is of {few} only" if every else f"; some rows are of {few} only"


def beginning(rows: Iterable[Row]) -> str:
    """How a conclusion from these rows begins where some or all are of one process, so that nobody takes it for firm.

    `By one process each, `; empty where `resting` is, and of two processes, over which conclusions are decided.
    """
    few, every = _few(list(rows))
    if not few.startswith(ONE):
        return ""
    return f"By {few} each, " if every else f"By {few} of some rows, "


def begun(start: str, said: str) -> str:
    """A sentence after such a beginning; as it is after none."""
    return f"{start}{said[0].lower()}{said[1:]}" if start else said


def _few(rows: Sequence[Row]) -> tuple[str, bool]:
    """`one process (and two epochs)` or `two processes`, and whether all of these rows are of so few; empty of more."""
    found = {processes(row) for row in rows}
    if not rows or min(found) >= FEWEST_TIMES or any(row.source not in OWN for row in rows):
        return "", False
    few = "two processes" if min(found) == 2 else ONE
    if len(found) > 1:
        return few, False
    epochs = {0 if _repeated(row) else times(row) for row in rows}
    also = {1: " (and one epoch)", 2: " (and two epochs)"}.get(max(epochs), "")
    return f"{few}{also if len(epochs) == 1 else ''}", True


def _repeated(row: Row) -> bool:
    return (row.repeats or 0) > 1
