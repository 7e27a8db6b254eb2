"""CPU time of an image under several variants, over processes: each against the one named first. Pure.

It is that of the trial's own processes, loaders included, in all rounds; the share of the CPUs in the table is of the
first round, and of everybody's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.alternatives import Alternative
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.over_processes import cpu_ratio

FIELD = "variant"
"""The field whose values are asked for their CPU time, too: what variants differ in is work of the CPU."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CpuUse:
    """CPU time an image of one variant beside that of another."""

    of: Alternative
    ratio: Interval


def cpu_use(side_by_side: Sequence[Alternative]) -> list[CpuUse]:
    """What can be said of variants among these; nothing of rows a process of which has no such figure."""
    return [
        CpuUse(of=one, ratio=ratio)
        for one in side_by_side
        if one.field == FIELD and (ratio := cpu_ratio(one.row, one.baseline)) is not None
    ]
