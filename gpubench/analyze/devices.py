"""What more devices bring: each row against the same work on fewer, by the same batch or the same batch a device.

A strategy is a question of its own. Which row is the baseline the summary tells: `single` on one device where that was
measured, else the fewest devices under the same strategy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpubench.analyze.table_rows import TableRows, group_by
from gpubench.core.claims import Claim
from gpubench.core.findings import DevicesFinding, SpeedUp

BASELINES = {"strong": "strong_baseline", "weak": "weak_baseline"}
"""Kind of scaling -> the column of the summary with the label of the row that it is against."""


def make_claims(rows: TableRows) -> list[Claim]:
    """The speed-ups of a table, those by the same batch first; none where rows are there for their groups alone."""
    alone = rows.solo_rows[:0] if rows.has_only_baselines else rows.solo_rows
    return [
        rows.make_claim(
            "images_per_s",
            rows.rates,
            row,
            baseline,
            family=f"devices:{rows.get(row, 'strategy')}",
            series=kind,
        )
        for kind, column in BASELINES.items()
        for known in [alone[column].dropna().astype("int64")]
        for row, baseline in zip(known.index.tolist(), known.tolist(), strict=True)
        if baseline != row and baseline in rows.rates
    ]


def make_findings(rows: TableRows, claims: Sequence[Claim]) -> list[DevicesFinding]:
    """What the decided claims come to: a finding a strategy, that with the best rate first."""
    findings = [
        DevicesFinding(
            **rows.summarize_claims(members, members),
            strategy=str(rows.get(members[0].candidate, "strategy")),
            speed_ups=tuple(
                SpeedUp(
                    claim=claim,
                    devices=several,
                    baseline_devices=few,
                    same_batch_a_device=claim.series == "weak",
                    efficiency=math.exp(claim.evidence.center) * few / several,
                )
                for claim in members
                for several, few in [rows.devices[[claim.candidate, claim.baseline]].tolist()]
            ),
        )
        for members in group_by(claims, lambda claim: claim.family).values()
    ]
    rates = rows.summary["images_per_s"].fillna(0)
    return sorted(
        findings, key=lambda finding: -max(rates[speed_up.claim.candidate] for speed_up in finding.speed_ups)
    )
