"""How far a sweep is, for the live view. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.experiment.plan import Job
from gpubench.launch.attempt import Progress as TrialProgress
from gpubench.monitor.watcher import Live
from gpubench.report.live import Progress


def progress_of(
    job: Job,
    progress: TrialProgress,
    live: Live,
    *,
    label: str,
    done: int,
    total: int,
    spent_s: float,
    elapsed_s: float,
    estimated_s: Sequence[float],
) -> Progress:
    """What the live view shows while `job` runs, `done` of `total` trials being over.

    `spent_s`: on this trial, `elapsed_s`: on the sweep, `estimated_s`: of this trial and of those that follow.
    """
    begun = progress.steps > 0
    epochs = max(1, 1 if job.trial.steps else job.trial.epochs)
    part = (progress.epoch + progress.step / progress.steps) / epochs if begun else 0.0
    # What the trial itself shows soon says more than any estimate.
    own_s = spent_s * (1 - part) / part if 0.1 < part <= 1 else max(0.0, estimated_s[0] - spent_s)
    return Progress(
        done=done,
        total=total,
        trial_label=label,
        epoch=progress.epoch + 1 if begun and not job.trial.steps else None,
        epochs=job.trial.epochs if not job.trial.steps else None,
        step=progress.step if begun else None,
        steps=progress.steps if begun else None,
        gpu_mem_mib=live.gpu_mem_mib,
        gpu_util_pct=live.gpu_util_pct,
        cpu_util_pct=live.cpu_util_pct,
        elapsed_s=elapsed_s,
        left_s=own_s + sum(estimated_s[1:]),
        judged=progress.judged,
        top1_pct=progress.top1_pct,
        top1_target=job.trial.until_top1,
        note=_note(job, progress),
    )


def _note(job: Job, progress: TrialProgress) -> str:
    """What the trial is doing, where that is not its measured steps."""
    if not progress.steps:
        return "starting"
    if progress.between and job.trial.until_top1 is not None:
        return "evaluating"
    return "" if progress.measured else "warm-up"
