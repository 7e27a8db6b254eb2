"""What a unit of a plan is called, while it runs. Pure."""

from __future__ import annotations

from typing import Any

from gpubench.plan.plan import Plan, Unit
from gpubench.schema.trial_fields import FIELDS


def unit_label(plan: Plan, unit: Unit) -> str:
    """The unit by its group and the varied fields, or by the usual ones where nothing varies."""
    fields = [name for axis in plan.experiment.varied for name in axis]
    if not fields and not unit.is_group:
        fields = ["model", "batch_size"]
    values = unit.jobs[0].trial.asdict()
    named = [f for f in fields if f in values]
    if "batch_per_gpu" in fields:
        named.append("batch_size")
    if unit.is_group:  # what its jobs differ in is told by its name
        named = [name for name in named if name != "copies"]
    elif plan.experiment.groups:
        named = list(dict.fromkeys([*_differing(plan), *named]))
    if values["gpu_ids"] is not None:
        named = [name for name in named if name != "gpus"]
    parts = [f"{name}={_of_all(name, unit)}" for name in named if values[name] is not None]
    repeats = plan.experiment.repeats
    if repeats > 1:  # in words: it is no field that anybody asked for
        parts.append(f"repeat {values['repeat'] + 1} of {repeats}")
    return " ".join(filter(None, [unit.group, *parts]))


def _of_all(name: str, unit: Unit) -> str:
    """A field's value; several where one job settles what is an axis for the others."""
    return "/".join(dict.fromkeys(_short(getattr(job.trial, name)) for job in unit.jobs))


def _short(value: Any) -> str:
    """A field's value in a label."""
    if isinstance(value, (list, tuple)):
        return "+".join(str(v) for v in value)
    return "auto" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _differing(plan: Plan) -> list[str]:
    """The fields in which the jobs of a plan's groups were asked to differ."""
    values: dict[str, set[Any]] = {}
    for group in plan.experiment.groups:
        for job in group.jobs:
            for name, value in job.items():
                values.setdefault(name, set()).add(value)
    return [name for name in values if name in FIELDS]
