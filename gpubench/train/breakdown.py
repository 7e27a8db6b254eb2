"""`--breakdown`: how long the parts of a step take, without a synchronisation inside the window.

One of every two steps is marked: CUDA events on a GPU, the host's clock on a CPU, read after the window. The other runs
plain, so that each trial tells what the marks cost it. A draw says which of the two: loader workers take turns, so that
of two workers one would always prepare the marked steps' batches. All ranks draw alike.
"""

from __future__ import annotations

import functools
import itertools
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic  # by name: a model may put another time.monotonic in its place
from typing import Any

import torch

from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.step import TrainStep

FEW = 10
"""Steps of a kind below which their median says nothing of a cost of a few per cent."""
Span = tuple[float, float]
"""Begin and end in seconds."""


class StepBreakdown:
    """Collects one rank's marks. In plain steps and outside a window a mark does nothing."""

    def __init__(self, assignment: DeviceAssignment) -> None:
        self._clock: Any = _CudaMarkClock() if assignment.is_cuda else _HostMarkClock()
        self._current: _StepMarks | None = None
        self._draw = random.Random(0)
        self._window: list[_StepMarks] = []
        self._chosen: list[bool] = []
        self._step_times: list[dict[str, float]] = []
        self._told_of_exchange = False
        self._marked_s: list[float] = []
        self._plain_s: list[float] = []

    # ---- while a window runs ----

    def begin_window(self) -> None:
        """A window begins."""
        self._clock.recycle_marks()
        self._window, self._chosen = [], []

    def mark_step_begin(self) -> None:
        """A batch has been handed over: the step's first part, its copy, begins."""
        steps = len(self._chosen)
        # A window's first step is always marked, so that a window of one step has parts.
        chosen = not self._chosen[-1] if steps % 2 else not steps or self._draw.random() < 0.5
        self._chosen.append(chosen)
        self._current = _StepMarks(self._clock.make_mark()) if chosen else None

    def mark_part_end(self, part: str) -> None:
        """What was launched since the mark before belongs to `part`."""
        if self._current is not None:
            self._current.ends.append((part, self._clock.make_mark()))

    def mark_step_end(self) -> None:
        """The optimizer has been launched."""
        if self._current is not None:
            self._window.append(self._current)
            self._current = None

    def mark_bucket_ready(self) -> Callable[[], None] | None:
        """A bucket of gradients is ready. Call what this returns, if anything, once their average has arrived.

        Each call comes on a stream that is ordered after what it tells of.
        """
        if self._current is None:
            return None
        buckets, ready = self._current.buckets, self._clock.make_mark()
        return lambda: buckets.append((ready, self._clock.make_mark()))

    # ---- after it ----

    def end_window(self, step_s: Sequence[float], *, measured: bool) -> None:
        """The window is over and the device is idle. `step_s`: seconds between ends of its steps."""
        if not measured:
            return
        marked_s = list(itertools.compress(step_s, self._chosen))
        self._step_times += [
            self._compute_part_seconds(marked) | {"step": seconds}
            for marked, seconds in zip(self._window, marked_s, strict=True)
        ]
        # A window's first step waits for the loader to start; it would weigh on the marked ones alone.
        self._marked_s += marked_s[1:]
        self._plain_s += itertools.compress(step_s, [not chosen for chosen in self._chosen])

    def _compute_part_seconds(self, marked: _StepMarks) -> dict[str, float]:
        """Seconds of each part of one step."""
        seconds = dict.fromkeys(("copy", "forward", "backward", "optimizer"), 0.0)
        before = marked.begin
        for part, end in marked.ends:
            seconds[part] += self._clock.compute_seconds_between(before, end)
            before = end
        at = functools.partial(self._clock.compute_seconds_between, marked.begin)
        self._told_of_exchange |= bool(marked.buckets)
        exposed, hidden = compute_exposed_and_hidden_s(
            [(at(ready), at(done)) for ready, done in marked.buckets]
        )
        backward = seconds["backward"] - exposed
        return seconds | {"backward": backward, "comm": exposed, "comm_hidden": hidden}

    def summarize_parts(self) -> dict[str, Any]:
        """Medians over the measured marked steps, and what the marks cost.

        `copy_ms`, `forward_ms`, `backward_ms` (less `comm_ms`), `optimizer_ms`, `comm_ms`, `comm_hidden_ms` (both None
        where no bucket was told of), `step_ms` (from end to end), `cost_pct` (None: too few steps).
        """
        medians: dict[str, Any] = {
            f"{name}_ms": 1e3 * statistics.median(s[name] for s in self._step_times)
            for name in self._step_times[0]
        }
        if not self._told_of_exchange:
            medians |= {"comm_ms": None, "comm_hidden_ms": None}
        return medians | {"cost_pct": compute_marking_cost_pct(self._marked_s, self._plain_s)}


