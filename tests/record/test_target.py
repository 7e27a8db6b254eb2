"""Time to an accuracy, from the epochs."""

from __future__ import annotations

from dataclasses import replace

from whole_epochs import epoch_row

from gpubench.record.epochs import EpochRow
from gpubench.record.target import COLUMNS, until_top1


def epochs(*top1: float | None) -> list[EpochRow]:
    return [epoch_row(top1_pct=value, epoch_time_s=10.0**-k) for k, value in enumerate(top1)]


def test_epochs_are_counted_and_summed_up_to_the_first_that_reaches_it() -> None:
    found, missing = until_top1(epochs(20.0, 60.0, 55.0, 70.0), 60.0)
    assert found == {"epochs_to_top1": 2, "time_to_top1_s": 1.1}
    assert missing == {}, "the energy is told elsewhere"


def test_never_reached() -> None:
    found, missing = until_top1(epochs(20.0, 58.26), 60.5)
    assert found == {}
    assert missing == dict.fromkeys(COLUMNS, "top-1 was 58.3 % after 2 epochs, not 60.5 %")


def test_diverged() -> None:
    first, last = epochs(20.0, 6.25)
    _, missing = until_top1([first, replace(last, train_loss=float("nan"))], 60.0)
    assert missing["time_to_top1_s"] == "training diverged: top-1 was 6.3 % after 2 epochs, not 60 %"


def test_nobody_asked() -> None:
    found, missing = until_top1(epochs(None, None), None)
    assert found == {}
    assert set(missing.values()) == {"no accuracy was asked for (--until-top1)"}
