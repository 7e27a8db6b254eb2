"""The timed loop. Warm-up and measurement run through the same lines."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic  # by name: a model may put another time.monotonic in its place
from typing import Any

import torch
import torch.nn.functional as F

from gpubench.schema.events import Begin, End, Steps, StepsDone, Told
from gpubench.train.breakdown import Breakdown
from gpubench.train.data import Data
from gpubench.train.data.opened import OnDevice
from gpubench.train.step import Step
from gpubench.train.strategies.contract import Strategy
from gpubench.train.timing import StepClock, TimedWindow

PROGRESS_PERIOD_S = 0.5
STEPS_A_MESSAGE = 4_000
"""Steps whose times go into one message to the parent, which holds 200,000 bytes at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A span of training that is timed as one, from iter(loader) on: an epoch, or the first steps of one."""

    number: int
    """The epoch's number, from 0: it settles the order of the images."""
    steps: int
    measured: bool


Segments = tuple[list[Segment], list[Segment]]
"""The warm-up's, and what follows it."""


def epochs(total: int, warmup: int, steps_per_epoch: int) -> Segments:
    """One segment an epoch; the first `warmup` are not measured."""
    made = [Segment(number=i, steps=steps_per_epoch, measured=i >= warmup) for i in range(total)]
    return made[:warmup], made[warmup:]


def pieces(measured: int, warmup: int, steps_per_epoch: int) -> Segments:
    """A warm-up of `warmup` steps, then `measured` steps, both as whole epochs and the first steps of one more.

    Each piece starts its loader and uses it up, as an epoch does: nothing of one piece is loaded in another.
    """

    def lengths(steps: int) -> list[int]:
        whole, rest = divmod(steps, steps_per_epoch)
        return [steps_per_epoch] * whole + ([rest] if rest else [])

    warm = lengths(warmup)
    made = [
        Segment(number=number, steps=steps, measured=number >= len(warm))
        for number, steps in enumerate([*warm, *lengths(measured)])
    ]
    return made[: len(warm)], made[len(warm) :]


Report = Callable[[Told], None]


class Loop:
    """Trains segment by segment and reports what each took."""

    def __init__(
        self,
        data: Data,
        step: Step,
        strategy: Strategy,
        clock: StepClock,
        report: Report,
        after_first_step: Callable[[], None],
        breakdown: Breakdown | None = None,
    ) -> None:
        self._data = data
        self._step = step
        self._strategy = strategy
        self._clock = clock
        self._report = report
        self._after_first_step: Callable[[], None] | None = after_first_step
        self._breakdown = breakdown
        self._to_device = data.to_device if breakdown is None else self._marked_to_device
        self.measured_step_s: list[float] = []
        self.later_step_s: list[float] = []
        """Seconds of measured steps without each window's first one, which waits for the loader to start."""
        self.phases: dict[str, float] = {"warm_up": 0.0, "measured": 0.0}

    def run(self, segment: Segment) -> TimedWindow:
        """Trains one segment."""
        data, step, clock, report = self._data, self._step, self._clock, self._report
        to_device, breakdown = self._to_device, self._breakdown
        rank, epoch = self._strategy.assignment.local_rank, segment.number
        step.loss_sum.zero_()
        self._strategy.barrier()
        report(Begin(rank=rank, epoch=epoch, steps=segment.steps, measured=segment.measured))
        next_report = monotonic() + PROGRESS_PERIOD_S
        if breakdown is not None:
            breakdown.begin()

        # ---- the window ----
        clock.begin()
        batches = data.train_epoch(segment.number, segment.steps)
        for done in range(segment.steps):
            batch = next(batches)
            clock.batch()
            step(*to_device(batch))
            clock.step()
            if self._after_first_step is not None:
                self._first_step()
            if monotonic() >= next_report:
                report(StepsDone(rank=rank, epoch=epoch, step=done + 1))
                next_report = monotonic() + PROGRESS_PERIOD_S
        window = clock.end()
        # ---- the window ends ----

        if breakdown is not None:
            breakdown.end(window.step_s, measured=segment.measured)
        if segment.measured:
            self.measured_step_s.extend(window.step_s)
            self.later_step_s.extend(window.step_s[1:])
        self.phases["measured" if segment.measured else "warm_up"] += window.seconds
        loss = self._strategy.mean_loss(step.loss_sum)
        for message in step_messages(window, rank, epoch):
            report(message)
        report(
            End(
                rank=rank,
                epoch=epoch,
                measured=segment.measured,
                t0=window.t0,
                t1=window.t1,
                steps=segment.steps,
                first_batch_s=window.first_batch_s,
                train_loss=loss / segment.steps,
            )
        )
        return window

    def fill(self, number: int, steps: int, *, over: Callable[[int], bool]) -> None:
        """Trains on after the last segment, as before but uncounted: epochs of `steps` steps, from `number` on.

        `over`: asked after each step, with how many there were, whether to stop.
        """
        taken = 0
        for epoch in itertools.count(number):
            self._clock.begin()
            batches = self._data.train_epoch(epoch, steps)
            for _ in range(steps):
                batch = next(batches)
                self._clock.batch()
                self._step(*self._data.to_device(batch))
                self._clock.step()
                taken += 1
                if over(taken):
                    self._clock.end()
                    return
            self._clock.end()

    def _marked_to_device(self, batch: Any) -> OnDevice:
        assert self._breakdown is not None
        self._breakdown.step_begins()
        return self._data.to_device(batch)

    def _first_step(self) -> None:
        assert self._after_first_step is not None
        self._after_first_step()
        self._after_first_step = None


def step_messages(window: TimedWindow, rank: int, epoch: int) -> Iterator[Steps]:
    """The window's steps in microseconds: when each ended, counted from t0, and how long it had waited for its batch.

    In parts, none of which is too large for one message.
    """
    ends = [int(1e6 * end) for end in itertools.accumulate(window.step_s)]
    waits = [round(1e6 * wait) for wait in window.wait_s]
    for first in range(0, len(ends), STEPS_A_MESSAGE):
        part = slice(first, first + STEPS_A_MESSAGE)
        yield Steps(rank=rank, epoch=epoch, end_us=ends[part], wait_us=waits[part])


@torch.no_grad()
def evaluate(data: Data, strategy: Strategy, dtype: torch.dtype | None) -> tuple[float, float] | None:
    """Top-1 in per cent and mean cross-entropy on the validation split, over all ranks; None where there is none.

    The figures are of the plain module (compiled and replicated ones are for training shapes), which may then train on.
    """
    batches = data.validation()
    if batches is None:
        return None
    device = strategy.assignment.device
    totals = torch.zeros(3, device=device, dtype=torch.float64)
    with strategy.whole() as model:
        model.eval()
        for batch in batches:
            images, labels = data.to_device(batch, augment=False)
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                logits = strategy.opinion(model, images)
            totals[0] += (logits.argmax(1) == labels).sum()
            totals[1] += F.cross_entropy(logits.float(), labels, reduction="sum")
            totals[2] += len(labels)
        model.train()
    correct, loss, count = strategy.sum(totals).tolist()
    return (100 * correct / count, loss / count) if count else None
