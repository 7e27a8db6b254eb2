"""Which units are begun before a batch job ends, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpubench.plan.estimate import TimeEstimate
from gpubench.plan.wall_time import UnstartedUnits, WallTime, estimate_stopped_unit

WALL = WallTime(job="SLURM job 7", ends_s=1000.0, whole_s=600.0)


@pytest.mark.parametrize(
    ("seconds", "known", "now_s", "is_first", "verdict"),
    [
        (60, True, 940, False, "begin"),  # to the second
        (60.1, True, 940, False, "late"),
        (600, True, 401, False, "late"),
        (601, True, 400, True, "never"),
        (60, False, 941, False, "late"),
        # A guess that would keep the first unit of every job from beginning would keep the sweep from ever ending.
        (601, False, 400, True, "begin"),
        (601, False, 400, False, "late"),
        (1, False, 1200, True, "begin"),
        (1, True, 1200, True, "late"),
    ],
)
def test_a_unit_is_begun_if_it_ends_in_time(
    seconds: float, known: bool, now_s: float, is_first: bool, verdict: str
) -> None:
    assert WALL.decide_start(TimeEstimate(seconds, known), now_s, is_first=is_first) == verdict


def test_a_try_that_was_stopped_tells_how_long_a_unit_takes_at_least() -> None:
    guess = TimeEstimate(20.0, False)
    assert estimate_stopped_unit(guess, 0.0) == guess
    assert estimate_stopped_unit(guess, 10.0) == TimeEstimate(20.0, False, 15.0)
    assert estimate_stopped_unit(TimeEstimate(20.0, True), 10.0) == TimeEstimate(20.0, True, 15.0)
    assert estimate_stopped_unit(guess, 40.0) == TimeEstimate(60.0, True, 60.0)


@pytest.mark.parametrize(
    ("broken_off_s", "verdict"),
    # 600 s are the whole of such a job: a try of 400 s, and half as long again, would just end in it.
    [(0, "begin"), (400, "begin"), (401, "never")],
)
def test_a_long_guess_is_tried_until_a_try_has_filled_a_job(broken_off_s: float, verdict: str) -> None:
    """Else each such job would begin it again, be stopped by its limit and be requeued, without an end."""
    need = estimate_stopped_unit(TimeEstimate(1440.0, False), broken_off_s)
    assert WALL.decide_start(need, 400, is_first=True) == verdict
    assert need.seconds == 1440.0
    # Where the end takes all of a job, a guess is tried once all the same.
    short = replace(WALL, whole_s=-6.0)
    assert (short.decide_start(need, 400, is_first=True) == "begin") is (broken_off_s == 0)


@pytest.mark.parametrize(
    ("waiting", "now_s", "line"),
    [
        ({"b": 240.0}, 880, "1 unit, of which the shortest takes about 4 min, and SLURM job 7 has 2 min for it"),
        ({"b": 240.0, "d": 180.0}, 1100,
         "2 units, of which the shortest takes about 3 min, and SLURM job 7 has 0 s for it"),
    ],
)  # fmt: skip
def test_what_was_not_begun_is_said_with_its_times(
    waiting: dict[str, float], now_s: float, line: str
) -> None:
    late = UnstartedUnits()
    late.note_verdict("c", "never", TimeEstimate(3600, True), WALL, 0)
    for unit_id, takes_s in waiting.items():
        late.note_verdict(unit_id, "late", TimeEstimate(takes_s, True), WALL, now_s)
    assert late.explain_stop() == f"no time for what is left: {line}"


def test_a_job_that_is_too_short_is_said_with_what_it_leaves() -> None:
    late = UnstartedUnits()
    late.note_verdict("b", "late", TimeEstimate(9000, True), WALL, 0)
    begin = "the time limit of SLURM job 7 is too short for "
    late.note_verdict("c", "never", TimeEstimate(3600, True), WALL, 880)
    assert (
        late.explain_short_limit()
        == f"{begin}1 trial, of which the longest takes about 60 min: it leaves 10 min"
    )
    late.note_verdict("e", "never", TimeEstimate(7200, True), WALL, 880)
    assert (
        late.explain_short_limit()
        == f"{begin}2 trials, of which the longest takes about 2.0 h: it leaves 10 min"
    )


def test_a_unit_is_noted_once_and_only_if_it_was_not_begun() -> None:
    late = UnstartedUnits()
    late.note_verdict("a", "begin", TimeEstimate(5, True), WALL, 0)
    for _ in range(2):
        late.note_verdict("c", "never", TimeEstimate(3600, True), WALL, 880)
    assert (late.waiting, late.never) == ({}, {"c": 3600})
