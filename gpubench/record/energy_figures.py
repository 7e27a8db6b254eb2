"""Columns of energy and power: the driver's counter, and the integral of sampled power beside it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

from gpubench.node.watch import metrics
from gpubench.schema.codes import REASONS, SOURCES, format_reason
from gpubench.schema.doubts import ENERGY_APART_PCT
from gpubench.schema.missing import Unmeasured
from gpubench.schema.watched import SourcedFigure, WatchedTrial, Window

POLLED_GAP_S = 1.0
"""Longest stretch without a polled power reading that still counts as covered."""
SHORTEST_S = 3.0
"""The counter moves every 0.1 s, and its sensor sees a part of the time: over less than this both figures are rough."""
APART = ENERGY_APART_PCT / 100
"""How far the counter and the integral of power may differ, as a share of the counter's."""
MIN_COUNTED_S = 0.5
"""Of a single window, for epochs.csv: over less than this the counter's figure would be more than a fifth off."""
_NEAR_S = 0.1
_NEAR = 0.02
"""Readings of the counter must lie so close to a span's edges, both together, in seconds or as a share of the span:
what the load was beyond an edge is not known."""
_MAX_GAP_S = 2.5 * metrics.ENERGY_S

COUNTER = SOURCES["energy-counter"]

Chosen = Mapping[str, tuple[str, float]]
"""GPU -> the series of its power, and the longest gap in it that still counts as covered."""


def _compute_energy_per_epoch(watched: WatchedTrial) -> SourcedFigure:
    """Joules an epoch, over the trial's GPUs: by the counter, else by the integral.

    Raises Unmeasured for too short a time, and where both tell and disagree.
    """
    if watched.measured_s < SHORTEST_S:
        raise Unmeasured(format_reason("short-energy", f"{watched.measured_s:.2f}", f"{SHORTEST_S:g}"))
    try:
        counted = _compute_counter_energy_per_epoch(watched)
    except Unmeasured as reason:
        sampled = _integrate_energy_per_epoch(watched)
        return replace(sampled, source=f"{sampled.source} ({reason})")
    try:
        sampled = _integrate_energy_per_epoch(watched)
    except Unmeasured:  # then there is nothing to hold it against
        return counted
    joules, other = float(counted.value), float(sampled.value)
    if abs(other / joules - 1) > APART:
        raise Unmeasured(format_reason("energy-apart", f"{joules:,.0f}", f"{other:,.0f}", f"{100 * APART:g}"))
    return counted


def _find_energy_source(watched: WatchedTrial) -> SourcedFigure:
    energy = _compute_energy_per_epoch(watched)
    is_counted = energy.source.startswith(COUNTER)
    return replace(energy, value="nvml-counter" if is_counted else "nvml-power-integral", by_gpu={})


def _compute_mean_power(watched: WatchedTrial) -> SourcedFigure:
    """Mean watts over the measured windows, summed over the GPUs."""
    sampled = _integrate_energy_per_epoch(watched)
    watts = float(sampled.value) * watched.measured_epochs / watched.measured_s
    return replace(sampled, value=watts, by_gpu={})


# ---------------------------------------------------------------- the counter


def _compute_counter_energy_per_epoch(watched: WatchedTrial) -> SourcedFigure:
    # Pauses that no reading resolves lie in the spans, but in no window.
    share = watched.measured_s / sum(span.seconds for span in watched.spans) / watched.measured_epochs
    joules = {
        gpu: share * sum(_compute_window_counter_joules(watched, span, gpu) for span in watched.spans)
        for gpu in watched.used_gpus
    }
    series = [watched.samples.find_series(metrics.ENERGY, gpu) for gpu in watched.used_gpus]
    return SourcedFigure(
        sum(joules.values()),
        COUNTER,
        metrics.ENERGY_S,
        sum(len(readings.values) for readings in series),
        sum(readings.gaps for readings in series),
        joules,
    )


