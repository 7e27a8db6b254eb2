"""How far apart the times behind one epoch time lie, and how a table shows it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.noise import times
from gpubench.schema.epoch_times import FEWEST_TIMES
from gpubench.schema.row import Row

Kind = Literal["half", "both", "quartiles"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The spread of one row's epoch time, in seconds."""

    kind: Kind
    """`half`: half the interquartile range; `both`: the two times that there are; `quartiles`: where the
    interquartile range is wider than the epoch time, of which ± would make a time below 0, or nearly."""
    repeats: bool
    """Over repeats, each a process of its own; else over the measured epochs of one process."""
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
    if time is None or wide is None:
        return None
    if repeats and len(found) == 2:
        return Spread(kind="both", repeats=True, low=min(found), high=max(found))
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
    if half := [one for one in found if one.kind == "half"]:
        said.append(f"± is half the interquartile range {_over(half)}.")
    if any(one.kind == "both" for one in found):
        said.append(
            "In parentheses: both epoch times, where two repeats have one; their mean stands before them."
        )
    if wide := [one for one in found if one.kind == "quartiles"]:
        said.append(
            f"In parentheses: the quartiles {_over(wide)}, where they lie further apart than the median is long."
        )
    return said


def _over(some: Sequence[Spread]) -> str:
    names = {
        True: "over repeats, each a process of its own",
        False: "over the measured epochs of one process",
    }
    kinds = [names[repeats] for repeats in (True, False) if any(one.repeats is repeats for one in some)]
    return " or, where n is 1, ".join(kinds)
