"""Folders whose figures were made up, so that what `gpubench predict` answers can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import scripted
from msgspec import structs

from gpubench.commands import predict as predict_command
from gpubench.plan.command_line import read_experiment
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.store import Results
from gpubench.schema.record import Record, Status

GPU = "NVIDIA H200, 143771 MiB"
SAID = "NVIDIA H200, 143,771 MiB"
CPUS = 8
FAR = scripted.computer(gpus=2, cpus=CPUS)
"""The machine that has measured."""
READS = {"variant": "crop-resize", "data": "procedural:5120"}
"""The images of made-up rows, which the built-in sweep on a GPU does not read."""


def alone(
    batch_size: int, *, epoch: float = 4.0, cpu: float | None = 8.0, busy: float | None = 3.0, **more: Any
) -> Record:
    """A trial alone on one GPU: 4 s per epoch, 2 of 8 CPUs, 3 s of its GPU.

    `more`: parts of the record, or trial fields that were asked for.
    """
    status: Status = more.pop("status", "ok")
    resolved = {"workers": CPUS // 2, "cpus": CPUS, **more.pop("resolved", {})}
    facts = {
        key: more.pop(key)
        for key in ("machine_key", "started_at", "doubts", "data", "attempt")
        if key in more
    }
    asked = {"batch_size": batch_size, "workers": CPUS // 2, **READS, **more}
    experiment = read_experiment(
        None, ExperimentOptions(fields={k: str(v) for k, v in asked.items()}), has_gpu=True
    )
    (unit,) = expand_experiment(experiment, device="cuda", sources=DiskSources(), cpus=CPUS).units
    (job,) = unit.jobs
    data = DiskSources().find_data_facts(job.trial.data)
    return Record(
        trial_id=job.trial_id,
        config_id=job.config_id,
        experiment="alone",
        status=status,
        trial=job.trial.as_json_dict(),
        variant_definition=job.variant.make_definition(),
        resolved={
            "device": "cuda", "gpus": 1, "gpu_ids": [0], "input_size": 224, "num_classes": data.num_classes,
            "train_images": data.train_images, **resolved,
        },
        result={
            "epoch_time_s": epoch, "epoch_time_iqr_s": 0.0, "epochs_measured": 3, "cpu_s_per_epoch": cpu,
            "gpu_busy_s_per_epoch": busy,
        },
        environment={"cpu_name": "CPU", "gpu_name": "NVIDIA H200", "gpu_count": 2, "cpu_count": CPUS, "mps": "off"},
        **{"machine_key": GPU, "data": data.as_dict(), "started_at": "2026-11-20 09:00:00", **facts},
    )  # fmt: skip


def under_limit(batch_size: int, limit_w: int, time_s: float, power_w: float | None, **more: Any) -> Record:
    """A trial alone under a power limit. `power_w` None: neither energy nor power is known."""
    record = alone(batch_size, epoch=time_s, power_limit_w=limit_w, **more)
    energy = {} if power_w is None else {"energy_j": time_s * power_w}
    return structs.replace(record, result=record.result | energy)


def together(batch: int, slowdowns: Sequence[float], predicted: Sequence[float], at: str) -> list[Record]:
    """Equal jobs of one group, measured at this minute."""
    group_id, size = f"g{batch:012}", len(slowdowns)
    return [
        structs.replace(
            alone(batch, started_at=f"2026-11-20 {at}:00"),
            trial_id=f"j{batch:08}{number:04}",
            config_id=f"c{batch:08}{number:04}",
            group=f"{size} copies",
            group_id=group_id,
            job=f"{number + 1} of {size}",
            result={
                "epoch_time_s": 4.0,
                "slowdown": slow,
                "predicted_slowdown": told,
                "group_id": group_id,
            },
        )
        for number, (slow, told) in enumerate(zip(slowdowns, predicted, strict=True))
    ]


def folder(path: Path, *units: Record | list[Record]) -> Path:
    for number, unit in enumerate(units):
        records = unit if isinstance(unit, list) else [structs.replace(unit, attempt=number + 1)]
        Results(path).save(records, [[] for _ in records], ["t"])
    return path


class Asked:
    """`predict` as the command line calls it, and what it wrote, on one line; `code` is its exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code = 0

    def __call__(self, *folders: Path, experiment: Path | None = None, markdown: bool = False, pairs: bool = False,
                 jobs: Sequence[str] = (), bad_images: str | None = None, **fields: str) -> str:  # fmt: skip
        if experiment is None and (jobs or fields):
            fields = READS | fields
        options = ExperimentOptions(fields=fields, jobs=tuple(jobs), pairs=pairs, bad_images=bad_images)
        self.code = predict_command.predict(list(folders), options, experiment=experiment, markdown=markdown)
        out, err = self._capsys.readouterr()
        assert err == ""
        return out if markdown else " ".join(out.split())


TWO = ("batch_size=16,workers=4", "batch_size=32,workers=4")
