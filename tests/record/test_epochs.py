"""Rows of epochs, what they are made of, and epochs that are extrapolated from pieces of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from whole_epochs import epoch_row

from gpubench.record.epochs import EpochRow, epoch_rows, steady_steps, timing
from gpubench.schema.events import End, Evaluated, Event, Steps

BATCH = 16


def told(
    rank: int,
    ends_s: Sequence[float],
    waits_s: Sequence[float],
    *,
    epoch: int = 0,
    after_s: float = 0.0,
    chunk: int = 7,
) -> list[Event]:
    """What a rank says of one measured window: its steps in several messages, then its end."""
    ends, waits = ([round(1e6 * t) for t in times] for times in (ends_s, waits_s))
    steps = [
        Steps(rank=rank, epoch=epoch, end_us=ends[k : k + chunk], wait_us=waits[k : k + chunk])
        for k in range(0, len(ends), chunk)
    ]
    t0 = 100.0 + 50 * epoch
    end = End(
        rank=rank, epoch=epoch, measured=True, steps=len(ends), t0=t0, t1=t0 + ends_s[-1] + after_s,
        first_batch_s=waits_s[0], train_loss=1.0,
    )  # fmt: skip
    return [*steps, end]


def rows(*ranks: list[Event], wave: int = 1, ahead: int = 0) -> list[EpochRow]:
    # As they come: a message of each rank in turn.
    mixed = [e for turn in itertools.zip_longest(*ranks) for e in turn if e]
    return epoch_rows(mixed, ranks=len(ranks), batch_size=BATCH, wave=wave, ahead=ahead)


def extrapolated(row: EpochRow, steps_per_epoch: int) -> dict[str, Any]:
    return timing([row], steps=row.steps, steps_per_epoch=steps_per_epoch, batch_size=BATCH)


# ---------------------------------------------------------------- data wait over ranks


def test_each_step_waits_for_the_rank_that_starves_longest() -> None:
    ends = [0.2 * (k + 1) for k in range(10)]
    starving, fed = [0.15] * 10, [0.01] * 10
    (row,) = rows(told(0, ends, fed), told(1, ends, starving))
    assert row.data_wait_s == pytest.approx(1.5)
    assert row.data_wait_s_by_rank == pytest.approx([0.1, 1.5])


def test_ranks_that_starve_in_turn_stall_all_of_the_time() -> None:
    ends = [0.2 * (k + 1) for k in range(10)]
    even, odd = ([0.15 if k % 2 == turn else 0.0 for k in range(10)] for turn in (0, 1))
    (row,) = rows(told(0, ends, even), told(1, ends, odd))
    assert row.data_wait_s == pytest.approx(1.5)
    assert row.data_wait_s_by_rank == pytest.approx([0.75, 0.75])
    found = timing([row], steps=None, steps_per_epoch=10, batch_size=BATCH)
    assert found["data_wait_pct"] == pytest.approx(75)


def test_of_one_rank_its_waits_are_told_once() -> None:
    (row,) = rows(told(0, [1.0, 2.0], [0.5, 0.25]))
    assert row.data_wait_s == pytest.approx(0.75)
    assert "data_wait_s_by_rank" not in row.stored()


# ---------------------------------------------------------------- fill, steady steps, tail


@pytest.mark.parametrize(
    ("count", "wave", "ahead", "first", "last"),
    [
        (10, 1, 0, 1, 9), (2, 1, 0, 1, 1), (8, 4, 0, 4, 7), (11, 4, 0, 4, 7), (50, 16, 0, 16, 47),
        (10, 1, 2, 1, 7), (40, 2, 4, 2, 35), (41, 2, 4, 2, 35), (64, 16, 32, 16, 31), (23, 4, 8, 4, 11),
    ],
)  # fmt: skip
def test_steady_steps_are_whole_waves_while_images_are_loaded(
    count: int, wave: int, ahead: int, first: int, last: int
) -> None:
    found = steady_steps(count, wave, ahead)
    assert (found[0], found[-1]) == (first, last)
    assert len(found) % wave == 0
    assert last < count - ahead, "nothing is loaded any more once these are taken"


@pytest.mark.parametrize(
    ("count", "wave", "ahead"),
    [(1, 1, 0), (3, 4, 0), (4, 4, 0), (7, 4, 0), (7, 2, 4), (1, 4, 8), (63, 16, 32)],
)
def test_less_than_two_waves_have_none(count: int, wave: int, ahead: int) -> None:
    assert len(steady_steps(count, wave, ahead)) == 0


# Seen on two cores, in ms: a network that trains on the CPU beside its two workers, 40 steps per epoch.
BESIDE_LOADERS, ALONE = 125, 76


def on_the_loaders_cpus(count: int) -> list[Event]:
    """A window of `count` steps by two workers that hold two batches each, which slow the steps down as they work."""
    taking = [BESIDE_LOADERS if k < count - 4 else ALONE for k in range(count)]
    ends = [(300 + t) / 1000 for t in itertools.accumulate(taking)]
    return told(0, ends, [0.3, *([0.0] * (count - 1))])


@pytest.mark.parametrize("steps", [8, 12, 20])
def test_steps_at_the_end_which_loaders_leave_alone_stand_for_no_others(steps: int) -> None:
    (piece,), (whole,) = (rows(on_the_loaders_cpus(n), wave=2, ahead=4) for n in (steps, 40))
    assert piece.steady_step_s == pytest.approx(BESIDE_LOADERS / 1000)
    assert extrapolated(piece, 40)["epoch_time_s"] == pytest.approx(whole.epoch_time_s, rel=1e-6)


def test_a_piece_too_short_for_that_takes_what_waves_there_are() -> None:
    (piece,) = rows(on_the_loaders_cpus(6), wave=2, ahead=4)
    assert piece.steady_steps == 0
    assert piece.steady_step_s == pytest.approx(ALONE / 1000)


def test_a_window_is_its_fill_its_steady_steps_and_its_tail() -> None:
    ends = [1.5, 1.6, 2.0, 2.4, 2.8, 3.2]  # a wave of two, then a step each 0.4 s
    (row,) = rows(told(0, ends, [1.3, 0, 0, 0, 0, 0], after_s=0.3), wave=2)
    assert row.steady_step_s == pytest.approx(0.4)
    assert row.steady_steps == 4
    assert row.first_batch_s == pytest.approx(1.3)
    assert row.tail_s == pytest.approx(3.5 - 1.3 - 6 * 0.4)
    assert extrapolated(row, 100)["epoch_time_s"] == pytest.approx(1.3 + 100 * 0.4 + row.tail_s)


def test_of_several_ranks_the_slowest_counts() -> None:
    fast, slow = [0.5, 1.0, 1.5], [0.6, 1.2, 1.8]
    (row,) = rows(told(0, fast, [0.4, 0, 0]), told(1, slow, [0.1, 0, 0]))
    assert (row.epoch_time_s, row.first_batch_s) == (pytest.approx(1.8), pytest.approx(0.4))
    assert row.steady_step_s == pytest.approx(0.6)
    assert row.tail_s == pytest.approx(1.8 - 0.4 - 3 * 0.6)


@pytest.mark.parametrize(("ends", "step_s"), [([1.5, 1.6, 1.8], 0.15), ([1.5], 0.2)])
def test_too_few_steps_have_the_mean_of_those_after_the_first(ends: list[float], step_s: float) -> None:
    (row,) = rows(told(0, ends, [1.3, *([0] * (len(ends) - 1))]), wave=4)
    assert row.steady_steps == 0
    assert row.steady_step_s == pytest.approx(step_s)
    parts = row.first_batch_s + row.steps * row.steady_step_s + row.tail_s
    assert parts == pytest.approx(row.epoch_time_s)


# ---------------------------------------------------------------- an epoch from steps


def trained(
    count: int, *, workers: int, load_s: float, step_s: float, prefetch: int = 2, epoch: int = 0
) -> list[Event]:
    """A window of `count` steps by a simulated clock: each worker makes every `workers`-th batch, one after the other.

    As torch's loader does it: a worker holds `prefetch` batches at most, and none is made beyond the last.
    """
    free = [0.0] * workers
    ready: list[float] = []
    taken: list[float] = []
    ends: list[float] = []
    now = 0.0
    for k in range(count):
        # Batch k is asked for when batch k − workers × prefetch has been taken.
        asked = taken[k - workers * prefetch] if k >= workers * prefetch else 0.0
        free[k % workers] = max(free[k % workers], asked) + load_s
        ready.append(free[k % workers])
        taken.append(max(now, ready[k]))
        now = taken[k] + step_s
        ends.append(now)
    waits = [t - before for t, before in zip(taken, [0.0, *ends], strict=False)]
    return told(0, ends, waits, epoch=epoch)


def measured(per_epoch: int, **how: Any) -> dict[str, Any]:
    (row,) = rows(trained(per_epoch, **how), wave=how["workers"], ahead=2 * how["workers"])
    return timing([row], steps=None, steps_per_epoch=per_epoch, batch_size=BATCH)


@pytest.mark.parametrize("step_s", [0.001, 0.02, 0.2], ids=["loader-bound", "nearly", "compute-bound"])
@pytest.mark.parametrize(("workers", "steps"), [(1, 10), (4, 8), (4, 16), (8, 16), (16, 50), (16, 64)])
def test_an_epoch_from_steps_is_the_epoch(step_s: float, workers: int, steps: int) -> None:
    how = {"workers": workers, "load_s": 0.4, "step_s": step_s}
    (piece,) = rows(trained(steps, **how), wave=workers, ahead=2 * workers)
    found, whole = extrapolated(piece, 640), measured(640, **how)
    assert found["epoch_time_s"] == pytest.approx(whole["epoch_time_s"], rel=0.03)
    assert found["data_wait_pct"] == pytest.approx(whole["data_wait_pct"], abs=1.5)
    assert found["images_per_s"] * found["epoch_time_s"] == pytest.approx(found["images_per_epoch"])
    assert found["epoch_time_source"] == "extrapolated"
    assert "epochs_measured" not in found


def test_the_loaders_start_is_in_the_epoch_once() -> None:
    how = {"workers": 4, "load_s": 2.0, "step_s": 0.5}
    (piece,) = rows(trained(8, **how), wave=4)
    assert extrapolated(piece, 20)["epoch_time_s"] == pytest.approx(2.0 + 20 * 0.5)
    assert extrapolated(piece, 20)["data_wait_pct"] == pytest.approx(100 * 2 / 12)


@given(
    workers=st.integers(1, 16),
    waves=st.integers(2, 5),
    load_s=st.floats(0.01, 2),
    step_s=st.floats(0.001, 0.5),
    more=st.integers(1, 500),
)
def test_whatever_the_loader_does_no_wait_is_longer_than_the_epoch(
    workers: int, waves: int, load_s: float, step_s: float, more: int
) -> None:
    (piece,) = rows(trained(workers * waves, workers=workers, load_s=load_s, step_s=step_s), wave=workers)
    found = extrapolated(piece, piece.steps + more)
    assert found["epoch_time_s"] > piece.epoch_time_s
    assert 0 < found["data_wait_pct"] <= 100.01


def test_whole_epochs_among_the_pieces_count_and_the_rest_does_not() -> None:
    how = {"workers": 4, "load_s": 0.4, "step_s": 0.1}
    pieces: list[Event] = []
    for number, (count, slower) in enumerate([(20, 1.0), (20, 1.1), (20, 1.4), (10, 9.0)]):
        pieces += trained(count, **how | {"step_s": 0.1 * slower}, epoch=number)
    found = timing(rows(pieces, wave=4), steps=70, steps_per_epoch=20, batch_size=BATCH)
    assert found["epoch_time_s"] == pytest.approx(0.4 + 20 * 0.11)
    assert found["first_batch_s"] == pytest.approx(0.4)


def windows(first_batch_s: Sequence[float], make: Callable[..., list[Event]] = told) -> list[EpochRow]:
    made = (make(0, [s + 1.0, s + 2.0], [s, 0.0], epoch=k) for k, s in enumerate(first_batch_s))
    return rows([event for window in made for event in window])


def test_the_first_batch_is_that_of_measured_epochs() -> None:
    first, *others = windows([9.0, 0.2, 0.4, 0.3])
    found = timing([replace(first, warmup=True), *others], steps=None, steps_per_epoch=2, batch_size=BATCH)
    assert found["first_batch_s"] == pytest.approx(0.3), "their median; starting the workers is the warm-up's"


# ---------------------------------------------------------------- rows and columns in full


def test_a_row_says_all_that_is_known_of_its_epoch() -> None:
    """Two ranks, of which the second begins later and ends later; and how the epoch was evaluated."""
    ends = [1.0, 1.5, 2.0]
    first, second = told(0, ends, [0.5, 0, 0], epoch=3), told(1, ends, [0.25, 0, 0], epoch=3)
    (*steps, end) = second
    assert isinstance(end, End)
    second = [*steps, replace(end, t0=250.5, t1=252.75)]
    evaluated = Evaluated(rank=0, epoch=3, top1_pct=71.5)
    found = epoch_rows([*first, *second, evaluated], ranks=2, batch_size=BATCH, wave=1, ahead=0)
    assert found == [
        EpochRow(
            epoch=3,
            warmup=False,
            t0=250.0,
            t1=252.75,
            steady=pytest.approx((251.0, 252.0)),
            epoch_time_s=2.25,
            steps=3,
            images=3 * BATCH,
            data_wait_s=pytest.approx(0.5),
            data_wait_s_by_rank=pytest.approx([0.5, 0.25]),
            first_batch_s=0.5,
            steady_step_s=pytest.approx(0.5),
            steady_steps=2,
            steady_wait_s=0.0,
            steady_times_s=pytest.approx((0.5, 0.5)),
            tail_s=pytest.approx(2.25 - 0.5 - 3 * 0.5),
            train_loss=1.0,
            top1_pct=71.5,
        )
    ]


def test_only_epochs_that_every_rank_finished_have_a_row() -> None:
    ends, waits = [1.0, 2.0], [0.5, 0.0]
    begun = told(0, ends, waits, epoch=0)
    done = [event for rank in (0, 1) for event in told(rank, ends, waits, epoch=1)]
    (row,) = epoch_rows([*begun, *done], ranks=2, batch_size=BATCH, wave=1, ahead=0)
    assert (row.epoch, row.top1_pct) == (1, None)


def test_one_step_has_no_steady_wait() -> None:
    (row,) = rows(told(0, [1.5], [1.3]))
    assert row.steady_wait_s == 0.0


def test_ranks_of_unlike_length_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        rows(told(0, [1.0, 2.0], [0.5, 0.0]), told(1, [1.0], [0.5]))


def lasting(*seconds: float) -> list[EpochRow]:
    """An epoch of four steps each."""
    made = (told(0, [s / 4, s / 2, 3 * s / 4, s], [0.1, 0, 0, 0], epoch=k) for k, s in enumerate(seconds))
    return rows([event for window in made for event in window])


def test_the_columns_of_measured_epochs() -> None:
    """Median 3 of 1, 2, 3, 6 and 10 s; quartiles 2 and 6 s."""
    found = timing(lasting(1.0, 2.0, 3.0, 6.0, 10.0), steps=None, steps_per_epoch=4, batch_size=BATCH)
    assert found == {
        "epoch_time_s": pytest.approx(3.0),
        "epoch_time_source": "measured",
        "epochs_measured": 5,
        "epoch_time_iqr_s": pytest.approx(4.0),
        "images_per_epoch": 64,
        "images_per_s": pytest.approx(64 / 3),
        "data_wait_pct": pytest.approx(100 * 0.5 / 22),
        "first_batch_s": pytest.approx(0.1),
    }


def test_three_epochs_have_a_spread_and_two_have_none() -> None:
    three = timing(lasting(1.0, 2.0, 4.0), steps=None, steps_per_epoch=4, batch_size=BATCH)
    assert (three["epochs_measured"], three["epoch_time_iqr_s"]) == (3, pytest.approx(1.5))
    two = timing(lasting(1.0, 2.0), steps=None, steps_per_epoch=4, batch_size=BATCH)
    assert two["epochs_measured"] == 2
    assert "epoch_time_iqr_s" not in two


@pytest.mark.parametrize(("waits_s", "kept"), [(None, False), ((0.25, 0.5), True)])
def test_a_record_holds_an_epoch_without_its_clock_and_ranks_only_where_there_are_several(
    waits_s: tuple[float, ...] | None, kept: bool
) -> None:
    row = epoch_row(data_wait_s_by_rank=waits_s)
    stored = row.stored()
    assert {one.name for one in fields(EpochRow)} - set(stored) == {
        "t0",
        "t1",
        "steady",
        "steady_times_s",
    } | (set() if kept else {"data_wait_s_by_rank"})
    assert (stored["epoch_time_s"], stored["images"]) == (row.epoch_time_s, row.images)
    assert stored.get("data_wait_s_by_rank") == waits_s
