"""Rows of a table and their processes, made by hand: only what a test is about is given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from gpubench.analyze.series import CANDIDATES
from gpubench.analyze.table_rows import TableRows
from gpubench.schema.trial_fields import DEFAULTS

NOISE = math.log(1.4)
FIGURES: Mapping[str, Any] = {
    "images_per_epoch": 1000, "epoch_time_s": None, "cpu_s_per_epoch": None, "cpu_util_pct": None, "top1_pct": None,
    "time_to_top1_s": None, "energy_to_top1_j": None, "solo_epoch_time_s": None, "took_s": None, "energy_j": None,
}  # fmt: skip
"""Of processes. A list in a row holds one for each of its processes."""
FACTS: Mapping[str, Any] = {
    "machine": "H200", "group": None, "job": None, "unit": None, "jobs_of_group": None, "solo_id": None, "trial_id": "",
    "status": "ok", "host": "node", "val_images": None, "repeat": 0, "round": None, "is_gpu_ids_auto": True,
    "is_workers_auto": True, "is_asked_known": True, "gpu_power_limit_w": None, "kind": "steady rate",
}  # fmt: skip
NUMBERS = (
    "strong_baseline", "weak_baseline", "before", "epochs_to_top1", "predicted_slowdown", "gpu_util_pct",
    "data_wait_pct", "gmacs_per_image", "until_top1", "jobs_of_group",
)  # fmt: skip


def make_table(rows: Sequence[Mapping[str, Any]], noise: float | None = NOISE, **facts: Any) -> TableRows:
    """The table of these rows, labelled 10, 11, …; one without a list of figures has no process that ended ok.

    Processes are of rounds 1, 2, …, where a row has no list of its own `round`.
    """
    lines, runs = [], []
    for label, given in enumerate(rows, 10):
        fields = {name: DEFAULTS.get(name) for name in CANDIDATES}
        row = {**fields, **dict.fromkeys(NUMBERS), **FACTS, **FIGURES, **given}
        processes = max((len(value) for value in row.values() if isinstance(value, list)), default=0)
        for number in range(processes):
            figures = {
                name: value[number] if isinstance(value, list) else value for name, value in row.items()
            }
            runs.append({**figures, "row": label, "round": figures["round"] or number + 1})
        middle = {
            name: (value or [None])[0] if isinstance(value, list) else value for name, value in row.items()
        }
        rate = (middle["images_per_epoch"] or 1) / middle["epoch_time_s"] if middle["epoch_time_s"] else None
        lines.append({**middle, "label": label, "repeats": processes, "images_per_s": rate})
    summary = pd.DataFrame(lines).set_index("label")
    summary[list(NUMBERS)] = summary[list(NUMBERS)].astype("float64")
    known = {} if noise is None else dict.fromkeys(summary.index.tolist(), noise)
    return TableRows(summary=summary, runs=pd.DataFrame(runs), noise=known, **facts)


def scatter(middle: float, *deviations: float) -> list[float]:
    """Figures about a middle that lie apart by these logarithms."""
    return [middle * math.exp(each) for each in deviations]
