"""How much of a GPU's busy time only waits for other ranks' gradients. Pure.

A rank that has its gradients ready waits for the others inside a kernel, so the driver counts its GPU as busy; a
neighbour on that GPU loses little by it. `--breakdown` measures the wait. Without it there is an estimate by rows of
the same network on one GPU. The kernels of a smaller batch take no longer than those of a larger one, and those of a
larger one no longer for an image: so a rank's GPU has at most so much to do in a step as these rows allow for its part
of the batch, and what it is busy beyond that counts as waiting. It may be more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpubench.schema import catalog
from gpubench.schema.row import Row
from gpubench.schema.trial_fields import those

PACE = those(lambda about: about.pace)
SAME_RANKS = tuple(name for name in PACE if name not in ("breakdown", "train_images"))
"""What rows have in common whose steps take equally long."""
SAME_KERNELS = tuple(
    name
    for name in SAME_RANKS
    if name not in ("batch_size", "gpus", "ranks", "strategy", *catalog.OWN_FIELDS)
)
"""What rows have in common whose GPUs do the same for an image."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """What of its GPUs' busy time a job only waits for other ranks' gradients."""

    part: float
    measured: bool
    """By `--breakdown`. Else it is estimated, and may be more."""


def gradient_wait(row: Row, others: Iterable[Row]) -> Wait | None:
    """What a job with this row waits for gradients; None where neither it nor other rows tell.

    `others`: rows of the same machine. Those of trials alone that ended ok count.
    """
    usable = [one for one in others if one.status == "ok" and not one.group]
    return _measured(row, usable) or _estimated(row, usable)


def _measured(row: Row, others: Iterable[Row]) -> Wait | None:
    """By the newest row of the same configuration that was broken down."""
    told = [
        (one.started_at or "", one.comm_ms / 1e3 / busy)
        for one in (row, *(other for other in others if _agree(row, other, SAME_RANKS)))
        if one.comm_ms is not None and (busy := _busy_step_s(one))
    ]
    return Wait(part=min(max(max(told)[1], 0.0), 1.0), measured=True) if told else None


def _estimated(row: Row, others: Iterable[Row]) -> Wait | None:
    busy, batch = _busy_step_s(row), _images_a_gpu(row)
    needs = [
        alone * max(1.0, batch / own)
        for one in others
        if one.gpus == 1 and _agree(row, one, SAME_KERNELS)
        if batch and (own := _images_a_gpu(one)) and (alone := _busy_step_s(one))
    ]
    if not busy or not needs or min(needs) >= busy:
        return None
    return Wait(part=1 - min(needs) / busy, measured=False)


def _agree(row: Row, other: Row, fields: Iterable[str]) -> bool:
    same = row.variant_definition == other.variant_definition
    return same and all(row.value(field) == other.value(field) for field in fields)


def _images_a_gpu(row: Row) -> float | None:
    return row.batch_size / row.gpus if row.batch_size and row.gpus else None


def _busy_step_s(row: Row) -> float | None:
    """Busy seconds of each of its GPUs in a step; None where that is not known."""
    busy, images = row.gpu_busy_s_per_epoch, row.images_per_epoch
    if not busy or not images or not row.batch_size or not row.gpus:
        return None
    return busy / row.gpus / (images / row.batch_size)
