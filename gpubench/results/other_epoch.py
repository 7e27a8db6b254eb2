"""A measured row as it would be with an epoch of so many images: fill, steady steps and tail as they were. Pure.

A record keeps these three of each epoch, so one of 10,240 images tells how long one of a million takes. What else
stands for an epoch (its energy, the accuracy after it) was measured with the images that there were, and is left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from gpubench.basics.words import many
from gpubench.schema.epoch_times import EXTRAPOLATED
from gpubench.schema.record import Record
from gpubench.schema.row import Row, replace

PER_EPOCH = (
    "epoch_time_iqr_s", "epochs_measured", "cpu_s_per_epoch", "gpu_busy_s_per_epoch", "energy_j", "energy_sampled_j",
    "energy_to_top1_j", "top1_pct", "loss", "epochs_to_top1", "time_to_top1_s", "top1_crossing_s", "top1_crossing",
    "solo_epoch_time_s",
)  # fmt: skip
"""Columns that hold for the images that a trial was trained on, and for no others."""
OF_TIME = ("epoch_time_s", "epoch_time_source", "images_per_s", "images_per_epoch", "data_wait_pct")


def with_train_images(row: Row, record: Record, train_images: int) -> Row:
    """The row for so many training images: as it is, where it was trained on so many.

    Else its times are left out, with the reason, where the record tells nothing of its epochs, as a published log, and
    where an epoch would have no step.
    """
    if row.train_images == train_images:
        return row
    row = row.with_fields(train_images=train_images)
    if row.epoch_time_s is None:
        return row
    row = replace(row, worked_out_from=row.images_per_epoch)
    steps = train_images // (row.batch_size or train_images + 1)
    measured = [epoch for epoch in record.epochs if not epoch["warmup"]]
    if not steps:
        why = f"an epoch of {many(train_images, 'image')} is less than one batch"
    elif not measured or any(
        epoch.get("first_batch_s") is None or not epoch.get("steps") for epoch in measured
    ):
        why = "what parts its epochs have is not on record"
    elif all(epoch.get("steady_steps") == 0 and epoch["steps"] < steps for epoch in measured):
        why = (
            "no step was steady: what the loaders held ready lasted for all of a measured epoch, so a longer one can't "
            "be told; measure with more images"
        )
    elif any(
        _time_s(epoch, steps) <= 0 for epoch in measured
    ):  # its steady steps were slower than the others
        why = f"its steps varied too much to tell the time of an epoch of {steps:,} of them"
    else:
        why = ""
    told: dict[str, Any] = {} if why else _times(row.batch_size or 0, steps, measured)
    changes: dict[str, Any] = dict.fromkeys((*PER_EPOCH, *OF_TIME)) | {"epoch_times_s": ()} | told
    left_out = "known only for the images that were trained on"
    missing = {
        **row.missing,
        **dict.fromkeys(PER_EPOCH, left_out),
        **(dict.fromkeys(OF_TIME, why) if why else {}),
    }
    return replace(row, missing=missing, **changes)


def _times(batch_size: int, steps: int, measured: list[dict[str, Any]]) -> dict[str, Any]:
    """The columns of OF_TIME, for epochs of so many steps."""
    times, waits = [], []
    for epoch in measured:
        more = steps - epoch["steps"]
        times.append(_time_s(epoch, steps))
        waits.append(max(0.0, (epoch.get("data_wait_s") or 0.0) + more * (epoch.get("steady_wait_s") or 0.0)))
    time_s, images = statistics.median(times), steps * batch_size
    return {
        "epoch_time_s": time_s,
        "epoch_time_source": EXTRAPOLATED,
        "images_per_s": images / time_s,
        "images_per_epoch": images,
        "data_wait_pct": 100 * sum(waits) / sum(times),
    }


def _time_s(epoch: Mapping[str, Any], steps: int) -> float:
    """Seconds of an epoch of so many steps in place of its own."""
    return float(epoch["epoch_time_s"] + (steps - epoch["steps"]) * _step_s(epoch))


def _step_s(epoch: Mapping[str, Any]) -> float:
    """Seconds of a steady step; by versions that did not tell them apart, of a step after the first batch."""
    told = epoch.get("steady_step_s")
    return float((epoch["epoch_time_s"] - epoch["first_batch_s"]) / epoch["steps"] if told is None else told)
