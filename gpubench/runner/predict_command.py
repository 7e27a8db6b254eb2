"""`gpubench predict`: what jobs would do to each other, from stored rows of the same trials alone. Runs nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from gpubench import environment
from gpubench.analysis.prediction import track_record
from gpubench.environment import Gpu, Machine
from gpubench.errors import UnusableError, UsageError
from gpubench.experiment.experiment import Options
from gpubench.experiment.groups import label
from gpubench.experiment.plan import Job, Unit, expand
from gpubench.monitor.nvml import open_nvml
from gpubench.report import prediction as prediction_report
from gpubench.report.groups import gathered
from gpubench.report.table import row_of
from gpubench.report.terminal import encodable
from gpubench.result import Record
from gpubench.runner import command, together
from gpubench.runner.resolve import Resolved, resolve_unit
from gpubench.runner.sources import Disk
from gpubench.store import newest

Row = dict[str, Any]

LIKE = (
    "model", "width", "input_size", "variant", "data", "train_images", "batch_size", "gpus", "ranks", "strategy",
    "precision", "memory_format", "execution", "cudnn_benchmark", "optimizer", "accumulate", "device",
)  # fmt: skip
"""What a row must have in common with a job for its seconds an epoch to be the job's."""
OUGHT = {"workers": "workers", "cpus": "CPUs"}
"""What it should have in common, too; where it does not, that is said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What one machine has measured."""

    key: str
    rows: tuple[Row, ...]
    machine: Machine
    """As the newest row tells."""


def predict(
    folders: Sequence[Path], options: Options, *, experiment: Path | None = None, markdown: bool = False
) -> int:
    """Answers for the jobs of `options` or `experiment`; without any: how good answers have been so far."""
    measured = _measured(folders)
    asks = bool(options.jobs or options.pairs or "copies" in options.fields or experiment)
    if not asks and options.fields:
        raise UsageError("there are no jobs to predict; give --job two or more times, or --copies")
    parts = _answers(measured, experiment, options, markdown) if asks else []
    parts.append(_track(measured, markdown))
    text = "\n".join(parts)
    sys.stdout.write(encodable(text, Console().encoding))
    return 0


# ---------------------------------------------------------------- what there is


def _measured(folders: Sequence[Path]) -> Measured:
    """The rows of this machine; where it has none, of the machine that most rows are of.

    `folders`: none stands for all in the place where sweeps put theirs.
    """
    records = [record for folder in folders or command.all_results() for record in command.opened(folder)[1]]
    counting = list(newest(records).values())
    keys = Counter(record.machine_key for record in counting if record.status == "ok")
    if not keys:
        raise UnusableError("no trial in these results ended ok; gpubench sweep measures some")
    here = _here()
    key = next((one for one in here if one in keys), keys.most_common(1)[0][0])
    mine = [record for record in counting if record.machine_key == key]
    return Measured(key=key, rows=tuple(row_of(record) for record in mine), machine=_machine(mine))


def _here() -> list[str]:
    """Keys of this machine, that of its GPUs first."""
    machine = environment.machine(open_nvml())
    devices = ["cuda", "cpu"] if machine.gpus else ["cpu"]
    return [environment.machine_key(machine, device) for device in devices]


def _machine(records: Sequence[Record]) -> Machine:
    """The machine as its newest record tells: how many GPUs and CPUs. Enough to lay jobs out on it."""
    last = max(records, key=lambda record: record.started_at)
    facts = last.environment
    cpus = int(facts.get("cpu_count") or 1)
    gpus = int(facts.get("gpu_count") or 0)
    return Machine(
        host=str(facts.get("host")),
        gpus=tuple(
            Gpu(index=i, uuid=f"GPU-{i}", name=str(facts.get("gpu_name")), memory_mib=0) for i in range(gpus)
        ),
        driver=facts.get("driver"),
        cpu_name=str(facts.get("cpu_name")),
        cpu_ids=tuple(range(cpus)),
        cpu_count=cpus,
    )


