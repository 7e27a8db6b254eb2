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
from gpubench.train.breakdown import StepBreakdown
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
    """A span of training that is timed as one: an epoch, or so many steps of a stream."""

    number: int
    """From 0; of an epoch it settles the order of the images."""
    steps: int
    measured: bool
    seconds: float = 0.0
    """About how long it will take, if nothing is to be told meanwhile; 0: the steps that are done are told."""


Report = Callable[[Told], None]


class TrainingLoop:
    """Trains segment by segment and reports what each took."""

    def __init__(
        self,
        data: Data,
        step: Step,
        strategy: Strategy,
        clock: StepClock,
        report: Report,
        after_first_step: Callable[[], None],
        breakdown: StepBreakdown | None = None,
    ) -> None:
        self.data = data
        self.strategy = strategy
        self.report = report
        self._step = step
        self._clock = clock
        self._after_first_step: Callable[[], None] | None = after_first_step
        self._breakdown = breakdown
        self._to_device = data.move_and_transform if breakdown is None else self._mark_and_move_batch
        self.phases: dict[str, float] = {"warm_up": 0.0, "measured": 0.0}

    def train_segment(self, segment: Segment, batches: Iterator[Any] | None = None) -> TimedWindow:
        """Trains one segment. `batches`: the stream that it goes on with; None: an epoch, whose loader it starts."""
        rank = self.strategy.assignment.local_rank
        self._step.loss_sum.zero_()
        self.strategy.barrier()
        self.report(
            Begin(
                rank=rank,
                epoch=segment.number,
                steps=segment.steps,
                measured=segment.measured,
                seconds=segment.seconds,
            )
        )
        if self._breakdown is not None:
            self._breakdown.begin_window()

        # ---- the window ----
        self._clock.begin_window()
        if batches is None:
            batches = self.data.iterate_epoch(segment.number)
        self._run_steps(segment, batches)
        window = self._clock.end_window()
        # ---- the window ends ----

        if self._breakdown is not None:
            self._breakdown.end_window(window.step_s, measured=segment.measured)
        self.phases["measured" if segment.measured else "warm_up"] += window.seconds
        # Each rank has the mean over its share of each batch.
        loss = (
            self.strategy.sum_over_ranks(self._step.loss_sum.clone()).item() / self.strategy.assignment.world
        )
        for message in list_step_messages(window, rank, segment.number):
            self.report(message)
        self.report(
            End(
                rank=rank,
                epoch=segment.number,
                measured=segment.measured,
                t0=window.t0,
                t1=window.t1,
                steps=segment.steps,
                first_batch_s=window.first_batch_s,
                train_loss=loss / segment.steps,
            )
        )
        return window

    def _run_steps(self, segment: Segment, batches: Iterator[Any]) -> None:
        """The segment's steps. In a measured window of a stream nothing is told, and no rank waits for another."""
        rank = self.strategy.assignment.local_rank
        clock, step, to_device = self._clock, self._step, self._to_device
        next_report = float("inf") if segment.seconds else monotonic() + PROGRESS_PERIOD_S
        for done in range(segment.steps):
            batch = next(batches)
            clock.mark_batch()
            step(*to_device(batch))
            clock.mark_step()
            if self._after_first_step is not None:
                self._after_first_step()
                self._after_first_step = None
            if monotonic() >= next_report:
                self.report(StepsDone(rank=rank, epoch=segment.number, step=done + 1))
                next_report = monotonic() + PROGRESS_PERIOD_S

    def train_until_over(self, batches: Iterator[Any], steps: int, *, is_over: Callable[[], bool]) -> None:
        """Trains on uncounted, `steps` at a time, until `is_over`, which is asked after each of these."""
        while True:
            self._clock.begin_window()
            for batch in itertools.islice(batches, steps):
                self._clock.mark_batch()
                self._step(*self.data.move_and_transform(batch))
                self._clock.mark_step()
            self._clock.end_window()
            if is_over():
                return

    def _mark_and_move_batch(self, batch: Any) -> OnDevice:
        assert self._breakdown is not None
        self._breakdown.mark_step_begin()
        return self.data.move_and_transform(batch)


def list_step_messages(window: TimedWindow, rank: int, epoch: int) -> Iterator[Steps]:
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
    batches = data.iterate_validation()
    if batches is None:
        return None
    device = strategy.assignment.device
    totals = torch.zeros(3, device=device, dtype=torch.float64)
    with strategy.gather_whole_model() as model:
        model.eval()
        for batch in batches:
            images, labels = data.move_and_transform(batch, augment=False)
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                logits = strategy.predict(model, images)
            totals[0] += (logits.argmax(1) == labels).sum()
            totals[1] += F.cross_entropy(logits.float(), labels, reduction="sum")
            totals[2] += len(labels)
        model.train()
    correct, loss, count = strategy.sum_over_ranks(totals).tolist()
    return (100 * correct / count, loss / count) if count else None
