"""What a sweep says at its end besides the answer."""

from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import node_of

from gpubench.plan.rounds import RoundLimits
from gpubench.plan.wall_time import UnstartedUnits
from gpubench.run.closing import list_closing_lines
from gpubench.run.limits import BatchJobLimit, Limits, LostGpuCheck, RoundsLimit, StopRequest, SweepSummary


def limits(*, rounds: RoundLimits | None = None, **certainty: Any) -> Limits:
    return Limits(
        stop=StopRequest(),
        batch_job=BatchJobLimit(),
        certainty=RoundsLimit(rounds=rounds or RoundLimits(number=3), **certainty),
        lost_gpus=LostGpuCheck(node=node_of(scripted.computer(1))),
    )


def said(summary: SweepSummary, reached: Limits | None = None, workers: list[str] | None = None) -> list[str]:
    """What is said at the end of a sweep into out/x, with a limit of 90 s a trial."""
    lines = list_closing_lines(
        summary, reached or limits(), Path("out/x"), workers=workers or [], timeout_s=90.0
    )
    return list(lines)


def test_who_failed_and_who_timed_out_are_told_apart_with_the_limit_and_what_to_do() -> None:
    assert said(SweepSummary(ran=1, failed=1)) == [
        "1 failed: the reasons are in out/x/trials.csv, the logs in out/x/logs; --retry failed runs them again"
    ]
    assert said(SweepSummary(ran=5, failed=2, timed_out=3)) == [
        "2 failed: the reasons are in out/x/trials.csv, the logs in out/x/logs; --retry failed runs them again",
        "3 timed out: where each stood is in out/x/trials.csv, the logs in out/x/logs; "
        "--retry timeout --timeout 180s gives twice the time",
    ]


def test_a_sweep_without_work_says_so_with_the_counts() -> None:
    assert said(SweepSummary(reused=1, timed_out=1))[0] == (
        "nothing left to do: 1 done, 0 skipped, 0 failed and 1 timed out before"
    )
    busy: list[tuple[SweepSummary, Limits]] = [
        (SweepSummary(ran=1), limits()),
        (SweepSummary(elsewhere=1), limits()),
        (SweepSummary(), limits(is_over_budget=True)),
    ]
    late = limits()
    late.batch_job.late.never["t1"] = 9.0
    for summary, reached in [*busy, (SweepSummary(), late)]:
        assert not any(line.startswith("nothing left") for line in said(summary, reached))


def test_a_stop_is_said_first_and_explains_all_that_is_left() -> None:
    reached = limits(unsure=2, rounds=RoundLimits(within_pct=2.0))
    reached.stop.is_resumable = True
    lines = said(SweepSummary(failed=1), reached)
    assert (lines[0], len(lines)) == ("stopped; to continue, run the same command again", 2)


def test_a_batch_job_without_time_is_said_in_place_of_the_rounds() -> None:
    reached = limits(answered=3)
    reached.batch_job.late = UnstartedUnits(
        job="SLURM job 7", left_s=30.0, whole_s=600.0, waiting={"t1": 90.0}
    )
    assert said(SweepSummary(ran=1), reached) == [
        "no time for what is left: 1 unit, of which the shortest takes about 2 min, and SLURM job 7 has 30 s for it; "
        "to continue, run the same command again"
    ]


@pytest.mark.parametrize(
    ("given", "rounds", "line"),
    [
        ({"answered": 3}, RoundLimits(budget_s=9.0), "every question of the table that further rounds can answer is "
         "answered, after 3 rounds"),
        ({"unsure": 1}, RoundLimits(number=4, within_pct=2.0), "1 trial is not known within 2 % yet, after 4 rounds; "
         "--rounds 8 goes on"),
        ({"unsure": 2, "is_over_budget": True}, RoundLimits(within_pct=2.0, budget_s=600.0), "the budget of 10 min "
         "has no room for another process, and 2 trials are not known within 2 % yet; a longer --budget goes on with "
         "further rounds"),
        ({}, RoundLimits(number=3), None),
    ],
)  # fmt: skip
def test_what_ended_further_rounds_is_said(
    given: dict[str, Any], rounds: RoundLimits, line: str | None
) -> None:
    assert limits(rounds=rounds, **given).certainty.format_closing_line() == line


def test_who_is_still_at_it_is_named_and_nothing_is_said_to_be_left() -> None:
    workers = [f"process {number} on n{number}" for number in range(1, 5)]
    assert said(SweepSummary(elsewhere=3), workers=workers) == [
        "4 others (process 1 on n1, process 2 on n2, process 3 on n3 and 1 more) are at work on 3 of its trials and "
        "groups, which the table lacks yet; gpubench status out/x tells how far they are"
    ]
