"""Columns of the GPUs: memory, utilisation, clocks. Pure."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from gpubench.node.watch import metrics
from gpubench.node.watch.nvml_calls import THROTTLE_REASONS
from gpubench.schema.codes import REASONS, SOURCES, format_reason
from gpubench.schema.missing import Unmeasured
from gpubench.schema.samples import Series
from gpubench.schema.watched import SourcedFigure, WatchedTrial

SETTLE_IN_S = 0.2
"""What NVML tells stands for the time *before* it is read: at least 1/6 s of it. So the peak of a window leaves out
what was read this soon after its start. A mean does not: it weighs each reading by the time since the one before it, as
far as that lies in the window, and so is of the whole window, the wait for the first batch included. (Products with a
period of one second leak up to a second of the epoch before; that is the same work, bar the pause between two epochs.)
"""
POLLED_GAP_S = 1.5
"""Longest stretch without a polled reading that still counts as covered."""
MIN_BUFFERED_S = 0.5
"""The driver's samples stand for 0.2 s each: of less than this too few would be left."""


def _make_figure_function(column: metrics.GpuColumn) -> Callable[[WatchedTrial], SourcedFigure]:
    """From the driver's own samples where it takes some, so that nothing between two polls is missed."""

    def make(watched: WatchedTrial) -> SourcedFigure:
        buffer = metrics.BUFFER.get(column.metric)
        if buffer is None:
            return _compute_polled_figure(column, watched)
        try:
            return _compute_buffered_figure(column, buffer, watched)
        except Unmeasured as reason:
            polled = _compute_polled_figure(column, watched)
            return replace(polled, source=f"{polled.source}, polled ({reason})")

    return make


def _compute_polled_figure(column: metrics.GpuColumn, watched: WatchedTrial) -> SourcedFigure:
    why_none = format_reason("short-window", f"{watched.measured_s:.2f}")
    used = _list_gpu_series(watched, column.metric)
    return _compute_figure_of_readings(
        column, watched, used, POLLED_GAP_S, why_none, column.source, column.period_s
    )


def _compute_buffered_figure(
    column: metrics.GpuColumn, buffer: metrics.DriverBuffer, watched: WatchedTrial
) -> SourcedFigure:
    if watched.measured_s < MIN_BUFFERED_S:
        raise Unmeasured(format_reason("short-buffer", f"{watched.measured_s:.2f}"))
    used = _list_gpu_series(watched, buffer.name)
    if empty := [series for series in used if not series.values]:
        raise Unmeasured(empty[0].reason or REASONS["no-buffer"])
    source = f"{column.source}, the driver's buffer"
    figure = _compute_figure_of_readings(
        column, watched, used, buffer.max_gap_s, REASONS["buffer-empty"], source, 0.2
    )
    if column.over_time is not fmean:
        for series in used:  # the peak of a part of the windows is none
            _average_over_windows(series, watched, buffer.max_gap_s)
    return figure


def _list_gpu_series(watched: WatchedTrial, metric: str) -> list[Series]:
    """A metric's series of each of the trial's GPUs."""
    return [watched.samples.find_series(metric, gpu) for gpu in watched.used_gpus]


def _compute_figure_of_readings(
    column: metrics.GpuColumn,
    watched: WatchedTrial,
    used: Sequence[Series],
    max_gap_s: float,
    why_none: str,
    source: str,
    period_s: float,
) -> SourcedFigure:
    """The column's figure by its readings in the measured windows. Raises Unmeasured where a GPU has none there."""
    by_gpu: list[float] = []
    samples = 0
    for series in used:
        # The driver's first readings speak of what was before a window, too.
        values = [v for w in watched.measured for v in series.between(w.t0 + SETTLE_IN_S, w.t1)]
        if not values:
            raise Unmeasured(series.reason or why_none)
        samples += len(values)
        if column.over_time is fmean:
            by_gpu.append(_average_over_windows(series, watched, max_gap_s))
            continue
        if column.metric in metrics.BUFFER:
            # No peak of a share of time is below its mean, which holds the readings of a window's first moments, too:
            # they may be the only ones above 0.
            with contextlib.suppress(Unmeasured):
                values.append(_average_over_windows(series, watched, max_gap_s))
        by_gpu.append(column.over_time(values))
    return SourcedFigure(
        column.over_gpus(by_gpu), source, period_s, samples, sum(series.gaps for series in used)
    )


def _average_over_windows(series: Series, watched: WatchedTrial, max_gap_s: float) -> float:
    """Mean over the time of all measured windows.

    Raises Unmeasured where a part of a window that is longer than `max_gap_s` has no reading.
    """
    return sum(series.integrate(w.t0, w.t1, max_gap_s) for w in watched.measured) / watched.measured_s


