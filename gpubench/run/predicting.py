"""What the trials alone, as far as they were measured here, foretell of a group, before it runs.

`analyze.predict` holds the model; whoever needs this imports it when it is called (`run/sweep_state.py` says why).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.analyze.frames import Runs, build_runs
from gpubench.analyze.grid import list_labelled_rows
from gpubench.analyze.predict import estimate_gradient_wait_share, predict_job_slowdowns
from gpubench.core.prediction import NoPrediction
from gpubench.plan.plan import Unit
from gpubench.plan.resolve import ResolvedTrial
from gpubench.record.together import GroupPrediction
from gpubench.results.rows import make_row
from gpubench.schema.record import Record

NEEDS = {"cpu": "CPU seconds an epoch", "gpu": "GPU seconds an epoch"}


def predict_group_slowdowns(
    unit: Unit, resolved: Sequence[ResolvedTrial], alone: Mapping[str, Record]
) -> GroupPrediction:
    """What the rows of the same trials alone say of a group, on these GPUs and CPUs; or why they say nothing.

    `alone`: trial id -> the attempt that counts. The rows of others may tell how long ranks wait for each other.
    """
    ok = {id_: record for id_, record in alone.items() if record.status == "ok"}
    solos = tuple(ok.get(job.membership.solo.trial_id) if job.membership else None for job in unit.jobs)
    lacking = [
        job.membership.name for job, solo in zip(unit.jobs, solos, strict=True) if job.membership and not solo
    ]
    if lacking:
        return GroupPrediction(solos=solos, why_not=f"no figures of job {' and '.join(lacking)} alone")
    known = [record for record in solos if record]
    neighbours = [record for record in ok.values() if not record.group]
    runs = build_runs([make_row(record) for record in (*known, *neighbours)])
    runs["variant_definition"] = [
        repr(sorted((definition or {}).items())) for definition in runs["variant_definition"]
    ]
    names = [job.membership.name if job.membership else "" for job in unit.jobs]
    rows = dict(zip(names, (row for _, row in list_labelled_rows(runs.iloc[: len(known)])), strict=True))
    others_runs = runs.iloc[len(known) :]
    prediction = predict_job_slowdowns(unit.group, rows, resolved, others_runs)
    if isinstance(prediction, NoPrediction):
        resources = prediction.why[0].figures.get("resources")
        needs = ", ".join(NEEDS[name] for name in resources or ())
        why_not = f"not known of the trials alone: {needs}" if needs else "an epoch time alone is not known"
        return GroupPrediction(solos=solos, why_not=why_not)
    waits = [
        _make_gradient_wait_facts(row, place, resolved, others_runs)
        for row, place in zip(rows.values(), resolved, strict=True)
    ]
    return GroupPrediction(solos=solos, prediction=prediction, waits=tuple(waits))


def _make_gradient_wait_facts(
    row: dict[str, Any], place: ResolvedTrial, places: Sequence[ResolvedTrial], all_runs: Runs
) -> dict[str, Any] | None:
    """What of its busy time on GPUs that it shares a job only waits for gradients; None: nothing that is known."""
    is_shared = sum(bool(set(place.gpu_ids) & set(other.gpu_ids)) for other in places) > 1
    if not is_shared or len(place.gpu_ids) < 2:
        return None
    part, is_measured = estimate_gradient_wait_share(row, all_runs)
    return {"part": part, "measured": is_measured} if part or is_measured else None
