"""Amdahl's law: the part of the work that more devices don't make shorter, as far as speed-ups tell. Pure.

On n devices a fixed amount of work takes s + (1 - s) / n of its time on one (Amdahl 1967). Each speed-up S by itself
asks for one serial share, s = (1 / S - 1 / n) / (1 - 1 / n). The law fits where one share lies in the intervals of all
of them; what these have in common is then where the share lies. Each interval is as much wider as there are more of
them (Bonferroni), so that all hold their truths in 95 of 100 cases, whatever the baseline does to all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpubench.analysis.alike import devices
from gpubench.analysis.certainty.mean_estimate import LEVEL
from gpubench.analysis.decided import between
from gpubench.analysis.scaling import Comparison
from gpubench.basics.words import listed

FEWEST_COUNTS = 3
"""Numbers of devices, one device among them, from which the law can fail to fit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SerialShare:
    """The serial share that the speed-up on so many devices asks for, as a part of 1."""

    devices: int
    low: float
    high: float


def shares(compared: Sequence[Comparison]) -> list[SerialShare]:
    """What each step of one strong scaling asks for; empty where the points do not allow it.

    They do from three numbers of devices on, against one device, each row of several processes.
    """
    # A row of another strategy may be on as many devices as the baseline: of that the law says nothing.
    steps = [one for one in compared if one.kind == "strong" and devices(one.row) > devices(one.baseline)]
    counts = {devices(one.row) for one in steps}
    if len(counts) < FEWEST_COUNTS - 1 or any(devices(one.baseline) > 1 for one in steps):
        return []
    found = []
    for one in steps:
        if one.ratio is None:
            return []
        wide = replace(one.ratio, confidence=1 - LEVEL / len(steps))
        found.append(
            SerialShare(
                devices=devices(one.row),
                low=share_of(wide.high, devices(one.row)),
                high=share_of(wide.low, devices(one.row)),
            )
        )
    return found


def share_of(speedup: float, count: int) -> float:
    """The serial share with which so many devices are so much faster than one; under 0 where they are more than that
    many times faster."""
    return (1 / speedup - 1 / count) / (1 - 1 / count) if speedup else math.inf


def sentence(found: Sequence[SerialShare]) -> str:
    """The share that explains all speed-ups, or that none does; empty for none."""
    if not found:
        return ""
    low, high = max(one.low for one in found), min(one.high for one in found)
    if low > min(high, 1.0) or high < 0:
        each = [f"{between(100 * one.low, 100 * one.high, 1)} % on {one.devices}" for one in found]
        return (
            f"Amdahl's law does not fit: by each speed-up alone the serial share would be {listed(each)}, and none "
            "from 0 to 100 % is in all of these (95 %)."
        )
    ends = between(100 * max(0.0, low), 100 * min(1.0, high), 1)
    return f"By Amdahl's law a serial share of {ends} % (95 %) would explain all of these speed-ups."
