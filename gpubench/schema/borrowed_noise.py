"""The machine's own noise, as it stands in for further processes of a row that has only one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class BorrowedNoise:
    """How far processes of other configurations differed, that are limited by what this row is limited by."""

    sd: float
    """Standard deviation between processes, on the log scale: never less than what the row's own steps leave open."""
    freedom: float
    day: str
    """On which it was measured: `2026-11-22`."""
    configuration: str
    """By which: `resnet50, batch size 256, synthetic`."""
