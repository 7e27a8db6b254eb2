"""Rows of epochs and of streams, what they are made of, and the columns of time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from msgspec import structs
from whole_epochs import epoch_row

from gpubench.record.epochs import (
    EpochRow,
    compute_timing_columns,
    find_common_span,
    find_measured_span,
    make_epoch_rows,
    make_steady_rate_rows,
    make_windows,
)
from gpubench.schema.events import End, Evaluated, Event, Steps
from gpubench.stats.steps import estimate_step_mean

BATCH = 16


def told(
    rank: int,
    ends_s: Sequence[float],
    waits_s: Sequence[float],
    *,
    epoch: int = 0,
    t0: float | None = None,
    measured: bool = True,
    after_s: float = 0.0,
    train_loss: float = 1.0,
) -> list[Event]:
    """What a rank says of one segment: its steps in several messages, then its end, `after_s` after the last of them.

    They begin 50 s after each other unless `t0` says when.
    """
    t0 = 100.0 + 50 * epoch if t0 is None else t0
    ends, waits = ([round(1e6 * t) for t in times] for times in (ends_s, waits_s))
    steps = [
        Steps(rank=rank, epoch=epoch, end_us=ends[k : k + 7], wait_us=waits[k : k + 7])
        for k in range(0, len(ends), 7)
    ]
    end = End(
        rank=rank, epoch=epoch, measured=measured, steps=len(ends), t0=t0, t1=t0 + ends_s[-1] + after_s,
        first_batch_s=waits_s[0], train_loss=train_loss,
    )  # fmt: skip
    return [*steps, end]


def even(count: int, step_s: float, *, rank: int = 0, wait_s: float = 0.0, **more: Any) -> list[Event]:
    """A segment of so many equal steps."""
    return told(rank, [step_s * (k + 1) for k in range(count)], [wait_s] * count, **more)


def mixed(*ranks: list[Event]) -> list[Event]:
    """As they come: a message of each rank in turn."""
    return [event for turn in itertools.zip_longest(*ranks) for event in turn if event]


def rows(*ranks: list[Event]) -> list[EpochRow]:
    return make_epoch_rows(mixed(*ranks), ranks=len(ranks), batch_size=BATCH)


def of_epochs(found: Sequence[EpochRow], images_per_epoch: int = 64) -> dict[str, Any]:
    return compute_timing_columns(found, is_stream=False, images_per_epoch=images_per_epoch)


# ---------------------------------------------------------------- data wait over ranks


def test_each_step_waits_for_the_rank_that_starves_longest() -> None:
    (row,) = rows(even(10, 0.2, wait_s=0.01), even(10, 0.2, rank=1, wait_s=0.15))
    assert row.data_wait_s == pytest.approx(1.5)
    assert row.data_wait_s_by_rank == pytest.approx([0.1, 1.5])


def test_ranks_that_starve_in_turn_stall_all_of_the_time() -> None:
    ends = [0.2 * (k + 1) for k in range(10)]
    first, second = ([0.15 if k % 2 == turn else 0.0 for k in range(10)] for turn in (0, 1))
    (row,) = rows(told(0, ends, first), told(1, ends, second))
    assert row.data_wait_s_by_rank == pytest.approx([0.75, 0.75])
    assert of_epochs([row])["data_wait_pct"] == pytest.approx(75)


def test_of_one_rank_its_waits_are_told_once() -> None:
    (row,) = rows(told(0, [1.0, 2.0], [0.5, 0.25]))
    assert row.data_wait_s == pytest.approx(0.75)
    assert "data_wait_s_by_rank" not in row.to_record_row()


# ---------------------------------------------------------------- epochs


def test_a_row_says_all_that_is_known_of_its_epoch() -> None:
    """Two ranks, of which the second begins later and ends later; and how the epoch was evaluated."""
    ends = [1.0, 1.5, 2.25]
    first, second = told(0, ends, [0.5, 0, 0], epoch=3), told(1, ends, [0.25, 0, 0], epoch=3)
    (*steps, end) = second
    assert isinstance(end, End)
    second = [*steps, structs.replace(end, t0=250.5, t1=253.0)]
    evaluated = Evaluated(rank=0, epoch=3, top1_pct=71.5)
    found = make_epoch_rows([*first, *second, evaluated], ranks=2, batch_size=BATCH)
    assert found == [
        EpochRow(
            epoch=3,
            warmup=False,
            t0=250.0,
            t1=253.0,
            epoch_time_s=2.5,
            steps=3,
            images=3 * BATCH,
            data_wait_s=pytest.approx(0.5),
            data_wait_s_by_rank=pytest.approx([0.5, 0.25]),
            first_batch_s=0.5,
            steady_step_s=pytest.approx(0.625),
            steady_steps=2,
            step_times_s=pytest.approx((0.5, 0.75)),
            train_loss=1.0,
            top1_pct=71.5,
        )
    ]


def test_of_one_step_alone_the_time_is_its_own() -> None:
    (row,) = rows(told(0, [1.5], [1.3]))
    assert (row.steady_step_s, row.steady_steps) == (pytest.approx(1.5), 1)


def test_only_epochs_that_every_rank_finished_have_a_row() -> None:
    begun = even(2, 1.0)
    done = [event for rank in (0, 1) for event in even(2, 1.0, rank=rank, epoch=1)]
    (row,) = make_epoch_rows([*begun, *done], ranks=2, batch_size=BATCH)
    assert (row.epoch, row.top1_pct) == (1, None)


def lasting(*seconds: float) -> list[EpochRow]:
    """An epoch of four steps each."""
    made = (told(0, [s / 4, s / 2, 3 * s / 4, s], [0.1, 0, 0, 0], epoch=k) for k, s in enumerate(seconds))
    return rows([event for window in made for event in window])


def test_the_columns_of_measured_epochs() -> None:
    """Median 3 of 1, 2, 3, 6 and 10 s; quartiles 2 and 6 s. A warm-up is none of them."""
    warm, *others = lasting(99.0, 1.0, 2.0, 3.0, 6.0, 10.0)
    others = [replace(row, first_batch_s=0.1 * row.epoch) for row in others]
    assert of_epochs([replace(warm, warmup=True, first_batch_s=9.0), *others]) == {
        "epoch_time_s": pytest.approx(3.0),
        "epoch_time_source": "measured",
        "epochs_measured": 5,
        "epoch_time_iqr_s": pytest.approx(4.0),
        "images_per_epoch": 64,
        "images_per_s": pytest.approx(64 / 3),
        "data_wait_pct": pytest.approx(100 * 0.5 / 22),
        "first_batch_s": pytest.approx(0.3),
        "step_time_ms_p50": pytest.approx(750.0),
    }


def test_percentiles_are_of_steady_steps_and_the_95th_of_twenty_at_least() -> None:
    """An epoch's first step waits for the loaders to fill. Of 20 steps the second longest is the percentile."""
    ends = list(itertools.accumulate([9.0, *(0.01 * k for k in range(1, 21))]))
    twenty, nineteen = (rows(told(0, ends[:count], [0.0] * count)) for count in (21, 20))
    assert of_epochs(twenty)["step_time_ms_p50"] == pytest.approx(105.0)
    assert of_epochs(twenty)["step_time_ms_p95"] == pytest.approx(190.0)
    assert of_epochs(nineteen)["step_time_ms_p50"] == pytest.approx(100.0)
    assert "step_time_ms_p95" not in of_epochs(nineteen)


