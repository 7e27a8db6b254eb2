"""What a unit of a plan is called among its neighbours. Pure."""

from __future__ import annotations

from gpubench.plan.plan import Plan, Unit
from gpubench.plan.values import BATCH_PER_GPU
from gpubench.schema.cell import format_cell


def format_unit_label(plan: Plan, unit: Unit) -> str:
    """The unit by its group and the varied fields, or by the usual ones where nothing varies."""
    experiment, trials = plan.experiment, [job.trial for job in unit.jobs]
    fields = [name for axis in experiment.varied for name in axis]
    if unit.is_group:  # how many copies it has is told by its name
        fields = [name for name in fields if name != "copies"]
    else:  # a trial alone may be there for the jobs of groups
        of_jobs = [name for group in experiment.groups for job in group.jobs for name in job]
        fields = [*of_jobs, *fields] or ["model", "batch_size"]
    parts = [unit.group] if unit.group else []
    for name in dict.fromkeys("batch_size" if name == BATCH_PER_GPU else name for name in fields):
        values = dict.fromkeys(format_cell(getattr(trial, name)) for trial in trials)
        if any(values):
            parts.append(f"{name}={'/'.join(values)}")
    if experiment.repeats > 1:  # in words: it is no field that anybody asked for
        parts.append(f"repeat {trials[0].repeat + 1} of {experiment.repeats}")
    return " ".join(parts)