# ---------------------------------------------------------------- answers


def _answers(measured: Measured, path: Path | None, options: Options, markdown: bool) -> list[str]:
    on_gpus = any(row.get("device") == "cuda" for row in measured.rows)
    experiment = command.read_experiment(path, options, has_gpu=on_gpus)
    sources = Disk()
    device = "cuda" if on_gpus else "cpu"
    plan = expand(experiment, device=device, sources=sources, cpus=measured.machine.cpu_count)
    groups = [unit for unit in plan.units if unit.is_group]
    if not groups:
        raise UsageError("there are no jobs to predict; give --job two or more times, or --copies 2")
    needed = max((gpu for unit in groups for job in unit.jobs for gpu in job.trial.gpu_ids or ()), default=-1)
    if device == "cuda" and needed >= len(measured.machine.gpus):
        raise UsageError(f"GPU {needed}: the rows are of a machine that showed {len(measured.machine.gpus)}")
    fields = [name for axis in experiment.varied for name in axis]
    found = []
    for unit in groups:
        resolved = resolve_unit(unit, measured.machine, lambda job: sources.data(job.trial.data), device)
        found.append(_answer(unit, resolved, measured, fields, markdown))
    return found


def _answer(
    unit: Unit, resolved: Sequence[Resolved], measured: Measured, fields: Sequence[str], markdown: bool
) -> str:
    solos: list[Row] = []
    notes: list[str] = []
    for job, one in zip(unit.jobs, resolved, strict=True):
        solo = _alone(job, one, measured.rows)
        if solo is None:
            raise UnusableError(
                f"{_name(job)} was not measured alone on {measured.key}; gpubench sweep with the same options does"
            )
        for field, word in OUGHT.items():
            if solo.get(field) != one.columns()[field]:
                notes.append(
                    f"{_name(job)} would have {one.columns()[field]} {word}; its row alone has {solo.get(field)}."
                )
        solos.append(solo)
    made, why_not = together.predicted(solos, resolved)
    if made is None:
        raise UnusableError(f"{unit.group} can't be predicted: {why_not}")
    values = vars(unit.jobs[0].trial)
    varied = ", ".join(f"{name}={values[name]}" for name in fields if name in values and name != "copies")
    head = f"{unit.group} ({varied})" if varied else unit.group
    names = [f"{place.name}: {_name(job)}" for job in unit.jobs if (place := job.place)]
    text = prediction_report.answer(names, solos, made, notes, as_markdown=markdown)
    return f"{'**' if markdown else ''}{head}{'**' if markdown else ''}\n\n{text}"


def _alone(job: Job, resolved: Resolved, rows: Sequence[Row]) -> Row | None:
    """The row of a trial alone that is most like this job: the very one, or else with its workers and CPUs."""
    assert job.place is not None
    wanted = vars(job.trial) | resolved.columns()
    like = [
        row
        for row in rows
        if row["status"] == "ok"
        and not row.get("group")
        and (row["trial_id"] == job.place.solo.trial_id or all(row.get(f) == wanted[f] for f in LIKE))
    ]
    return max(
        like,
        key=lambda row: (
            row["trial_id"] == job.place.solo.trial_id if job.place else False,
            sum(row.get(field) == wanted[field] for field in OUGHT),
            str(row.get("started_at")),
        ),
        default=None,
    )


def _name(job: Job) -> str:
    t = job.trial
    gpus = {"gpu_ids": t.gpu_ids} if t.gpu_ids else {}
    return label({"model": t.model, "variant": t.variant, "batch_size": t.batch_size, **gpus})


# ---------------------------------------------------------------- how good answers have been


def _track(measured: Measured, markdown: bool) -> str:
    named = [{**row, "group": group.label} for group in gathered(list(measured.rows)) for row in group.rows]
    return prediction_report.track(track_record(named), measured.key, as_markdown=markdown)