def test_three_epochs_have_a_spread_and_two_have_none() -> None:
    three, two = of_epochs(lasting(1.0, 2.0, 4.0)), of_epochs(lasting(1.0, 2.0))
    assert (three["epochs_measured"], three["epoch_time_iqr_s"]) == (3, pytest.approx(1.5))
    assert two["epochs_measured"] == 2
    assert "epoch_time_iqr_s" not in two


def test_nothing_measured_has_no_columns() -> None:
    assert of_epochs([epoch_row(warmup=True)]) == {}


# ---------------------------------------------------------------- streams


def lengthened(rank: int = 0) -> list[Event]:
    """A warm-up in two parts, and a window that got as many steps again: of 0.2 s, then of 0.3 s."""
    return [
        *told(rank, [2.0, 2.5], [1.5, 0.0], measured=False, t0=10.0, train_loss=4.0),
        *even(6, 0.125, rank=rank, epoch=1, measured=False, t0=12.75, train_loss=2.0),
        *even(4, 0.2, rank=rank, epoch=2, t0=14.0, wait_s=0.05, train_loss=3.0),
        *even(4, 0.3, rank=rank, epoch=3, t0=15.0, wait_s=0.1, after_s=0.1, train_loss=2.0),
    ]


def test_a_stream_has_the_row_of_its_warm_up_and_that_of_its_window() -> None:
    """Pauses between their parts are in neither."""
    warm, window = make_steady_rate_rows(mixed(lengthened(), lengthened(1)), ranks=2, batch_size=BATCH)
    assert warm == EpochRow(
        epoch=0,
        warmup=True,
        t0=10.0,
        t1=13.5,
        epoch_time_s=pytest.approx(3.25),
        steps=8,
        images=8 * BATCH,
        data_wait_s=pytest.approx(1.5),
        data_wait_s_by_rank=pytest.approx([1.5, 1.5]),
        first_batch_s=1.5,
        steady_step_s=pytest.approx(1.25 / 7),
        steady_steps=7,
        step_times_s=pytest.approx((0.5, *[0.125] * 6)),
        train_loss=2.5,
        top1_pct=None,
    )
    assert window == EpochRow(
        epoch=1,
        warmup=False,
        t0=14.0,
        t1=pytest.approx(16.3),
        epoch_time_s=pytest.approx(0.8 + 1.3),
        steps=8,
        images=8 * BATCH,
        data_wait_s=pytest.approx(0.6),
        data_wait_s_by_rank=pytest.approx([0.6, 0.6]),
        first_batch_s=None,
        steady_step_s=pytest.approx(0.25),
        steady_steps=8,
        step_times_s=pytest.approx((0.2,) * 4 + (0.3,) * 4),
        train_loss=2.5,
        top1_pct=None,
    )


