"""How long trials should take: from results where there are any, else a rough guess, and it says which. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.runner.resolve import Resolved
from gpubench.trial import Trial

START_S = {"cuda": 6.0, "cpu": 2.0}
"""Process, context, first step, evaluation: seen on an H200 host and on two CPU cores."""
LOADER_IMAGES_PER_CPU_S = 400.0
"""Decoding and cropping full-size JPEGs on one core."""
GPU_IMAGES_PER_S = 1500.0
CPU_IMAGES_PER_CPU_S = 12.0
"""A small network at 224×224 on one core; other sizes by their pixels."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds a trial should take."""

    seconds: float
    known: bool
    """From results of the same model in this folder; otherwise a guess."""


def estimate(t: Trial, resolved: Resolved, rows: Sequence[Mapping[str, Any]]) -> Estimate:
    """The time of one trial: start-up, then images over a rate."""
    per_epoch = resolved.train_images // t.batch_size * t.batch_size
    images = (
        t.batch_size * (t.steps + max(10, resolved.workers * t.prefetch)) if t.steps else per_epoch * t.epochs
    )
    nearest = _nearest(t, rows)
    if nearest is not None:
        return Estimate(START_S[resolved.device] + images / nearest["images_per_s"], True)
    cpus = max(1, len(resolved.cpu_ids))
    if resolved.device == "cpu":
        compute = CPU_IMAGES_PER_CPU_S * cpus * (224 / resolved.input_size) ** 2
    else:
        compute = GPU_IMAGES_PER_S * max(1, len(resolved.gpu_ids))
    loading = LOADER_IMAGES_PER_CPU_S * cpus if resolved.workers else float("inf")
    return Estimate(START_S[resolved.device] + images / min(compute, loading), False)


def _nearest(t: Trial, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The measured row of the same model that is most like this trial."""

    def distance(row: Mapping[str, Any]) -> float:
        unlike: int = sum(
            row.get(n) != getattr(t, n) for n in ("variant", "strategy", "precision", "execution")
        )
        same_gpus: bool = row.get("gpus") == (t.gpus or row.get("gpus"))
        ratio: float = row["batch_size"] / t.batch_size
        return 10.0 * unlike + (0.0 if same_gpus else 5.0) + abs(ratio - 1)

    alike = [
        row
        for row in rows
        if row.get("model") == t.model
        and row.get("images_per_s")
        and row.get("input_size") == (t.input_size or row.get("input_size"))
    ]
    return min(alike, key=distance) if alike else None


def words(seconds: float) -> str:
    """`40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
