"""What was read, when, and what could not be read. One series a metric and device."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.events import Count, Finite
from gpubench.schema.missing import Unmeasured

HOST = "host"
"""The device of what belongs to no GPU."""

SAMPLE_HEADER = ("t_s", "device", "metric", "value")
"""Seconds since the trial was launched; GPU number, `host` or `rank0`; the metric with its unit; the value.

On a further node, from 1, GPUs and host have its number before them: `1:0`, `1:host`.

The moment of launch is stored in the record (`span.launched`), on the clock of its windows."""


STEP_TIME = "step_time_ms"
"""The metric of a measured step of rank 0. All of them stand in order behind whatever else was read."""


def describe_damaged_samples(path: Path, lost: int, total: int) -> str:
    """What is told of a file of samples in which so many of its readings can't be read."""
    if not total:
        return f"{path} is damaged: it holds no readings"
    are = "is" if lost == 1 else "are"
    return f"{path} is damaged: {lost:,} of its {total:,} readings can't be read, and {are} left out"


@dataclass(slots=True)
class Series:
    """Readings of one metric of one device, in order of time."""

    times: list[Finite] = field(default_factory=list)
    """Seconds on the host's monotonic clock."""
    values: list[float] = field(default_factory=list)
    gaps: Count = 0
    """Readings that failed."""
    reason: str = ""
    """Why the last one failed."""

    def between(self, t0: float, t1: float) -> list[float]:
        """Values read from t0 to t1, both included."""
        return self.values[bisect_left(self.times, t0) : bisect_right(self.times, t1)]

    def list_values_around(self, t0: float, t1: float) -> list[float]:
        """Values from the last one read by t0 to the first one read from t1 on: those that `at` draws its lines by."""
        return self.values[max(0, bisect_right(self.times, t0) - 1) : bisect_left(self.times, t1) + 1]

    def interpolate_at(self, t: float, max_gap_s: float) -> float:
        """A running total at time t, on the line between the readings before and after it.

        Raises Unmeasured where t lies outside the readings, or these are more than `max_gap_s` apart.
        """
        after = bisect_left(self.times, t)
        if after == len(self.times) or (after == 0 and self.times[0] > t):
            raise Unmeasured(self.reason or REASONS["no-sample-at-edge"])
        if self.times[after] == t:
            return self.values[after]
        (a, b), (x, y) = self.times[after - 1 : after + 1], self.values[after - 1 : after + 1]
        if b - a > max_gap_s:
            raise Unmeasured(self.reason or format_reason("gap-at-edge", f"{b - a:.1f}"))
        return x + (y - x) * (t - a) / (b - a)

    def compute_distance_to_reading_s(self, t: float) -> float:
        """Seconds from t to the nearest reading; infinity where there is none."""
        index = bisect_left(self.times, t)
        return min((abs(t - near) for near in self.times[max(0, index - 1) : index + 1]), default=math.inf)

    def integrate(self, t0: float, t1: float, max_gap_s: float) -> float:
        """Value × seconds from t0 to t1: each reading stands for the time since the one before it.

        The last reading before t1 stands for what is left, where none has come after it. Steady readings give
        value × (t1 − t0), however few they are. Raises Unmeasured where a part longer than `max_gap_s` has none.
        """
        first = bisect_right(self.times, t0)
        last = self.times[first - 1] if first else t0
        held = self.values[first - 1] if first else None
        total, reached = 0.0, t0
        for index in range(first, len(self.times)):
            t = self.times[index]
            if t - last > max_gap_s:
                break
            held = self.values[index]
            total += held * (min(t, t1) - reached)
            reached, last = min(t, t1), t
            if t >= t1:
                return total
        if held is None or t1 - last > max_gap_s:
            raise Unmeasured(self.reason or format_reason("gap", f"{max_gap_s:g}"))
        return total + held * (t1 - reached)


@dataclass(slots=True)
class Samples:
    """All series of a trial."""

    by_metric: dict[str, dict[str, Series]] = field(default_factory=dict)
    """Those of each metric, by device."""

    def find_series(self, metric: str, device: str = HOST) -> Series:
        """The series of this metric; an empty one where nothing was read."""
        return self.by_metric.get(metric, {}).get(device) or Series()

    def list_series(self) -> Iterator[tuple[str, str, Series]]:
        """All series, with their metric and device."""
        for metric, by_device in self.by_metric.items():
            for device, series in by_device.items():
                yield metric, device, series

    def store_series(self, metric: str, device: str, series: Series) -> None:
        """Stores a whole series."""
        self.by_metric.setdefault(metric, {})[device] = series

    def add_reading(self, t: float, metric: str, value: float, device: str = HOST) -> None:
        """Stores a reading taken at t seconds on the monotonic clock."""
        series = self._ensure_series(metric, device)
        series.times.append(t)
        series.values.append(value)

    def note_gap(self, metric: str, reason: str, device: str = HOST) -> None:
        """Notes a reading that failed."""
        series = self._ensure_series(metric, device)
        series.gaps += 1
        series.reason = reason

    def note_reason(self, metric: str, reason: str, device: str = HOST) -> None:
        """Notes why there is no reading, where none was to be expected yet: not a gap."""
        self._ensure_series(metric, device).reason = reason

    def _ensure_series(self, metric: str, device: str) -> Series:
        return self.by_metric.setdefault(metric, {}).setdefault(device, Series())

    def compute_growth_between(self, metric: str, t0: float, t1: float, max_gap_s: float) -> float:
        """How much a total of the host's has grown between two times. Raises Unmeasured where readings lie further
        apart than `max_gap_s`.
        """
        series = self.find_series(metric)
        return series.interpolate_at(t1, max_gap_s) - series.interpolate_at(t0, max_gap_s)

    def list_rows(self, start: float) -> list[tuple[float, str, str, float]]:
        """Tidy rows under SAMPLE_HEADER, by time since `start`, on the clock of the readings."""
        return sorted(
            (round(t - start, 6), device, metric, value)
            for metric, device, series in self.list_series()
            for t, value in zip(series.times, series.values, strict=True)
        )
