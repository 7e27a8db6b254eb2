"""Epochs, or the pieces of them that `steps` measures: a row each, and the columns of time that they make. Pure.

An epoch is its fill (until the first batch is there), so many steady steps, and a tail, which is what remains. A wave
is as many steps as a rank has loader workers: these batches are made side by side, and come in a burst. So the steady
steps are whole waves, and the first wave, which the workers make during the fill, is none of them. Nor are the steps at
the end for which nothing is loaded any more, as many as the loaders hold ready: they have the CPUs to themselves.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from gpubench.analysis.certainty.steps import step_mean
from gpubench.record.work import WorkWindow
from gpubench.schema.epoch_times import EXTRAPOLATED, FEWEST_TIMES, MEASURED
from gpubench.schema.events import End, Evaluated, Event, Steps
from gpubench.schema.watched import Window

_US = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRow(WorkWindow):
    """An epoch, or a piece of one."""

    steady: tuple[float, float]
    """When the steady steps began and ended."""
    steps: int
    images: int
    data_wait_s: float
    data_wait_s_by_rank: list[float] | None
    """None: of one rank, which `data_wait_s` tells."""
    first_batch_s: float
    steady_step_s: float
    steady_steps: int
    steady_wait_s: float
    steady_times_s: tuple[float, ...]
    """How long each of the steady steps took, in their order; not stored."""
    tail_s: float
    train_loss: float
    top1_pct: float | None
    """What the evaluation after it gave, where there was one."""

    def stored(self) -> dict[str, Any]:
        left_out = {"t0", "t1", "steady", "steady_times_s"} | (
            {"data_wait_s_by_rank"} if self.data_wait_s_by_rank is None else set()
        )
        return {name: value for name, value in asdict(self).items() if name not in left_out}


def epoch_rows(
    events: Sequence[Event], *, ranks: int, batch_size: int, wave: int, ahead: int
) -> list[EpochRow]:
    """One row an epoch that every rank finished, with top-1 where it was told.

    `wave`: loader workers of a rank. `ahead`: batches that they hold ready together; 0 without loaders.

    Every time is the slowest rank's. The ranks of a step wait for each other: a step starved for as long as that one
    of them which starved longest for its batch.
    """
    top1: dict[int, float] = {}
    ends: dict[int, list[End]] = {}
    steps: dict[tuple[int, int], list[Steps]] = {}
    for event in events:
        match event:
            case Evaluated():
                top1[event.epoch] = event.top1_pct
            case End():
                ends.setdefault(event.epoch, []).append(event)
            case Steps():
                steps.setdefault((event.epoch, event.rank), []).append(event)
    rows = []
    for number, parts in sorted(ends.items()):
        if len(parts) < ranks:
            continue
        told = [steps[number, rank] for rank in range(ranks)]
        ended_us = [list(chain.from_iterable(m.end_us for m in messages)) for messages in told]
        waits_us = [list(chain.from_iterable(m.wait_us for m in messages)) for messages in told]
        starved_us = [max(waits) for waits in zip(*waits_us, strict=True)]
        count = parts[0].steps
        steady = steady_steps(count, wave, ahead)
        # Of a piece that is too short, the best there is: whole waves after the first, or its steps after the first.
        even = steady or steady_steps(count, wave, 0) or range(1, count)
        epoch_time, fill = max(p.t1 - p.t0 for p in parts), max(p.first_batch_s for p in parts)
        t0, t1 = min(p.t0 for p in parts), max(p.t1 for p in parts)
        step_s = (
            max(_mean_step_us(one, even) for one in ended_us) * _US if even else max(0.0, epoch_time - fill)
        )
        rows.append(
            EpochRow(
                epoch=number,
                warmup=not parts[0].measured,
                t0=t0,
                t1=t1,
                steady=_when(ended_us[0], even, parts[0]) if even else (t0 + fill, t1),
                epoch_time_s=epoch_time,
                steps=count,
                images=count * batch_size,
                data_wait_s=sum(starved_us) * _US,
                data_wait_s_by_rank=[sum(one) * _US for one in waits_us] if ranks > 1 else None,
                first_batch_s=fill,
                steady_step_s=step_s,
                steady_steps=len(steady),
                steady_times_s=tuple(_US * (ended_us[0][k] - ended_us[0][k - 1]) for k in steady),
                steady_wait_s=statistics.fmean(starved_us[k] for k in even) * _US if even else 0.0,
                tail_s=epoch_time - fill - count * step_s,
                train_loss=parts[0].train_loss,
                top1_pct=top1.get(number),
            )
        )
    return rows


def steady_steps(count: int, wave: int, ahead: int) -> range:
    """Those of `count` steps that come as fast as loaders and device keep up side by side.

    Empty for less than two waves and the batches that the loaders hold ready.
    """
    return range(wave, max(wave, (count - ahead) // wave * wave))


def _mean_step_us(ended_us: Sequence[int], steps: range) -> float:
    """Mean microseconds of these steps, which follow each other; there is one before them."""
    return (ended_us[steps[-1]] - ended_us[steps[0] - 1]) / len(steps)


def _when(ended_us: Sequence[int], steps: range, window: End) -> tuple[float, float]:
    """From when to when a rank took these steps. The device's clock may run ahead of the host's, which `t1` is of."""
    first, last = (window.t0 + _US * ended_us[k] for k in (steps[0] - 1, steps[-1]))
    return first, min(last, window.t1)


def counted(epochs: Sequence[EpochRow], images_per_epoch: int | None) -> list[EpochRow]:
    """The measured epochs that figures of an epoch are of: the whole ones, or the piece that stands for one.

    None: nobody knows how long an epoch is.
    """
    measured = [e for e in epochs if not e.warmup]
    if images_per_epoch is None:
        return measured
    return [e for e in measured if e.images == images_per_epoch] or measured


def lacks_s(epoch: EpochRow, images_per_epoch: int) -> float:
    """Seconds that a piece of an epoch would have taken longer as a whole one: a steady step for each that it lacks."""
    missing = images_per_epoch / epoch.images - 1
    return missing * epoch.steps * epoch.steady_step_s


def windows_of(epochs: Sequence[EpochRow], images_per_epoch: int | None) -> list[Window]:
    """The epochs, for who watched. Those that figures are not of count as little as a warm-up."""
    own = {e.epoch for e in counted(epochs, images_per_epoch)}
    return [
        Window(e.t0, e.t1, e.epoch, True, e.images / images_per_epoch, e.steady, lacks_s(e, images_per_epoch))
        if e.epoch in own and images_per_epoch
        else Window(e.t0, e.t1, e.epoch, e.epoch in own)
        for e in epochs
    ]


def timing(
    epochs: Sequence[EpochRow], *, steps: int | None, steps_per_epoch: int, batch_size: int
) -> dict[str, Any]:
    """The columns of time and throughput, from the measured epochs (or from `steps` measured steps)."""
    images = steps_per_epoch * batch_size
    measured = [e for e in epochs if not e.warmup]
    own = counted(epochs, images)
    if not own:
        return {}
    if own[0].images == images:
        times = [e.epoch_time_s for e in own]
        epoch_time = statistics.median(times)
        wait_pct = 100 * sum(e.data_wait_s for e in own) / sum(times)
    else:
        (piece,) = own
        more = steps_per_epoch - piece.steps
        epoch_time = piece.epoch_time_s + lacks_s(piece, images)
        wait_pct = 100 * (piece.data_wait_s + more * piece.steady_wait_s) / epoch_time
    spread: dict[str, Any] = {"epoch_time_source": EXTRAPOLATED if steps else MEASURED}
    if not steps:
        spread["epochs_measured"] = len(times)
        if len(times) >= FEWEST_TIMES:
            low, _, high = statistics.quantiles(times, n=4, method="inclusive")
            spread["epoch_time_iqr_s"] = high - low
    told = step_mean([time_s for e in own for time_s in e.steady_times_s])
    if told is not None:
        spread["step_error_pct"] = 100 * told.error
    return {
        "epoch_time_s": epoch_time,
        **spread,
        "images_per_epoch": images,
        "images_per_s": images / epoch_time,
        "data_wait_pct": wait_pct,
        "first_batch_s": statistics.median(e.first_batch_s for e in measured),
    }
