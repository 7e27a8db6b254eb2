"""What a command's events amount to: windows, times, figures, and the time to a target."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from gpubench.plan.plan import Job
from gpubench.record.commands import find_run_span, make_command_outcome
from gpubench.record.outcome import Outcome
from gpubench.schema import catalog
from gpubench.schema.attempt import Attempt
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.command import MOST_EPOCHS
from gpubench.schema.events import (
    CommandEnded,
    CommandStarted,
    EpochBegan,
    EpochEnded,
    Event,
    Hello,
    MetricSeen,
)
from gpubench.schema.trial import make_trial
from gpubench.schema.watched import WatchedTrial, Window

WATCHED = WatchedTrial(
    samples=None, gpus=[], uuids={}, baseline_mib={}, cpus=1.0, cpu_metric="cpu_busy_s", trained_until=2.0, skipped=[]
)  # fmt: skip


def outcome_of(events: list[Event], **fields: Any) -> Outcome:
    job = Job(
        trial=make_trial({"command": "ls", **fields}), trial_id="t", config_id="c", variant=catalog.NO_IMAGES
    )
    begin: list[Event] = [Hello(rank=0, pid=7), CommandStarted(rank=0, at=10.0)]
    done = Attempt(events=[*begin, *events], launched=9.0, started=9.5, finished=99.0, watched=WATCHED)
    return make_command_outcome(job, done)


def epochs(*edges: float) -> list[Event]:
    pairs = pairwise(edges)
    return [EpochEnded(rank=0, epoch=number, t0=t0, t1=t1) for number, (t0, t1) in enumerate(pairs)]


def ended(epochs_from: Any = None) -> Event:
    return CommandEnded(rank=0, began=10.0, at=40.0, epochs_from=epochs_from, reading_s=0.25)


def seen(value: float, at: float, name: str = "acc") -> Event:
    return MetricSeen(rank=0, name=name, value=value, at=at)


def test_without_epochs_the_whole_run_is_the_window() -> None:
    outcome = outcome_of([ended()])
    assert (outcome.status, outcome.result["epoch_time_s"], outcome.result["epoch_time_source"]) == (
        "ok",
        30,
        "run",
    )
    assert outcome.windows == [Window(10.0, 40.0, 0, True)]
    assert outcome.missing["epochs_measured"] == outcome.missing["epoch_time_iqr_s"] == REASONS["whole-run"]
    assert outcome.missing["images_per_s"] == REASONS["no-images"]
    assert outcome.phases == {"before_epochs": 0, "command": 30, "reading": 0.25}
    assert find_run_span([ended()]) == (10.0, 40.0)
    assert find_run_span([seen(1, 1)]) is None


def test_the_first_epoch_warms_up_and_the_rest_have_a_median_and_a_spread() -> None:
    outcome = outcome_of([*epochs(11, 19, 21, 24, 28), ended("pattern")], train_images=60)
    assert [row.warmup for row in outcome.epochs] == [True, False, False, False]
    assert outcome.result == {
        "epoch_time_s": 3, "epochs_measured": 3, "epoch_time_source": "measured", "epoch_time_iqr_s": 1,
        "images_per_epoch": 60, "images_per_s": 20,
    }  # fmt: skip
    assert outcome.phases["before_epochs"] == 1
    assert [window.measured for window in outcome.windows] == [False, True, True, True]
    assert "epoch_time_iqr_s" in outcome_of([*epochs(11, 19, 21, 24), ended("script")]).missing


@pytest.mark.parametrize(("asked", "warm"), [(0, 0), (1, 1), (2, 2), (9, 2), (None, 1)])
def test_one_epoch_at_least_is_measured(asked: int | None, warm: int) -> None:
    fields = {} if asked is None else {"warmup_epochs": asked}
    rows = outcome_of([*epochs(11, 12, 13, 14), ended("script")], **fields).epochs
    assert sum(row.warmup for row in rows) == warm


def test_a_pattern_without_an_epoch_and_one_whose_epochs_have_no_length_fail() -> None:
    none = outcome_of([ended("pattern")], epoch_pattern="E")
    assert (none.status, none.result) == ("failed", {})
    assert none.reason.startswith("--epoch-pattern E was found in fewer than two lines of its output")
    flat = outcome_of([*epochs(11, 12, 12, 13), ended("pattern")], epoch_pattern="E", train_images=5)
    assert (flat.status, flat.epochs, flat.windows) == ("failed", [], [])
    assert flat.reason.startswith("several of the lines that --epoch-pattern E finds came at one moment")


TARGET = {"metrics": "acc=(.)\nloss=(.)", "until": "acc=60"}


@pytest.mark.parametrize(
    ("events", "epochs_from", "pattern", "time_s", "count"),
    [
        # A line may stand at an epoch's end as well: from the command's begin, which is 10.
        ([*epochs(11, 15, 19), seen(60, 19.0)], "pattern", "E", 9, 3),  # with the line that ends the second
        ([*epochs(11, 15, 19), seen(61, 18.9), seen(70, 19)], "pattern", "E", 8.9, 2),
        ([EpochBegan(rank=0, epoch=0, at=11), seen(60, 11)], None, "E", 1, 1),
        ([*epochs(11, 15, 19), seen(61, 19.5)], "script", None, 8.5, 2),  # nothing has begun since
        ([EpochBegan(rank=0, epoch=0, at=11), seen(60, 14)], None, None, 3, 1),
        # Printed between two epochs, read when the next had begun; and within one.
        (
            [*epochs(11, 15, 19), EpochBegan(rank=0, epoch=2, at=19.02), seen(61, 19.03)],
            "script",
            None,
            8.03,
            2,
        ),
        (
            [*epochs(11, 15, 19), EpochBegan(rank=0, epoch=2, at=19.02), seen(61, 19.1)],
            "script",
            None,
            8.1,
            3,
        ),
        ([*epochs(11, 11.01, 11.02), seen(61, 11.017)], "script", None, 0.017, 2),  # epochs shorter than that
        ([EpochBegan(rank=0, epoch=0, at=11), seen(60, 11.01)], None, None, 0.01, 1),
    ],
)
def test_time_and_epochs_to_a_target(
    events: list[Event], epochs_from: Any, pattern: str | None, time_s: float, count: int
) -> None:
    result = outcome_of([*events, ended(epochs_from)], epoch_pattern=pattern, **TARGET).result
    assert result["time_to_top1_s"] == pytest.approx(time_s)
    assert result["epochs_to_top1"] == count


def test_a_target_of_a_whole_run_has_no_epochs() -> None:
    outcome = outcome_of([seen(99, 12, "loss"), seen(60, 14), ended()], **TARGET)
    assert outcome.result["time_to_top1_s"] == 4
    assert outcome.result["printed"] == {"loss": 99, "acc": 60}
    assert outcome.missing["epochs_to_top1"] == REASONS["whole-run"]
    assert outcome.missing["energy_to_top1_j"] == REASONS["energy-on-the-way"]


def test_why_there_is_no_time_to_a_target() -> None:
    missed = outcome_of([seen(70, 11, "loss"), seen(40, 12), seen(59.5, 14), ended()], **TARGET)
    assert missed.missing["time_to_top1_s"] == format_reason("command-target-missed", "acc", "59.5", "60")
    assert missed.result["printed"]["acc"] == 59.5
    unseen = outcome_of([ended()], **TARGET)
    assert unseen.missing["epochs_to_top1"] == format_reason("command-target-unseen", "acc")
    assert outcome_of([ended()]).missing["time_to_top1_s"] == REASONS["no-command-target"]
    edges = [11 + number / 1000 for number in range(MOST_EPOCHS + 1)]
    assert outcome_of([*epochs(*edges[:-1]), seen(60, 30), ended("script")], **TARGET).result[
        "epochs_to_top1"
    ]
    for told_by in ("pattern", "script"):
        counted = outcome_of([*epochs(*edges), seen(60, 30), ended(told_by)], **TARGET)
        assert counted.missing["epochs_to_top1"] == format_reason("many-epochs", MOST_EPOCHS)
    many = outcome_of([*epochs(*edges), seen(60, 30), ended("pattern")], **TARGET)
    assert many.result["time_to_top1_s"] == 19
