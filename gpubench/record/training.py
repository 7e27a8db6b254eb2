"""What a training's events amount to: its epochs, and the columns that its ranks' figures fill. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gpubench.plan.plan import Job
from gpubench.plan.resolve import ResolvedTrial
from gpubench.record.breakdown import summarize_breakdown
from gpubench.record.epochs import compute_timing, make_epoch_rows, make_stream_rows, make_windows
from gpubench.record.outcome import Work
from gpubench.record.target import find_time_to_top1
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.epoch_times import NO_EPOCHS, NO_P95, NO_SPREAD
from gpubench.schema.events import Event, Result
from gpubench.schema.window import count_block_steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """A training, with what it must know of its trial."""

    ranks: int
    batch_size: int
    is_stream: bool
    """Whether a rate was measured, not whole epochs."""
    block: int
    """Steps of a whole block of the stream."""
    shared: tuple[float, float] | None
    """Of a job of a group from when to when all of its jobs measured; None: not asked for."""
    until_top1: float | None
    no_quality: str
    """Why there is no top-1, where there is none."""

    @classmethod
    def for_job(cls, job: Job, resolved: ResolvedTrial, shared: tuple[float, float] | None = None) -> Self:
        t = job.trial
        block, _ = count_block_steps(
            resolved.workers // resolved.processes, t.sync_every, breakdown=t.breakdown
        )
        return cls(
            ranks=resolved.processes,
            batch_size=t.batch_size,
            is_stream=t.epochs is None,
            block=block,
            shared=shared,
            until_top1=t.until_top1,
            no_quality=_explain_no_quality(job),
        )

    def summarize(self, events: Sequence[Event], *, is_done: bool) -> Work:
        if self.is_stream:
            rows = make_stream_rows(
                events, ranks=self.ranks, batch_size=self.batch_size, block=self.block, shared=self.shared
            )
        else:
            rows = make_epoch_rows(events, ranks=self.ranks, batch_size=self.batch_size)
        if not is_done:
            return Work(epochs=rows, windows=make_windows(rows, None))
        results = [event for event in events if isinstance(event, Result)]
        first = next(r for r in results if r.rank == 0)
        images_per_epoch = first.steps_per_epoch * self.batch_size
        result = compute_timing(rows, is_stream=self.is_stream, images_per_epoch=images_per_epoch)
        missing: dict[str, str] = {}
        if self.is_stream:
            missing["epochs_measured"] = missing["epoch_time_iqr_s"] = NO_EPOCHS
        elif "epoch_time_iqr_s" not in result:
            missing["epoch_time_iqr_s"] = NO_SPREAD
        result["cpu_probe_ms"] = first.cpu_probe_ms
        if "step_time_ms_p95" not in result:
            missing["step_time_ms_p95"] = NO_P95
        memory = [r.memory for r in results if r.memory]
        if memory:
            result["gpu_mem_allocated_mib"] = max(m.allocated_mib for m in memory)
            result["gpu_mem_reserved_mib"] = max(m.reserved_mib for m in memory)
            result["gpu_alloc_retries"] = sum(m.retries for m in memory)
        for columns, why_not in (summarize_breakdown(results), find_time_to_top1(rows, self.until_top1)):
            result |= columns
            missing |= why_not
        result["params_m"] = first.params_m
        result["gmacs_per_image"] = first.gmacs_per_image
        if first.gmacs_missing:
            missing["gmacs_per_image"] = first.gmacs_missing
        if first.quality is not None:
            result["top1_pct"], result["loss"] = first.quality
            if result["loss"] is None:
                missing["loss"] = REASONS["diverged"]
        else:
            missing["top1_pct"] = missing["loss"] = self.no_quality
        return Work(
            epochs=rows,
            windows=make_windows(rows, images_per_epoch),
            result=result,
            missing=missing,
            phases=dict(first.phases),
            held={index: held for m in memory for index, held in m.devices.items()},
        )


def _explain_no_quality(job: Job) -> str:
    """Why there is no top-1, where there is none."""
    if job.trial.epochs is None:
        return REASONS["rate"]
    if job.membership is not None:
        return format_reason("left-to-solo", job.membership.solo.trial_id)
    if job.variant.files == "none":
        return REASONS["no-validation"]
    return REASONS["empty-validation"]
