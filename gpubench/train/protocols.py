"""How a process measures: a class for each way, which `choose_protocol` takes by what the order asks.

A protocol trains from the first step to the last, through a `Loop`. A job of a group measures in a class of its own,
which meets the other jobs through `Peers`.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from gpubench.basics.errors import UsageError
from gpubench.basics.finite import finite
from gpubench.schema.events import Evaluated, Told
from gpubench.schema.order import SteadyWindow, TrialOrder, WholeEpochs
from gpubench.schema.window import (
    FEWEST_STEPS,
    SHORT,
    blocks,
    count_window_steps,
    late_step_s,
    warm_up_left,
    warm_up_steps,
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


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSetup:
    """What every protocol trains with."""

    loop: Loop
    data: Data
    strategy: Strategy
    report: Callable[[Told], None]
    evaluate: Evaluate


class MeasuringProtocol(ABC):
    """One way to measure, from the first step of a training to its last."""

    def __init__(self, training: TrainingSetup) -> None:
        self._loop = training.loop
        self._data = training.data
        self._strategy = training.strategy

    @abstractmethod
    def train(self) -> None:
        """The whole training."""

    def close(self) -> None:
        """Ends the loaders."""
        self._data.close()

    @abstractmethod
    def quality(self) -> Quality | None:
        """What the trained network is worth; None where this protocol does not tell, or there is no such split."""


def choose_protocol(order: TrialOrder, training: TrainingSetup, peers: Peers) -> MeasuringProtocol:
    """How this trial measures. `peers`: the other jobs of its group; a trial alone asks nothing of them."""
    protocol, is_alone = order.protocol, order.jobs == 1
    if isinstance(protocol, SteadyWindow):
        stream = Stream(
            workers=order.workers // order.ranks,
            prefetch=order.trial.prefetch,
            sync_every=order.trial.sync_every,
            breakdown=order.trial.breakdown,
        )
        return (
            Steady(protocol, training, stream)
            if is_alone
            else SteadyInGroup(protocol, training, stream, peers)
        )
    if protocol.until_top1 is not None:
        return UntilTop1(protocol, training, protocol.until_top1)
    return Epochs(protocol, training) if is_alone else EpochsInGroup(protocol, training, peers)


# ---------------------------------------------------------------- the steady rate


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """What decides how many steps of a stream are measured together."""

    workers: int
    """Of this rank."""
    prefetch: int
    sync_every: int | None
    breakdown: bool


class Steady(MeasuringProtocol):
    """Warm-up and window of one continuous stream, whose loaders are started once and never wait for a restart."""

    def __init__(self, order: SteadyWindow, training: TrainingSetup, stream: Stream) -> None:
        super().__init__(training)
        self._order = order
        self._wave = stream.workers
        self._ahead = stream.workers * stream.prefetch
        self._block, self._plain = blocks(stream.workers, stream.sync_every, breakdown=stream.breakdown)
        self._stream: Iterator[Any] | None = training.data.stream()
        self._number = itertools.count()

    def train(self) -> None:
        step_s = self._warm_up()
        self._measure(self._count_steps(step_s), step_s)

    def _warm_up(self) -> float:
        """Trains until the loaders, libraries and clocks are in their stride.

        Returns the seconds of the slowest rank's step: the ranks agree on it, and so on the steps of their windows.
        """
        times = self._run(warm_up_steps(self._ahead), measured=False)
        steps_left, step_s = largest(
            self._strategy, [warm_up_left(times, self._wave), late_step_s(times, self._wave)]
        )
        if steps_left:
            times += self._run(round(steps_left), measured=False)
            # Without the batches that loaders had made before the first step.
            (step_s,) = largest(self._strategy, [late_step_s(times[self._ahead :] or times, self._wave)])
        return step_s

    def _count_steps(self, step_s: float) -> int:
        """The steps of the window."""
        return self._order.steps or count_window_steps(
            self._order.window_s or 0.0, step_s, self._block, self._plain
        )

    def _measure(self, steps: int, step_s: float) -> None:
        """Trains the window, and as many steps again where it was far shorter than asked for."""
        seconds = self._segment(steps, step_s)
        asked_s = self._order.window_s
        if asked_s is not None and largest(self._strategy, [seconds])[0] < SHORT * asked_s:
            self._segment(steps, step_s)

    def _segment(self, steps: int, step_s: float) -> float:
        """Trains measured steps; returns their seconds."""
        return sum(self._run(steps, measured=True, seconds=steps * step_s))

    def _run(self, steps: int, *, measured: bool, seconds: float = 0.0) -> list[float]:
        """Trains the next steps of the stream; returns the seconds of each."""
        segment = Segment(number=next(self._number), steps=steps, measured=measured, seconds=seconds)
        return self._loop.run(segment, self._stream).step_s

    def close(self) -> None:
        super().close()
        self._stream = None

    def quality(self) -> Quality | None:
        """None: a rate says nothing of what was learnt."""
        return None


class SteadyInGroup(Steady):
    """The same beside other jobs: figures of a group are of the time in which all of its jobs ran, so each goes on
    measuring until all have their windows."""

    def __init__(self, order: SteadyWindow, training: TrainingSetup, stream: Stream, peers: Peers) -> None:
        super().__init__(order, training, stream)
        self._peers = peers

    def train(self) -> None:
        step_s = self._warm_up()
        # Its window may begin before its neighbours' do, and end after theirs: one step at either end is cut.
        fewest = math.ceil((FEWEST_STEPS + 2) / self._plain) * self._plain
        steps = max(self._count_steps(step_s), fewest)
        self._peers.wait_until_warm()
        if self._wave:  # meanwhile loaders have made all the batches that they hold ready
            self._run(self._ahead + self._wave, measured=False)
        self._measure(steps, step_s)
        self._peers.tell_measured()
        steps_a_look = math.ceil(LOOK_S / max(step_s, 1e-6) / self._plain) * self._plain
        while not self._peers.have_measured():
            self._segment(steps_a_look, step_s)


# ---------------------------------------------------------------- whole epochs


class Epochs(MeasuringProtocol):
    """Whole epochs, each of which starts its loader, and top-1 after the last of them."""

    def __init__(self, order: WholeEpochs, training: TrainingSetup) -> None:
        super().__init__(training)
        self._order = order
        self._evaluate = training.evaluate
        self._segments = [
            Segment(number=number, steps=self._data.steps_per_epoch, measured=number >= order.warmup_epochs)
            for number in range(order.epochs)
        ]

    def train(self) -> None:
        for segment in self._segments:
            self._loop.run(segment)

    def quality(self) -> Quality | None:
        return self._evaluate()


class EpochsInGroup(Epochs):
    """The same beside other jobs: all begin the measured epochs together, and train on until all have theirs."""

    def __init__(self, order: WholeEpochs, training: TrainingSetup, peers: Peers) -> None:
        super().__init__(order, training)
        self._peers = peers

    def train(self) -> None:
        warmup_epochs = self._order.warmup_epochs
        for segment in self._segments[:warmup_epochs]:
            self._loop.run(segment)
        self._peers.wait_until_warm()
        for segment in self._segments[warmup_epochs:]:
            last = self._loop.run(segment)
        self._peers.tell_measured()
        (step_s,) = largest(self._strategy, [late_step_s(last.step_s, 1)])
        more = (self._data.train_epoch(number) for number in itertools.count(self._order.epochs))
        self._loop.fill(
            itertools.chain.from_iterable(more),
            math.ceil(LOOK_S / max(step_s, 1e-6)),
            is_over=self._peers.have_measured,
        )

    def quality(self) -> Quality | None:
        """None: that is left to the trial alone."""
        return None


class UntilTop1(Epochs):
    """Epochs, each evaluated after its window, until top-1 is `target` per cent and one epoch was measured.

    It also ends where training has diverged. The ranks' hits are summed before they are compared with the target,
    so all ranks stop after the same epoch.
    """

    def __init__(self, order: WholeEpochs, training: TrainingSetup, target: float) -> None:
        super().__init__(order, training)
        self._target = target
        self._report = training.report
        self._quality: Quality | None = None

    def train(self) -> None:
        is_reached, times_there = False, 0
        for segment in self._segments:
            self._loop.run(segment)
            self._quality = quality = self._evaluate()
            if quality is None:
                raise UsageError("until_top1 needs a validation split, and the images have none")
            if self._strategy.assignment.local_rank == 0:
                self._report(Evaluated(rank=0, epoch=segment.number, top1_pct=quality[0]))
            is_lost = finite(quality[1]) is None  # a network of no numbers learns nothing more
            times_there = times_there + 1 if quality[0] >= self._target and not is_lost else 0
            is_reached = is_reached or times_there >= 1 + self._order.confirm_top1
            if (is_reached or is_lost) and segment.measured:
                return

    def quality(self) -> Quality | None:
        """Of the last epoch that was trained."""
        return self._quality
