"""The doubts of a row, and what follows from them. Pure."""

from __future__ import annotations

from gpubench.schema.doubts import doubt_of
from gpubench.schema.row import Row


def codes(row: Row) -> list[str]:
    """The codes of a row's doubts."""
    return [code for code in row.doubts.split("+") if code] if row.doubts else []


def serious(row: Row) -> list[str]:
    """Those of a row's doubts that weaken what is concluded from it; the others only say what the row is."""
    return [code for code in codes(row) if doubt_of(code).serious]


def of_time(row: Row) -> bool:
    """Whether a row has a doubt about its epoch time."""
    return any("time" in doubt_of(code).about for code in codes(row))


def beside_others(row: Row) -> bool:
    """Whether somebody else's work was there while a row was measured; of repeats, while half of them or more were."""
    runs = row.runs or (row,)
    return 2 * sum(any(doubt_of(code).of_others for code in codes(run)) for run in runs) >= len(runs)
