"""How a process measures: a class for each way, which `make_protocol` takes by what the order asks.

A protocol trains from the first step to the last, through a `TrainingLoop`. A job of a group meets the others by its
`PeerJobs`; figures of a group are of the time in which all of its jobs ran.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import torch

from gpubench.basics.errors import UsageError
from gpubench.basics.finite import replace_non_finite
from gpubench.schema.events import Evaluated, Filling, ParentChannel, Warm
from gpubench.schema.order import SteadyWindow, TrialOrder, WholeEpochs
from gpubench.schema.window import (
    FEWEST_STEPS,
    SHORT,
    compute_late_step_s,
    count_block_steps,
    count_missing_warm_up_steps,
    count_warm_up_steps,
    count_window_steps,
)
from gpubench.train.loop import Segment, TrainingLoop
from gpubench.train.strategies.contract import Strategy

LOOK_S = 1.0
"""How long a job that has its window goes on before it asks again whether the others have theirs."""
FOR_EVER_S = 30 * 86_400.0
"""For answers that only the parent's own deadline limits."""

Quality = tuple[float, float]
"""Top-1 in per cent and cross-entropy, on the validation split."""
Evaluate = Callable[[], Quality | None]


def compute_max_over_ranks(strategy: Strategy, values: list[float]) -> list[float]:
    """The largest of each value over the ranks, which all call this with their own."""
    assignment = strategy.assignment
    if assignment.world == 1:
        return values
    table = torch.zeros((assignment.world, len(values)), device=assignment.device, dtype=torch.float64)
    table[assignment.rank] = torch.tensor(values, dtype=torch.float64)
    return [float(value) for value in strategy.sum_over_ranks(table).amax(dim=0)]


class PeerJobs:
    """The other jobs of a group, of which the parent knows."""

    def __init__(self, channel: ParentChannel, strategy: Strategy, phases: dict[str, float]) -> None:
        """`phases`: where the seconds that are spent on them are booked."""
        self._channel = channel
        self._strategy = strategy
        self._rank = strategy.assignment.local_rank
        self._phases = phases
        self._measured_at = 0.0

    def wait_until_warm(self) -> None:
        """Returns when every job of the group is warm. Each rank asks: a collective would keep its GPU busy."""
        began = monotonic()
        self._channel.ask(Warm(rank=self._rank), FOR_EVER_S)
        self._phases["wait_for_jobs"] = monotonic() - began

    def tell_measured(self) -> None:
        """This job has its window, or its epochs."""
        self._measured_at = monotonic()
        if self._rank == 0:
            self._channel.send(Filling(rank=0, at=self._measured_at))

    def have_all_measured(self) -> bool:
        """Whether all jobs have theirs. All ranks of this one ask together, and hear the same."""
        is_told = self._rank == 0 and self._channel.receive(0) is not None
        (is_over,) = compute_max_over_ranks(self._strategy, [float(is_told)])
        self._phases["fill"] = monotonic() - self._measured_at
        return bool(is_over)


def make_protocol(
    order: TrialOrder, loop: TrainingLoop, evaluate: Evaluate, peers: PeerJobs
) -> SteadyProtocol | EpochsProtocol:
    """How this trial measures. `peers`: the other jobs of its group; a trial alone asks nothing of them."""
    protocol, others = order.protocol, peers if order.jobs > 1 else None
    if isinstance(protocol, SteadyWindow):
        return SteadyProtocol(order, protocol, loop, others)
    assert isinstance(protocol, WholeEpochs)
    if protocol.until_top1 is not None:
        return UntilTop1Protocol(protocol, loop, evaluate)
    return EpochsProtocol(protocol, loop, evaluate, others)


# ---------------------------------------------------------------- the steady rate


