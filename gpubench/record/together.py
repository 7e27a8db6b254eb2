"""Jobs of a group against the same trials alone: what it cost them to run together, and what was predicted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpubench.core.prediction import PredictedGroup, classify_overlap, compute_overlap_gain
from gpubench.plan.resolve import ResolvedTrial
from gpubench.record.resources import (
    compute_resource_fullness,
    explain_none_full,
    format_full_resources,
)
from gpubench.results.rows import make_row
from gpubench.schema.codes import REASONS, format_ending, format_reason
from gpubench.schema.record import Record, Status, make_attempt_reference
from gpubench.schema.row import Row, replace

ESTIMATE = "estimate"
"""The energy source of a job on a GPU that other jobs used, too."""
ENERGY = ("energy_j", "energy_sampled_j")


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupPrediction:
    """What is known of a group before it runs."""

    solos: tuple[Record | None, ...]
    """Each job's trial alone, where that ended ok on this machine."""
    prediction: PredictedGroup | None = None
    why_not: str | None = None
    """Why there is no prediction."""
    waits: tuple[Mapping[str, Any] | None, ...] = ()
    """What of each job's busy time on GPUs that it shares counts as waiting for gradients (`part`), and whether that
    was `measured`; None: nothing, or not known."""


ALONE = GroupPrediction(solos=())
"""What is predicted of a trial by itself: nothing."""


@dataclass(kw_only=True, slots=True)
class GroupJob:
    """One job of a group, with its figures."""

    status: Status
    reason: str = ""
    resolved: ResolvedTrial
    result: dict[str, Any]
    missing: dict[str, str]
    joules_by_gpu: Mapping[str, Mapping[str, float]]
    """Column of ENERGY -> GPU uuid -> joules a measured epoch, of the whole GPU."""
    doubts: Collection[str] = ()
    """Codes of its doubts that need no comparison with the trial alone."""


Shares = Mapping[str, float | None]
"""GPU uuid -> a job's part of that GPU's work, where others used it too; None: not known."""


def compare_group_with_solos(
    jobs: Sequence[GroupJob],
    group_prediction: GroupPrediction,
    gpu_mib: Sequence[float | None],
    group_id: str,
    solo_ids: Sequence[str],
) -> tuple[list[Shares], dict[str, Any]]:
    """Fills in slowdowns, overlap with the resources that were full, and the division of energy, of a group that has
    run. Returns each job's shares of its GPUs' work, and what stands in `Record.together`.

    `gpu_mib`: memory of the smallest of each job's GPUs.
    """
    together = [
        replace(
            Row.make_from_columns({**job.result, **job.resolved.make_columns()}),
            status=job.status,
            doubts="+".join(job.doubts),
        )
        for job in jobs
    ]
    alone = [make_row(solo) if solo else None for solo in group_prediction.solos]
    slowed = [
        mine.epoch_time_s / solo.epoch_time_s if mine.epoch_time_s and solo and solo.epoch_time_s else None
        for mine, solo in zip(together, alone, strict=True)
    ]
    gain = compute_overlap_gain(slowed)
    prediction = group_prediction.prediction
    predicted = [job.slowdown for job in prediction.jobs] if prediction else [None] * len(jobs)
    facts: dict[str, Any] = {
        "jobs": len(jobs),
        "no_prediction": group_prediction.why_not,
        "predicted": prediction
        and {
            "slowdowns": tuple(predicted),
            "overlap_gain": prediction.overlap_gain,
            "verdict": prediction.overlap,
            "limits": prediction.waits_for,
            "rounds": dict(prediction.least_s),
            "unknown": (),
            "at_most": prediction.is_upper_bound,
            "waits": group_prediction.waits,
        },
        "solos": [make_attempt_reference(solo) if solo else None for solo in group_prediction.solos],
    }
    shared = {"group_id": group_id, "overlap_gain": gain, "sharing": None, "full_together": None}
    rows_alone = [row for row in alone if row]
    nothing_full = ""
    if gain is not None and len(rows_alone) == len(jobs):
        resources = compute_resource_fullness(rows_alone, together, gpu_mib)
        facts["resources"] = [asdict(resource) for resource in resources]
        shared["sharing"] = classify_overlap(gain)
        shared["full_together"] = format_full_resources(resources)
        nothing_full = explain_none_full(resources)
    shares = _divide_gpu_work(jobs, alone, together)
    for number, job in enumerate(jobs):
        solo = alone[number]
        columns = {
            **shared,
            "solo_id": solo_ids[number],
            "solo_epoch_time_s": solo.epoch_time_s if solo else None,
            "slowdown": slowed[number],
            "predicted_slowdown": predicted[number],
        }
        why = _explain_empty_columns(columns, jobs, group_prediction, nothing_full)
        energy, no_energy = _estimate_job_energy(job, shares[number])
        why |= no_energy
        other = format_ending(job.status, job.reason) if job.status != "ok" else REASONS["not-reported"]
        for column, value in (columns | energy).items():
            job.result.pop(column, None)
            job.missing.pop(column, None)
            if value is not None:
                job.result[column] = value
            else:
                job.missing[column] = why.get(column, other)
    return shares, facts


