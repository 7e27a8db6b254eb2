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


NO_CPUS = "needs 8 CPUs, 4 may be used"
NOTHING = replace(WORK, units=[], longest=Estimate(0, True), measurements=0)
GUESSED = replace(WORK, units=[*WORK.units, Estimate(1, False)])
REST = "what is not done by then goes on after a requeue"

PLAN_LINES = {
    "limit of its user": (WORK, 1, False, "2 units to run, about 3 min in all"),
    "guess": (GUESSED, 1, True, f"3 units to run, roughly 3 min in all: --time 0:10:00; {REST}"),
    "array": (
        WORK,
        3,
        True,
        f"2 units to run, about 3 min in all: --time 0:10:00 for each of 3 tasks; {REST}",
    ),
    "nothing": (NOTHING, 1, True, "nothing of the plan is left to run"),
    "all skipped": (replace(NOTHING, skipped=[NO_GPU]), 1, True, "no unit of the plan would run"),
}
ADVICE = {
    "all skipped": (
        replace(NOTHING, skipped=[NO_GPU, NO_GPU]),
        1,
        f"all of it would be skipped: {NO_GPU}; --gres=gpu:N asks SLURM for more",
    ),
    "GPUs": (
        replace(WORK, skipped=[NO_GPU]),
        1,
        f"1 of the plan would be skipped: {NO_GPU}; --gres=gpu:N asks SLURM for more",
    ),
    "CPUs": (
        replace(WORK, skipped=[NO_CPUS, NO_CPUS]),
        1,
        f"2 of the plan would be skipped: {NO_CPUS}; --cpus-per-task N asks SLURM for more",
    ),
    "tasks": (WORK, 7, "7 tasks for 6 measurements: some would find nothing to do; --tasks 6 is enough"),
    "short": (
        replace(WORK, longest=Estimate(541, False)),
        1,
        "--time 0:10:00 is short: the longest measurement takes roughly 9 min, and 60 s of a job are kept for its end",
    ),
}


@pytest.mark.parametrize("case", PLAN_LINES)
def test_how_much_there_is_to_do_and_the_limit(case: str) -> None:
    work, tasks, is_by_plan, line = PLAN_LINES[case]
    assert plan_line(work, replace(SCRIPT, tasks=tasks), is_by_plan=is_by_plan) == line


@pytest.mark.parametrize("case", ADVICE)
def test_what_is_better_changed(case: str) -> None:
    work, tasks, line = ADVICE[case]
    assert advice(work, replace(SCRIPT, tasks=tasks)) == [line]


def test_there_is_no_advice_on_a_plan_that_is_done() -> None:
    assert advice(NOTHING, replace(SCRIPT, tasks=8)) == []


@pytest.mark.parametrize(("tasks", "measurements", "expected"), [(6, 6, 0), (7, 6, 1), (7, None, 0)])
def test_more_tasks_than_measurements_are_too_many(
    tasks: int, measurements: int | None, expected: int
) -> None:
    hints = advice(replace(WORK, measurements=measurements), replace(SCRIPT, tasks=tasks))
    assert len(hints) == expected


@pytest.mark.parametrize(("seconds", "is_short"), [(540, False), (541, True)])
def test_of_ten_minutes_a_tenth_is_kept(seconds: float, is_short: bool) -> None:
    hints = advice(replace(WORK, longest=Estimate(seconds, False)), SCRIPT)
    assert len(hints) == is_short
