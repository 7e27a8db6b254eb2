"""One trial over its life, as a picture shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class TracePoint:
    """What was read at about one moment: the mean of all GPUs, the least and the most of one."""

    seconds: float
    """Since the launch."""
    mean: float
    low: float
    high: float
    piece: int
    """Points of one piece follow each other without a gap in the readings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialPhase:
    """A part of a trial's life, in seconds since the launch."""

    name: str
    """`warm-up`, `window`, `epoch 3`."""
    begin: float
    end: float
    is_measured: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialTrace:
    """The readings of one attempt, thinned."""

    row: int
    """Of the summary, that the attempt belongs to."""
    trial_id: str
    panels: Mapping[str, tuple[TracePoint, ...]]
    """Column of trials.csv -> its readings: gpu_util_pct, cpu_util_pct, gpu_mem_mib, power_w."""
    phases: tuple[TrialPhase, ...]
    figures: Mapping[str, float | None]
    """The same columns of the record: what was measured."""
