"""What is said beside a batch script."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpubench.plan.batch_advice import Remaining, advice, plan_line
from gpubench.plan.batch_script import BatchScript
from gpubench.plan.estimate import Estimate

SCRIPT = BatchScript(
    name="x",
    command=["sweep"],
    gpubench=["gpubench"],
    results="/r",
    home="/h",
    command_line="gpubench slurm",
    cpus_per_task=4,
    time="0:10:00",
)
WORK = Remaining(
    units=[Estimate(60, True), Estimate(120, True)], longest=Estimate(40, True), measurements=6, skipped=[]
)
NO_GPU = "needs 2 GPUs, such a job has 0"


def test_how_much_there_is_to_do_and_the_limit() -> None:
    assert plan_line(WORK, SCRIPT, is_by_plan=False) == "2 units to run, about 3 min in all"
    guessed = replace(WORK, units=[*WORK.units, Estimate(1, False)])
    rest = "what is not done by then goes on after a requeue"
    line = plan_line(guessed, SCRIPT, is_by_plan=True)
    assert line == f"3 units to run, roughly 3 min in all: --time 0:10:00; {rest}"
    line = plan_line(WORK, replace(SCRIPT, tasks=3), is_by_plan=True)
    assert line == f"2 units to run, about 3 min in all: --time 0:10:00 for each of 3 tasks; {rest}"


def test_a_plan_of_which_nothing_runs_says_so() -> None:
    none = replace(WORK, units=[], longest=Estimate(0, True), measurements=0)
    assert plan_line(none, SCRIPT, is_by_plan=True) == "nothing of the plan is left to run"
    assert advice(none, replace(SCRIPT, tasks=8)) == []
    skipped = replace(none, skipped=[NO_GPU, NO_GPU])
    assert plan_line(skipped, SCRIPT, is_by_plan=True) == "no unit of the plan would run"
    assert advice(skipped, SCRIPT) == [
        f"all of it would be skipped: {NO_GPU}; --gres=gpu:N asks SLURM for more"
    ]


def test_what_such_a_job_would_skip_is_said_with_what_to_ask_for() -> None:
    assert advice(replace(WORK, skipped=[NO_GPU]), SCRIPT) == [
        f"1 of the plan would be skipped: {NO_GPU}; --gres=gpu:N asks SLURM for more"
    ]
    cpus = "needs 8 CPUs, 4 may be used"
    (line,) = advice(replace(WORK, skipped=[cpus, cpus]), SCRIPT)
    assert line == f"2 of the plan would be skipped: {cpus}; --cpus-per-task N asks SLURM for more"


@pytest.mark.parametrize(("tasks", "measurements", "expected"), [(6, 6, 0), (7, 6, 1), (7, None, 0)])
def test_more_tasks_than_measurements_are_too_many(
    tasks: int, measurements: int | None, expected: int
) -> None:
    found = advice(replace(WORK, measurements=measurements), replace(SCRIPT, tasks=tasks))
    assert len(found) == expected
    assert all("7 tasks for 6 measurements: some would find nothing to do; --tasks 6" in one for one in found)


@pytest.mark.parametrize(("seconds", "is_short"), [(540, False), (541, True)])
def test_a_limit_that_no_job_could_keep_is_said(seconds: float, is_short: bool) -> None:
    # Of ten minutes a tenth is kept.
    found = advice(replace(WORK, longest=Estimate(seconds, False)), SCRIPT)
    said = (
        "--time 0:10:00 is short: the longest measurement takes roughly 9 min, "
        "and 60 s of a job are kept for its end"
    )
    assert found == ([said] if is_short else [])
