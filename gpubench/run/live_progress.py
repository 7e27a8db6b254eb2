"""How far a sweep is, for the live view. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gpubench.plan.outlook import SweepOutlook
from gpubench.plan.plan import Job, Unit
from gpubench.render.running import LiveProgress
from gpubench.schema.attempt import JobProgress

TELLING = 0.1
"""Part of its epochs from which a unit itself says best how long it will take."""


def make_live_progress(
    unit: Unit,
    progress: Sequence[JobProgress],
    *,
    label: str,
    done: int,
    total: int,
    spent_s: float,
    elapsed_s: float,
    estimated_s: float,
    after_s: float,
    ahead: SweepOutlook,
    pace: float,
) -> LiveProgress:
    """What the live view shows while `unit` runs, `done` of `total` units being over.

    Of a group's jobs it follows the one that is the least far. `progress`: of each job.
    Seconds: `spent_s` on this unit, `elapsed_s` on the sweep; `estimated_s` that this unit should take in all,
    `after_s` that those after it should take in this round. `ahead`: what comes after this round, `pace` times as long
    as it says.
    """
    parts = [
        _compute_job_progress(job, job_progress)
        for job, job_progress in zip(unit.jobs, progress, strict=True)
    ]
    last = min(range(len(parts)), key=lambda index: (parts[index], progress[index].waiting))
    job, job_progress, part = unit.jobs[last], progress[last], parts[last]
    has_begun, epochs = job_progress.steps > 0, job.trial.epochs
    # Epochs are all alike, so the unit itself says best how long they take; a window lasts as long as was planned.
    unit_s = spent_s * (1 - part) / part if epochs and part > TELLING else max(0.0, estimated_s - spent_s)
    return LiveProgress(
        done=done,
        total=total,
        trial_label=label,
        trial_id=unit.jobs[0].trial_id,
        epoch=job_progress.epoch + 1 if has_begun and epochs else None,
        epochs=epochs,
        step=job_progress.step if has_begun else None,
        steps=job_progress.steps if has_begun else None,
        gpu_mem_mib=_combine_known(max, (other.live.gpu_mem_mib for other in progress)),
        gpu_util_pct=_combine_known(max, (other.live.gpu_util_pct for other in progress)),
        cpu_util_pct=_combine_known(max, (other.live.cpu_util_pct for other in progress)),
        elapsed_s=elapsed_s,
        left=ahead.estimate_time_left(unit_s + after_s, elapsed_s, pace),
        top1_pct=job_progress.top1_pct,
        top1_target=job.trial.until_top1,
        is_late=epochs is None and spent_s > estimated_s,
        note=_describe_phase(job, job_progress),
    )


def _compute_job_progress(job: Job, progress: JobProgress) -> float:
    """How far a job is, from 0 to 1: of its epochs, or in its window."""
    if progress.filling:
        return 1.0
    if not progress.steps:
        return 0.0
    part = progress.step / progress.steps
    if job.trial.epochs is None:
        return part if progress.measured else 0.0
    return (progress.epoch + part) / job.trial.epochs


def _describe_phase(job: Job, progress: JobProgress) -> str:
    """What a job is doing, where that is not its measured steps."""
    if not progress.steps:
        return "starting"
    if progress.between and job.trial.until_top1 is not None:
        return "evaluating"
    return "" if progress.measured or progress.filling else "warm-up"


def _combine_known(
    combine: Callable[[Iterable[float]], float], values: Iterable[float | None]
) -> float | None:
    known = [value for value in values if value is not None]
    return combine(known) if known else None
