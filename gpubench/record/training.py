"""What a training's events amount to: its ending, its epochs, the columns that its ranks' figures fill. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpubench.plan.plan import Job
from gpubench.plan.resolve import ResolvedTrial
from gpubench.record.breakdown import summarize_breakdown
from gpubench.record.epochs import (
    EpochRow,
    compute_timing_columns,
    make_epoch_rows,
    make_steady_rate_rows,
    make_windows,
)
from gpubench.record.outcome import Outcome, classify_ending
from gpubench.record.target import compute_time_to_top1_columns
from gpubench.schema.attempt import Attempt
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.epoch_times import NO_EPOCHS, NO_P95, NO_SPREAD
from gpubench.schema.events import Hello, Result
from gpubench.schema.record import Ended
from gpubench.schema.window import count_block_steps
from gpubench.schema.workload import WORKLOADS


def make_outcome(
    job: Job,
    resolved: ResolvedTrial,
    done: Attempt,
    forced: tuple[Ended, str] | None = None,
    shared: tuple[float, float] | None = None,
) -> Outcome:
    """All that an attempt's events say.

    `forced`: the ending that the parent gave (timeout, interrupted), if it did. `shared`: of a job of a group from when
    to when all of its jobs measured; None: not asked for.
    """
    t, ranks = job.trial, resolved.processes
    last_word = WORKLOADS[t.workload].last_word
    status, reason = forced or classify_ending(done.events, last_word, ranks, done.last_words, done.nodes)
    if t.epochs is None:  # a rate was measured, not whole epochs
        block, _ = count_block_steps(resolved.workers // ranks, t.sync_every, breakdown=t.breakdown)
        rows = make_steady_rate_rows(
            done.events, ranks=ranks, batch_size=t.batch_size, block=block, shared=shared
        )
    else:
        rows = make_epoch_rows(done.events, ranks=ranks, batch_size=t.batch_size)
    hello = next((e for e in done.events if isinstance(e, Hello)), None)
    outcome = Outcome(
        status=status,
        reason=reason,
        cuda=hello.cuda if hello else None,
        decoder=hello.decoder if hello else None,
        epochs=rows,
        windows=make_windows(rows, None),
    )
    results = [event for event in done.events if isinstance(event, Result)]
    return _add_training_figures(outcome, job, rows, results) if status == "ok" else outcome


def _add_training_figures(
    outcome: Outcome, job: Job, rows: Sequence[EpochRow], results: Sequence[Result]
) -> Outcome:
    is_stream = job.trial.epochs is None
    first = next(r for r in results if r.rank == 0)
    images_per_epoch = first.steps_per_epoch * job.trial.batch_size
    result = compute_timing_columns(rows, is_stream=is_stream, images_per_epoch=images_per_epoch)
    missing: dict[str, str] = {}
    if is_stream:
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
    for columns, why_not in (
        summarize_breakdown(results),
        compute_time_to_top1_columns(rows, job.trial.until_top1),
    ):
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
        missing["top1_pct"] = missing["loss"] = _explain_no_top1(job)
    return replace(
        outcome,
        windows=make_windows(rows, images_per_epoch),
        result=result,
        missing=missing,
        phases=dict(first.phases),
        held={index: held for m in memory for index, held in m.devices.items()},
    )


def _explain_no_top1(job: Job) -> str:
    """Why there is no top-1, where there is none."""
    if job.trial.epochs is None:
        return REASONS["rate"]
    if job.membership is not None:
        return format_reason("left-to-solo", job.membership.solo.trial_id)
    if job.variant.files == "none":
        return REASONS["no-validation"]
    return REASONS["empty-validation"]
