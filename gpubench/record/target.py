"""How long training took to an accuracy. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gpubench.basics.rounding import half_up
from gpubench.record.epochs import EpochRow

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
        why = f"{lost}top-1 was {half_up(last or 0.0, 1)} % after {len(epochs)} epochs, not {target:g} %"
        return {}, dict.fromkeys(COLUMNS, why)
    return {
        "epochs_to_top1": number,
        "time_to_top1_s": sum(e.epoch_time_s for e in epochs[:number]),
    }, {}


def _lost(epoch: EpochRow) -> bool:
    """Whether the network has no numbers left: what it then hits, it hits by chance."""
    return not math.isfinite(epoch.train_loss)
