"""How long training took to an accuracy. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from gpubench.basics.rounding import round_half_up
from gpubench.basics.words import format_count
from gpubench.record.epochs import EpochRow
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.columns import CONFIRMED, UNCONFIRMED

COLUMNS = ("epochs_to_top1", "time_to_top1_s", "energy_to_top1_j")


def compute_time_to_top1_columns(
    epochs: Sequence[EpochRow], target: float | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns of time to an accuracy, and why they are empty. `epochs`: rows with `top1_pct`, from the first.

    The energy is not known here: where the target was reached it is neither given nor explained.
    """
    if target is None:
        return {}, dict.fromkeys(COLUMNS, REASONS["no-target"])
    number = next(
        (k for k, e in enumerate(epochs, 1) if (e.top1_pct or 0.0) >= target and not _has_diverged(e)), None
    )
    if number is None:
        last = epochs[-1].top1_pct
        code = "target-missed-diverged" if _has_diverged(epochs[-1]) else "target-missed"
        why = format_reason(
            code, round_half_up(last or 0.0, 1), *format_count(len(epochs), "epoch").split(), f"{target:g}"
        )
        return {}, dict.fromkeys(COLUMNS, why)
    ends = accumulate(e.epoch_time_s for e in epochs)
    judged = [
        (end, 0.0 if _has_diverged(e) else e.top1_pct)
        for end, e in zip(ends, epochs, strict=True)
        if e.top1_pct is not None
    ]
    crossing = find_target_crossing(
        judged, target
    )  # None if each evaluation there was followed by a lower one
    return {
        "epochs_to_top1": number,
        "time_to_top1_s": sum(e.epoch_time_s for e in epochs[:number]),
        **({"top1_crossing_s": crossing[0], "top1_crossing": crossing[1]} if crossing else {}),
    }, {}


def _has_diverged(epoch: EpochRow) -> bool:
    """Whether the network has no numbers left: what it then hits, it hits by chance."""
    return not math.isfinite(epoch.train_loss)


def find_target_crossing(points: Sequence[tuple[float, float]], target: float) -> tuple[float, str] | None:
    """When top-1 reached `target`, in s, and whether the next evaluation confirms it.

    `points`: evaluations (time in s, top-1 in per cent) in the order of time.

    A straight line from the last evaluation below it to the first one there, if the next one is there, too: one lucky
    evaluation is no accuracy. Where it is the last one nothing confirms it. If the first evaluation is there already,
    its own time, for nobody looked before. None where it was not reached.
    """
    for place, (time, top1) in enumerate(points):
        after = points[place + 1] if place + 1 < len(points) else None
        if top1 < target or (after is not None and after[1] < target):
            continue
        earlier, below = points[place - 1] if place else (time, target)
        if below < target:
            time = earlier + (time - earlier) * (target - below) / (top1 - below)
        return time, UNCONFIRMED if after is None else CONFIRMED
    return None