def _compute_window_counter_joules(watched: WatchedTrial, window: Window, gpu: str) -> float:
    """Joules of one window, or of several at once, by the counter of one GPU."""
    series = watched.samples.find_series(metrics.ENERGY, gpu)
    if series.compute_distance_to_reading_s(window.t0) + series.compute_distance_to_reading_s(
        window.t1
    ) > max(_NEAR_S, _NEAR * window.seconds):
        raise Unmeasured(series.reason or REASONS["counter-not-read"])
    first, last = (series.interpolate_at(t, _MAX_GAP_S) for t in (window.t0, window.t1))
    readings = series.list_values_around(window.t0, window.t1)
    if any(after < before for before, after in pairwise(readings)):
        raise Unmeasured(REASONS["counter-back"])
    joules = last - first
    if joules <= 0:
        raise Unmeasured(REASONS["counter-still"])
    return joules


def compute_joules_by_epoch(watched: WatchedTrial) -> dict[int, dict[str, float]]:
    """Joules of each window by GPU, warm-up included: by the counter or else the integral; empty: neither tells."""
    by_epoch: dict[int, dict[str, float]] = {}
    chosen = choose_power_series(watched)
    integrated = partial(_integrate_window_joules, chosen=chosen)
    for window in watched.windows:
        by_epoch[window.epoch] = {}
        for count in (
            (_compute_window_counter_joules, integrated) if window.seconds >= MIN_COUNTED_S else (integrated,)
        ):
            try:
                by_epoch[window.epoch] = {gpu: count(watched, window, gpu) for gpu in watched.used_gpus}
                break
            except Unmeasured:  # the reason stands beside energy_j
                continue
    return by_epoch


# ---------------------------------------------------------------- sampled power


def _integrate_energy_per_epoch(watched: WatchedTrial) -> SourcedFigure:
    """Joules a measured epoch as the integral of sampled power, over all GPUs."""
    chosen = choose_power_series(watched)
    joules = {
        gpu: sum(_integrate_window_joules(watched, window, gpu, chosen) for window in watched.measured)
        / watched.measured_epochs
        for gpu in watched.used_gpus
    }
    buffered = all(name != metrics.POWER for name, _ in chosen.values())
    used = [watched.samples.find_series(name, gpu) for gpu, (name, _) in chosen.items()]
    return SourcedFigure(
        sum(joules.values()),
        SOURCES["power-buffer"] if buffered else f"integral of polled power ({watched.power_source})",
        0.02 if buffered else metrics.RATES_S,
        sum(len(readings.between(w.t0, w.t1)) for readings in used for w in watched.measured),
        sum(readings.gaps for readings in used),
        joules,
    )


def _integrate_window_joules(watched: WatchedTrial, window: Window, gpu: str, chosen: Chosen) -> float:
    name, max_gap_s = chosen[gpu]
    joules = watched.samples.find_series(name, gpu).integrate(window.t0, window.t1, max_gap_s)
    if joules <= 0:
        raise Unmeasured(REASONS["no-power"])
    return joules


def choose_power_series(watched: WatchedTrial) -> Chosen:
    """The driver's buffer where it covers every measured window, else what was polled.

    It goes through all samples: once for many windows, since a long trial has hundreds of thousands.
    """
    buffer = metrics.BUFFER["power_w"]
    chosen: dict[str, tuple[str, float]] = {}
    for gpu in watched.gpus:
        series = watched.samples.find_series(buffer.name, gpu)
        chosen[gpu] = buffer.name, buffer.max_gap_s
        try:
            for window in watched.measured:
                series.integrate(window.t0, window.t1, buffer.max_gap_s)
        except Unmeasured:  # the polls' own reason stands where they fail too
            chosen[gpu] = metrics.POWER, POLLED_GAP_S
    return chosen


OF_ONE_JOB = ("energy_j", "energy_source", "energy_sampled_j")
"""Columns that promise the trial's own joules, which no counter tells where jobs share a GPU."""

COLUMNS: dict[str, Callable[[WatchedTrial], SourcedFigure]] = {
    "energy_j": _compute_energy_per_epoch,
    "energy_source": _find_energy_source,
    "energy_sampled_j": _integrate_energy_per_epoch,
    "power_w": _compute_mean_power,
}
