"""The doubts of a row, and which of them concern its times. Pure."""

from __future__ import annotations

from gpubench.schema.row import Row

OF_TIME = frozenset(
    {
        "other-load",
        "stranger",
        "spread",
        "throttled",
        "low-clock",
        "short-warmup",
        "cpu-starved",
        "short-epochs",
        "gaps",
    }
)
"""Doubts that concern a row's epoch time."""
OF_OTHERS = frozenset({"other-load", "stranger"})
"""Of those: somebody else's work slowed every epoch down, so how far epochs spread does not tell by how much."""


def codes(row: Row) -> list[str]:
    """The codes of a row's doubts."""
    return [code for code in (row.doubts or "").split("+") if code]


def beside_others(row: Row) -> bool:
    """Whether somebody else's work was there while a row was measured; of repeats, while half of them or more were."""
    runs = row.runs or (row,)
    return 2 * sum(bool(OF_OTHERS & set(codes(run))) for run in runs) >= len(runs)
