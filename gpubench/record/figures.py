"""From samples to columns: cuts what was read to the measured windows. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpubench.record import energy_figures, gpu_figures, host_figures, meter_figures
from gpubench.record.energy_figures import compute_joules_by_epoch
from gpubench.record.host_figures import compute_crowding_pct, compute_tree_cpu_s_by_epoch
from gpubench.schema.codes import REASONS
from gpubench.schema.missing import Unmeasured
from gpubench.schema.watched import SourcedFigure, WatchedTrial

COLUMNS: dict[str, Callable[[WatchedTrial], SourcedFigure]] = {
    **gpu_figures.COLUMNS,
    **energy_figures.COLUMNS,
    **host_figures.COLUMNS,
    **meter_figures.COLUMNS,
}
"""Column -> what makes it."""
OF_WHOLE_GPUS = frozenset({*gpu_figures.OF_WHOLE_GPUS, "power_w"})
"""Columns that say, where jobs share a GPU, that they are of all of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedFigures:
    """What was seen of a trial from outside, as columns. Names GPUs by their UUIDs."""

    result: dict[str, Any] = field(default_factory=dict)
    """Column of `columns.MEASURED` -> value."""
    missing: dict[str, str] = field(default_factory=dict)
    """Column -> why it has none."""
    provenance: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Column -> source, period_s, samples, gaps."""
    cpu_s_by_epoch: dict[int, float | None] = field(default_factory=dict)
    energy_j_by_epoch: dict[int, float | None] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)
    """Processes of others on the trial's GPUs, one sentence each."""
    desktops: list[str] = field(default_factory=list)
    """Graphics processes on the trial's GPUs, one sentence each."""
    max_sm_clock_mhz: float | None = None
    """The highest that the trial's GPUs allow; None: not told."""

    crowding_pct: float | None = None
    """How much of the CPUs that the trial may use all work on the host takes: `host_figures.compute_crowding_pct`."""

    # Of whole GPUs, whoever used them.
    joules_by_gpu: dict[str, dict[str, float]] = field(default_factory=dict)
    """`energy_j`, `energy_sampled_j` -> GPU -> joules of a measured epoch, which it is the sum of; empty: not told."""
    joules_by_epoch: dict[int, dict[str, float]] = field(default_factory=dict)
    """Energy of each epoch by GPU, in J."""
    whole_provenance: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Column -> what `provenance` would hold, had the trial not shared its GPUs."""


def compute_watched_figures(watched: WatchedTrial) -> WatchedFigures:
    """Every column that is watched from outside: its value, or why it has none."""
    joules = compute_joules_by_epoch(watched)
    seen = WatchedFigures(
        crowding_pct=compute_crowding_pct(watched),
        cpu_s_by_epoch=compute_tree_cpu_s_by_epoch(watched),
        energy_j_by_epoch={
            epoch: sum(by_gpu.values()) if by_gpu and not watched.shared else None
            for epoch, by_gpu in joules.items()
        },
        joules_by_epoch={epoch: watched.key_by_uuid(by_gpu) for epoch, by_gpu in joules.items()},
        strangers=list(watched.strangers),
        desktops=list(watched.desktops),
        max_sm_clock_mhz=watched.max_sm_clock_mhz,
    )
    for column, make in COLUMNS.items():
        try:
            figure = make(watched)
        except Unmeasured as reason:
            seen.result[column] = None
            seen.missing[column] = str(reason)
            continue
        if figure.by_gpu:
            seen.joules_by_gpu[column] = watched.key_by_uuid(figure.by_gpu)
        # Readings that watchers came too late for are gaps, too: of each node its GPUs', or its host's. No meter's
        # reading is lost by that.
        late = 0
        if column not in meter_figures.COLUMNS:
            late = sum(
                part.count_missed_slots(figure.period_s)
                * (1 if column in host_figures.COLUMNS else len(part.gpus))
                for part in watched.hosts
            )
        facts = {
            "source": figure.source,
            "period_s": figure.period_s,
            "samples": figure.samples,
            "gaps": figure.gaps + late,
        }
        if watched.shared and column in energy_figures.OF_ONE_JOB:
            seen.whole_provenance[column] = facts
            seen.result[column] = None
            seen.missing[column] = REASONS["shared-gpu-energy"]
            continue
        if watched.shared and column in OF_WHOLE_GPUS:
            facts["source"] = f"{figure.source}; {_describe_shared_gpus(watched)}"
        seen.result[column] = figure.value
        seen.provenance[column] = facts
    return seen


def _describe_shared_gpus(watched: WatchedTrial) -> str:
    if len(watched.shared) < len(watched.gpus):
        return f"of the whole GPUs, of which other jobs shared {'+'.join(watched.shared)}"
    return f"of the whole GPU{'s' if len(watched.gpus) > 1 else ''}, which other jobs shared"
