"""When steps begin and end, on the device's own clock, without a synchronisation inside the window.

At most two steps are in flight: before step k is launched, step k−2 has ended. So a wait for data is seen where
it happens, and the host can't run so far ahead that the loader seems slow while the device is busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, thread_time  # by name: a model may put another time.monotonic in its place

import torch

from gpubench.train.device_assignment import DeviceAssignment

IN_FLIGHT = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedWindow:
    """One synchronised span of training."""

    t0: float
    """Edges on the host's monotonic clock, in seconds."""
    t1: float
    step_s: list[float]
    """Seconds between ends of steps; the first counts from t0."""
    wait_s: list[float]
    """Seconds before each step that the device starved for its batch: min(time in next(), the device's idle gap)."""
    first_batch_s: float
    """From t0 to the first batch."""

    @property
    def seconds(self) -> float:
        return self.t1 - self.t0


class HostStepClock:
    """For a CPU, where a step has ended when it returns. Follows one window: begin, then batch and step in turn, then
    end."""

    def begin_window(self) -> None:
        self._batches: list[float] = []
        self._ends: list[float] = [monotonic()]

    def mark_batch(self) -> None:
        """A batch has just been handed over; called before its step."""
        self._batches.append(monotonic())

    def mark_step(self) -> None:
        """A step has just been launched (or, on a CPU, has ended)."""
        self._ends.append(monotonic())

    def end_window(self) -> TimedWindow:
        t0, t1 = self._ends[0], monotonic()
        waits = [batch - before for batch, before in zip(self._batches, self._ends, strict=False)]
        return TimedWindow(
            t0=t0,
            t1=t1,
            step_s=[b - a for a, b in zip(self._ends, self._ends[1:], strict=False)],
            wait_s=waits,
            first_batch_s=waits[0] if waits else 0.0,
        )


class CudaStepClock:
    """The same by CUDA events on the current stream of the rank's first device; read after the window."""

    def __init__(self, assignment: DeviceAssignment) -> None:
        self._assignment = assignment

    def _record_event(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def begin_window(self) -> None:
        self._assignment.synchronize()
        self._t0 = monotonic()
        self._host_free = self._t0
        self._next_s: list[float] = []
        self._starts: list[torch.cuda.Event] = []
        self._ends: list[torch.cuda.Event] = [self._record_event()]

    def mark_batch(self) -> None:
        now = monotonic()
        self._next_s.append(now - self._host_free)
        self._starts.append(self._record_event())

    def mark_step(self) -> None:
        self._ends.append(self._record_event())
        if len(self._ends) > IN_FLIGHT:
            self._ends[-IN_FLIGHT].synchronize()
        self._host_free = monotonic()

    def end_window(self) -> TimedWindow:
        self._assignment.synchronize()
        t1 = monotonic()
        gaps = [
            before.elapsed_time(start) / 1e3 for before, start in zip(self._ends, self._starts, strict=False)
        ]
        return TimedWindow(
            t0=self._t0,
            t1=t1,
            step_s=[a.elapsed_time(b) / 1e3 for a, b in zip(self._ends, self._ends[1:], strict=False)],
            wait_s=[min(next_s, gap) for next_s, gap in zip(self._next_s, gaps, strict=True)],
            first_batch_s=self._next_s[0] if self._next_s else 0.0,
        )


StepClock = HostStepClock | CudaStepClock


def make_step_clock(assignment: DeviceAssignment) -> StepClock:
    """The clock that suits the rank's device."""
    return CudaStepClock(assignment) if assignment.is_cuda else HostStepClock()


TURNS = 100_000
"""Of a plain loop: about 3 to 5 ms."""


def measure_fixed_work_ms() -> float:
    """CPU milliseconds of this thread for a fixed piece of work, the faster of two tries: the first warms caches.

    Rates of trials that are limited by the launching of kernels follow the CPU's speed, which other work on the host's
    cores changes for seconds to minutes. It is looked at before loaders are forked and after they have ended, never
    inside a stream: a pause between two waves of batches would make the loaders seem faster.
    """

    def time_loop_s() -> float:
        began = thread_time()
        total = 0
        for turn in range(TURNS):
            total += turn & 7
        return thread_time() - began

    return 1e3 * min(time_loop_s() for _ in range(2))
