"""What a training's events amount to: its epochs, and the columns that its ranks' figures fill. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gpubench.plan.plan import Job
from gpubench.plan.resolve import Resolved
from gpubench.record.breakdown import broken_down
from gpubench.record.epochs import epoch_rows, timing, windows_of
from gpubench.record.target import until_top1
from gpubench.record.work import Work
from gpubench.schema.epoch_times import NO_SPREAD
from gpubench.schema.events import Event, Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """A training, with what it must know of its trial."""

    ranks: int
    batch_size: int
    workers: int
    """Loader processes of the whole trial."""
    prefetch: int
    """Batches that each of them holds ready."""
    steps: int | None
    no_quality: str
    """Why there is no top-1, where there is none."""

    @classmethod
    def of(cls, job: Job, resolved: Resolved, steps: int | None = None) -> Self:
        """`steps`: how many were measured in place of what the trial asks for, as further rounds do."""
        return cls(
            ranks=resolved.processes,
            batch_size=job.trial.batch_size,
            workers=resolved.workers,
            prefetch=job.trial.prefetch,
            steps=steps or job.trial.steps,
            no_quality=_no_quality(job, first=steps is None),
        )

    def work(self, events: Sequence[Event], *, is_done: bool) -> Work:
        own = self.workers // self.ranks
        epochs = epoch_rows(
            events,
            ranks=self.ranks,
            batch_size=self.batch_size,
            wave=max(1, own),
            ahead=own * self.prefetch,
        )
        if not is_done:
            return Work(epochs=epochs, windows=windows_of(epochs, None))
        results = [event for event in events if isinstance(event, Result)]
        first = next(r for r in results if r.rank == 0)
        result = timing(
            epochs, steps=self.steps, steps_per_epoch=first.steps_per_epoch, batch_size=self.batch_size
        )
        missing: dict[str, str] = {}
        if self.steps:
            missing["epochs_measured"] = "steps were measured, not whole epochs"
            missing["epoch_time_iqr_s"] = "steps were measured, not whole epochs"
        elif "epoch_time_iqr_s" not in result:
            missing["epoch_time_iqr_s"] = NO_SPREAD
        if first.step_ms:
            result["step_time_ms_p50"] = first.step_ms.p50
            result["step_time_ms_p95"] = first.step_ms.p95
        memory = [r.memory for r in results if r.memory]
        if memory:
            result["gpu_mem_allocated_mib"] = max(m.allocated_mib for m in memory)
            result["gpu_mem_reserved_mib"] = max(m.reserved_mib for m in memory)
            result["gpu_alloc_retries"] = sum(m.retries for m in memory)
        for found, why_not in (broken_down(results), until_top1(epochs, first.until_top1)):
            result |= found
            missing |= why_not
        result["params_m"] = first.params_m
        result["gmacs_per_image"] = first.gmacs_per_image
        if first.gmacs_missing:
            missing["gmacs_per_image"] = first.gmacs_missing
        if first.quality is not None:
            result["top1_pct"], result["loss"] = first.quality
            if result["loss"] is None:
                missing["loss"] = "the loss is not a finite number: training diverged"
        else:
            missing["top1_pct"] = missing["loss"] = self.no_quality
        return Work(
            epochs=epochs,
            windows=windows_of(epochs, result.get("images_per_epoch")),
            result=result,
            missing=missing,
            phases=dict(first.phases),
            held={index: held for m in memory for index, held in m.devices.items()},
            drift_pct=first.step_drift_pct,
        )


def _no_quality(job: Job, *, first: bool) -> str:
    """Why there is no top-1, where there is none."""
    if job.membership is not None:
        return f"left to the same trial alone, {job.membership.solo.trial_id}"
    if job.variant.files == "none":
        return "synthetic images have no validation split"
    if not first:
        return "judged in the first round only"
    return "the validation split is empty"
