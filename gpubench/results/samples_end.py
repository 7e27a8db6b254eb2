"""Whether a file of samples has its end, which its record tells: its last lines are the measured steps of rank 0."""

from __future__ import annotations

from pathlib import Path

from gpubench.basics.words import many
from gpubench.schema.record import Record


def without_end(path: Path, steps: int, record: Record) -> str | None:
    """What is told of a file that holds fewer step times than its record has measured: it was cut off, also where that
    was between two lines. None where it is whole, or its record does not tell.

    `steps`: how many step times it holds.
    """
    counts = [epoch.get("steps") for epoch in record.epochs if not epoch["warmup"]]
    known = [count for count in counts if count is not None]
    if record.status != "ok" or len(known) < len(counts) or steps >= sum(known):
        return None
    return (
        f"{path} is damaged: it holds {steps:,} of {many(sum(known), 'measured step')}, so it was cut off; "
        "what it lacks at its end is not known"
    )
