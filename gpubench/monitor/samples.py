"""What was read, when, and what could not be read. One series a metric and device."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from gpubench.monitor.missing import Unmeasured

HOST = "host"
"""The device of what belongs to no GPU."""

SAMPLE_HEADER = ("t_s", "device", "metric", "value")
"""Seconds since the start of watching; GPU number or `host`; the metric with its unit; the value."""


@dataclass(slots=True)
class Series:
    """Readings of one metric of one device, in order of time."""

    times: list[float] = field(default_factory=list)
    """Seconds on the host's monotonic clock."""
    values: list[float] = field(default_factory=list)
    gaps: int = 0
    """Readings that failed."""
    reason: str = ""
    """Why the last one failed."""

    def between(self, t0: float, t1: float) -> list[float]:
        """Values read from t0 to t1, both included."""
        return self.values[bisect_left(self.times, t0) : bisect_right(self.times, t1)]

    def at(self, t: float, max_gap_s: float) -> float:
        """A running total at time t, on the line between the readings before and after it.

        Raises Unmeasured where t lies outside the readings, or these are more than `max_gap_s` apart.
        """
        after = bisect_left(self.times, t)
        if after == len(self.times) or (after == 0 and self.times[0] > t):
            raise Unmeasured(self.reason or "no sample on either side of the window's edge")
        if self.times[after] == t:
            return self.values[after]
        (a, b), (x, y) = self.times[after - 1 : after + 1], self.values[after - 1 : after + 1]
        if b - a > max_gap_s:
            raise Unmeasured(self.reason or f"no sample for {b - a:.1f} s around the window's edge")
        return x + (y - x) * (t - a) / (b - a)


class Samples:
    """All series of a trial."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], Series] = {}

    def series(self, metric: str, device: str = HOST) -> Series:
        """The series of this metric; an empty one where nothing was read."""
        return self._series.setdefault((metric, device), Series())

    def add(self, t: float, metric: str, value: float, device: str = HOST) -> None:
        """Stores a reading taken at t seconds on the monotonic clock."""
        series = self.series(metric, device)
        series.times.append(t)
        series.values.append(value)

    def gap(self, metric: str, reason: str, device: str = HOST) -> None:
        """Notes a reading that failed."""
        series = self.series(metric, device)
        series.gaps += 1
        series.reason = reason

    def note(self, metric: str, reason: str, device: str = HOST) -> None:
        """Notes why there is no reading, where none was to be expected yet: not a gap."""
        self.series(metric, device).reason = reason

    def rows(self, start: float) -> list[tuple[float, str, str, float]]:
        """Tidy rows under SAMPLE_HEADER, by time."""
        return sorted(
            (round(t - start, 4), device, metric, value)
            for (metric, device), series in self._series.items()
            for t, value in zip(series.times, series.values, strict=True)
        )
