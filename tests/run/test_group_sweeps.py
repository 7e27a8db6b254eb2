"""Sweeps of jobs side by side that end well, with scripted trials: every column, lines, files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import scripted
from benches import counts
from group_desk import TWO, Desk, both_or_neither, times
from scripted import Scripted

from gpubench.schema.order import TrialOrder


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


def test_two_jobs_and_their_baselines(desk: Desk) -> None:
    by = times(alone={16: 2.0, 32: 1.0}, together={16: 3.0, 32: 2.0})
    assert counts(desk.sweep(*TWO, by=by)) == {"ran": 3}
    assert [(order.trial.batch_size, order.jobs) for order in by.launched] == [
        (16, 1),
        (32, 1),
        (16, 2),
        (32, 2),
    ]
    one, other = desk.jobs()
    assert [r.status for r in (one, other)] == ["ok", "ok"]
    assert (one.group, one.job, other.job) == ("16 & 32", "1 of 2", "2 of 2")
    assert one.group_id == other.group_id
    alone = {r.trial["batch_size"]: r.trial_id for r in desk.solos()}
    for record, batch, slowdown, solo_s in ((one, 16, 1.5, 2.0), (other, 32, 2.0, 1.0)):
        result = record.result
        assert result["slowdown"] == pytest.approx(slowdown)
        assert result["solo_epoch_time_s"] == pytest.approx(solo_s)
        assert result["overlap_gain"] == pytest.approx(1 / 1.5 + 1 / 2 - 1)
        assert result["sharing"] == "some"
        assert result["group_id"] == record.group_id
        assert result["solo_id"] == alone[batch]


@pytest.mark.slow
def test_the_barrier_and_the_end_of_filling_stand_in_the_record(desk: Desk) -> None:
    by = times(alone={16: 0.1, 32: 0.1}, together={16: 0.1, 32: 0.1})
    desk.sweep(*TWO, by=by)
    for record in desk.jobs():
        facts, windows = record.together, {w.epoch: w for w in record.windows}
        warmup = [e["epoch"] for e in record.epochs if e["warmup"]]
        (measured,) = (e["epoch"] for e in record.epochs if not e["warmup"])
        assert record.span.launched <= facts["released"] <= facts["stopped"] <= record.span.finished
        assert all(windows[number].t0 <= facts["released"] for number in warmup)
        assert windows[measured].t0 >= facts["released"]
        assert facts["jobs"] == 2


def side_by_side(one: tuple[float, int, float], other: tuple[float, int, float]) -> Scripted:
    """Two jobs, by batch: when the window begins after the barrier, its steps, and seconds a step."""
    begun: list[float] = []

    def measures(order: TrialOrder) -> Iterator[scripted.Line]:
        begins, steps, step_s = {16: one, 32: other}[order.trial.batch_size]
        yield from scripted.warms_up(order)
        begun.append(time.monotonic())
        t0 = begun[0] + begins
        window = scripted.Span(number=1, steps=steps, measured=True, seconds=steps * step_s)
        yield from scripted.plays(order, window, t0=t0)
        yield from scripted.fills(order, window, t0 + window.seconds)
        yield from scripted.result(order)

    return Scripted(lambda order: measures if order.jobs > 1 else scripted.trains)


def test_figures_of_a_group_are_of_the_time_in_which_all_measured(desk: Desk) -> None:
    """From 0.35 to 3 s: of the first 26 whole steps of 0.1 s, of the other all but the last 3 of 0.5 s."""
    desk.sweep(*TWO, by=side_by_side((0.0, 30, 0.1), (0.35, 8, 0.5)), train_images="64")
    windows = [{w.epoch: w for w in record.windows}[1] for record in desk.jobs()]
    assert [record.epochs[1]["steps"] for record in desk.jobs()] == [26, 5]
    assert [w.t1 - w.t0 for w in windows] == pytest.approx([2.6, 2.5], abs=1e-4)
    assert windows[1].t0 - windows[0].t0 == pytest.approx(0.35 - 0.4, abs=1e-4)
    rates = [record.result["images_per_s"] for record in desk.jobs()]
    assert rates == pytest.approx([16 / 0.1, 32 / 0.5], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("lasts_s", [1.19, 1.21])
def test_a_job_with_fewer_than_three_steps_in_that_time_fails_its_group(desk: Desk, lasts_s: float) -> None:
    by = side_by_side((0.0, 100, lasts_s / 100), (0.0, 9, 0.4))
    summary = desk.sweep(*TWO, by=by)
    one, other = desk.jobs()
    if lasts_s > 1.2:
        assert [r.status for r in (one, other)] == ["ok", "ok"]
        assert other.epochs[1]["steps"] == 3
        return
    assert counts(summary) == {"ran": 3, "failed": 1}
    why = "fewer than 3 of its steps lay in the time in which all jobs measured: give all of them a longer --window"
    assert (other.status, other.reason) == ("failed", why)
    assert (one.status, one.reason) == ("skipped", f"job 2 of 2 failed: {why}")
    assert both_or_neither(one) == both_or_neither(other) == []


def test_several_ranks_wait_at_one_barrier(desk: Desk) -> None:
    desk.gpus = 4
    desk.sweep("batch_size=16,gpu_ids=0", "batch_size=32,gpu_ids=1+2")
    assert [(r.status, r.resolved["gpus"]) for r in desk.jobs()] == [("ok", 1), ("ok", 2)]
