"""Where each field of a planned trial has its value from: command line, file, other fields, the machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.plan.experiment import Experiment
from gpubench.plan.plan import Unit
from gpubench.plan.resolve import Resolved
from gpubench.plan.values import BATCH_PER_GPU
from gpubench.schema.record import ALLOTTED
from gpubench.schema.trial_fields import DEFAULTS, FIELDS

MACHINE = "machine"
DEFAULT = "default"
OF_IMAGES: Mapping[str, str] = dict.fromkeys(("input_size", "num_classes", "train_images"), "the images")
"""Fields that the images settle where nobody gives them."""
FOLLOW: Mapping[str, tuple[str, ...]] = {
    "gpus": ("gpu_ids", "device"),
    "strategy": ("gpus", "gpu_ids", "ranks"),
    "lr": ("optimizer",),
    "sync_every": ("strategy",),
    "epochs": ("until_top1",),
    "warmup_epochs": ("epochs", "until_top1"),
}
"""Fields that others fill in the trial itself (`trial.make`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldOrigin:
    """One field of one trial."""

    value: Any
    """None: there is none, as of a memory cap that nobody asked for."""
    origin: str
    """`--batch-size`, `batch.toml`, `machine`, `follows optimizer`, `default`, …"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """One trial of a plan."""

    trial_id: str
    group: str
    job: str
    fields: Mapping[str, FieldOrigin]


def given(experiment: Experiment, where: str, *, has_jobs: bool) -> dict[str, str]:
    """Each field that somebody gave, and where. `where`: what the experiment file is called. `has_jobs`: by --job."""
    found = dict.fromkeys(experiment.fixed, where)
    found |= {name: where for axis in experiment.axes for name in axis.fields}
    found |= {
        name: "--job" if has_jobs else f"{where}, [[group]]"
        for group in experiment.groups
        for job in group.jobs
        for name in job
    }
    return found | {name: called for name, called in experiment.typed.items() if name in found}


def explained(unit: Unit, resolved: list[Resolved] | None, told: Mapping[str, str]) -> list[Explained]:
    """The fields of each job of a unit. `resolved`: None for one that this machine has no room for.

    `told`: of `given`.
    """
    found = []
    for job, one in zip(unit.jobs, resolved or [None] * len(unit.jobs), strict=True):  # type: ignore[list-item]
        settled = one.columns() if one is not None else {}
        trial = vars(job.trial)
        fields = {}
        for name in FIELDS:
            value = trial[name]
            if value is None:
                value = settled.get(name)
                origin = told.get(name) or (OF_IMAGES.get(name, MACHINE) if value is not None else DEFAULT)
            else:
                origin = _origin(name, value, told, baseline=unit.baseline)
            if name == "data" and job.variant.data is not None:
                origin = "the variant"
            fields[name] = FieldOrigin(value=value, origin=origin)
        own = job.membership
        found.append(
            Explained(
                trial_id=job.trial_id,
                group=own.group if own else "",
                job=own.name if own else "",
                fields=fields,
            )
        )
    return found


def _origin(name: str, value: Any, told: Mapping[str, str], *, baseline: bool) -> str:
    if name in told:
        return told[name]
    if name == "batch_size" and BATCH_PER_GPU in told:
        return told[BATCH_PER_GPU]
    if name == "repeat" and value:
        return "--repeats, or repeats of the file"
    if baseline and name in ALLOTTED:
        return "as in its group"
    if value == DEFAULTS[name]:
        return DEFAULT
    others = [other for other in FOLLOW.get(name, ()) if other in told]
    return f"follows {others[0]}" if others else DEFAULT