def _explain_empty_columns(
    columns: Mapping[str, Any], jobs: Sequence[GroupJob], group_prediction: GroupPrediction, nothing_full: str
) -> dict[str, str]:
    why = {}
    if columns["solo_epoch_time_s"] is None:
        why["solo_epoch_time_s"] = why["slowdown"] = REASONS["no-solo"]
    if columns["overlap_gain"] is None:
        lost = next(((number, job) for number, job in enumerate(jobs, 1) if job.status != "ok"), None)
        reason = REASONS["no-slowdown-solo"]
        if lost is not None:
            reason = format_reason("no-slowdown", lost[0], len(jobs), lost[1].status)
        why |= dict.fromkeys(("overlap_gain", "sharing", "full_together"), reason)
    elif columns.get("full_together") is None:
        why["full_together"] = nothing_full
    if columns["predicted_slowdown"] is None:
        why["predicted_slowdown"] = group_prediction.why_not or REASONS["not-predicted"]
    return why


# ---------------------------------------------------------------- GPUs that several jobs use


def find_shared_gpus(resolved: Sequence[ResolvedTrial], number: int) -> frozenset[str]:
    """GPUs of job `number` that other jobs of the group use, too."""
    used_by_others = {u for index, job in enumerate(resolved) if index != number for u in job.gpu_uuids}
    return frozenset(used_by_others & set(resolved[number].gpu_uuids))


def _divide_gpu_work(
    jobs: Sequence[GroupJob], alone: Sequence[Row | None], together: Sequence[Row]
) -> list[Shares]:
    """Each job's part of the work of each of its shared GPUs. Empty for jobs that share none or did not end ok.

    A job's work a second on each of its GPUs: busy seconds per epoch alone / epoch time together.
    """
    work: list[float | None] = []
    for solo, row in zip(alone, together, strict=True):
        busy, time = solo.gpu_busy_s_per_epoch if solo else None, row.epoch_time_s
        work.append(busy / row.gpus / time if busy is not None and time and row.gpus else None)
    resolved = [job.resolved for job in jobs]

    def find_share(number: int, uuid: str) -> float | None:
        rates = [work[k] for k, user in enumerate(resolved) if uuid in user.gpu_uuids]
        known = [rate for rate in rates if rate is not None]
        mine = work[number]
        return mine / sum(known) if mine is not None and len(known) == len(rates) and sum(known) > 0 else None

    return [
        {uuid: find_share(number, uuid) for uuid in job.resolved.gpu_uuids}
        if job.status == "ok" and find_shared_gpus(resolved, number)
        else {}
        for number, job in enumerate(jobs)
    ]


def _estimate_job_energy(job: GroupJob, shares: Shares) -> tuple[dict[str, Any], dict[str, str]]:
    """The part of its GPUs' energy that is a job's, by its part of their work; and why it has none."""
    if not shares:
        return {}, {}
    columns: dict[str, Any] = {"gpu_busy_s_per_epoch": None}
    missing = {"gpu_busy_s_per_epoch": REASONS["shared-gpu-busy"]}
    for column in ENERGY:
        joules, why = job.joules_by_gpu.get(column), REASONS["shared-gpu-work"]
        columns[column] = divide_energy(joules, shares) if joules else None
        missing[column] = why if joules else job.missing.get(column, why)
    columns["energy_source"] = ESTIMATE if columns["energy_j"] is not None else None
    missing["energy_source"] = missing["energy_j"]
    return columns, missing


def divide_energy(joules_by_gpu: Mapping[str, float], shares_by_gpu: Shares) -> float | None:
    """A job's joules by an estimate: of each GPU's its share, from 0 to 1.

    None where no joules are known, a GPU's share is not, or nothing would be left for the job.
    """
    parts = [
        None if (share := shares_by_gpu.get(gpu)) is None else joules * share
        for gpu, joules in joules_by_gpu.items()
    ]
    return None if None in parts else sum(part for part in parts if part is not None) or None
