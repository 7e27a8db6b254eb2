"""From samples to columns: cuts what was read to the measured windows. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any

from gpubench.monitor import metrics
from gpubench.monitor.missing import Unmeasured
from gpubench.monitor.samples import Samples

SETTLE_IN_S = 0.2
"""NVML's utilisation and power stand for the time *before* they are read: at least 1/6 s of it. A sample read
this soon after a window's start speaks of what came before the window, so it is left out. (Products with a
period of one second leak up to a second of the epoch before; that is the same work, bar the pause between two
epochs.)"""
_MAX_GAP_S = 2.5 * metrics.TOTALS_S
_CPU_SOURCE = "/proc/stat over the trial's CPUs"
_TREE_SOURCE = "/proc/PID/stat over the process tree, reaped children included"


@dataclass(frozen=True, slots=True)
class Window:
    """An epoch, or the steps measured instead of one."""

    t0: float
    """Seconds on the host's monotonic clock, as the child read it."""
    t1: float
    epoch: int
    measured: bool
    """False: warm-up, left out of statistics."""


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
    strangers: list[str] = field(default_factory=list)
    """Processes of others on the trial's GPUs, one sentence each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """All that figures are made of."""

    samples: Samples
    windows: Sequence[Window]
    gpus: Sequence[str]
    """The trial's GPUs, as the samples name them."""
    baseline_mib: Mapping[str, float]
    """Device memory in use before the trial."""
    cpus: int
    """CPUs' worth of time that the trial may use."""
    cpu_source: str = _CPU_SOURCE
    skipped: Mapping[float, int] = field(default_factory=dict)
    """Period -> slots that the watcher came too late for."""
    trained_until: float = math.inf
    """When training had ended, on the monotonic clock; what came after it was evaluation."""

    @property
    def measured(self) -> list[Window]:
        """The windows that count. Raises Unmeasured where there are none."""
        windows = [window for window in self.windows if window.measured]
        if not windows:
            raise Unmeasured("the trial ended before a measured window had")
        return windows


@dataclass(frozen=True, slots=True)
class _Figure:
    value: float | str
    source: str
    period_s: float | None
    samples: int
    gaps: int = 0


def figures(watched: Watched, strangers: Sequence[str] = ()) -> Figures:
    """Every column that is watched from outside: its value, or why it has none."""
    made = Figures(cpu_s_by_epoch=_cpu_s_by_epoch(watched), strangers=list(strangers))
    for column, make in _columns().items():
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
            "gaps": figure.gaps + (watched.skipped.get(figure.period_s, 0) if figure.period_s else 0),
        }
    for column in metrics.NOT_YET:
        made.result[column] = None
        made.missing[column] = "this version does not measure it"
    return made


def _columns() -> dict[str, Callable[[Watched], _Figure]]:
    return {
        "gpu_mem_mib": _gpu_memory,
        "gpu_mem_source": _gpu_memory_source,
        **{column.name: _gpu(column) for column in metrics.GPU_COLUMNS},
        "cpu_util_pct": _cpu_util,
        "cpu_util_max_pct": _cpu_util_max,
        "cpu_util_trial_pct": _cpu_util_trial,
        "cpu_s_per_epoch": _cpu_s_per_epoch,
        "host_mem_mib": _host_memory,
    }


# ---------------------------------------------------------------- GPU


def _gpu(column: metrics.GpuColumn) -> Callable[[Watched], _Figure]:
    def make(watched: Watched) -> _Figure:
        by_gpu: list[float] = []
        samples = gaps = 0
        for gpu in _gpus(watched):
            series = watched.samples.series(column.metric, gpu)
            values = [v for w in watched.measured for v in _settled(series.between, w)]
            if not values:
                length = sum(w.t1 - w.t0 for w in watched.measured)
                short = f"{length:.2f} s of measured windows is too short for the driver's averages"
                raise Unmeasured(series.reason or short)
            by_gpu.append(column.over_time(values))
            samples += len(values)
            gaps += series.gaps
        return _Figure(column.over_gpus(by_gpu), column.source, metrics.RATES_S, samples, gaps)

    return make


def _settled(between: Callable[[float, float], list[float]], window: Window) -> list[float]:
    """Readings of the window alone: the driver's first ones average over what was before it."""
    return between(window.t0 + SETTLE_IN_S, window.t1)


def _gpu_memory(watched: Watched) -> _Figure:
    return _peak_memory(watched)[1]


def _gpu_memory_source(watched: Watched) -> _Figure:
    name, memory = _peak_memory(watched)
    return replace(memory, value=name)