def _compute_throttled_share(watched: WatchedTrial) -> SourcedFigure:
    masks, gaps = _list_throttle_masks(watched)
    share = 100 * sum(bool(mask & metrics.THROTTLED) for mask in masks) / len(masks)
    return SourcedFigure(share, SOURCES["throttle"], metrics.RATES_S, len(masks), gaps)


def _find_throttle_reasons(watched: WatchedTrial) -> SourcedFigure:
    masks, gaps = _list_throttle_masks(watched)
    counts = Counter(name for mask in masks for name, bit in THROTTLE_REASONS.items() if mask & bit)
    if not counts:
        raise Unmeasured(REASONS["not-lowered"])
    names = "+".join(name for name, _ in counts.most_common())
    return SourcedFigure(names, SOURCES["throttle"], metrics.RATES_S, len(masks), gaps)


def _list_throttle_masks(watched: WatchedTrial) -> tuple[list[int], int]:
    used = _list_gpu_series(watched, metrics.THROTTLE)
    masks: list[int] = []
    for series in used:
        gpu_masks = [int(v) for w in watched.measured for v in series.between(w.t0, w.t1)]
        if not gpu_masks:
            raise Unmeasured(series.reason or REASONS["no-sample"])
        masks += gpu_masks
    return masks, sum(series.gaps for series in used)


# ---------------------------------------------------------------- memory


def _find_peak_memory(watched: WatchedTrial) -> SourcedFigure:
    """The peak over the training, warm-up included, on the fullest of its GPUs.

    Evaluation is left out: it runs the plain network on one device and has nothing to do with the configuration.
    """
    used = dict(zip(watched.used_gpus, _list_gpu_series(watched, metrics.PROCESS_MEMORY), strict=True))
    values = {gpu: series.between(0, watched.trained_until) for gpu, series in used.items()}
    peaks = [_find_peak_mib(polled, gpu, watched) for gpu, polled in values.items() if polled]
    if not peaks:
        return _compute_device_memory_growth(watched)
    samples, gaps = sum(map(len, values.values())), sum(series.gaps for series in used.values())
    return SourcedFigure(max(peaks), SOURCES["nvml-memory"], metrics.TOTALS_S, samples, gaps)


def _find_memory_source(watched: WatchedTrial) -> SourcedFigure:
    memory = _find_peak_memory(watched)
    is_of_processes = memory.source == SOURCES["nvml-memory"]
    return replace(memory, value="nvml-process" if is_of_processes else "nvml-device-delta")


def _find_peak_mib(polled: Sequence[float], gpu: str, watched: WatchedTrial) -> float:
    """The highest that was polled, or what must have lain between two polls."""
    return max(*polled, polled[-1] + watched.passed_mib.get(gpu, 0.0))


def _compute_device_memory_growth(watched: WatchedTrial) -> SourcedFigure:
    reasons = [watched.samples.find_series(metrics.PROCESS_MEMORY, gpu).reason for gpu in watched.gpus]
    why = next(filter(None, reasons), "no sample was taken")
    if watched.shared:
        raise Unmeasured(f"{why}; device memory grew by other jobs' too, on GPU {'+'.join(watched.shared)}")
    grown: list[float] = []
    samples = gaps = 0
    for gpu in watched.gpus:
        used = watched.samples.find_series(metrics.DEVICE_MEMORY.name, gpu)
        training = used.between(0, watched.trained_until)
        if gpu not in watched.baseline_mib or not training:
            raise Unmeasured(f"{why}; device memory: {used.reason or 'not read before the trial'}")
        grown.append(_find_peak_mib(training, gpu, watched) - watched.baseline_mib[gpu])
        samples += len(training)
        gaps += used.gaps
    if max(grown) <= 0:
        raise Unmeasured(f"{why}; device memory did not grow during the trial")
    source = f"NVML, growth of device memory since before the trial ({why})"
    return SourcedFigure(max(grown), source, metrics.RATES_S, samples, gaps)


OF_WHOLE_GPUS = (*(column.name for column in metrics.GPU_COLUMNS), "throttled_pct", "throttle_reasons")
"""Columns that can't be told apart by job."""

COLUMNS: dict[str, Callable[[WatchedTrial], SourcedFigure]] = {
    "gpu_mem_mib": _find_peak_memory,
    "gpu_mem_source": _find_memory_source,
    **{column.name: _make_figure_function(column) for column in metrics.GPU_COLUMNS},
    "throttled_pct": _compute_throttled_share,
    "throttle_reasons": _find_throttle_reasons,
}
