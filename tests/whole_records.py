"""Stored records with something in every part, from which tests make damaged ones."""

from __future__ import annotations

import json

from fakes import record
from msgspec import structs

from gpubench.schema.record import GroupRecord

EPOCHS = [{"epoch": n, "warmup": n == 0, "epoch_time_s": 1.5, "train_loss": 2.0} for n in range(2)]
FULL = record(
    trial={"model": "lenet", "batch_size": 16, "gpu_ids": [0, 1], "lr": 0.1, "precision": "fp32", "repeat": 0},
    variant_definition={"files": "none", "cpu": [], "gpu": []},
    data={"fingerprint": "x", "train_images": 1024},
    resolved={"workers": 2, "cpus": 2, "cpu_ids": [0, 1]},
    result={"epoch_time_s": 1.5, "gpu_mem_mib": 900.0, "epochs_measured": 1, "epoch_time_source": "measured"},
    provenance={"power_w": {"source": "NVML", "period_s": 0.1, "samples": 9, "gaps": 0}},
    missing={"top1_pct": "why"}, epochs=EPOCHS, span={"launched": 1.0, "finished": 9.0}, phases={"start": 0.1},
    environment={"host": "h", "gpu_count": 1, "torch": "2.11.0", "kernel": "6"},
)  # fmt: skip
"""One with something in every part."""
TEXT = json.dumps(FULL.to_stored())
JOBS = [
    structs.replace(
        FULL,
        trial_id=f"j{n}",
        group="two",
        job=f"{n} of 2",
        group_id="g0123456789a",
        together={
            "jobs": 2,
            "gain_range": [0.1, 0.2],
            "solos": [{"trial_id": "t0", "attempt": 1}, None],
        },
    )
    for n in (1, 2)
]
GROUP = json.dumps(GroupRecord(group_id="g0123456789a", attempt=1, jobs=JOBS).to_stored())
