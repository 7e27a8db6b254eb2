"""When to sample next: absolute deadlines on a monotonic clock, so that nothing drifts or bunches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

Clock = Callable[[], float]
"""Seconds on a clock that never goes back; `time.monotonic` outside tests."""


class Schedule:
    """Several things to do at periods of their own. Slot k of each is `start + k * period`.

    A late caller finds each thing due once: the times of slots that it slept through stand in `skipped`.
    """

    def __init__(self, periods: Mapping[str, float], start: float) -> None:
        """`periods`: name -> seconds. The first slot of each is `start` itself."""
        self._periods = dict(periods)
        self._start = start
        self._slot = dict.fromkeys(periods, 0)
        self.skipped: dict[str, list[float]] = {name: [] for name in periods}

    def due(self, now: float) -> list[str]:
        """The names whose slot has come, in their given order; each moves on to its next slot after `now`."""
        names = [name for name in self._periods if self._deadline(name) <= now]
        for name in names:
            slot = self._slot[name]
            # 0.3 / 0.1 = 2.9999…: a slot less than a millionth of a period ahead has come.
            latest = max(slot, math.floor((now - self._start) / self._periods[name] + 1e-6))
            self.skipped[name] += [self._start + k * self._periods[name] for k in range(slot, latest)]
            self._slot[name] = latest + 1
        return names

    @property
    def next_deadline(self) -> float:
        """The earliest slot that has not been taken, in seconds on the caller's clock."""
        return min(self._deadline(name) for name in self._periods)

    def _deadline(self, name: str) -> float:
        return self._start + self._slot[name] * self._periods[name]
