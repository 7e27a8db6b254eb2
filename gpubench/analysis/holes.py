"""Batch sizes that were asked for and can't be compared: why, in words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gpubench.analysis.growth import epoch_time, gpu_mem
from gpubench.basics.words import listed
from gpubench.schema.row import Row

ENDINGS: dict[str, tuple[str, str]] = {
    "oom": ("ran out of memory", "ran out of memory"),
    "failed": ("failed", "failed"),
    "timeout": ("timed out", "timed out"),
    "interrupted": ("was interrupted", "were interrupted"),
    "skipped": ("was skipped", "were skipped"),
    "missing": ("has no result yet", "have no result yet"),
}
"""What became of a batch size that did not end ok, of one and of several."""

NO_TIME = ("has no epoch time", "have no epoch time")
ONE_PROCESS = ("is of one process", "are of one process")
NO_MEMORY = ("has no memory figure", "have no memory figure")


def unknown(rows: Sequence[Row]) -> str:
    """`32 failed, so it can't be compared`: of batch sizes over which no step leads; empty for none."""
    if not rows:
        return ""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        found.setdefault(_why(row), []).append(str(row.batch_size))
    parts = [f"{listed(sizes)} {words[len(sizes) > 1]}" for words, sizes in found.items()]
    return f"{listed(parts)}, so {'it' if len(rows) == 1 else 'they'} can't be compared"


def fitting(larger: Sequence[Row]) -> list[Row]:
    """The rows, by ascending size, below the first that ran out of memory; that one answers for all above it."""
    return list(itertools.takewhile(lambda row: row.status != "oom", larger))


def beyond(larger: Sequence[Row]) -> str:
    """What became of the sizes above all that have figures, ascending, in brackets; empty for none."""
    may_fit = fitting(larger)
    full = larger[len(may_fit) :][:1]
    parts = [unknown(may_fit), *(f"{row.batch_size} ran out of memory" for row in full)]
    return f" ({', and '.join(filter(None, parts))})" if larger else ""


def _why(row: Row) -> tuple[str, str]:
    if row.status == "ok":
        if epoch_time(row) is None:
            return NO_TIME
        return NO_MEMORY if gpu_mem(row) is None and row.device != "cpu" else ONE_PROCESS
    return ENDINGS[row.status]
