"""How far apart the times behind one epoch time lie, and how a table shows it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.noise import process_interval, times
from gpubench.schema.epoch_times import FEWEST_TIMES
from gpubench.schema.row import Row

Kind = Literal["half", "interval", "unknown", "quartiles"]
WIDE_PCT = 25.0
"""From this half width on the two sides of an interval are told apart."""
UNKNOWN_PCT = 100.0
"""Beyond this half width an interval's ends tell nobody anything: of two processes it may end at days."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The spread of one row's epoch time, in seconds."""

    kind: Kind
    """`half`: half the width of the 95 % interval, or half the interquartile range; `interval`: its ends, where ± would
    hide that it reaches further up than down; `unknown`: its ends, where half of it is wider than the epoch time;
    `quartiles`: where the interquartile range is wider than the epoch time, of which ± would make a time below 0, or
    nearly."""
    repeats: bool
    """Over processes; else over the measured epochs of one process."""
    low: float
    """The lower end; of `half`, minus it."""
    high: float
    """The upper end; of `half`, it."""


def spread(row: Row) -> Spread | None:
    """The spread of a table's row, repeats merged; None where it is not known, or rests on fewer than
    three epochs of one process.
    """
    time, wide = row.epoch_time_s, row.epoch_time_iqr_s
    found = row.epoch_times_s
    repeats = row.repeats > 1
    if (known := process_interval(row)) is not None:
        if known.half_pct >= WIDE_PCT:
            kind: Kind = "unknown" if known.half_pct > UNKNOWN_PCT else "interval"
            return Spread(kind=kind, repeats=repeats, low=known.low, high=known.high)
        half = (known.high - known.low) / 2
        return Spread(kind="half", repeats=repeats, low=-half, high=half)
    if time is None or wide is None:
        return None
    if times(row) < FEWEST_TIMES:
        return None
    if wide > time and len(found) >= FEWEST_TIMES:
        low, _, high = statistics.quantiles(found, n=4, method="inclusive")
        return Spread(kind="quartiles", repeats=repeats, low=low, high=high)
    return Spread(kind="half", repeats=repeats, low=-wide / 2, high=wide / 2)


def sentences(rows: Sequence[Row]) -> list[str]:
    """What ± and the brackets after an epoch time mean, each once; empty where no row has a spread."""
    found = [one for row in rows if (one := spread(row))]
    said = []
    half, over = "± is half the 95 % interval", "over processes, one for each of n"
    if any(one.kind == "half" and one.repeats for one in found):
        said.append(f"{half} {over}.")
    if any(one.kind == "interval" for one in found):
        said.append(f"In parentheses: the 95 % interval {over}, where it is wide.")
    if any(one.kind == "unknown" for one in found):
        said.append(
            f"± >{UNKNOWN_PCT:g} %: half the 95 % interval {over}, is longer than the time itself; "
            "further rounds narrow it."
        )
    inside = [one for one in found if not one.repeats]
    where = "over the measured epochs of one process"
    if inside and len(inside) < len(found):
        where = f"{where}, where n is 1"
    if any(one.kind == "half" for one in inside):
        said.append(f"± is half the interquartile range {where}.")
    if any(one.kind == "quartiles" for one in inside):
        said.append(
            f"In parentheses: the quartiles {where}, where they lie further apart than the median is long."
        )
    return said
