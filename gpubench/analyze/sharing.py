"""May these jobs share the machine? The work that jobs get done together against one after the other.

Work is the sum of time alone by time together over all jobs: 1 is as much as one job after the other, the number of
jobs no loss at all. On the way from 1 to that, up to a tenth is no overlap, from nine tenths on full overlap. What is
claimed are the sides of these two borders, so that a word is what they leave.

A time alone that is beaten beside others is spoilt, as neighbours don't help; then nothing is known of any group that
is compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from gpubench.analyze.table_rows import (
    Figures,
    TableRows,
    find_claims_remedy,
    group_by,
    join_certainty,
    join_certainty_of_claims,
)
from gpubench.core.claims import Claim, Design
from gpubench.core.findings import MeasuredJobGroup, SharingFinding
from gpubench.core.prediction import FULL_OVERLAP, NO_OVERLAP
from gpubench.stats.estimates import estimate_combined_work

NONE, SOME, FULL = "none", "some", "full"
UNKNOWN = "unknown"
WORK, SLOWDOWN = "work", "slowdown"


def make_claims(rows: TableRows) -> list[Claim]:
    """For each group on which sides of both borders its work lies, and of its jobs whether they are faster than alone.

    Claims of work have the group's first job as candidate and as baseline, and the border in `limit`; those of
    `slowdown` the job and its trial alone.
    """
    if rows.is_of_tries or not rows.is_job.any():
        return []
    # Of epochs: a job and its trial alone are of equally many images.
    times, alone = rows.collect(rows.ended_processes["epoch_time_s"]), find_solo_rows(rows)
    baselines = collect_baseline_times(rows, times, alone)
    claims = []
    for group in list_job_groups(rows):
        claims += [
            rows.make_claim(SLOWDOWN, times, row, alone[row], family=f"sharing:{row}")
            for row in group.rows
            if row in times and alone.get(row) in times
        ]
        samples = [times.get(row, {}) for row in group.rows]
        runs = [key for key in samples[0] if all(key in times_of_job for times_of_job in samples)]
        together = [[times_of_job[key] for key in runs] for times_of_job in samples]
        if len(group.rows) < group.jobs or not runs or not all(row in baselines for row in group.rows):
            continue
        evidence = estimate_combined_work(
            dict(baselines[row] for row in group.rows),
            [(baselines[row][0], samples) for row, samples in zip(group.rows, together, strict=True)],
            noise=rows.find_largest_noise(*group.rows, *(alone[row] for row in group.rows if row in alone)),
        )
        designs: tuple[Design, Design] = ("above", "below")
        claims += [
            Claim(
                metric=WORK,
                candidate=group.rows[0],
                baseline=group.rows[0],
                evidence=evidence,
                design=design,
                family="sharing",
                limit=math.log(border),
            )
            for border in compute_overlap_borders(group.jobs)
            for design in designs
        ]
    # By all processes: a group and a trial alone have no rounds in common, only the machine.
    return [replace(claim, evidence=replace(claim.evidence, pairs=None)) for claim in claims]


def make_findings(rows: TableRows, claims: Sequence[Claim]) -> list[SharingFinding]:
    """What the decided claims come to; none without a group, nor of tries, which have no times."""
    if rows.is_of_tries or not rows.is_job.any():
        return []
    about = group_by((claim for claim in claims if claim.metric == WORK), lambda claim: claim.candidate)
    spoilt = {
        claim.baseline: claim.candidate
        for claim in claims
        if claim.metric == SLOWDOWN and claim.shows("less")
    }
    alone = find_solo_rows(rows)
    groups = []
    for group in list_job_groups(rows):
        spoilt_by = next((spoilt[alone[row]] for row in group.rows if alone.get(row) in spoilt), None)
        groups.append(_judge_group(group, about.get(group.rows[0], []), spoilt_by, rows.summary))
    unsettled = [
        claim
        for group in groups
        if group.gains is None and group.spoilt_by is None
        for claim in about.get(group.rows[0], [])[:2]
        if claim.decided.direction == ("more" if claim.design == "above" else "less")
    ]
    finding = SharingFinding(
        word=join_certainty(group.word for group in groups),
        claims=tuple(claims),
        rows=tuple(row for group in groups for row in group.rows),
        remedy=find_claims_remedy(unsettled, claims, rows.round_minutes, rows.seeds),
        groups=tuple(groups),
    )
    return [finding]


def compute_overlap_borders(jobs: int) -> tuple[float, float]:
    """The work up to which so many jobs don't overlap, and from which on they overlap fully."""
    return 1 + NO_OVERLAP * (jobs - 1), 1 + FULL_OVERLAP * (jobs - 1)


