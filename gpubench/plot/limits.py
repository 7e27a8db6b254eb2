"""From where to where axes go, so that a picture is the same on paper and on a page. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpubench.plot.description import ENDINGS, Panel, PlottedPoint

WIDEST = 2.0
"""An interval may stretch its axis to so many times the largest figure; where it goes on, the caption says so."""
BESIDE_BARS = 1.16
"""So many times the longest bar is the axis long, for what stands behind it."""


@dataclass(frozen=True, slots=True)
class AxisEnds:
    """Both ends of an axis."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """How far along a value lies, from 0 to 1, on an even scale."""
        return (value - self.low) / (self.high - self.low)


def across(panel: Panel) -> AxisEnds:
    """Of the x axis of lines, with room for the intervals of x, as far as WIDEST lets them stretch it."""
    axis = panel.x
    xs = [p.x for p in _points(panel)]
    most = max(xs)
    low = min([*xs, *(p.x_low for p in _points(panel) if p.x_low is not None)])
    high = max([most, *(min(p.x_high, WIDEST * most) for p in _points(panel) if p.x_high is not None)])
    if axis.steps == "log2":
        return AxisEnds(low / 2**0.3, high * 2**0.3)
    if axis.steps == "log10":
        low = max(low, min(xs) / WIDEST)
        span = high / low
        return AxisEnds(low / span**0.06, high * span**0.06)
    if axis.from_zero:
        return AxisEnds(0.0, max(axis.top or 0, high) * 1.06 or 1.0)
    edge = (high - low) * 0.06 or 1.0
    return AxisEnds(low - edge, high + edge)


def upward(panel: Panel) -> AxisEnds:
    """Of the y axis of lines, with room at the top where endings of rows are marked."""
    values = [p.y for p in _points(panel) if p.y is not None]
    most = max([panel.y.top or 0.0, *values], default=1.0) or 1.0
    ends = any(p.y is None and p.status in ENDINGS for p in _points(panel))
    if panel.y.steps != "log10":
        return AxisEnds(0.0, most * (1.3 if ends else 1.08))
    least = min(v for v in values if v > 0)
    lows = [p.low for p in _points(panel) if p.low is not None and p.low > 0]
    least = min([least, *(max(low, least / WIDEST) for low in lows)])
    span = most / least
    return AxisEnds(least / span**0.08, most * span ** (0.3 if ends else 0.08))


def along_bars(panel: Panel) -> AxisEnds:
    """Of the axis along which bars lie."""
    return AxisEnds(0.0, longest(panel) * BESIDE_BARS)


def of_cells(panel: Panel) -> AxisEnds:
    """Of the shades of a matrix."""
    known = [cell.value for cell in panel.cells if cell.value is not None]
    return AxisEnds(min([1.0, *known]), max([2.0, *known]))


def leaves(panel: Panel) -> bool:
    """Whether an interval goes on beyond an axis."""
    if panel.kind == "lines":
        x, y = across(panel), upward(panel)
    elif panel.kind == "bars":
        x, y = None, along_bars(panel)
    else:
        return False
    return any(
        _beyond(y, p.low, p.high) or (x is not None and _beyond(x, p.x_low, p.x_high))
        for p in _points(panel)
        if p.y is not None
    )


def _beyond(ends: AxisEnds, low: float | None, high: float | None) -> bool:
    return (low is not None and low < ends.low) or (high is not None and high > ends.high)


def longest(panel: Panel) -> float:
    """The length of the longest bar, or of what bars are compared with."""
    return max(panel.y.top or 0.0, panel.line_at or 0.0, 1e-9)


def _points(panel: Panel) -> Iterator[PlottedPoint]:
    return (p for one in panel.series for p in one.points)
