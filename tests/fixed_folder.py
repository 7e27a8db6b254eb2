"""A results folder by hand, with something of everything that tables tell of: the records are always the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fakes import record

from gpubench.results.store import Results
from gpubench.schema.record import Record

ODD = "=cmd|'/c calc'!A1"
"""The name of a user's variant, which a spreadsheet would run."""
FIELDS = {
    "model": "lenet",
    "input_size": 28,
    "train_images": 1024,
    "gpus": 1,
    "precision": "fp32",
    "lr": 0.05,
    "epochs": 3,
}
TIMES = {16: 4.0, 32: 2.5, 64: 1.23456789, 128: 18.457}


def trial(variant: str, batch: int, **more: Any) -> Record:
    """One that ended ok unless told otherwise."""
    number = batch + 1000 * (variant == ODD)
    repeat = more.pop("repeat", 0)
    plain: dict[str, Any] = {
        "trial_id": f"t{number:010x}{repeat:x}",
        "config_id": f"c{number:011x}",
        "experiment": "fixed",
        "machine_key": "NVIDIA H200, 143771 MiB",
        "trial": {**FIELDS, "variant": variant, "batch_size": batch, "repeat": repeat},
        "data": {"fingerprint": "x", "train_images": 1024},
        "resolved": {"workers": 2, "cpus": 4, "gpu_ids": [0], "cpu_ids": [0, 1, 2, 3]},
        "result": {
            "epoch_time_s": TIMES[batch] * (1 + 0.01 * repeat), "epochs_measured": 3, "epoch_time_source": "measured",
            "epoch_time_iqr_s": 0.02, "images_per_epoch": 1024, "images_per_s": 1024 / TIMES[batch],
            "gpu_mem_mib": 1000.0 + 8 * batch, "gpu_mem_source": "nvml-process", "cpu_util_pct": 12.345,
            "energy_j": 1000.5,
        },
        "missing": {"top1_pct": "no validation split"},
        "environment": {"host": "h", "gpu_name": "NVIDIA H200", "gpu_count": 1, "cpu_name": "Xeon", "cpu_count": 4},
        "epochs": [
            {"epoch": n, "warmup": n == 0, "epoch_time_s": TIMES[batch], "train_loss": 2.125 - n, "steps": 8}
            for n in range(2)
        ],
    }  # fmt: skip
    return record(**(plain | more))


RECORDS = [
    *(trial("crop-resize", 16, repeat=n) for n in range(3)),
    trial(
        "crop-resize", 32, doubts={"throttled": "the GPU's clocks were lowered for 12 % of the time; cool it"}
    ),
    trial("crop-resize", 64),
    trial("crop-resize", 128, status="oom", reason="CUDA out of memory; + 2 GiB", result={}, missing={}),
    trial(ODD, 16),
    trial(ODD, 64, status="failed", reason="-1;=1+1, @x", result={}, missing={}),
    trial(ODD, 128),
]


def fixed(folder: Path) -> Path:
    """The folder, written."""
    results = Results(folder)
    for one in RECORDS:
        results.save([one], [[]], [])
    return folder
