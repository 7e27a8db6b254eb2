"""Rows as they would be with an epoch of another number of images."""

from __future__ import annotations

from typing import Any

import pytest
from committed import HOME
from test_allowance import stored
from warm_command import WarmCommand

from gpubench.report.cells import texts
from gpubench.report.notes import remarks
from gpubench.report.table import COLUMN
from gpubench.results.other_epoch import OF_TIME, PER_EPOCH, with_train_images
from gpubench.results.rows import row_of
from gpubench.schema.row import Row, TableRow, replace


def epoch(**changes: Any) -> dict[str, Any]:
    """Ten steps of 16 images: 0.5 s to the first batch, 0.2 s a steady step, 0.3 s at the end; it starved for 0.6 s."""
    told: dict[str, Any] = {
        "epoch": 1, "warmup": False, "epoch_time_s": 2.8, "steps": 10, "images": 160, "data_wait_s": 0.6,
        "first_batch_s": 0.5, "train_loss": 1.0, "steady_step_s": 0.2, "steady_steps": 8, "steady_wait_s": 0.01,
        "tail_s": 0.3,
    }  # fmt: skip
    return told | changes


def told(train_images: int, *epochs: dict[str, Any], **result: Any) -> Row:
    measured = {"epoch_time_s": 2.8, "images_per_s": 57.1, "images_per_epoch": 160, "data_wait_pct": 21.4}
    record = stored(
        result={**measured, "epoch_time_source": "measured", "energy_j": 500.0, "top1_pct": 61.0, **result},
        epochs=list(epochs or [epoch(warmup=True, epoch_time_s=99.0), epoch()]),
    )
    batch = row_of(record).batch_size
    assert batch == 16
    return with_train_images(row_of(record), record, train_images)


def test_a_longer_epoch_has_more_steady_steps_and_the_same_fill_and_tail() -> None:
    """1,000 images are 62 steps of 16: 0.5 + 62 × 0.2 + 0.3 s, of which it starved for 0.6 + 52 × 0.01 s."""
    row = told(1000)
    assert row.epoch_time_s == pytest.approx(13.2)
    assert (row.images_per_epoch, row.epoch_time_source) == (992, "extrapolated")
    assert row.images_per_s == pytest.approx(992 / 13.2)
    assert row.data_wait_pct == pytest.approx(100 * 1.12 / 13.2)
    assert row.train_images == 1000


def test_a_shorter_epoch_has_fewer() -> None:
    assert told(48).epoch_time_s == pytest.approx(0.5 + 3 * 0.2 + 0.3)


def test_of_several_epochs_it_is_the_median() -> None:
    slow = epoch(epoch_time_s=4.8, steady_step_s=0.4)
    middle = epoch(epoch_time_s=3.8, steady_step_s=0.3)
    assert told(1600, epoch(), slow, middle).epoch_time_s == pytest.approx(0.8 + 100 * 0.3)


def test_before_steady_steps_were_told_those_after_the_first_batch_count() -> None:
    old = {name: value for name, value in epoch().items() if not name.startswith(("steady", "tail"))}
    assert told(1600, old).epoch_time_s == pytest.approx(2.8 + 90 * (2.8 - 0.5) / 10)


def test_what_was_measured_with_other_images_is_left_out_with_the_reason() -> None:
    row = told(1000)
    for name in PER_EPOCH:
        assert row.value(name) is None
        assert row.missing[name] == "known only for the images that were trained on"
    assert row.epoch_times_s == ()


@pytest.mark.parametrize(
    ("images", "epochs", "why"),
    [
        (15, [epoch()], "an epoch of 15 images is less than one batch"),
        (1000, [epoch(warmup=True)], "what parts its epochs have is not on record"),
        (1000, [epoch(first_batch_s=None)], "what parts its epochs have is not on record"),
        (
            1000,
            [{"epoch": 1, "warmup": False, "epoch_time_s": 2.8, "first_batch_s": 0.5}],
            "what parts its epochs have is not on record",
        ),  # a record that was edited
        (
            16,
            [epoch(steady_step_s=0.4)],  # 2.8 − 9 × 0.4 s
            "its steps varied too much to tell the time of an epoch of 1 of them",
        ),
    ],
)
def test_where_it_can_t_be_worked_out_the_times_are_left_out(
    images: int, epochs: list[dict[str, Any]], why: str
) -> None:
    row = told(images, *epochs)
    assert {(row.value(name), row.missing[name]) for name in OF_TIME} == {(None, why)}


