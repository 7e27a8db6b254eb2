"""How long a sweep should still take: learnt from what stored trials took, and from those that have just run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from group_desk import Desk
from recorded_meter import RecordedMeter

from gpubench.node.watch.metrics import LATE_S


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Without a GPU: a trial is guessed at 1 s to start, 1 s to warm up, and its window."""
    return Desk(folder=tmp_path / "results", gpus=0)


def lasted(desk: Desk, seconds: float) -> None:
    """Has all stored processes have lasted so long."""
    for path in (desk.folder / "records").glob("*/*.json"):
        stored = json.loads(path.read_text())
        stored["span"]["finished"] = stored["span"]["launched"] + seconds
        path.write_text(json.dumps(stored))


def seconds(desk: Desk, **asked: Any) -> float:
    (estimate,) = desk.work(batch_size="16", **asked).estimate_unit_times(
        desk.work(batch_size="16", **asked).plan.units
    )
    return estimate.seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        ({"window": "1s"}, {"window": "1s"}, 9.0),
        ({"window": "1s"}, {}, 9.0 - 1 + 2.5),
        ({"window": "8.5s"}, {"window": "1s"}, 2.0),  # warm-up and window at least
        # 640 steps of an epoch take 0.5 s, as is known: a step 1 / 1280 s.
        ({"window": "1s"}, {"steps": "2560"}, 9.0 - 1 + 2),
        ({"steps": "1280"}, {"window": "3s"}, 9.0 - 1 + 3),
        ({"window": "8.5s"}, {"window": "8.5s", "workers": "0"}, 1 + 8.5),
        ({"epochs": "2"}, {"window": "1s"}, 1.0 + 1 + 1),
        ({"window": "1s"}, {"epochs": "3"}, 1.0 + 3 * 0.5),
    ],
)
def test_a_trial_should_take_what_its_like_took_but_for_the_window(
    desk: Desk, before: dict[str, Any], asked: dict[str, Any], expected: float
) -> None:
    desk.sweep(batch_size="16", **before)
    lasted(desk, 9.0)
    assert seconds(desk, **asked) == pytest.approx(expected, rel=1e-3)


def test_what_a_unit_took_in_this_sweep_counts_before_all_that_is_stored(desk: Desk) -> None:
    desk.sweep(batch_size="16")
    lasted(desk, 9.0)
    work = desk.work(batch_size="16")
    work.add_records(work.records[:1], took_s=42.0)
    assert [(one.seconds, one.known) for one in work.estimate_unit_times(work.plan.units)] == [(42.0, True)]


def test_the_wait_for_a_late_meter_is_part_of_each_unit(desk: Desk) -> None:
    """Of those that were not yet run in this sweep: what these took has it already."""
    desk.sweep(batch_size="16")
    lasted(desk, 9.0)
    work = desk.work(batch_size="16")
    (plain,) = work.estimate_unit_times(work.plan.units)
    work.runner.node.meters = [RecordedMeter(metric="rapl_w", is_late=False)]
    assert work.estimate_unit_times(work.plan.units) == [plain]
    work.runner.node.meters = [RecordedMeter()]
    (waits,) = work.estimate_unit_times(work.plan.units)
    assert waits.seconds == plain.seconds + LATE_S
    work.add_records(work.records[:1], took_s=42.0)
    assert work.estimate_unit_times(work.plan.units)[0].seconds == 42.0