class MarkedStep(TrainStep):
    """A step with a mark after each of its parts.

    What a strategy does before the passes, and dropping the old gradients, counts as forward; what it does after them
    counts as the optimizer's.
    """

    def __init__(self, *args: Any, breakdown: StepBreakdown, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._breakdown = breakdown

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self._breakdown.mark_part_end("copy")
        super().__call__(images, labels)
        self._breakdown.mark_part_end("optimizer")
        self._breakdown.mark_step_end()

    def forward(self, images: torch.Tensor, labels: torch.Tensor, micro_batches: int) -> torch.Tensor:
        loss = super().forward(images, labels, micro_batches)
        self._breakdown.mark_part_end("forward")
        return loss

    def backward(self, loss: torch.Tensor) -> None:
        super().backward(loss)
        self._breakdown.mark_part_end("backward")


def compute_exposed_and_hidden_s(buckets: Sequence[Span]) -> tuple[float, float]:
    """Seconds in which only communication ran, and those that lay behind the backward pass.

    `buckets`: from a bucket's last gradient to its average. The backward pass has ended when the last bucket is ready.
    """
    if not buckets:
        return 0.0, 0.0
    last_ready = max(ready for ready, _ in buckets)
    hidden, reached = 0.0, float("-inf")
    for ready, done in sorted(buckets):
        end = min(done, last_ready)
        hidden += max(0.0, end - max(ready, reached))
        reached = max(reached, end)
    return max(0.0, max(done for _, done in buckets) - last_ready), hidden


def compute_marking_cost_pct(marked_s: Sequence[float], plain_s: Sequence[float]) -> float | None:
    """What marking added to a step, in per cent, by medians; None for fewer than FEW of either kind."""
    if min(len(marked_s), len(plain_s)) < FEW:
        return None
    return 100 * (statistics.median(marked_s) / statistics.median(plain_s) - 1)


@dataclass(slots=True)
class _StepMarks:
    """The marks of one step, as the clock gave them."""

    begin: Any
    ends: list[tuple[str, Any]] = field(default_factory=list)
    """Part, and the mark at its end."""
    buckets: list[tuple[Any, Any]] = field(default_factory=list)
    """Ready and done."""


class _HostMarkClock:
    """For a CPU, where work has ended when its call returns."""

    def make_mark(self) -> float:
        return monotonic()

    def compute_seconds_between(self, a: float, b: float) -> float:
        return b - a

    def recycle_marks(self) -> None:
        """No mark that was given out is needed any more."""


class _CudaMarkClock:
    """CUDA events on the stream that is current where the mark is made. Events are kept for the next window."""

    def __init__(self) -> None:
        self._free: list[torch.cuda.Event] = []
        self._given: list[torch.cuda.Event] = []

    def make_mark(self) -> torch.cuda.Event:
        try:
            event = self._free.pop()  # one call: marks come from autograd's thread, too
        except IndexError:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._given.append(event)
        event.record()
        return event

    def compute_seconds_between(self, a: torch.cuda.Event, b: torch.cuda.Event) -> float:
        return float(a.elapsed_time(b)) / 1e3

    def recycle_marks(self) -> None:
        self._free += self._given
        self._given = []