def test_the_columns_of_a_stream_are_those_of_its_rate() -> None:
    """128 images in 2.1 s; the first batch is the one that its loaders were started for."""
    found = compute_timing_columns(
        make_steady_rate_rows(lengthened(), ranks=1, batch_size=BATCH), is_stream=True, images_per_epoch=1000
    )
    assert found == {
        "epoch_time_s": pytest.approx(1000 * 2.1 / 128),
        "epoch_time_source": "steady",
        "images_per_epoch": 1000,
        "images_per_s": pytest.approx(128 / 2.1),
        "data_wait_pct": pytest.approx(100 * 0.6 / 2.1),
        "first_batch_s": 1.5,
        "step_time_ms_p50": pytest.approx(250.0),
    }
    assert found["images_per_s"] * found["epoch_time_s"] == pytest.approx(found["images_per_epoch"])


def test_a_stream_that_broke_has_the_rows_that_it_came_to() -> None:
    warm_up, none = (lengthened()[:4], lengthened()[:1])
    (row,) = make_steady_rate_rows(warm_up, ranks=1, batch_size=BATCH)
    assert row.warmup
    assert make_steady_rate_rows(none, ranks=1, batch_size=BATCH) == []
    assert compute_timing_columns([row], is_stream=True, images_per_epoch=64) == {}


def test_who_watches_is_told_what_part_of_an_epoch_each_row_is() -> None:
    made = make_steady_rate_rows(lengthened(), ranks=1, batch_size=BATCH)
    warm, window = make_windows(made, 1024)
    assert (warm.measured, warm.epochs, warm.t0, warm.t1) == (False, 8 * BATCH / 1024, 10.0, 13.5)
    assert (window.measured, window.epochs, window.epoch) == (True, 8 * BATCH / 1024, 1)
    # Nobody knows how long an epoch is.
    assert [one.epochs for one in make_windows(made, None)] == [1.0, 1.0]


def test_the_error_of_a_step_is_of_all_steps_of_the_window_and_of_epochs_without_their_first() -> None:
    times = [0.1 + 0.001 * (k * 7 % 13) for k in range(60)]
    parts = [list(itertools.accumulate(part)) for part in (times[:24], times[24:])]
    waits = [0.0] * 36
    found = [told(0, ends, waits[: len(ends)], epoch=k) for k, ends in enumerate(parts)]
    events = [event for part in found for event in part]
    stream = compute_timing_columns(
        make_steady_rate_rows(events, ranks=1, batch_size=1)[-1:], is_stream=True, images_per_epoch=60
    )["step_error_pct"]
    whole = estimate_step_mean(times)
    assert whole
    assert stream == pytest.approx(100 * whole.error, rel=1e-3)
    later = estimate_step_mean([*times[1:24], *times[25:]])
    assert later
    epochs = of_epochs(make_epoch_rows(events, ranks=1, batch_size=1))["step_error_pct"]
    assert epochs == pytest.approx(100 * later.error, rel=1e-3) != pytest.approx(stream, rel=1e-3)


# ---------------------------------------------------------------- jobs of a group


def together(
    begin_s: float, end_s: float, *, block: int = 4, count: int = 12, **more: Any
) -> EpochRow | None:
    """The window of a job whose steps of 0.25 s begin at 100 s, cut to a time that is counted from there."""
    made = make_steady_rate_rows(
        even(count, 0.25, **more),
        ranks=1,
        batch_size=BATCH,
        block=block,
        shared=(100 + begin_s, 100 + end_s),
    )
    return made[0] if made else None


