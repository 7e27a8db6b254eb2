"""Time to an accuracy, from the epochs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from whole_epochs import epoch_row

from gpubench.record.epochs import EpochRow
from gpubench.record.training import TO_TOP1, compute_time_to_top1_columns, find_target_crossing
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.columns import CONFIRMED, UNCONFIRMED


def epochs(*top1: float | None) -> list[EpochRow]:
    return [epoch_row(top1_pct=value, epoch_time_s=10.0**-k) for k, value in enumerate(top1)]


def test_epochs_are_counted_and_summed_up_to_the_first_that_reaches_it() -> None:
    found, missing = compute_time_to_top1_columns(epochs(20.0, 60.0, 55.0, 70.0), 60.0)
    assert (found["epochs_to_top1"], found["time_to_top1_s"]) == (2, 1.1)
    assert missing == {}, "the energy is told elsewhere"


def test_never_reached() -> None:
    found, missing = compute_time_to_top1_columns(epochs(20.0, 58.26), 60.5)
    assert found == {}
    assert missing == dict.fromkeys(TO_TOP1, format_reason("target-missed", 58.3, 2, "epochs", 60.5))


def test_diverged() -> None:
    first, last = epochs(20.0, 6.25)
    _, missing = compute_time_to_top1_columns([first, replace(last, train_loss=float("nan"))], 60.0)
    assert missing["time_to_top1_s"] == format_reason("target-missed-diverged", 6.3, 2, "epochs", 60)


def test_nobody_asked() -> None:
    found, missing = compute_time_to_top1_columns(epochs(None, None), None)
    assert found == {}
    assert set(missing.values()) == {REASONS["no-target"]}


def test_it_is_crossed_between_two_evaluations() -> None:
    """Epochs of 1, 0.1 and 0.01 s: 20 % at 1 s and 60 % at 1.1 s make 50 % at 1.075 s."""
    found, _ = compute_time_to_top1_columns(epochs(20.0, 60.0), 50.0)
    assert found["top1_crossing_s"] == pytest.approx(1.075)
    assert found["top1_crossing"] == "unconfirmed", "no evaluation came after"
    found, _ = compute_time_to_top1_columns(epochs(20.0, 60.0, 50.0), 50.0)
    assert found["top1_crossing_s"] == pytest.approx(1.075)
    assert found["top1_crossing"] == "confirmed"


def test_a_lucky_evaluation_has_a_time_and_no_crossing() -> None:
    found, _ = compute_time_to_top1_columns(epochs(20.0, 60.0, 40.0), 50.0)
    assert found == {"epochs_to_top1": 2, "time_to_top1_s": 1.1}
    found, _ = compute_time_to_top1_columns(epochs(20.0, 60.0, 40.0, 60.0), 50.0)
    # The time is that of the first epoch that reaches the target.
    assert found["time_to_top1_s"] == 1.1
    assert found["top1_crossing_s"] == pytest.approx(1.11 + 0.001 / 2)


def test_what_a_diverged_network_hits_confirms_nothing() -> None:
    first, there, last = epochs(20.0, 60.0, 60.0)
    found, _ = compute_time_to_top1_columns([first, there, replace(last, train_loss=float("nan"))], 50.0)
    assert "top1_crossing_s" not in found


# ---- between evaluations ----

RISING = [(10.0, 40.0), (20.0, 60.0), (30.0, 65.0), (40.0, 70.0)]


def test_between_two_evaluations() -> None:
    """From 40 at 10 s to 60 at 20 s: 55 at 17.5 s."""
    assert find_target_crossing(RISING, 55.0) == (17.5, CONFIRMED)
    assert find_target_crossing(RISING, 60.0) == (20.0, CONFIRMED)


def test_the_first_and_the_last_evaluation() -> None:
    assert find_target_crossing(RISING, 40.0) == (10.0, CONFIRMED), "nobody looked before"
    assert find_target_crossing(RISING, 39.0) == (10.0, CONFIRMED)
    assert find_target_crossing(RISING, 69.0) == (38.0, UNCONFIRMED), "nothing comes after"
    assert find_target_crossing(RISING[:1], 40.0) == (10.0, UNCONFIRMED)


def test_never() -> None:
    assert find_target_crossing(RISING, 70.1) is None
    assert find_target_crossing([], 50.0) is None


def test_one_lucky_evaluation_is_no_accuracy() -> None:
    lucky = [(10.0, 40.0), (20.0, 62.0), (30.0, 50.0), (40.0, 70.0), (50.0, 71.0)]
    assert find_target_crossing(lucky, 60.0) == (35.0, CONFIRMED)
    assert find_target_crossing(lucky[:3], 60.0) is None