def test_of_as_many_images_as_it_was_trained_on_a_row_is_as_it_is() -> None:
    """Its epoch goes without the last images, which make no whole batch; the measured energy and top-1 are its own."""
    record = stored(
        asked={"train_images": 165},
        result={"epoch_time_s": 2.8, "images_per_epoch": 160, "energy_j": 500.0, "top1_pct": 61.0},
        epochs=[epoch()],
    )
    own = row_of(record)
    assert own.train_images == 165
    assert with_train_images(own, record, 165) is own
    assert with_train_images(own, record, 160).energy_j is None


def test_a_row_without_an_epoch_time_is_only_called_otherwise() -> None:
    row = told(1000, epoch_time_s=None)
    assert (row.epoch_time_s, row.train_images, row.energy_j) == (None, 1000, 500.0)


def test_the_command_tells_the_epoch_of_another_data_set(warm_command: WarmCommand) -> None:
    """resnet34 on four GPUs, batch 512 by DDP: 20 steps were 1.65 s; ImageNet's 2,502 are over three minutes."""
    folder = HOME / "h200x4-2026"
    ended = warm_command.run(
        ("table", str(folder), "--train-images", "1281167"),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        timeout=60,
    )
    assert ended.returncode == 0
    assert "1,281,167 training images" in ended.stdout
    line = next(line for line in ended.stdout.splitlines() if line.split()[:2] == ["512", "ddp"])
    (time_s,) = [float(word.strip("~").replace(",", "")) for word in line.split() if word.startswith("~")]
    assert 180 < time_s < 220
    assert time_s == round(time_s, 1), "a time that nobody measured, of one process, is told to four digits"
    assert (
        "Epoch times, growth and answers are of epochs of 1,281,167 images, 125 times as many, worked out from "
        "measured ones of 10,240" in " ".join(ended.stdout.split())
    )


def test_the_command_tells_as_many_images_as_there_were_without_the_option(
    warm_command: WarmCommand,
) -> None:
    """Its times were marked ~, its top-1 was dropped, though nothing was worked out."""
    folder = HOME / "h200x4-2026"
    plain, same = (
        warm_command.run(
            ("table", str(folder), *more),
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "COLUMNS": "200"},
            timeout=60,
        ).stdout
        for more in ((), ("--train-images", "10240"))
    )
    assert "top-1" in plain
    assert same == plain


def test_where_some_rows_were_trained_on_so_many_the_others_are_named() -> None:
    worked_out = TableRow.of(replace(told(1000), fields={"batch_size": 32, "train_images": 1000}))
    measured = TableRow.of(
        replace(told(160), worked_out_from=None, fields={"batch_size": 16, "train_images": 1000})
    )
    both = " ".join(remarks([measured, worked_out], ["batch_size"]))
    assert "No such epoch was measured (batch_size=32)." in both
    assert "No such epoch was measured." in " ".join(remarks([worked_out], ["batch_size"]))


def test_the_command_says_that_an_epoch_is_less_than_a_batch(warm_command: WarmCommand) -> None:
    folder = HOME / "h200x4-2026"
    ended = warm_command.run(
        ("table", str(folder), "--train-images", "20"),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        timeout=60,
    )
    said = " ".join(ended.stdout.split())
    assert "only 16 has an epoch time (an epoch of 20 images is less than one batch)" in said
    assert (
        "No epoch time: an epoch of 20 images is less than one batch (12 of 16 rows, the first: batch_size=32"
        in said
    )


def test_a_time_is_shown_as_finely_as_what_is_known_of_it() -> None:
    """Three processes, 1,000 s apart, and one alone."""
    rows = [
        replace(TableRow.of(told(10**7)), epoch_times_s=times, epoch_time_s=28957.45, repeats=len(times) or 1)
        for times in ((28957.45, 29957.3, 31000.1), ())
    ]
    wide, one = texts(COLUMN["epoch_time_s"], rows)
    assert one == "~28,960"
    assert wide == "~28,960 ± 2,540"


def test_a_longer_epoch_is_not_told_where_no_step_was_steady() -> None:
    row = told(1000, epoch(steady_steps=0))
    assert row.epoch_time_s is None
    assert row.missing["epoch_time_s"].startswith("no step was steady: what the loaders held ready lasted")
    assert told(160, epoch(steady_steps=0)).epoch_time_s == pytest.approx(2.8), "its own epoch was measured"
    assert told(1000, epoch(steady_steps=0), epoch()).epoch_time_s is not None, "one of them tells"
    assert told(1000, epoch(steady_steps=None)).epoch_time_s is not None, (
        "earlier versions did not count them"
    )
