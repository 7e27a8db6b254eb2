"""What a training's events amount to: its ending, its epochs, the columns that its ranks' figures fill.

Among them the parts of a step and what ranks exchanged, and how long training took to an accuracy. Pure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from gpubench.basics.rounding import round_half_up
from gpubench.basics.words import format_count
from gpubench.plan.plan import Job
from gpubench.plan.resolve import ResolvedTrial
from gpubench.record.epochs import (
    EpochRow,
    compute_timing_columns,
    make_epoch_rows,
    make_steady_rate_rows,
    make_windows,
)
from gpubench.record.outcome import Outcome, classify_ending
from gpubench.schema.attempt import Attempt
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.columns import CONFIRMED, UNCONFIRMED
from gpubench.schema.epoch_times import NO_EPOCHS, NO_P95, NO_SPREAD
from gpubench.schema.events import Hello, Result
from gpubench.schema.record import Ended
from gpubench.schema.window import count_block_steps
from gpubench.schema.workload import WORKLOADS

STEP_TIMES = ("copy_ms", "forward_ms", "backward_ms", "optimizer_ms")
EXCHANGE = ("comm_ms", "comm_hidden_ms", "comm_pct", "slowest_rank")
NOISE = 0.02
"""Ranks whose own work differs by less than this share of a step are equally fast."""
TO_TOP1 = ("epochs_to_top1", "time_to_top1_s", "energy_to_top1_j")


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
    if "step_time_ms_p95" not in result:
        missing["step_time_ms_p95"] = NO_P95
    result |= collect_allocator_columns(results)
    for columns, why_not in (
        summarize_breakdown(results),
        compute_time_to_top1_columns(rows, job.trial.until_top1),
    ):
        result |= columns
        missing |= why_not
    for name in ("cpu_probe_ms", "params_m", "gmacs_per_image"):
        result[name] = getattr(first, name)
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
        held={index: held for r in results if r.memory for index, held in r.memory.devices.items()},
    )


def collect_allocator_columns(results: Sequence[Result]) -> dict[str, Any]:
    """What torch's allocator tells of memory; empty on a CPU."""
    memory = [r.memory for r in results if r.memory]
    if not memory:
        return {}
    return {
        "gpu_mem_allocated_mib": max(m.allocated_mib for m in memory),
        "gpu_mem_reserved_mib": max(m.reserved_mib for m in memory),
        "gpu_alloc_retries": sum(m.retries for m in memory),
    }


def _explain_no_top1(job: Job) -> str:
    """Why there is no top-1, where there is none."""
    if job.trial.epochs is None:
        return REASONS["rate"]
    if job.membership is not None:
        return format_reason("left-to-solo", job.membership.solo.trial_id)
    if job.variant.files == "none":
        return REASONS["no-validation"]
    return REASONS["empty-validation"]


# ---- the parts of a step, and the exchange ----


def summarize_breakdown(results: Sequence[Result]) -> tuple[dict[str, Any], dict[str, str]]:
    """Columns of the breakdown and of the exchange, and why some are empty. `results`: every rank's last event.

    Times are means over the ranks of each rank's median.
    """
    why_alone = results[0].no_exchange
    columns: dict[str, Any] = {}
    missing: dict[str, str] = {}
    if why_alone:
        missing |= dict.fromkeys((*EXCHANGE, "comm_mib_per_step"), why_alone)
    elif results[0].exchange_mib is None:
        missing["comm_mib_per_step"] = REASONS["exchange-untold"]
    else:
        columns["comm_mib_per_step"] = results[0].exchange_mib
    medians_by_rank = {r.rank: r.breakdown for r in results if r.breakdown}
    if len(medians_by_rank) < len(results):
        why = REASONS["no-breakdown"]
        return columns, dict.fromkeys((*STEP_TIMES, *EXCHANGE, "breakdown_cost_pct"), why) | missing
    medians = list(medians_by_rank.values())
    columns |= {name: statistics.fmean(getattr(p, name) for p in medians) for name in STEP_TIMES}
    costs = [p.cost_pct for p in medians if p.cost_pct is not None]
    if costs:
        columns["breakdown_cost_pct"] = statistics.fmean(costs)
    else:
        missing["breakdown_cost_pct"] = REASONS["few-marked-steps"]
    if why_alone:
        return columns, missing
    waits = {rank: p.comm_ms for rank, p in medians_by_rank.items() if p.comm_ms is not None}
    hidden = [p.comm_hidden_ms for p in medians if p.comm_hidden_ms is not None]
    if len(waits) < len(medians) or len(hidden) < len(medians):
        return columns, missing | dict.fromkeys(EXCHANGE, REASONS["exchange-unseen"])
    comm_ms, step_ms = statistics.fmean(waits.values()), statistics.fmean(p.step_ms for p in medians)
    columns |= {
        "comm_ms": comm_ms,
        "comm_hidden_ms": statistics.fmean(hidden),
        "comm_pct": 100 * comm_ms / step_ms,
    }
    is_alike = max(waits.values()) - min(waits.values()) < NOISE * step_ms
    # Who waits least for the others, since all take equally long together.
    columns["slowest_rank"] = None if is_alike else min(waits, key=waits.__getitem__)
    if is_alike:
        missing["slowest_rank"] = format_reason("no-slowest-rank", f"{100 * NOISE:g}")
    return columns, missing


# ---- how long it took to an accuracy ----


def compute_time_to_top1_columns(
    epochs: Sequence[EpochRow], target: float | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns of time to an accuracy, and why they are empty. `epochs`: rows with `top1_pct`, from the first.

    The energy is not known here: where the target was reached it is neither given nor explained.
    """
    if target is None:
        return {}, dict.fromkeys(TO_TOP1, REASONS["no-target"])
    number = next(
        (k for k, e in enumerate(epochs, 1) if (e.top1_pct or 0.0) >= target and not _has_diverged(e)), None
    )
    if number is None:
        last = epochs[-1].top1_pct
        code = "target-missed-diverged" if _has_diverged(epochs[-1]) else "target-missed"
        why = format_reason(
            code, round_half_up(last or 0.0, 1), *format_count(len(epochs), "epoch").split(), f"{target:g}"
        )
        return {}, dict.fromkeys(TO_TOP1, why)
    ends = accumulate(e.epoch_time_s for e in epochs)
    judged = [
        (end, 0.0 if _has_diverged(e) else e.top1_pct)
        for end, e in zip(ends, epochs, strict=True)
        if e.top1_pct is not None
    ]
    crossing = find_target_crossing(judged, target)
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
