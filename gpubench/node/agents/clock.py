"""How the monotonic clocks of two nodes go together: their offset, measured by round trips at a trial's begin and end.

Each node's clock starts anywhere, and two of them drift apart by up to 0.1 ms a second. Of a round trip it is only
known that the other node has read its clock somewhere between question and answer: the offset is off by half of the
round trip at most. So the fastest one of several counts. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ROUND_TRIPS = 16
"""Questions at each end of a trial: the fastest of them waited for nobody."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockReading:
    """What one round trip tells. All in seconds."""

    at: float
    """When, on the first node's clock."""
    offset: float
    """What is to be added to the other node's clock to have the first node's."""
    error: float
    """By how much that may be off."""


def reading(sent: float, told: float, received: float) -> ClockReading:
    """`sent` and `received`: on the first node's clock; `told`: what the other's said between the two."""
    middle = (sent + received) / 2
    return ClockReading(at=middle, offset=middle - told, error=(received - sent) / 2)


def best(readings: Iterable[ClockReading]) -> ClockReading:
    """The one that is surest."""
    return min(readings, key=lambda one: one.error)


@dataclass(frozen=True, kw_only=True, slots=True)
class Clocks:
    """How another node's clock went beside the first node's during a trial."""

    begin: ClockReading
    end: ClockReading

    @property
    def drift_s(self) -> float:
        """By how much the offset has changed."""
        return self.end.offset - self.begin.offset

    @property
    def error_s(self) -> float:
        """By how much an aligned time may be off."""
        return max(self.begin.error, self.end.error)

    def aligned(self, t: float) -> float:
        """A time of the other node's clock as one of the first node's: by the offset of that moment, on the line
        between the two that were measured."""
        first, last = (one.at - one.offset for one in (self.begin, self.end))
        part = (t - first) / (last - first) if last > first else 0.0
        return t + self.begin.offset + self.drift_s * min(max(part, 0.0), 1.0)


def same() -> Clocks:
    """Of the first node with itself."""
    exact = ClockReading(at=0.0, offset=0.0, error=0.0)
    return Clocks(begin=exact, end=exact)
