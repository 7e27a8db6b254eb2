"""A row's epoch time over its processes: its interval, and how far they differ by themselves and inside. Pure."""

from __future__ import annotations

import math
import statistics
from typing import Any

from gpubench.analysis import over_processes
from gpubench.analysis.certainty.components import components
from gpubench.analysis.certainty.interval import Interval, interval
from gpubench.analysis.growth import gpu_mem, memory_growth_pct
from gpubench.analysis.noise import process_interval
from gpubench.analysis.over_processes import growth_pct
from gpubench.schema.row import TableRow, replace


def with_processes(row: TableRow) -> TableRow:
    """The row with what its processes tell together: ends of its interval in s, variation in per cent.

    As it is where it is of one process.
    """
    known = process_interval(row)
    if known is None:
        return row
    row = replace(row, **_ratios(row))
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


def _ratios(row: TableRow) -> dict[str, Any]:
    """Columns of ratios to other rows, with both ends of their intervals."""
    found: dict[str, Any] = {}
    before, alone = row.before, row.baseline
    if before is not None:
        time = over_processes.time_ratio(row, before)
        if time is not None and row.epoch_time_growth_pct is not None:
            _, low, high = growth_pct(time)
            found |= {"epoch_time_growth_low_pct": low, "epoch_time_growth_high_pct": high}
        cost, memory = over_processes.steady_ratio(row, before), memory_growth_pct(before, row)
        if cost is not None and memory is not None and gpu_mem(row):
            grown, low, high = growth_pct(cost.times(1 + memory / 100))
            found |= {"cost_growth_pct": grown, "cost_growth_low_pct": low, "cost_growth_high_pct": high}
    if alone is not None and row.slowdown is not None:
        found |= _ends("slowdown", over_processes.slowdown(row, alone))
    whole = [run for run in row.runs if run.has_all_figures] or row.runs
    joules = sorted(run.energy_j for run in whole if run.energy_j)
    energy = interval(joules)
    if energy is not None and row.images_per_epoch:
        found["images_per_joule_low"] = row.images_per_epoch / energy.high
        found["images_per_joule_high"] = row.images_per_epoch / energy.low
    if row.verdict is not None and row.verdict.over_processes and row.verdict.gain_range:
        found["overlap_gain_low"], found["overlap_gain_high"] = row.verdict.gain_range
    # Of two processes that differ much nothing is known upwards: that is no figure.
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _ends(name: str, ratio: Interval | None) -> dict[str, float]:
    return {} if ratio is None else {f"{name}_low": ratio.low, f"{name}_high": ratio.high}
