"""What ranks tell of their windows: a row each, and the columns of time that they make. Pure.

Of a stream there are two rows: its warm-up, and its window. Of whole epochs there is one an epoch.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from gpubench.schema.epoch_times import FEWEST_FOR_P95, FEWEST_TIMES, MEASURED, STEADY
from gpubench.schema.events import End, Evaluated, Event, Steps
from gpubench.schema.watched import Window
from gpubench.schema.window import FEWEST_STEPS
from gpubench.stats.steps import estimate_step_mean

_US = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowRow:
    """A window of any work, from its begin to its end: of a command an epoch, or its whole run."""

    epoch: int
    """Its number, from 0."""
    warmup: bool
    t0: float
    """Its begin and end, on the monotonic clock of the machine where it ran."""
    t1: float
    epoch_time_s: float

    def to_record_row(self) -> dict[str, Any]:
        """As a row of a record's `epochs`; its times stand elsewhere."""
        return {name: value for name, value in asdict(self).items() if name not in ("t0", "t1")}


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRow(WindowRow):
    """Of a training an epoch, or the warm-up or the window of a stream."""

    steps: int
    images: int
    data_wait_s: float
    data_wait_s_by_rank: list[float] | None
    """None: of one rank, which `data_wait_s` tells."""
    first_batch_s: float | None
    """None: the stream had begun before."""
    steady_step_s: float
    """Mean seconds of a step; of an epoch of those after the first, which waits for the loaders to start."""
    steady_steps: int
    """Of how many steps that is the mean."""
    step_times_s: tuple[float, ...]
    """How long each of these took, in their order; not stored."""
    train_loss: float
    top1_pct: float | None
    """What the evaluation after it gave, where there was one."""

    def to_record_row(self) -> dict[str, Any]:
        """As of `WindowRow`."""
        row = asdict(self)
        left_out = ("t0", "t1", "step_times_s")
        of_some = ("data_wait_s_by_rank", "first_batch_s")
        return {k: v for k, v in row.items() if k not in left_out and not (k in of_some and v is None)}


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedSegment:
    """A span of training that every rank has finished and told of, all its times those of the slowest rank."""

    number: int
    measured: bool
    t0: float
    t1: float
    """Seconds on the clock of the machine where it ran."""
    seconds: float
    first_batch_s: float
    ends_s: tuple[float, ...]
    """When each of its steps ended, on the same clock."""
    step_s: tuple[float, ...]
    """How long each took, by the first rank."""
    starved_s: tuple[float, ...]
    """How long each starved for its batch: the ranks of a step wait for each other, so as long as the one that starved
    longest."""
    starved_s_by_rank: tuple[float, ...]
    """The sum of each rank's waits."""
    train_loss: float
    top1_pct: float | None


def collect_finished_segments(events: Sequence[Event], *, ranks: int) -> list[FinishedSegment]:
    """Those that every rank has finished, in their order, with top-1 where it was told."""
    top1: dict[int, float] = {}
    ends: dict[int, dict[int, End]] = {}
    steps: dict[tuple[int, int], list[Steps]] = {}
    for event in events:
        match event:
            case Evaluated():
                top1[event.epoch] = event.top1_pct
            case End():
                ends.setdefault(event.epoch, {})[event.rank] = event
            case Steps():
                steps.setdefault((event.epoch, event.rank), []).append(event)
    finished = []
    for number, ends_by_rank in sorted(ends.items()):
        if len(ends_by_rank) < ranks:
            continue
        parts = [ends_by_rank[rank] for rank in range(ranks)]
        ended_us = [[us for m in steps[number, rank] for us in m.end_us] for rank in range(ranks)]
        waits_us = [[us for m in steps[number, rank] for us in m.wait_us] for rank in range(ranks)]
        # The device's clock may run ahead of the host's, which `t1` is of.
        ended_s = [
            [min(part.t0 + _US * us, part.t1) for us in rank_ended_us]
            for part, rank_ended_us in zip(parts, ended_us, strict=True)
        ]
        finished.append(
            FinishedSegment(
                number=number,
                measured=parts[0].measured,
                t0=min(part.t0 for part in parts),
                t1=max(part.t1 for part in parts),
                seconds=max(part.t1 - part.t0 for part in parts),
                first_batch_s=max(part.first_batch_s for part in parts),
                ends_s=tuple(map(max, zip(*ended_s, strict=True))),
                step_s=tuple(_US * (after - before) for before, after in pairwise([0, *ended_us[0]])),
                starved_s=tuple(_US * max(waits) for waits in zip(*waits_us, strict=True)),
                starved_s_by_rank=tuple(_US * sum(waits) for waits in waits_us),
                train_loss=parts[0].train_loss,
                top1_pct=top1.get(number),
            )
        )
    return finished


