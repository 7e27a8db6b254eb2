"""Tries of `--find-max-batch` in a table: they are of three first steps, which tell of memory and of nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.analysis.doubted import codes
from gpubench.basics.words import listed
from gpubench.plan.max_batch import edge
from gpubench.schema.columns import MEASURED
from gpubench.schema.doubts import doubt_of
from gpubench.schema.row import Row, replace

WHY = "a try of --find-max-batch is of a few first steps, which tell of memory alone"
_LEFT_OUT = tuple(
    column.name
    for column in MEASURED
    if column.name == "epoch_time_source" or column.unit not in ("", "MiB", "images")
)
"""Figures of time, energy and use."""


def of_memory_alone(row: Row) -> Row:
    """A try without the figures and the doubts that are not of memory."""
    told = [name for name in _LEFT_OUT if row.value(name) is not None]
    without: dict[str, Any] = dict.fromkeys(told)
    return replace(
        row,
        doubt_texts={code: texts for code, texts in row.doubt_texts.items() if _is_of_memory(code)},
        doubts="+".join(code for code in codes(row) if _is_of_memory(code)) or None,
        missing=dict(row.missing) | dict.fromkeys(told, WHY),
        **without,
    )


def _is_of_memory(code: str) -> bool:
    return "memory" in doubt_of(code).about


def sentences(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """Where memory ends by these tries. Empty where rows differ in more than their batch size."""
    if set(fields) - {"batch_size"}:
        return []
    sizes = {
        status: [row.batch_size for row in rows if row.batch_size and row.status == status]
        for status in ("ok", "oom")
    }
    found = edge(sizes["ok"], sizes["oom"])
    ends = [
        *([f"the largest batch that ran is {found.ran:,}"] if found.ran else []),
        *([f"the smallest that ran out of memory {found.full:,}"] if found.full is not None else []),
    ]
    return [f"Of these tries, {listed(ends)}."] if ends else []
