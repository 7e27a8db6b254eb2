"""In which order a training's ranks tell of their work: what doesn't follow from what was told before is none of it.

So whatever reckons with a training's events may rely on them, and what it tells is bounded by what it is to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gpubench.schema.events import (
    AskMemory,
    Begin,
    End,
    Evaluated,
    Filling,
    Result,
    Settle,
    Steps,
    StepsDone,
    Told,
    Warm,
)
from gpubench.schema.order import SteadyWindow, TrialOrder, WholeEpochs
from gpubench.schema.window import WARM_UP_S, warm_up_steps

MOST_WINDOWS_ALONE = 4
"""Of a stream: two that warm up, and two that are measured."""
MOST_WINDOWS_TOGETHER = 100_000
"""Of a job of a group, which goes on until the others have measured."""
MAX_STEPS_PER_S = 100_000
"""More than any device takes: launching an empty kernel takes longer."""

TrainingWindow = tuple[int, int, bool]
"""Number of the epoch, steps, whether it counts."""


class TrainingEvents:
    """What the ranks of a training tell between their hello and their end."""

    def __init__(self, order: TrialOrder, clock: Callable[[], float]) -> None:
        self._ranks = [_Rank(order, rank, clock) for rank in range(order.ranks)]
        self._lacking = order.ranks
        self._lengths: dict[int, int] = {}
        """Epoch -> its steps, as the first rank that began it told."""

    def violation(self, event: Told) -> str:
        """Why the event does not follow from those before; empty where it does, which is then noted."""
        if isinstance(event, Begin) and self._lengths.setdefault(event.epoch, event.steps) != event.steps:
            return "of more or fewer steps than another rank's"
        if why := self._ranks[event.rank].violation(event):
            return why
        if isinstance(event, Result):
            self._lacking -= 1
            if not self._lacking and any(rank.windows != self._ranks[0].windows for rank in self._ranks):
                return "after other epochs than other ranks"
        return ""


class _Rank:
    """One of them."""

    def __init__(self, order: TrialOrder, rank: int, clock: Callable[[], float]) -> None:
        self._rank = rank
        self._clock = clock
        self._gpus = len(order.gpu_uuids)
        # Both are there to bound what is kept.
        match order.protocol:
            case WholeEpochs(epochs=epochs):
                self._is_whole, self._most_windows = True, epochs
                # Loaders may drop fewer images than a whole batch would.
                self._most_steps = 2 * ((order.data.train_images or 0) // order.trial.batch_size) + 1
            case SteadyWindow(window_s=window_s, steps=steps):
                self._is_whole = False
                self._most_windows = MOST_WINDOWS_ALONE if order.jobs == 1 else MOST_WINDOWS_TOGETHER
                self._most_steps = max(
                    steps or 0,
                    warm_up_steps(order.workers * order.trial.prefetch),
                    math.ceil(MAX_STEPS_PER_S * max(window_s or 0.0, WARM_UP_S))
                    + 2 * (order.trial.sync_every or 0),
                )
        self._free_from = clock()
        """Until when the rank is accounted for: its next window can't have begun earlier."""
        self.windows: list[TrainingWindow] = []
        """Those that have ended."""
        self._window: TrainingWindow | None = None
        """The one under way."""
        self._told = 0
        """Steps of it whose times were told."""
        self._last_us = 0
        self._epochs_evaluated = 0
        self._said: set[str] = set()
        """What is said once, and has been."""

    def violation(self, event: Told) -> str:
        """Why the event does not follow from those before; empty where it does, which is then noted."""
        match event:
            case Begin():
                return self._begin(event)
            case StepsDone():
                of_now = self._window is not None and self._window[0] == event.epoch
                return "" if of_now and event.step <= self._window_steps else "of another epoch"
            case Steps():
                return self._steps(event)
            case End():
                return self._end(event)
            case AskMemory():
                return ""
        if self._window is not None:
            return "in the middle of an epoch"
        match event:
            case Evaluated():
                return self._evaluated(event)
            case Result():
                return self._result(event)
            case Warm():
                return self._once(event.event)
            case Settle() | Filling():
                return self._once(event.event) if self._rank == 0 else "of another rank than the first"
        return "of another kind of work"

    def _once(self, word: str) -> str:
        if word in self._said:
            return "twice"
        self._said.add(word)
        return ""

    @property
    def _window_steps(self) -> int:
        return self._window[1] if self._window else 0

    def _begin(self, event: Begin) -> str:
        if self._window is not None or event.epoch != len(self.windows) or event.epoch >= self._most_windows:
            return "of an epoch that is not the next"
        if event.steps > self._most_steps:
            return f"of {event.steps} steps, more than there can be"
        self._window = event.epoch, event.steps, event.measured
        self._told, self._last_us = 0, 0
        return ""

    def _steps(self, event: Steps) -> str:
        if self._window is None or self._window[0] != event.epoch:
            return "of another epoch"
        self._told += len(event.end_us)
        if len(event.wait_us) != len(event.end_us) or self._told > self._window_steps:
            return "of more or fewer steps than the epoch has"
        ends = [self._last_us, *event.end_us]
        self._last_us = ends[-1]
        return "" if ends == sorted(ends) else "whose steps end before they begin"

    def _end(self, event: End) -> str:
        if self._window != (event.epoch, event.steps, event.measured) or self._told != event.steps:
            return "of another epoch, or of more or fewer steps than it has"
        if not self._free_from <= event.t0 < event.t1 <= self._clock():
            return f"of an epoch from {event.t0:.3f} s to {event.t1:.3f} s, which is not when it ran"
        self._free_from = event.t1
        self.windows.append(self._window)
        self._window = None
        return ""

    def _evaluated(self, event: Evaluated) -> str:
        if self._rank or self._epochs_evaluated >= len(self.windows) or event.epoch != len(self.windows) - 1:
            return "of another epoch"
        self._epochs_evaluated = len(self.windows)
        return ""

    def _result(self, event: Result) -> str:
        lengths = {steps for _, steps, _ in self.windows}
        if not any(measured for _, _, measured in self.windows):
            return "before it has trained"
        if self._is_whole and lengths != {event.steps_per_epoch}:
            return "of other epochs than it has told of"
        if event.memory and any(int(index) >= self._gpus for index in event.memory.devices):
            return "of GPUs that the trial has not got"
        if event.breakdown and (event.breakdown.comm_ms is None) != (event.breakdown.comm_hidden_ms is None):
            return "with one part of the exchange and without the other"
        return ""
