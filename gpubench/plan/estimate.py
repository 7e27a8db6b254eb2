"""How long trials should take: from results where there are any, else a rough guess, and it says which. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from statistics import median
from typing import Any

from gpubench.plan.resolve import ResolvedTrial
from gpubench.schema.catalog import LOADS, SMALL_MODELS
from gpubench.schema.row import Row
from gpubench.schema.trial import Trial
from gpubench.schema.window import (
    WARM_UP_S,
    choose_window_s,
    count_block_steps,
    count_warm_up_steps,
    count_window_steps,
)

START_S = {"cuda": 4.0, "cpu": 1.0}
"""Process, context, first step, end: seen on an H200 host (mobilenet_v2 takes more, resnet34 less) and on two cores."""
COMMAND_GUESS_S = 60.0
"""Of a command, of which nothing is known."""
LOADER_IMAGES_PER_CPU_S = 400.0
"""Decoding and cropping full-size JPEGs on one core."""
GPU_IMAGES_PER_S = 1500.0
CPU_IMAGES_PER_CPU_S = 12.0
"""A small network at 224×224 on one core; other sizes by their pixels."""
CPU_STEP_S = 0.03
"""Of a step, whatever its batch: mobilenet_v2's layers one after the other, on two cores."""
TINY_IMAGES_PER_CPU_S = 6000.0
"""lenet and its like at 28×28 on one core; and what a step of theirs takes besides."""
TINY_STEP_S = 0.002


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Seconds a trial should take."""

    seconds: float
    known: bool
    """From results of the same model in this folder; otherwise a guess."""
    least_s: float = 0.0
    """It takes at least so long, whatever was guessed: a try that was stopped tells."""


def estimate_trial_times(
    trials: Sequence[tuple[Trial, ResolvedTrial]], rows: Sequence[Row]
) -> list[TimeEstimate]:
    """The time of each trial's process. `rows`: those of trials.csv that are ok."""
    known = _MeasuredTrials(rows)
    return [_estimate_trial_time(t, resolved, known) for t, resolved in trials]


def _estimate_trial_time(t: Trial, resolved: ResolvedTrial, known: _MeasuredTrials) -> TimeEstimate:
    if t.command is not None:
        return known.estimate_by_alike(t, COMMAND_GUESS_S)
    if t.workload == "load":  # a step of a usual size takes no time beside the window
        window_s = choose_window_s(t.window, resolved.device)
        return known.estimate_by_alike(t, START_S[resolved.device] + WARM_UP_S + window_s)
    row = known.find_nearest_row(t)
    rate = row.images_per_s if row is not None else None
    step_s = t.batch_size / rate if rate else _guess_step_s(t, resolved)
    start_s = START_S[resolved.device]
    if t.epochs is not None:
        steps = resolved.train_images // t.batch_size * t.epochs
        return TimeEstimate(start_s + steps * step_s, rate is not None)
    wave = resolved.workers // resolved.processes
    block, plain = count_block_steps(wave, t.sync_every, breakdown=t.breakdown)

    def measuring_s(window: float | None, steps: int | None, step_s: float) -> float:
        """Seconds of warm-up and window. `window`, `steps`: as asked for."""
        count = steps or count_window_steps(choose_window_s(window, resolved.device), step_s, block, plain)
        return max(WARM_UP_S, count_warm_up_steps(wave * t.prefetch) * step_s) + count * step_s

    mine_s = measuring_s(t.window, t.steps, step_s)
    if row is not None and rate and row.batch_size and row.took_s is not None and row.kind == "steady rate":
        # Whatever else it did took as long: it started, prepared its kernels, and ended.
        its_s = measuring_s(row.window, row.steps, row.batch_size / rate)
        return TimeEstimate(max(mine_s, row.took_s - its_s + mine_s), True)
    return TimeEstimate(start_s + mine_s, rate is not None)


