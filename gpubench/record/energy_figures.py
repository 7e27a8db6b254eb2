"""Columns of energy and power: the driver's counter, and the integral of sampled power beside it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

from gpubench.node.watch import metrics
from gpubench.schema.missing import Unmeasured
from gpubench.schema.watched import Figure, Watched, Window

POLLED_GAP_S = 1.0
"""Longest stretch without a polled power reading that still counts as covered."""
MIN_COUNTED_S = 0.5
"""The counter moves every 0.1 s: over less than this its figure would be more than a fifth off."""
_NEAR_S = 0.1
_NEAR = 0.02
"""Readings of the counter must lie so close to a span's edges, both together, in seconds or as a share of the span:
what the load was beyond an edge is not known."""
_MAX_GAP_S = 2.5 * metrics.ENERGY_S

Chosen = Mapping[str, tuple[str, float]]
"""GPU -> the series of its power, and the longest gap in it that still counts as covered."""


def _energy(watched: Watched) -> Figure:
    """Joules a measured epoch, over the trial's GPUs: by the counter, else by the integral."""
    try:
        return _by_counter(watched)
    except Unmeasured as reason:
        sampled = _sampled(watched)
        return replace(sampled, source=f"{sampled.source} ({reason})")


def _energy_source(watched: Watched) -> Figure:
    try:
        return replace(_by_counter(watched), value="nvml-counter")
    except Unmeasured:
        return replace(_sampled(watched), value="nvml-power-integral")


def _power(watched: Watched) -> Figure:
    """Mean watts over the measured epochs, summed over the GPUs."""
    sampled = _sampled(watched)
    assert isinstance(sampled.value, float)
    watts = sampled.value * len(watched.measured) / watched.epochs_s
    return replace(sampled, value=watts, by_gpu={})


# ---------------------------------------------------------------- the counter


def _by_counter(watched: Watched) -> Figure:
    if watched.measured_s < MIN_COUNTED_S:
        raise Unmeasured(f"{watched.measured_s:.2f} s are too short for a counter that counts every 0.1 s")
    # Pauses that no reading resolves lie in the spans, but in no epoch.
    share = watched.measured_s / sum(span.seconds for span in watched.spans) / len(watched.measured)
    joules = {
        gpu: share * sum(span.of_epoch(partial(_counted, watched, gpu=gpu)) for span in watched.spans)
        for gpu in watched.some_gpus
    }
    series = [watched.samples.series(metrics.ENERGY, gpu) for gpu in watched.some_gpus]
    return Figure(
        sum(joules.values()),
        "NVML energy counter, read at the windows' edges",
        metrics.ENERGY_S,
        sum(len(one.values) for one in series),
        sum(one.gaps for one in series),
        joules,
    )


def _counted(watched: Watched, window: Window, gpu: str) -> float:
    """Joules of one window, or of several at once, by the counter of one GPU."""
    series = watched.samples.series(metrics.ENERGY, gpu)
    if series.away(window.t0) + series.away(window.t1) > max(_NEAR_S, _NEAR * window.seconds):
        raise Unmeasured(series.reason or "the energy counter was not read near the window's edges")
    first, last = (series.at(t, _MAX_GAP_S) for t in (window.t0, window.t1))
    readings = series.around(window.t0, window.t1)
    if any(after < before for before, after in pairwise(readings)):
        raise Unmeasured("the energy counter went backwards")
    joules = last - first
    if joules <= 0:
        raise Unmeasured("the energy counter stood still")
    return joules


def joules_by_epoch(watched: Watched) -> dict[int, dict[str, float]]:
    """Joules of each window by GPU, warm-up included: by the counter or else the integral; empty: neither tells."""
    by_epoch: dict[int, dict[str, float]] = {}
    chosen = _power_series(watched)
    integrated = partial(_integrated, chosen=chosen)
    for window in watched.windows:
        by_epoch[window.epoch] = {}
        for count in (_counted, integrated) if window.seconds >= MIN_COUNTED_S else (integrated,):
            try:
                by_epoch[window.epoch] = {gpu: count(watched, window, gpu) for gpu in watched.some_gpus}
                break
            except Unmeasured:  # the reason stands beside energy_j
                continue
    return by_epoch


# ---------------------------------------------------------------- sampled power


def _sampled(watched: Watched) -> Figure:
    """Joules a measured epoch as the integral of sampled power, over all GPUs."""
    chosen = _power_series(watched)
    joules = {
        gpu: sum(
            window.of_epoch(partial(_integrated, watched, gpu=gpu, chosen=chosen))
            for window in watched.measured
        )
        / len(watched.measured)
        for gpu in watched.some_gpus
    }
    buffered = all(name != metrics.POWER for name, _ in chosen.values())
    used = [watched.samples.series(name, gpu) for gpu, (name, _) in chosen.items()]
    return Figure(
        sum(joules.values()),
        "integral of NVML's power samples, the driver's buffer"
        if buffered
        else f"integral of polled power ({watched.power_source})",
        0.02 if buffered else metrics.RATES_S,
        sum(len(one.between(w.t0, w.t1)) for one in used for w in watched.measured),
        sum(one.gaps for one in used),
        joules,
    )


def _integrated(watched: Watched, window: Window, gpu: str, chosen: Chosen) -> float:
    name, max_gap_s = chosen[gpu]
    joules = watched.samples.series(name, gpu).integral(window.t0, window.t1, max_gap_s)
    if joules <= 0:
        raise Unmeasured("the driver tells a power of 0 W")
    return joules


def _power_series(watched: Watched) -> Chosen:
    """The driver's buffer where it covers every measured window, else what was polled.

    It goes through all samples: once for many windows, since a long trial has hundreds of thousands.
    """
    buffer = metrics.BUFFER["power_w"]
    chosen: dict[str, tuple[str, float]] = {}
    for gpu in watched.gpus:
        series = watched.samples.series(buffer.name, gpu)
        chosen[gpu] = buffer.name, buffer.max_gap_s
        try:
            for window in watched.measured:
                series.integral(window.t0, window.t1, buffer.max_gap_s)
        except Unmeasured:  # the polls' own reason stands where they fail too
            chosen[gpu] = metrics.POWER, POLLED_GAP_S
    return chosen


OF_ONE_JOB = ("energy_j", "energy_source", "energy_sampled_j")
"""Columns that promise the trial's own joules, which no counter tells where jobs share a GPU."""

COLUMNS: dict[str, Callable[[Watched], Figure]] = {
    "energy_j": _energy,
    "energy_source": _energy_source,
    "energy_sampled_j": _sampled,
    "power_w": _power,
}