@pytest.mark.parametrize(
    ("begin_s", "end_s", "first_s", "last_s"),
    [
        (0.0, 3.0, 0.0, 3.0),
        (-9.0, 9.0, 0.0, 3.0),
        (0.001, 3.0, 1.0, 3.0),
        (0.0, 2.999, 0.0, 2.0),
        (0.999, 2.001, 1.0, 2.0),
        (1.0, 2.0, 1.0, 2.0),
        # No whole block: single steps.
        (1.001, 2.0, 1.25, 2.0),
        (1.0, 1.999, 1.0, 1.75),
        (1.249, 2.001, 1.25, 2.0),
    ],
)
def test_figures_of_a_job_are_of_whole_blocks_in_the_time_that_all_measured(
    begin_s: float, end_s: float, first_s: float, last_s: float
) -> None:
    row = together(begin_s, end_s)
    assert row
    assert (row.t0, row.t1) == (pytest.approx(100 + first_s), pytest.approx(100 + last_s))
    assert row.epoch_time_s == pytest.approx(last_s - first_s)
    assert row.steps == len(row.step_times_s) == round((last_s - first_s) / 0.25)
    assert row.images == row.steps * BATCH
    assert row.steady_step_s == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("begin_s", "end_s", "block"),
    [(1.001, 1.999, 4), (1.26, 1.74, 4), (0.1, 0.9, 1), (0.4, 1.1, 2), (4.0, 5.0, 1), (5.0, 4.0, 1)],
)
def test_fewer_than_three_steps_are_no_window(begin_s: float, end_s: float, block: int) -> None:
    assert together(begin_s, end_s, block=block) is None


def test_blocks_are_counted_from_the_first_measured_step_over_the_parts_of_a_window() -> None:
    """Parts of 6 and 6 steps, with a pause of 1 s between them, which lies in the block that it falls into."""
    events = [*even(6, 0.25), *even(6, 0.25, epoch=1, t0=102.5)]
    (row,) = make_steady_rate_rows(events, ranks=1, batch_size=BATCH, block=4, shared=(100.5, 105.0))
    assert (row.t0, row.t1, row.steps) == (pytest.approx(101.0), pytest.approx(104.0), 8)
    assert row.epoch_time_s == pytest.approx(3.0)
    assert row.step_times_s == pytest.approx((0.25, 0.25, 1.25, *[0.25] * 5))


def test_a_step_of_several_ranks_ends_when_the_last_of_them_has_ended_it() -> None:
    """Of waits those of the steps inside count: here a third of them all, of each rank alike."""
    ends = [0.25 * (k + 1) for k in range(10)]
    early = told(0, ends, [0.0] * 4 + [0.1] * 6)
    late = told(1, [t + 0.1 for t in ends], [0.2] * 8 + [0.4] * 2)
    (row,) = make_steady_rate_rows(
        mixed(early, late), ranks=2, batch_size=BATCH, block=2, shared=(101.05, 102.3)
    )
    assert (row.t0, row.t1, row.steps) == (pytest.approx(101.1), pytest.approx(102.1), 4)
    assert row.data_wait_s == pytest.approx(4 * 0.2)
    assert row.data_wait_s_by_rank == pytest.approx([0.2, 0.8])
    assert row.step_times_s == pytest.approx((0.25,) * 4)


def test_ranks_of_unlike_length_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        rows(even(2, 1.0), even(1, 1.0, rank=1))


def test_jobs_share_the_time_from_the_last_begin_to_the_first_end() -> None:
    warm = even(40, 0.25, measured=False, t0=90.0)
    longer = [*warm, *even(8, 0.25, epoch=1, t0=100.0), *even(8, 0.25, epoch=2, t0=103.0)]
    later = mixed(even(8, 0.25, t0=101.0, after_s=-0.001), even(8, 0.25, t0=101.5, rank=1, after_s=-0.001))
    span = find_common_span([find_measured_span(longer, 1), find_measured_span(later, 2)])
    assert span == (101.0, pytest.approx(103.499))
    (_, kept) = make_steady_rate_rows(longer, ranks=1, batch_size=BATCH, block=4, shared=span)
    assert (kept.t0, kept.t1, kept.steps) == (pytest.approx(101.0), pytest.approx(102.0), 4)
    # Whose begin and end they are, its own steps all lie inside, though a device's clock may run ahead of the host's.
    (whole,) = make_steady_rate_rows(later, ranks=2, batch_size=BATCH, block=4, shared=span)
    assert whole.steps == 8
    assert find_common_span([span, find_measured_span(warm, 1)]) is None
    # One of its ranks has not ended it.
    assert find_common_span([span, find_measured_span(even(8, 0.25), 2)]) is None


# ---------------------------------------------------------------- what a record holds


@pytest.mark.parametrize(
    ("given", "left_out"),
    [({}, {"data_wait_s_by_rank"}), ({"data_wait_s_by_rank": [0.25, 0.5], "first_batch_s": None}, {"first_batch_s"})],
)  # fmt: skip
def test_a_record_holds_a_row_without_its_clock_and_what_it_has_not(
    given: dict[str, Any], left_out: set[str]
) -> None:
    row = epoch_row(**given)
    stored = row.to_record_row()
    assert {one.name for one in fields(EpochRow)} - set(stored) == {"t0", "t1", "step_times_s"} | left_out
    assert all(getattr(row, name) == value for name, value in stored.items())
