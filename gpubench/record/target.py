"""How long training took to an accuracy. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from gpubench.analysis.certainty.accuracy import crossing
from gpubench.basics.rounding import half_up
from gpubench.basics.words import many
from gpubench.record.epochs import EpochRow
from gpubench.schema.top1_crossing import CONFIRMED, UNCONFIRMED

COLUMNS = ("epochs_to_top1", "time_to_top1_s", "energy_to_top1_j")


def until_top1(epochs: Sequence[EpochRow], target: float | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns of time to an accuracy, and why they are empty. `epochs`: rows with `top1_pct`, from the first.

    The energy is not known here: where the target was reached it is neither given nor explained.
    """
    if target is None:
        return {}, dict.fromkeys(COLUMNS, "no accuracy was asked for (--until-top1)")
    number = next(
        (k for k, e in enumerate(epochs, 1) if (e.top1_pct or 0.0) >= target and not _lost(e)), None
    )
    if number is None:
        last = epochs[-1].top1_pct
        lost = "training diverged: " if _lost(epochs[-1]) else ""
        why = f"{lost}top-1 was {half_up(last or 0.0, 1)} % after {many(len(epochs), 'epoch')}, not {target:g} %"
        return {}, dict.fromkeys(COLUMNS, why)
    return {
        "epochs_to_top1": number,
        "time_to_top1_s": sum(e.epoch_time_s for e in epochs[:number]),
        **_crossing(epochs, target),
    }, {}


def _crossing(epochs: Sequence[EpochRow], target: float) -> dict[str, Any]:
    """When top-1 crossed the target, between two evaluations; empty if each one there was followed by a lower one."""
    ends = accumulate(e.epoch_time_s for e in epochs)
    judged = [
        (end, 0.0 if _lost(e) else e.top1_pct)
        for end, e in zip(ends, epochs, strict=True)
        if e.top1_pct is not None
    ]
    found = crossing(judged, target)
    if found is None:
        return {}
    return {
        "top1_crossing_s": found.time_s,
        "top1_crossing": CONFIRMED if found.confirmed else UNCONFIRMED,
    }


def _lost(epoch: EpochRow) -> bool:
    """Whether the network has no numbers left: what it then hits, it hits by chance."""
    return not math.isfinite(epoch.train_loss)