def make_epoch_rows(events: Sequence[Event], *, ranks: int, batch_size: int) -> list[EpochRow]:
    """One row an epoch."""
    return [
        _make_epoch_row(
            [segment], epoch=segment.number, batch_size=batch_size, skipped=len(segment.step_s) > 1
        )
        for segment in collect_finished_segments(events, ranks=ranks)
    ]


def make_steady_rate_rows(
    events: Sequence[Event],
    *,
    ranks: int,
    batch_size: int,
    block: int = 1,
    shared: tuple[float, float] | None = None,
) -> list[EpochRow]:
    """The warm-up's row, and the window's, of what there is of them.

    `shared`: of a job of a group from when to when all of its jobs measured: its window is of the whole blocks of
    `block` steps inside it, and there is none where these are fewer than FEWEST_STEPS steps.
    """
    every = collect_finished_segments(events, ranks=ranks)
    warm, measured = [s for s in every if not s.measured], [s for s in every if s.measured]
    rows = []
    if warm:
        rows.append(_make_epoch_row(warm, epoch=0, batch_size=batch_size, skipped=1))
    if shared is not None:
        measured = _cut_to_whole_blocks(measured, block, *shared)
    if measured:
        rows.append(_make_epoch_row(measured, epoch=1, batch_size=batch_size, skipped=0, is_begun=True))
    return rows


def find_measured_span(events: Sequence[Event], ranks: int) -> tuple[float, float] | None:
    """From when to when a training measured; None where it has nothing that it measured."""
    measured = [segment for segment in collect_finished_segments(events, ranks=ranks) if segment.measured]
    return (measured[0].t0, measured[-1].t1) if measured else None


def find_common_span(
    spans: Sequence[tuple[float, float] | None],
) -> tuple[float, float] | None:
    """From the last begin to the first end of the spans of jobs of a group; None where one of them has none."""
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return None
    return max(begin for begin, _ in known), min(end for _, end in known)


def _cut_to_whole_blocks(
    measured: Sequence[FinishedSegment], block: int, begin: float, end: float
) -> list[FinishedSegment]:
    """The whole blocks of these segments, which follow each other, between two times, as one segment.

    Of single steps where whole blocks hold too few; none where there are fewer than FEWEST_STEPS.
    """
    if not measured:
        return []
    edges = [measured[0].t0, *(end_s for segment in measured for end_s in segment.ends_s)]
    for size in (block, 1):
        places = [place for place in range(0, len(edges), size) if begin <= edges[place] <= end]
        if places and places[-1] - places[0] >= FEWEST_STEPS:
            break
    else:
        return []
    first, last = places[0], places[-1]
    all_starved_s = tuple(s for segment in measured for s in segment.starved_s)
    starved_s = all_starved_s[first:last]
    share = sum(starved_s) / sum(all_starved_s) if any(all_starved_s) else 0.0
    return [
        FinishedSegment(
            number=measured[0].number,
            measured=True,
            t0=edges[first],
            t1=edges[last],
            seconds=edges[last] - edges[first],
            first_batch_s=0.0,
            ends_s=tuple(edges[first + 1 : last + 1]),
            step_s=tuple(after - before for before, after in pairwise(edges[first : last + 1])),
            starved_s=starved_s,
            starved_s_by_rank=tuple(
                share * sum(waits)
                for waits in zip(*(segment.starved_s_by_rank for segment in measured), strict=True)
            ),
            train_loss=measured[-1].train_loss,
            top1_pct=None,
        )
    ]


