"""Who reaches the target first, in seconds and in joules.

The unit of evidence is the seed: further rounds train the same again, in about as many epochs. Only rows that trained
until the same top-1 on the same images are compared, each with each: the first is chosen by the figures, and a claim on
the best of many has to hold against any of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from gpubench.analyze.table_rows import (
    Figures,
    TableRows,
    average_log,
    average_rounds_by_repeat,
    find_claims_remedy,
    join_certainty_of_claims,
    list_unsettled_claims,
)
from gpubench.core.claims import Claim
from gpubench.core.findings import TargetFinding
from gpubench.schema.command import list_placeholders
from gpubench.schema.record import Record

TASK = ("until_top1", "until", "data", "num_classes", "machine")
"""Rows that differ in one of these have no target in common."""
EPOCHS_APART = 2.0
"""Epochs to a target by which two seeds of one configuration may differ."""
TIME, ENERGY = "time_to_top1_s", "energy_to_top1_j"


def collect_training_curves(
    records: Iterable[Record], runs: pd.DataFrame
) -> dict[int, tuple[tuple[float, float], ...]]:
    """Of each row the process whose time to the target is the median (the lower one of two): seconds of training and
    top-1 in per cent after each epoch that was judged. Of a row that did not reach it the first process."""
    by_process = {(record.trial_id, record.round): record for record in records}
    ordered = runs.sort_values(["time_to_top1_s", "repeat", "round"], na_position="last")
    reached = ordered.groupby("row")["time_to_top1_s"].transform("count")
    place = ordered.groupby("row").cumcount()
    chosen = ordered[place == (reached - 1).clip(lower=0) // 2]
    traces = {}
    for row, trial_id, turn in zip(chosen["row"], chosen["trial_id"], chosen["round"], strict=True):
        record = by_process.get((trial_id, turn))
        seconds, points = 0.0, []
        for epoch in record.epochs if record else ():
            seconds += epoch.get("epoch_time_s") or math.nan
            top1 = epoch.get("top1_pct")
            if top1 is not None and not math.isnan(seconds):
                points.append((seconds, float(top1)))
        traces[int(row)] = tuple(points)
    return traces


def make_claims(rows: TableRows) -> list[Claim]:
    """Of each two rows that reached a target, the slower one as baseline; then the same of their energy.

    Ratios are of seconds and of joules: below 1 the candidate has the less. Where a row is of one seed, both its
    epochs to the target and the pace of its process may be others with the next.
    """
    claims = []
    epochs = rows.summary["epochs_to_top1"].astype("float64")
    for number, members in enumerate(split_rows_by_target(rows.summary)):
        for metric in (TIME, ENERGY):
            figures = collect_figures_to_target(rows, members, metric)
            order = sorted(figures, key=lambda row: average_log(figures[row]))
            for candidate, baseline in itertools.combinations(order, 2):
                claim = rows.make_claim(
                    metric, figures, candidate, baseline, family=f"target:{number}:{metric}"
                )
                noise, pair = claim.evidence.noise, epochs[[candidate, baseline]]
                if noise is not None:  # what seeds may differ by matters where nothing can be tested
                    noise = math.hypot(noise, *(EPOCHS_APART / pair)) if (pair > 0).all() else None
                claims.append(replace(claim, evidence=replace(claim.evidence, noise=noise)))
    return claims


def make_findings(rows: TableRows, claims: Sequence[Claim]) -> list[TargetFinding]:
    """What the decided claims come to, a finding a target."""
    findings = []
    for number, members in enumerate(split_rows_by_target(rows.summary)):
        about = [claim for claim in claims if claim.family.startswith(f"target:{number}:")]
        order = _rank_rows(rows, members, TIME)
        frugal = _rank_rows(rows, members, ENERGY)
        first = [claim for claim in about if claim.metric == TIME and claim.candidate == order[0]]
        least = [claim for claim in about if claim.metric == ENERGY and claim.candidate == frugal[0]]
        more = [claim for claim in least if claim.decided.word != "unknown"]
        costlier = {claim.baseline for claim in more}
        rest = [
            claim
            for claim in about
            if claim.metric == ENERGY and not costlier & {claim.candidate, claim.baseline}
        ]
        is_interrupted = members["status"] == "interrupted"
        findings.append(
            TargetFinding(
                word=join_certainty_of_claims(first),
                claims=tuple(about),
                rows=tuple(map(int, members.index)),
                remedy=find_claims_remedy(
                    list_unsettled_claims(first),
                    about,
                    rows.round_minutes,
                    rows.seeds,
                    is_of_seeds=not is_seedless(rows, int(members.index[0])),
                ),
                target_pct=float(members["until_top1"].fillna(0).iloc[0]),
                until=str(members["until"].fillna("").iloc[0]),
                order=tuple(order),
                as_fast=tuple(claim.baseline for claim in first if claim.decided.word == "unknown"),
                unreached=tuple(
                    int(row) for row in members.index[(members["repeats"] > 0) & ~members.index.isin(order)]
                ),
                interrupted=tuple(map(int, members.index[is_interrupted & (members["repeats"] == 0)])),
                least_energy=frugal[0] if frugal else None,
                energy_word="unknown"
                if any(claim.decided.word == "unknown" for claim in least)
                else join_certainty_of_claims(least),
                costlier=tuple(claim.baseline for claim in more),
                costlier_word=join_certainty_of_claims(more),
                are_others_alike=all(claim.decided.word == "unknown" for claim in rest),
            )
        )
    return findings


def split_rows_by_target(summary: pd.DataFrame) -> list[pd.DataFrame]:
    """The rows of trials alone that went on until a top-1, or a figure of a command, was reached: by target."""
    has_target = summary["until_top1"].notna() | summary["until"].notna()
    is_asked = has_target & summary["machine"].notna() & summary["group"].isna()
    if not is_asked.any():
        return []
    return [part for _, part in summary[is_asked].groupby(list(TASK), sort=False, dropna=False)]


def collect_figures_to_target(rows: TableRows, members: pd.DataFrame, metric: str) -> Figures:
    """A figure of each seed of the rows all of whose processes reached the target: the lucky ones would flatter.

    A command that is given no seed draws another one in each process.
    """
    figures = rows.collect(rows.ended_processes[metric])
    return {
        row: figures[row] if is_seedless(rows, row) else average_rounds_by_repeat(figures[row])
        for row in members.index
        if row in figures and len(figures[row]) == rows.get(row, "repeats")
    }


def is_seedless(rows: TableRows, row: int) -> bool:
    """Whether a row is of a command that is given neither its seed nor the number of its repeat."""
    command = rows.get(row, "command")
    return isinstance(command, str) and {"seed", "repeat"}.isdisjoint(list_placeholders(command))


def _rank_rows(rows: TableRows, members: pd.DataFrame, metric: str) -> list[int]:
    figures = collect_figures_to_target(rows, members, metric)
    return sorted(figures, key=lambda row: average_log(figures[row]))