def _guess_step_s(t: Trial, resolved: ResolvedTrial) -> float:
    """Seconds of a step, of which nothing is known."""
    cpus = max(1, resolved.all_cpus)
    each_step_s = 0.0
    if resolved.device == "cpu" and t.model in SMALL_MODELS:
        compute, each_step_s = TINY_IMAGES_PER_CPU_S * cpus * (28 / resolved.input_size) ** 2, TINY_STEP_S
    elif resolved.device == "cpu":
        compute, each_step_s = CPU_IMAGES_PER_CPU_S * cpus * (224 / resolved.input_size) ** 2, CPU_STEP_S
    else:
        compute = GPU_IMAGES_PER_S * max(1, len(resolved.gpu_ids) * resolved.nodes)
    loading = LOADER_IMAGES_PER_CPU_S * cpus if resolved.workers else float("inf")
    return t.batch_size / min(compute, loading) + each_step_s


_KIND = ("variant", "strategy", "precision", "execution")


class _MeasuredTrials:
    """What was measured, by kind of trial and by batch size within each kind."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._models: dict[str, dict[tuple[Any, ...], dict[int, Row]]] = {}
        self._others = [row for row in rows if (row.command or row.model in LOADS) and row.took_s]
        for row in rows:
            if row.command is None and row.images_per_s and row.model and row.batch_size:
                kind = (row.input_size, row.gpus, *(getattr(row, name) for name in _KIND))
                self._models.setdefault(row.model, {}).setdefault(kind, {})[row.batch_size] = row

    def estimate_by_alike(self, t: Trial, guess_s: float) -> TimeEstimate:
        """As long as the same command took, or load over the same window: with the same values if there is such a row.

        Else the guess.
        """
        wanted = t.as_json_dict()
        same = [
            row
            for row in self._others
            if row.command == t.command
            and all(row.asked.get(name) == wanted.get(name) for name in ("model", "window", "steps"))
        ]
        alike = [row for row in same if all(row.asked.get(name) == wanted[name] for name in wanted)]
        took_s = [row.took_s or 0.0 for row in alike or same]
        return TimeEstimate(median(took_s), True) if took_s else TimeEstimate(guess_s, False)

    def find_nearest_row(self, t: Trial) -> Row | None:
        """The row of the same model that is most like this trial; None where there is none."""
        wanted = [getattr(t, name) for name in _KIND]
        best: tuple[float, Row] | None = None
        for (size, gpus, *kind), batches in self._models.get(t.model, {}).items():
            if t.input_size not in (None, size):
                continue
            unlike = sum(have != want for have, want in zip(kind, wanted, strict=True))
            batch = (
                t.batch_size if t.batch_size in batches else min(batches, key=lambda b: abs(b - t.batch_size))
            )
            far = 10.0 * unlike + 5.0 * (t.gpus not in (None, 0, gpus)) + abs(batch / t.batch_size - 1)
            if best is None or far < best[0]:
                best = far, batches[batch]
        return best[1] if best else None


RECENT = 5
"""Units whose times say how busy the machine is now."""


class Forecast:
    """How long the units of a sweep should still take: estimated once, then at the pace of those that have run."""

    def __init__(self, seconds: Sequence[float]) -> None:
        """`seconds`: what each unit of the plan should take, in its order; 0 for one that is not to run."""
        self._seconds = list(seconds)
        self._after = [*accumulate(reversed(self._seconds), initial=0.0)][-2::-1]
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)
        """Of the units that ran last how long they took, and should have."""

    def note_duration(self, index: int, seconds: float) -> None:
        """Notes how long the unit at this index really took."""
        if self._seconds[index]:
            self._recent.append((seconds, self._seconds[index]))

    @property
    def pace(self) -> float:
        """How many times as long as estimated those took that have run last; 1 before any has. It follows the load."""
        return (
            sum(took for took, _ in self._recent) / sum(guess for _, guess in self._recent)
            if self._recent
            else 1.0
        )

    def estimate_unit_s(self, index: int) -> float:
        """Seconds that the unit at this index should take in all."""
        return self.pace * self._seconds[index]

    def estimate_rest_s(self, index: int) -> float:
        """Seconds that the units after this index should take."""
        return self.pace * self._after[index]


def format_exact_seconds(seconds: float) -> str:
    """`90 s`, `10 min`, `2 h`: a time that somebody asked for, exactly."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * unit and seconds % unit == 0:
            return f"{seconds / unit:g} {name}"
    return f"{seconds:g} s"


def format_seconds(seconds: float) -> str:
    """`0.02 s`, `40 s`, `3 min`, `2.5 h`."""
    if 0 < seconds < 0.5:  # which is not "0 s"
        return f"{Decimal(f'{seconds:.1g}'):f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
