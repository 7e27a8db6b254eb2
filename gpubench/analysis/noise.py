"""How far an epoch time may lie from the one that it stands for."""

from __future__ import annotations

from gpubench.analysis.varied import Row

FEWEST_EPOCHS = 3
"""Measured epochs from which their interquartile range is a spread."""


def half_width(row: Row) -> float | None:
    """Half the width in s within which a row's epoch time lies, by its own epochs.

    None where that is not known: fewer than FEWEST_EPOCHS measured epochs, or no interquartile range.
    """
    spread: float | None = row.get("epoch_time_iqr_s")
    if spread is None or (row.get("epochs_measured") or 0) < FEWEST_EPOCHS:
        return None
    return spread / 2
