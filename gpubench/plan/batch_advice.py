"""What is said beside a batch script: how long its plan takes, and what of it no such job would measure. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.basics.words import many
from gpubench.plan.batch_script import BatchScript, seconds
from gpubench.plan.estimate import Estimate, format_seconds
from gpubench.plan.wall_time import find_spare


@dataclass(frozen=True, kw_only=True, slots=True)
class Remaining:
    """What a plan has left for jobs of the size that is asked for."""

    units: Sequence[Estimate]
    """What is to run, in all of its rounds."""
    longest: Estimate
    """Of their single measurements."""
    measurements: int | None
    """How many there are in all rounds; None: nobody knows beforehand."""
    skipped: Sequence[str]
    """Why each unit is skipped that wants more than such a job has."""


def plan_line(work: Remaining, script: BatchScript, *, is_by_plan: bool) -> str:
    """How much there is to do, and the time limit. `is_by_plan`: nobody else said one."""
    if not work.units:
        return "nothing of the plan is left to run" if not work.skipped else "no unit of the plan would run"
    about = "about" if all(unit.known for unit in work.units) else "roughly"
    total = format_seconds(sum(unit.seconds for unit in work.units))
    line = f"{many(len(work.units), 'unit')} to run, {about} {total} in all"
    if not is_by_plan:
        return line
    per_task = f" for each of {script.tasks} tasks" if script.tasks > 1 else ""
    return f"{line}: --time {script.time}{per_task}; what is not done by then goes on after a requeue"


def advice(work: Remaining, script: BatchScript) -> list[str]:
    """What is better changed before the script is submitted."""
    hints = []
    if work.skipped:
        what = (
            f"{len(work.skipped)} of the plan would be skipped"
            if work.units
            else "all of it would be skipped"
        )
        ask = "--gres=gpu:N" if " GPU" in work.skipped[0] else "--cpus-per-task N"
        hints.append(f"{what}: {work.skipped[0]}; {ask} asks SLURM for more")
    if work.measurements is not None and 0 < work.measurements < script.tasks:
        hints.append(
            f"{script.tasks} tasks for {many(work.measurements, 'measurement')}: some would find nothing to do; "
            f"--tasks {work.measurements} is enough"
        )
    limit_s = seconds(script.time)
    spare_s = find_spare(limit_s)
    if work.units and work.longest.seconds > limit_s - spare_s:
        about = "about" if work.longest.known else "roughly"
        hints.append(
            f"--time {script.time} is short: the longest measurement takes {about} "
            f"{format_seconds(work.longest.seconds)}, and "
            f"{format_seconds(spare_s)} of a job are kept for its end"
        )
    return hints