def _peak_memory(watched: Watched) -> tuple[str, _Figure]:
    """The peak over the training, warm-up included, on the fullest of its GPUs, and which of two ways it was had.

    Evaluation is left out: it runs the plain network on one device and has nothing to do with the configuration.
    """
    series = [watched.samples.series(metrics.PROCESS_MEMORY, gpu) for gpu in _gpus(watched)]
    values = [value for one in series for value in one.between(0, watched.trained_until)]
    if values:
        gaps = sum(one.gaps for one in series)
        source = "NVML, memory of the trial's own processes"
        return "nvml-process", _Figure(max(values), source, metrics.TOTALS_S, len(values), gaps)
    why = next((one.reason for one in series if one.reason), "no sample was taken")
    grown: list[float] = []
    samples = gaps = 0
    for gpu in watched.gpus:
        used = watched.samples.series(metrics.DEVICE_MEMORY, gpu)
        training = used.between(0, watched.trained_until)
        if gpu not in watched.baseline_mib or not training:
            raise Unmeasured(f"{why}; device memory: {used.reason or 'not read before the trial'}")
        grown.append(max(training) - watched.baseline_mib[gpu])
        samples += len(training)
        gaps += used.gaps
    if max(grown) <= 0:
        raise Unmeasured(f"{why}; device memory did not grow during the trial")
    source = f"NVML, growth of device memory since before the trial ({why})"
    return "nvml-device-delta", _Figure(max(grown), source, metrics.RATES_S, samples, gaps)


def _gpus(watched: Watched) -> Sequence[str]:
    if not watched.gpus:
        raise Unmeasured("the trial uses no GPU")
    return watched.gpus


# ---------------------------------------------------------------- CPU and host


def _cpu_util(watched: Watched) -> _Figure:
    busy = sum(_spent(watched, metrics.CPU_BUSY, w.t0, w.t1) for w in watched.measured)
    usable = sum(_usable(watched, w.t0, w.t1) for w in watched.measured)
    return _cpu_figure(watched, metrics.CPU_BUSY, 100 * min(busy / usable, 1.0), watched.cpu_source)


def _cpu_util_max(watched: Watched) -> _Figure:
    """The busiest interval between two samples inside a window; at least its busiest window as a whole."""
    series = watched.samples.series(metrics.CPU_BUSY)
    shares: list[float] = []
    for window in watched.measured:
        edges = [window.t0]
        for t in [*(t for t in series.times if window.t0 < t < window.t1), window.t1]:
            # Shorter ones (an edge's sample just after a regular one) would be noise of the 10 ms ticks.
            if t - edges[-1] >= metrics.TOTALS_S / 2:
                edges.append(t)
        for t0, t1 in [(window.t0, window.t1), *pairwise(edges)]:
            shares.append(_spent(watched, metrics.CPU_BUSY, t0, t1) / _usable(watched, t0, t1))
    return _cpu_figure(watched, metrics.CPU_BUSY, 100 * min(max(shares), 1.0), watched.cpu_source)


def _cpu_util_trial(watched: Watched) -> _Figure:
    spent = sum(_spent(watched, metrics.CPU_TREE, w.t0, w.t1) for w in watched.measured)
    share = spent / sum(_usable(watched, w.t0, w.t1) for w in watched.measured)
    if share > 1.1:
        raise Unmeasured(
            f"the trial used {share:.1f} times the CPU time of its {watched.cpus} CPUs: it ran elsewhere"
        )
    return _cpu_figure(watched, metrics.CPU_TREE, 100 * min(share, 1.0), _TREE_SOURCE)


def _cpu_s_per_epoch(watched: Watched) -> _Figure:
    spent = [_spent(watched, metrics.CPU_TREE, w.t0, w.t1) for w in watched.measured]
    return _cpu_figure(watched, metrics.CPU_TREE, median(spent), _TREE_SOURCE)


def _cpu_s_by_epoch(watched: Watched) -> dict[int, float | None]:
    by_epoch: dict[int, float | None] = {}
    for window in watched.windows:
        try:
            by_epoch[window.epoch] = _spent(watched, metrics.CPU_TREE, window.t0, window.t1)
        except Unmeasured:  # the reason stands beside cpu_s_per_epoch
            by_epoch[window.epoch] = None
    return by_epoch


def _host_memory(watched: Watched) -> _Figure:
    series = watched.samples.series(metrics.TREE_MEMORY)
    if not series.values:
        raise Unmeasured(series.reason or "the trial ended before its memory was read")
    return _Figure(
        series.values[-1], "smaps_rollup, proportional, over the process tree", None, 1, series.gaps
    )


def _spent(watched: Watched, metric: str, t0: float, t1: float) -> float:
    """CPU seconds between two times."""
    series = watched.samples.series(metric)
    return series.at(t1, _MAX_GAP_S) - series.at(t0, _MAX_GAP_S)


def _usable(watched: Watched, t0: float, t1: float) -> float:
    """CPU seconds that the trial's CPUs had: wall time, less what the hypervisor took."""
    usable = watched.cpus * (t1 - t0)
    if watched.samples.series(metrics.CPU_STOLEN).values:
        usable -= _spent(watched, metrics.CPU_STOLEN, t0, t1)
    if usable <= 0:
        raise Unmeasured("the measured window is empty")
    return usable


def _cpu_figure(watched: Watched, metric: str, value: float, source: str) -> _Figure:
    series = watched.samples.series(metric)
    inside = sum(len(series.between(w.t0, w.t1)) for w in watched.measured)
    return _Figure(value, source, metrics.TOTALS_S, inside, series.gaps)
