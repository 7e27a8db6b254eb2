"""How far a sweep is, and how long it should still take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes import Given

from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.outlook import SweepOutlook, TimeLeft
from gpubench.plan.plan import Unit, expand_experiment
from gpubench.plan.rounds import ONE
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.render import running as live_view
from gpubench.run.live_progress import make_live_progress
from gpubench.schema.attempt import JobProgress, LiveReadings

BASE = 'name = "test"\n[fixed]\nmodel = "lenet"\nbatch_size = 32\n[run]\nepochs = 2\n'


LAST_ROUND: dict[str, Any] = {"ahead": SweepOutlook(rounds=ONE, number=1), "pace": 1.0}


def a_unit(**fields: str) -> Unit:
    (unit,) = expand_experiment(
        apply_options(parse_experiment(BASE, "test"), ExperimentOptions(fields=fields)),
        device="cpu",
        sources=Given(),
    ).units
    return unit


def left_s(progress: JobProgress, **seconds: float) -> float:
    given: dict[str, Any] = {"spent_s": 30.0, "estimated_s": 100.0, "after_s": 7.0, **LAST_ROUND} | seconds
    shown = make_live_progress(a_unit(), [progress], label="", done=0, total=1, elapsed_s=30.0, **given)
    assert shown.left is not None
    return shown.left.seconds


def at_part(part: float) -> JobProgress:
    """So far through the first of two epochs."""
    return JobProgress(epoch=0, step=round(part * 2000), steps=1000, measured=True)


@pytest.mark.parametrize("part", [0.001, 0.05, 0.1])
def test_to_a_tenth_of_the_way_the_estimate_says_what_is_left(part: float) -> None:
    assert left_s(at_part(part)) == pytest.approx(100 - 30 + 7)
    assert left_s(at_part(part), spent_s=200.0) == pytest.approx(7.0), "never less than nothing"


@pytest.mark.parametrize(("part", "own"), [(0.101, 30 * 0.899 / 0.101), (0.25, 90.0), (0.5, 30.0)])
def test_from_then_on_the_trial_itself_does(part: float, own: float) -> None:
    assert left_s(at_part(part)) == pytest.approx(own + 7)


def shown(unit: Unit, progress: list[JobProgress], **seconds: float) -> live_view.LiveProgress:
    given: dict[str, Any] = {
        "spent_s": 30.0,
        "elapsed_s": 50.0,
        "estimated_s": 100.0,
        "after_s": 7.0,
        **LAST_ROUND,
    } | seconds
    return make_live_progress(unit, progress, label="lenet", done=3, total=9, **given)


def readings(mem: float | None, gpu: float | None, cpu: float | None) -> LiveReadings:
    return LiveReadings(gpu_mem_mib=mem, gpu_util_pct=gpu, cpu_util_pct=cpu)


def test_a_trial_is_shown_as_it_stands() -> None:
    unit = a_unit(until_top1="70", epochs="2")
    found = shown(
        unit,
        [
            JobProgress(
                epoch=1,
                step=250,
                steps=1000,
                measured=True,
                top1_pct=42.0,
                live=readings(1234.0, 98.0, 55.0),
            )
        ],
    )
    assert found == live_view.LiveProgress(
        done=3,
        total=9,
        trial_label="lenet",
        trial_id=unit.jobs[0].trial_id,
        epoch=2,
        epochs=2,
        step=250,
        steps=1000,
        top1_pct=42.0,
        top1_target=70.0,
        gpu_mem_mib=1234.0,
        gpu_util_pct=98.0,
        cpu_util_pct=55.0,
        elapsed_s=50.0,
        left=TimeLeft(seconds=30 * 0.375 / 0.625 + 7),
        note="",
    )


def test_what_is_not_known_yet_is_not_shown() -> None:
    found = shown(a_unit(), [JobProgress(live=readings(None, None, 5.0))])
    assert (found.epoch, found.epochs, found.step, found.steps) == (None, 2, None, None)
    assert (found.gpu_mem_mib, found.gpu_util_pct, found.cpu_util_pct) == (None, None, 5.0)
    assert found.note == "starting"
    first = shown(a_unit(), [JobProgress(epoch=0, step=0, steps=1)])
    assert (first.epoch, first.step, first.steps, first.note) == (1, 0, 1, "warm-up")


def test_a_window_has_no_epochs_and_lasts_as_long_as_was_planned() -> None:
    """Which is more than it tells itself: a process takes seconds before it and after it."""
    unit = a_unit(steps="40")
    warming = shown(unit, [JobProgress(step=20, steps=40)])
    assert (warming.epoch, warming.epochs, warming.step) == (None, None, 20)
    assert (warming.left.seconds, warming.note) == (pytest.approx(100 - 30 + 7), "warm-up")
    measuring = shown(unit, [JobProgress(epoch=1, step=30, steps=40, measured=True)])
    assert (measuring.left.seconds, measuring.note) == (pytest.approx(100 - 30 + 7), "")


def test_past_its_time_it_is_said_to_take_longer_than_planned() -> None:
    unit, measuring = a_unit(window="9s"), [JobProgress(epoch=1, step=40, steps=40, measured=True)]

    def told(spent_s: float, **seconds: float) -> str:
        return live_view.render_progress(shown(unit, measuring, spent_s=spent_s, **seconds), 80).plain

    assert "about 1 s left" in told(99.0, after_s=0.0)
    assert "longer than planned" not in told(100.0, after_s=0.0)
    assert "longer than planned" in told(100.1, after_s=0.0)
    assert "longer than planned, about 7 s left" in told(130.0), "for those after it"


def test_of_a_group_the_job_that_is_the_least_far_is_shown() -> None:
    group = apply_options(
        parse_experiment(BASE, "test"),
        ExperimentOptions(jobs=[f"batch_size={size}" for size in (16, 32, 64)]),
    )
    *_, unit = expand_experiment(group, device="cpu", sources=Given()).units
    assert len(unit.jobs) == 3
    far = JobProgress(epoch=1, step=500, steps=1000, measured=True)
    near = JobProgress(epoch=0, step=500, steps=1000)
    over = JobProgress(epoch=1, step=1, steps=1000, measured=True, filling=True)
    live = [readings(100.0, None, 10.0), readings(300.0, 50.0, 30.0), readings(200.0, 60.0, 20.0)]
    jobs = [replace(job, live=one) for job, one in zip([far, near, over], live, strict=True)]
    found = shown(unit, jobs)
    assert (found.step, found.epoch, found.left.seconds) == (500, 1, pytest.approx(30 * 0.75 / 0.25 + 7))
    assert (found.gpu_mem_mib, found.gpu_util_pct, found.cpu_util_pct) == (300.0, 60.0, 30.0)
    assert shown(unit, [far, over, over]).step == 500
    assert shown(unit, [over, over, over]).left.seconds == pytest.approx(7)


def test_of_streams_the_job_that_the_others_wait_for_is_shown() -> None:
    pair = apply_options(
        parse_experiment(BASE, "test"),
        ExperimentOptions(fields={"steps": "40"}, jobs=["batch_size=16", "batch_size=32"]),
    )
    *_, unit = expand_experiment(pair, device="cpu", sources=Given()).units
    waits, warms = JobProgress(step=9, steps=10, waiting=True), JobProgress(step=1, steps=10)
    early, late = (JobProgress(epoch=1, step=step, steps=40, measured=True) for step in (10, 11))
    assert (shown(unit, [waits, warms]).step, shown(unit, [waits, warms]).note) == (1, "warm-up")
    assert shown(unit, [late, early]).step == 10
    assert shown(unit, [early, late]).step == 10
    warm = replace(warms, step=9)
    assert [shown(unit, jobs).step for jobs in ([early, warm], [warm, early])] == [9, 9]
