"""A row's epoch time over its processes: its interval, and how far they differ by themselves and inside. Pure."""

from __future__ import annotations

import math
import statistics

from gpubench.analysis.certainty.components import components
from gpubench.analysis.noise import process_interval
from gpubench.schema.row import TableRow, replace


def with_processes(row: TableRow) -> TableRow:
    """The row with what its processes tell together: ends of its interval in s, variation in per cent.

    As it is where it is of one process.
    """
    known = process_interval(row)
    if known is None or known.borrowed:
        return row
    runs = [run for run in row.runs if run.epoch_time_s is not None]
    errors = [run.step_error_pct / 100 for run in runs if run.step_error_pct is not None]
    within = math.sqrt(statistics.fmean(error**2 for error in errors)) if errors else None
    apart = components(row.epoch_times_s, errors) if len(errors) == len(row.epoch_times_s) else None
    return replace(
        row,
        epoch_time_low_s=known.low,
        epoch_time_high_s=known.high,
        between_pct=None if apart is None else 100 * apart.between_sd,
        within_pct=None if within is None else 100 * within,
    )
