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

    def take_due(self, now: float) -> list[str]:
        """The names whose slot has come, in their given order; each moves on to its next slot after `now`."""
        names = [name for name in self._periods if self._compute_deadline(name) <= now]
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
        return min(self._compute_deadline(name) for name in self._periods)

    def _compute_deadline(self, name: str) -> float:
        return self._start + self._slot[name] * self._periods[name]


class TimeBudget:
    """Something costly that is also asked for out of turn, on an allowance of time.

    The allowance grows with the clock and is spent by doing it. Who asks when it is used up is owed one, and gets it
    once there is some again; the last one will do while it is fresh.
    """

    def __init__(self, share: float, most_s: float, fresh_s: float) -> None:
        """`share`: of the clock's time that may be spent; `most_s`: how much can be saved up."""
        self._share = share
        self._most_s = most_s
        self._fresh_s = fresh_s
        self._saved_s = most_s
        self._counted: float | None = None
        self._last = -math.inf
        self._is_pending = False

    def request_turn(self, now: float) -> bool:
        """Whether to do it now, at the clock's `now`; if not, it is owed, or there is a fresh one."""
        if now - self._last < self._fresh_s:
            return False
        self._is_pending = True
        return self.is_request_due(now)

    def is_request_due(self, now: float) -> bool:
        """Whether one is owed, and may be done now."""
        self._refill(now)
        return self._is_pending and self._saved_s > 0

    def note_spent(self, began: float, ended: float) -> None:
        """It has just been done, from `began` to `ended`."""
        self._refill(ended)
        self._saved_s -= ended - began
        self._last, self._is_pending = ended, False

    def _refill(self, now: float) -> None:
        if self._counted is not None:
            self._saved_s = min(self._most_s, self._saved_s + self._share * (now - self._counted))
        self._counted = now
