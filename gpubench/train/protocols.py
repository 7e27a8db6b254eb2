"""How a process measures: the steady rate of a continuous stream of batches, or whole epochs.

A protocol trains from the first step to the last, through a `Loop`. What it asks of the other jobs of a group, where
there are any, it asks through `Peers`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from gpubench.basics.errors import UsageError
from gpubench.basics.finite import finite
from gpubench.schema.events import Evaluated, Told
from gpubench.schema.order import SteadyWindow, WholeEpochs
from gpubench.schema.window import (
    FEWEST_STEPS,
    SHORT,
    blocks,
    late_step_s,
    warm_up_left,
    warm_up_steps,
    window_steps,
)
from gpubench.train.data import Data
from gpubench.train.loop import Loop, Segment
from gpubench.train.strategies.contract import Strategy

LOOK_S = 1.0
"""How long a job that has its window goes on before it asks again whether the others have theirs."""

Quality = tuple[float, float]
"""Top-1 in per cent and cross-entropy, on the validation split."""
Evaluate = Callable[[], Quality | None]


class Peers(Protocol):
    """The other jobs of a group, as one rank deals with them."""

    def wait_until_warm(self) -> None:
        """Returns when every job of the group is warm."""

    def tell_measured(self) -> None:
        """This job has its window, or its epochs."""

    def have_measured(self) -> bool:
        """Whether all jobs have theirs. All ranks of a job ask together, and hear the same."""


def largest(strategy: Strategy, values: list[float]) -> list[float]:
    """The largest of each value over the ranks, which all call this with their own."""
    assignment = strategy.assignment
    if assignment.world == 1:
        return values
    table = torch.zeros((assignment.world, len(values)), device=assignment.device, dtype=torch.float64)
    table[assignment.rank] = torch.tensor(values, dtype=torch.float64)
    return [float(value) for value in strategy.sum(table).amax(dim=0)]


class Steady:
    """Warm-up and window of one continuous stream, whose loaders are started once and never wait for a restart."""

    def __init__(
        self,
        order: SteadyWindow,
        training: Loop,
        data: Data,
        strategy: Strategy,
        *,
        workers: int,
        prefetch: int,
        sync_every: int | None,
        breakdown: bool,
    ) -> None:
        """`workers`: of this rank."""
        self._order = order
        self._training = training
        self._data = data
        self._strategy = strategy
        self._wave = workers
        self._ahead = workers * prefetch
        self._block, self._plain = blocks(workers, sync_every, breakdown=breakdown)
        self._stream: Iterator[Any] | None = data.stream()
        self._number = itertools.count()

    def train(self, neighbours: Peers | None) -> None:
        """The whole training. `neighbours`: None for a trial alone."""
        step_s = self._warm_up()
        asked_s = self._order.window_s
        steps = self._order.steps or window_steps(asked_s or 0.0, step_s, self._block, self._plain)
        if neighbours is not None:
            # Its window may begin before its neighbours' do, and end after theirs: one step at either end is cut.
            steps = max(steps, math.ceil((FEWEST_STEPS + 2) / self._plain) * self._plain)
            neighbours.wait_until_warm()
            if self._wave:  # meanwhile loaders have made all the batches that they hold ready
                self._run(self._ahead + self._wave, measured=False)
        seconds = self._segment(steps, step_s)
        if asked_s is not None and largest(self._strategy, [seconds])[0] < SHORT * asked_s:
            seconds += self._segment(steps, step_s)
        if neighbours is not None:
            # It goes on measuring: figures of a group are of the time in which all of its jobs ran.
            neighbours.tell_measured()
            steps = math.ceil(LOOK_S / max(step_s, 1e-6) / self._plain) * self._plain
            while not neighbours.have_measured():
                self._segment(steps, step_s)

    def _warm_up(self) -> float:
        """Trains until the loaders, libraries and clocks are in their stride.

        Returns the seconds of the slowest rank's step: the ranks agree on it, and so on the steps of their windows.
        """
        times = self._run(warm_up_steps(self._ahead), measured=False)
        left, step_s = largest(
            self._strategy, [warm_up_left(times, self._wave), late_step_s(times, self._wave)]
        )
        if left:
            times += self._run(round(left), measured=False)
            # Without the batches that loaders had made before the first step.
            (step_s,) = largest(self._strategy, [late_step_s(times[self._ahead :] or times, self._wave)])
        return step_s

    def _segment(self, steps: int, step_s: float) -> float:
        """Trains measured steps; returns their seconds."""
        return sum(self._run(steps, measured=True, seconds=steps * step_s))

    def _run(self, steps: int, *, measured: bool, seconds: float = 0.0) -> list[float]:
        """Trains the next steps of the stream; returns the seconds of each."""
        segment = Segment(number=next(self._number), steps=steps, measured=measured, seconds=seconds)
        return self._training.run(segment, self._stream).step_s

    def close(self) -> None:
        """Ends the stream, and with it the loaders."""
        self._data.close()
        self._stream = None

    def quality(self) -> Quality | None:
        """None: a rate says nothing of what was learnt."""
        return None


class Epochs:
    """Whole epochs, each of which starts its loader, and top-1 after the last of them."""

    def __init__(
        self,
        order: WholeEpochs,
        training: Loop,
        data: Data,
        strategy: Strategy,
        report: Callable[[Told], None],
        evaluate: Evaluate,
    ) -> None:
        self._order = order
        self._training = training
        self._data = data
        self._strategy = strategy
        self._report = report
        self._evaluate = evaluate
        self._is_judged = True
        self._quality: Quality | None = None

    def train(self, neighbours: Peers | None) -> None:
        """The whole training. `neighbours`: None for a trial alone."""
        order = self._order
        segments = [
            Segment(number=number, steps=self._data.steps_per_epoch, measured=number >= order.warmup_epochs)
            for number in range(order.epochs)
        ]
        if order.until_top1 is not None:
            self._train_until(order.until_top1, segments)
            return
        if neighbours is None:
            for segment in segments:
                self._training.run(segment)
            return
        self._is_judged = False  # left to the trial alone
        for segment in segments[: order.warmup_epochs]:
            self._training.run(segment)
        neighbours.wait_until_warm()
        for segment in segments[order.warmup_epochs :]:
            last = self._training.run(segment)
        neighbours.tell_measured()
        (step_s,) = largest(self._strategy, [late_step_s(last.step_s, 1)])
        more = (self._data.train_epoch(number) for number in itertools.count(order.epochs))
        self._training.fill(
            itertools.chain.from_iterable(more),
            math.ceil(LOOK_S / max(step_s, 1e-6)),
            is_over=neighbours.have_measured,
        )

    def _train_until(self, target: float, segments: list[Segment]) -> None:
        """Epochs, each evaluated after its window, until top-1 is `target` per cent and one epoch was measured.

        It also ends where training has diverged. The ranks' hits are summed before they are compared with the target,
        so all ranks stop after the same epoch.
        """
        reached, times_there = False, 0
        for segment in segments:
            self._training.run(segment)
            self._quality = quality = self._evaluate()
            if quality is None:
                raise UsageError("until_top1 needs a validation split, and the images have none")
            if self._strategy.assignment.local_rank == 0:
                self._report(Evaluated(rank=0, epoch=segment.number, top1_pct=quality[0]))
            is_lost = finite(quality[1]) is None  # a network of no numbers learns nothing more
            times_there = times_there + 1 if quality[0] >= target and not is_lost else 0
            reached = reached or times_there >= 1 + self._order.confirm_top1
            if (reached or is_lost) and segment.measured:
                return

    def close(self) -> None:
        """Ends the loaders."""
        self._data.close()

    def quality(self) -> Quality | None:
        """What the trained network is worth; None where that is left to the trial alone, or there is no such split."""
        if self._quality is None and self._is_judged:
            self._quality = self._evaluate()
        return self._quality