def list_job_groups(rows: TableRows) -> list[MeasuredJobGroup]:
    """The groups of jobs of a table, in its order, before anything is known of their work.

    Copies are named by what they are copies of. Groups that share a name are told apart by the fields in which all jobs
    of each are alike.
    """
    names = dict.fromkeys(("group", "unit", "jobs_of_group", *rows.varied))
    jobs = rows.summary.loc[rows.is_job, list(names)]
    shared = jobs.groupby("group")["unit"].nunique()
    groups = []
    for _, members in jobs.groupby("unit", sort=False):
        name = str(members["group"].iloc[0])
        label = {}
        if shared[name] > 1:
            namesakes = jobs[jobs["group"] == name]
            label = {
                field: members[field].iloc[0]
                for field in rows.varied
                if members[field].nunique(dropna=False) == 1 < namesakes[field].nunique(dropna=False)
            }
        groups.append(
            MeasuredJobGroup(
                name="" if "copies" in rows.varied else name,
                label={} if "copies" in rows.varied else label,
                rows=tuple(map(int, members.index)),
                jobs=max(len(members), int(members["jobs_of_group"].fillna(0).max())),
            )
        )
    return groups


def find_solo_rows(rows: TableRows) -> dict[int, int]:
    """Of each job the row of the same trial alone on the same machine, where there is one that ended ok."""
    solos = rows.ended_processes.loc[rows.ended_processes["group"].isna(), ["trial_id", "machine", "row"]]
    labels: dict[tuple[str, str], int] = {}
    for trial, machine, row in solos.itertuples(index=False):
        labels.setdefault((trial, machine), row)
    jobs = rows.summary.loc[rows.is_job, ["solo_id", "machine"]]
    return {
        row: labels[trial, machine] for row, trial, machine in jobs.itertuples() if (trial, machine) in labels
    }


def collect_baseline_times(
    rows: TableRows, times: Figures, alone: Mapping[int, int]
) -> dict[int, tuple[Hashable, list[float]]]:
    """Of each job the name of its trial alone and the times of that; a job of which they are not known is left out.

    Where no row is of the trial alone, these are the times that the group's own runs were compared with.
    """
    stored = rows.ended_processes[["row", "solo_epoch_time_s"]].dropna().drop_duplicates()
    baselines: dict[int, tuple[Hashable, list[float]]] = {}
    for row, seconds in zip(stored["row"], stored["solo_epoch_time_s"], strict=True):
        solo_id = rows.get(row, "solo_id")
        baselines.setdefault(row, (solo_id if isinstance(solo_id, str) else row, []))[1].append(seconds)
    known = {row: label for row, label in alone.items() if label in times}
    return baselines | {row: (label, list(times[label].values())) for row, label in known.items()}


def _judge_group(
    group: MeasuredJobGroup, claims: Sequence[Claim], spoilt_by: int | None, summary: pd.DataFrame
) -> MeasuredJobGroup:
    """What the claims of its work come to; without any, nothing is known of it."""
    none, full = (math.log(border) for border in compute_overlap_borders(group.jobs))
    shown = {
        (claim.design, claim.limit): claim
        for claim in claims
        if spoilt_by is None and claim.decided.word != UNKNOWN
    }
    above_none, below_none = shown.get(("above", none)), shown.get(("below", none))
    above_full, below_full = shown.get(("above", full)), shown.get(("below", full))
    overlaps = tuple(
        word
        for word, excluded in ((NONE, above_none), (SOME, below_none or above_full), (FULL, below_full))
        if claims and excluded is None
    )
    gains = True if above_none else False if below_none else None
    # The bound that the word rests on: where two borders bound it, that which says whether sharing gains.
    resting = above_full or above_none or below_none or below_full
    return replace(
        group,
        work=math.exp(claims[0].evidence.center) if claims else None,
        bound=None if resting is None else resting.decided.low or resting.decided.high,
        is_lower_bound=resting is not None and resting.design == "above",
        overlaps=overlaps,
        word=join_certainty_of_claims(shown.values()),
        gains=gains,
        spoilt_by=spoilt_by,
        predicted_work=_sum_predicted_work(group, summary),
    )


def _sum_predicted_work(group: MeasuredJobGroup, summary: pd.DataFrame) -> float | None:
    """The work that was predicted before the group ran; None where a job has no prediction."""
    slowdowns = summary.loc[list(group.rows), "predicted_slowdown"].astype("float64")
    if slowdowns.isna().any() or len(slowdowns) < group.jobs:
        return None
    return float((1 / slowdowns).sum())
