"""Columns of meters outside of the GPU: their power and energy in the measured windows. Pure.

RAPL's readings are on the host's clock. Those of other meters come late, by nobody knows how much: they are aligned by
the edges of the load, which are known from the power of the trial's GPUs, the CPUs' busy time, or the trial's windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpubench.node.watch import metrics
from gpubench.record.energy_figures import SHORTEST_S, choose_power_series
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.missing import Unmeasured
from gpubench.schema.watched import SourcedFigure, WatchedMeter, WatchedTrial
from gpubench.stats.alignment import Alignment, StepCurve, align_meter

MOST_OFF_PCT = 10
"""A figure that the delay's uncertainty changes by more is none."""
_FEWEST = 8
"""Readings, from which on a delay is looked for."""
_MAX_GAP_STEPS, _MAX_GAP_S = 2.5, 1.0
"""The longest stretch without a reading that still counts as covered: so many of the usual ones, or so many seconds."""


def _compute_energy(watched: WatchedTrial, meter: WatchedMeter) -> SourcedFigure:
    """Joules of all measured windows. Raises Unmeasured."""
    measured, series = watched.measured, watched.samples.find_series(meter.metric)
    if meter.is_late and watched.measured_s < SHORTEST_S:  # what it averages over may be as long
        raise Unmeasured(format_reason("short-energy", f"{watched.measured_s:.2f}", f"{SHORTEST_S:g}"))
    if len(series.times) < _FEWEST:
        raise Unmeasured(series.reason or format_reason("few-readings", len(series.times)))
    readings = StepCurve(np.array(series.times), np.array(series.values))
    max_gap_s = max(_MAX_GAP_STEPS * readings.step_s, _MAX_GAP_S)
    source, late_s, alignment = meter.name, 0.0, None
    if meter.is_late:
        alignment, shown_by = _align(readings, watched)
        late_s = alignment.delay_s
        source += f", {late_s:.2f} ± {alignment.error_s:.2f} s late by the edges of {shown_by}"
    windows = [replace(w, t0=w.t0 + late_s, t1=w.t1 + late_s) for w in measured]
    joules = sum(series.integrate(w.t0, w.t1, max_gap_s) for w in windows)  # covered, or raises
    if alignment is not None:
        joules = _sum_aligned_joules(watched, alignment)
    if joules <= 0:
        raise Unmeasured(REASONS["meter-zero"])
    inside = sum(len(series.between(w.t0, w.t1)) for w in windows)
    return SourcedFigure(joules, source, meter.period_s, inside, series.gaps)


def _sum_aligned_joules(watched: WatchedTrial, alignment: Alignment) -> float:
    """Raises Unmeasured where they depend on the delay more than it is known."""
    joules, earlier, later = (
        sum(alignment.compute_joules(w.t0 + off_s, w.t1 + off_s) for w in watched.measured)
        for off_s in (0.0, -alignment.error_s, alignment.error_s)
    )
    off_pct = 100 * max(abs(earlier - joules), abs(later - joules)) / max(abs(joules), 1e-9)
    if off_pct > MOST_OFF_PCT:
        raise Unmeasured(format_reason("meter-rough", f"{alignment.error_s:.2f}", f"{off_pct:.0f}"))
    return joules


def _align(readings: StepCurve, watched: WatchedTrial) -> tuple[Alignment, str]:
    """The alignment by what explains the meter best, and its name. Raises Unmeasured where nothing does."""
    fits: list[tuple[Alignment, str]] = []
    for name, make_reference in _REFERENCES.items():
        reference = make_reference(watched)
        if reference is not None and (fit := align_meter(readings, reference)):
            fits.append((fit, name))
    if not fits:
        raise Unmeasured(REASONS["meter-apart"])
    return max(fits, key=lambda fit: fit[0].share)


def _make_gpu_reference(watched: WatchedTrial) -> StepCurve | None:
    """The power of the trial's GPUs together, where it was read all the time."""
    powers = []
    for gpu, (name, max_gap_s) in choose_power_series(watched).items():
        series = watched.samples.find_series(name, gpu)
        try:
            for window in watched.measured:
                series.integrate(window.t0, window.t1, max_gap_s)
        except Unmeasured:
            return None
        powers.append(StepCurve(np.array(series.times), np.array(series.values)))
    if not powers:
        return None
    times = np.arange(max(p.times[0] for p in powers), min(p.times[-1] for p in powers), metrics.RATES_S)
    watts = np.sum([np.diff(power.integrate_to(times)) / metrics.RATES_S for power in powers], axis=0)
    return StepCurve(times, np.concatenate((watts[:1], watts)))


def _make_cpu_reference(watched: WatchedTrial) -> StepCurve | None:
    """How many CPUs were busy, where that was read."""
    busy = watched.samples.find_series(metrics.CPU_LOAD)
    if len(busy.times) < _FEWEST:
        return None
    rates = np.diff(busy.values) / np.maximum(np.diff(busy.times), 1e-9)
    return StepCurve(np.array(busy.times), np.concatenate((rates[:1], rates)))


def _make_window_reference(watched: WatchedTrial) -> StepCurve:
    """1 from the begin of the first window to the end of the last one, else 0."""
    began, ended = min(w.t0 for w in watched.windows), max(w.t1 for w in watched.windows)
    return StepCurve(np.array([began - 1.0, began, ended, ended + 1.0]), np.array([0.0, 0.0, 1.0, 0.0]))


_REFERENCES: dict[str, Callable[[WatchedTrial], StepCurve | None]] = {
    "the GPUs' power": _make_gpu_reference,
    "the CPUs' load": _make_cpu_reference,
    "the trial's windows": _make_window_reference,
}
"""What has the load's edges on the host's clock."""


def _find_meter(watched: WatchedTrial, kind: str) -> WatchedMeter:
    for meter in watched.meters:
        if meter.metric == f"{kind}_w":
            return meter
    raise Unmeasured(REASONS["no-meter"])


def _make_power_column(kind: str) -> Callable[[WatchedTrial], SourcedFigure]:
    def compute_mean_power(watched: WatchedTrial) -> SourcedFigure:
        energy = _compute_energy(watched, _find_meter(watched, kind))
        return replace(energy, value=float(energy.value) / watched.measured_s)

    return compute_mean_power


def _make_energy_column(kind: str) -> Callable[[WatchedTrial], SourcedFigure]:
    def compute_energy_per_epoch(watched: WatchedTrial) -> SourcedFigure:
        meter = _find_meter(watched, kind)
        if meter.is_shared:
            raise Unmeasured(format_reason("shared-meter", f"{kind}_power_w"))
        energy = _compute_energy(watched, meter)
        return replace(energy, value=float(energy.value) / watched.measured_epochs)

    return compute_energy_per_epoch


def _find_meter_name(watched: WatchedTrial) -> SourcedFigure:
    meter = _find_meter(watched, "meter")
    series = watched.samples.find_series(meter.metric)
    return SourcedFigure(meter.name, meter.name, meter.period_s, len(series.times), series.gaps)


COLUMNS: dict[str, Callable[[WatchedTrial], SourcedFigure]] = {
    "rapl_power_w": _make_power_column("rapl"),
    "rapl_energy_j": _make_energy_column("rapl"),
    "meter_power_w": _make_power_column("meter"),
    "meter_energy_j": _make_energy_column("meter"),
    "meter_source": _find_meter_name,
}
