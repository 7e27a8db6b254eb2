"""From samples to columns: cuts what was read to the measured windows. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpubench.monitor import energy_figures, gpu_figures, host_figures
from gpubench.monitor.energy_figures import energy_j_by_epoch
from gpubench.monitor.host_figures import cpu_s_by_epoch
from gpubench.monitor.missing import Unmeasured
from gpubench.monitor.watched import Figure, Watched, Window

__all__ = ["COLUMNS", "Figures", "Watched", "Window", "figures"]

COLUMNS: dict[str, Callable[[Watched], Figure]] = {
    **gpu_figures.COLUMNS,
    **energy_figures.COLUMNS,
    **host_figures.COLUMNS,
}
"""Column of `result.MEASURED` -> what makes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What the watcher has to say about a trial."""

    result: dict[str, Any] = field(default_factory=dict)
    """Column of `result.MEASURED` -> value."""
    missing: dict[str, str] = field(default_factory=dict)
    """Column -> why it has none."""
    provenance: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Column -> source, period_s, samples, gaps."""
    cpu_s_by_epoch: dict[int, float | None] = field(default_factory=dict)
    energy_j_by_epoch: dict[int, float | None] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)
    """Processes of others on the trial's GPUs, one sentence each."""
    desktops: list[str] = field(default_factory=list)
    """Graphics processes on them, likewise."""
    max_sm_clock_mhz: float | None = None
    """The highest that the trial's GPUs allow; None: not told."""


def figures(watched: Watched) -> Figures:
    """Every column that is watched from outside: its value, or why it has none."""
    made = Figures(cpu_s_by_epoch=cpu_s_by_epoch(watched), energy_j_by_epoch=energy_j_by_epoch(watched))
    for column, make in COLUMNS.items():
        gpus = 1 if column in host_figures.COLUMNS else len(watched.gpus)
        try:
            figure = make(watched)
        except Unmeasured as reason:
            made.result[column] = None
            made.missing[column] = str(reason)
            continue
        made.result[column] = figure.value
        made.provenance[column] = {
            "source": figure.source,
            "period_s": figure.period_s,
            "samples": figure.samples,
            "gaps": figure.gaps + watched.missed(figure.period_s) * gpus,
        }
    return made