def _make_epoch_row(
    parts: Sequence[FinishedSegment], *, epoch: int, batch_size: int, skipped: int, is_begun: bool = False
) -> EpochRow:
    """Segments that follow each other, as one row.

    `skipped`: steps at its begin that tell nothing of a step's time. `is_begun`: the loaders had begun before.
    """
    epoch_time_s = sum(part.seconds for part in parts)
    steps = sum(len(part.step_s) for part in parts)
    times = tuple(s for part in parts for s in part.step_s)[skipped:]
    waits_by_rank = [sum(waits) for waits in zip(*(part.starved_s_by_rank for part in parts), strict=True)]
    return EpochRow(
        epoch=epoch,
        warmup=not parts[0].measured,
        t0=parts[0].t0,
        t1=parts[-1].t1,
        epoch_time_s=epoch_time_s,
        steps=steps,
        images=steps * batch_size,
        data_wait_s=sum(sum(part.starved_s) for part in parts),
        data_wait_s_by_rank=waits_by_rank if len(waits_by_rank) > 1 else None,
        first_batch_s=None if is_begun else parts[0].first_batch_s,
        steady_step_s=statistics.fmean(times) if times else epoch_time_s / steps,
        steady_steps=len(times),
        step_times_s=times,
        train_loss=sum(part.train_loss * len(part.step_s) for part in parts) / steps,
        top1_pct=parts[-1].top1_pct,
    )


def make_windows(rows: Sequence[EpochRow], images_per_epoch: int | None) -> list[Window]:
    """The rows, for who watched. `images_per_epoch`: None where nobody knows how long an epoch is."""
    return [
        Window(row.t0, row.t1, row.epoch, not row.warmup, row.images / (images_per_epoch or row.images))
        for row in rows
    ]


def compute_timing_columns(
    rows: Sequence[EpochRow], *, is_stream: bool, images_per_epoch: int
) -> dict[str, Any]:
    """The columns of time and throughput, from the measured rows."""
    measured = [row for row in rows if not row.warmup]
    if not measured:
        return {}
    seconds = sum(row.epoch_time_s for row in measured)
    columns: dict[str, Any] = {"data_wait_pct": 100 * sum(row.data_wait_s for row in measured) / seconds}
    if is_stream:
        (window,) = measured
        epoch_time_s = seconds * images_per_epoch / window.images
        columns |= {"epoch_time_source": STEADY, "first_batch_s": rows[0].first_batch_s}
    else:
        times = [row.epoch_time_s for row in measured]
        epoch_time_s = statistics.median(times)
        columns |= {
            "epoch_time_source": MEASURED,
            "epochs_measured": len(times),
            "first_batch_s": statistics.median(row.first_batch_s or 0.0 for row in measured),
        }
        if len(times) >= FEWEST_TIMES:
            low, _, high = statistics.quantiles(times, n=4, method="inclusive")
            columns["epoch_time_iqr_s"] = high - low
    steady_s = sorted(time_s for row in measured for time_s in row.step_times_s)
    if steady_s:
        columns["step_time_ms_p50"] = 1e3 * statistics.median(steady_s)
    if len(steady_s) >= FEWEST_FOR_P95:
        columns["step_time_ms_p95"] = 1e3 * steady_s[math.ceil(0.95 * len(steady_s)) - 1]
    mean = estimate_step_mean([time_s for row in measured for time_s in row.step_times_s])
    if mean is not None:
        columns["step_error_pct"] = 100 * mean.error
    return {
        "epoch_time_s": epoch_time_s,
        "images_per_epoch": images_per_epoch,
        "images_per_s": images_per_epoch / epoch_time_s,
        **columns,
    }