class SteadyProtocol:
    """Warm-up and window of one continuous stream, whose loaders are started once and never wait for a restart."""

    def __init__(
        self, order: TrialOrder, window: SteadyWindow, loop: TrainingLoop, peers: PeerJobs | None = None
    ) -> None:
        """`peers`: the other jobs of its group, where it has any."""
        trial = order.trial
        self._window = window
        self._loop = loop
        self._peers = peers
        self._wave = order.workers // order.ranks
        self._ahead = self._wave * trial.prefetch
        self._block, self._plain = count_block_steps(self._wave, trial.sync_every, breakdown=trial.breakdown)
        self._stream: Iterator[Any] | None = loop.data.iterate_stream()
        self._number = itertools.count()

    def train(self) -> None:
        """The whole training. A job of a group goes on measuring until all jobs have their windows."""
        step_s = self._warm_up()
        steps = self._window.steps or count_window_steps(
            self._window.window_s or 0.0, step_s, self._block, self._plain
        )
        if self._peers is None:
            self._train_measured_window(steps, step_s)
            return
        # Its window may begin before its neighbours' do, and end after theirs: one step at either end is cut.
        steps = max(steps, math.ceil((FEWEST_STEPS + 2) / self._plain) * self._plain)
        self._peers.wait_until_warm()
        if self._wave:  # meanwhile loaders have made all the batches that they hold ready
            self._train_steps(self._ahead + self._wave, measured=False)
        self._train_measured_window(steps, step_s)
        self._peers.tell_measured()
        steps_a_look = math.ceil(LOOK_S / max(step_s, 1e-6) / self._plain) * self._plain
        while not self._peers.have_all_measured():
            self._train_measured_steps(steps_a_look, step_s)

    def _warm_up(self) -> float:
        """Trains until the loaders, libraries and clocks are in their stride.

        Returns the seconds of the slowest rank's step: the ranks agree on it, and so on the steps of their windows.
        """
        times = self._train_steps(count_warm_up_steps(self._ahead), measured=False)
        strategy = self._loop.strategy
        steps_left, step_s = compute_max_over_ranks(
            strategy, [count_missing_warm_up_steps(times, self._wave), compute_late_step_s(times, self._wave)]
        )
        if steps_left:
            times += self._train_steps(round(steps_left), measured=False)
            # Without the batches that loaders had made before the first step.
            (step_s,) = compute_max_over_ranks(
                strategy, [compute_late_step_s(times[self._ahead :] or times, self._wave)]
            )
        return step_s

    def _train_measured_window(self, steps: int, step_s: float) -> None:
        """Trains the window, and as many steps again where it was far shorter than asked for."""
        seconds = self._train_measured_steps(steps, step_s)
        asked_s = self._window.window_s
        if (
            asked_s is not None
            and compute_max_over_ranks(self._loop.strategy, [seconds])[0] < SHORT * asked_s
        ):
            self._train_measured_steps(steps, step_s)

    def _train_measured_steps(self, steps: int, step_s: float) -> float:
        """Trains measured steps; returns their seconds."""
        return sum(self._train_steps(steps, measured=True, seconds=steps * step_s))

    def _train_steps(self, steps: int, *, measured: bool, seconds: float = 0.0) -> list[float]:
        """Trains the next steps of the stream; returns the seconds of each."""
        segment = Segment(number=next(self._number), steps=steps, measured=measured, seconds=seconds)
        return self._loop.train_segment(segment, self._stream).step_s

    def close(self) -> None:
        """Ends the loaders."""
        self._loop.data.close()
        self._stream = None

    def evaluate_quality(self) -> Quality | None:
        """None: a rate says nothing of what was learnt."""
        return None


# ---------------------------------------------------------------- whole epochs


class EpochsProtocol:
    """Whole epochs, each of which starts its loader, and top-1 after the last of them."""

    def __init__(
        self, order: WholeEpochs, loop: TrainingLoop, evaluate: Evaluate, peers: PeerJobs | None = None
    ) -> None:
        """`peers`: the other jobs of its group, where it has any."""
        self._order = order
        self._loop = loop
        self._evaluate = evaluate
        self._peers = peers
        self._segments = [
            Segment(number=number, steps=loop.data.steps_per_epoch, measured=number >= order.warmup_epochs)
            for number in range(order.epochs)
        ]

    def train(self) -> None:
        """The whole training. Jobs of a group begin the measured epochs together, and go on until all have theirs."""
        for segment in self._segments:
            if self._peers is not None and segment.number == self._order.warmup_epochs:
                self._peers.wait_until_warm()
            last = self._loop.train_segment(segment)
        if self._peers is None:
            return
        self._peers.tell_measured()
        (step_s,) = compute_max_over_ranks(self._loop.strategy, [compute_late_step_s(last.step_s, 1)])
        more = (self._loop.data.iterate_epoch(number) for number in itertools.count(self._order.epochs))
        self._loop.train_until_over(
            itertools.chain.from_iterable(more),
            math.ceil(LOOK_S / max(step_s, 1e-6)),
            is_over=self._peers.have_all_measured,
        )

    def close(self) -> None:
        """Ends the loaders."""
        self._loop.data.close()

    def evaluate_quality(self) -> Quality | None:
        """What the trained network is worth; None in a group, which leaves it to the trial alone, or without images."""
        return self._evaluate() if self._peers is None else None


class UntilTop1Protocol(EpochsProtocol):
    """Epochs, each evaluated after its window, until top-1 is the target and one epoch was measured.

    It also ends where training has diverged. The ranks' hits are summed before they are compared with the target,
    so all ranks stop after the same epoch.
    """

    _quality: Quality | None = None

    def train(self) -> None:
        assert self._order.until_top1 is not None
        is_reached, times_there = False, 0
        for segment in self._segments:
            self._loop.train_segment(segment)
            self._quality = quality = self._evaluate()
            if quality is None:
                raise UsageError("until_top1 needs a validation split, and the images have none")
            if self._loop.strategy.assignment.local_rank == 0:
                self._loop.report(Evaluated(rank=0, epoch=segment.number, top1_pct=quality[0]))
            is_lost = replace_non_finite(quality[1]) is None  # a network of no numbers learns nothing more
            times_there = times_there + 1 if quality[0] >= self._order.until_top1 and not is_lost else 0
            is_reached = is_reached or times_there >= 1 + self._order.confirm_top1
            if (is_reached or is_lost) and segment.measured:
                return

    def evaluate_quality(self) -> Quality | None:
        """Of the last epoch that was trained."""
        return self._quality
