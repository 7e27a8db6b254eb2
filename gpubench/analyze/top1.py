"""Does top-1 stay the same? Over seeds, inside a margin of a percentage point.

Along numbers each row is compared with the next smaller one, along words (variants, strategies) with the first. Of
each pair two things are claimed: that they differ, and that they lie inside the margin. One seed decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpubench.analyze.series import (
    CANDIDATES,
    Axes,
    EncodedFields,
    combine_codes,
    encode_values,
    find_tied_fields,
    list_asked_fields,
)
from gpubench.analyze.table_rows import TableRows, group_by, list_claimed_rows
from gpubench.core.claims import Certainty, Claim, Design
from gpubench.core.findings import Top1Finding
from gpubench.schema.record import ALLOTTED
from gpubench.stats.estimates import FEWEST_SEEDS, estimate_top1_difference

ANOTHER_TASK = ("data", "num_classes", "until_top1")
"""Fields whose values have no top-1 in common: other images, or a training that ends at one."""
ASKED_OF_ONE_SEED = ("variant", "precision", "optimizer")
"""Fields of which it is said that nothing is known where there are too few seeds: they change what is learned."""
MARGIN = 1.0
"""Percentage points inside which top-1 counts as equal. For less than one nobody takes the slower of two trainings;
and it is about the least that five seeds show that lie half a point (a standard deviation) apart."""


def make_claims(rows: TableRows) -> list[Claim]:
    """Two claims a pair of rows, field by field: that they differ, and that they are equal."""
    seeds = collect_top1_by_seed(rows)
    summary = rows.summary
    is_judged = rows.has_solo_rate & summary.index.isin(list(seeds)) & summary["until_top1"].isna().to_numpy()
    if is_judged.sum() < 2:
        return []
    fields = rows.fields.take(is_judged)
    images = summary["val_images"].astype("float64")[is_judged]
    designs: tuple[tuple[Design, float], ...] = (("paired", 0.0), ("equal", MARGIN))
    claims = []
    compared = set()
    for field in rows.varied:
        for candidate, baseline in list_compared_pairs(rows.axes, fields, images, field):
            sides = seeds[candidate], seeds[baseline]
            if min(map(len, sides)) < FEWEST_SEEDS and field not in ASKED_OF_ONE_SEED:
                continue
            if frozenset((candidate, baseline)) in compared:
                continue
            compared.add(frozenset((candidate, baseline)))
            fewest = images[[candidate, baseline]].min()
            evidence = estimate_top1_difference(*sides, images=None if np.isnan(fewest) else int(fewest))
            claims += [
                Claim(
                    metric="top1_pct",
                    candidate=candidate,
                    baseline=baseline,
                    evidence=evidence,
                    design=design,
                    family=f"top1:{field}",
                    limit=limit,
                )
                for design, limit in designs
            ]
    return claims


def make_findings(rows: TableRows, claims: Sequence[Claim]) -> list[Top1Finding]:
    """What the decided claims come to: a finding a field, along words one for each two values."""
    if not claims:
        return []
    seeds = collect_top1_by_seed(rows)

    def list_sides(claim: Claim) -> tuple[str, object, object]:
        field = claim.family.split(":")[1]
        if rows.fields.is_numeric(field):
            return field, None, None
        return field, rows.get(claim.candidate, field), rows.get(claim.baseline, field)

    findings = []
    for (field, value, baseline), members in group_by(claims, list_sides).items():
        pairs = group_by(members, lambda claim: (claim.candidate, claim.baseline))
        # A pair is as sure as the surer of its two claims.
        best = [min((claim.decided.word for claim in pair), key=CERTAINTIES.index) for pair in pairs.values()]
        about = list_claimed_rows(members)
        findings.append(
            Top1Finding(
                word=max(best, key=CERTAINTIES.index),
                claims=tuple(members),
                rows=about,
                field=field,
                value=value,
                baseline=baseline,
                seeds=min(len(seeds[row]) for row in about),
            )
        )
    return findings


CERTAINTIES: tuple[Certainty, ...] = ("sure", "likely", "unknown")


def collect_top1_by_seed(rows: TableRows) -> dict[int, list[float]]:
    """The top-1 of each of a row's repeats, which differ in their seed, in per cent; of several rounds the first."""
    ended = rows.ended_processes[["row", "repeat", "round", "top1_pct"]]
    ended = ended[ended["top1_pct"].notna()].sort_values("round", kind="stable")
    first = ended.drop_duplicates(["row", "repeat"])
    seeds: dict[int, list[float]] = first.groupby("row")["top1_pct"].agg(list).to_dict()  # type: ignore[assignment]
    return seeds


def list_compared_pairs(
    axes: Axes, fields: EncodedFields, images: pd.Series[float], field: str
) -> list[tuple[int, int]]:
    """Rows that differ in `field`, and in what moves with it, alone, each with the one that it is compared with.

    `images`: those that top-1 of each row was taken on.
    """
    if field in (*ANOTHER_TASK, *ALLOTTED) or len(np.unique(fields.codes[field])) < 2:
        return []
    wanted = list_asked_fields(axes)
    implied = {
        name for name in CANDIDATES if axes and name not in wanted and fields.is_determined(name, (field,))
    }
    free = {field, *find_tied_fields(axes, field), *implied, *ALLOTTED}
    apart = [fields.codes[name] for name in (*CANDIDATES, "machine") if name not in free]
    values = fields.frame[field]
    frame = pd.DataFrame(
        {
            "place": combine_codes(len(fields), [*apart, encode_values(images)]),
            "value": values,
            "label": values.index,
        }
    )
    if fields.is_numeric(field):
        frame = frame.sort_values("value", kind="stable")
        frame["other"] = frame.groupby("place")["label"].shift()
    else:
        frame["other"] = frame.groupby("place")["label"].transform("first")
    frame = frame[frame["other"].notna() & (frame["other"] != frame["label"])]
    baselines = frame["other"].astype("int64")
    differ = frame["value"].to_numpy() != values[baselines].to_numpy()
    return [
        (int(row), int(other)) for row, other in zip(frame["label"][differ], baselines[differ], strict=True)
    ]
